/** Runs the conformance suite with a test runner that only takes notes. */
import { Subagents } from "effect-subagent"
import { ProviderConformance, ScriptedProvider } from "effect-subagent/testing"
import * as Layer from "effect/Layer"

/** The suite's own layer for a scripted provider. */
export const scripted = (options: ScriptedProvider.Options = {}, script: ScriptedProvider.Script = []) =>
  ScriptedProvider.layer(script, options).pipe(Layer.provideMerge(Subagents.layer))

interface Registered {
  readonly name: string
  readonly run: () => Promise<void>
  readonly skipped: boolean
}

/** Registers the suite with a test runner that only takes notes. */
export const register = <R, E>(
  layer: Layer.Layer<Subagents.Subagents | R, E>,
  options: Omit<ProviderConformance.Options<R>, "describe" | "it">,
  canSkip = true
) => {
  const described: Array<string> = []
  const tests: Array<Registered> = []
  const note = (skipped: boolean) => (name: string, run: () => Promise<void>) => tests.push({ name, run, skipped })
  ProviderConformance.suite("variation", layer, {
    ...options,
    describe: (name, define) => {
      described.push(name)
      define()
    },
    it: canSkip ? Object.assign(note(false), { skip: note(true) }) : note(false)
  })
  return { described, tests }
}

/** Runs the suite and gives the numbers of the items that failed, and what they said. */
export const failures = async <R, E>(
  layer: Layer.Layer<Subagents.Subagents | R, E>,
  options: Omit<ProviderConformance.Options<R>, "describe" | "it" | "print">
) => {
  const { tests } = register(layer, { timeout: "20 seconds", ...options, ...mute })
  const ends = await Promise.all(
    tests
      .filter(({ skipped }) => !skipped)
      .map(({ name, run }) =>
        run().then(
          () => [],
          (error: unknown) => [{ item: Number(/^\((\d+)\)/.exec(name)?.[1]), name, error: String(error) }]
        )
      )
  )
  return ends.flat()
}

/** The items among them. */
export const itemsOf = (failed: Awaited<ReturnType<typeof failures>>) => [...new Set(failed.map(({ item }) => item))]

/** No table. */
export const mute = { print: () => {} }
