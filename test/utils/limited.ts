/** A child that does what its prompt says, as far as its limits let it. */
import type { Agent, Capabilities } from "effect-subagent"
import { Content } from "effect-subagent"
import { ScriptedProvider } from "effect-subagent/testing"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { agentOf, type Placed, type Provider, root, type Seam } from "./seam.ts"

const { hang, nextTurn, run, text, usage } = ScriptedProvider

/** So many turns of 10 tokens each. Their usage is that of the whole run, as far as it has come. */
const turns = (n: number): ReadonlyArray<ScriptedProvider.Step> =>
  Array.from({ length: n }, (_, before) =>
    nextTurn([usage({ total: 10 * (before + 1) }), text(`turn ${before + 1}`)], { wrapUp: [text("so far")] })
  )

/**
 * `modest` says that it is done, `turns 3` takes three turns of 10 tokens, `tokens 7` reports so many in one turn, `wait`
 * says what it has so far and hangs, `hold` does so until it is let go, `slow` never starts.
 */
const obeying = (
  prompt: string,
  note: Effect.Effect<unknown>,
  letGo: Effect.Effect<unknown>
): ReadonlyArray<ScriptedProvider.Step> => {
  const [what, n] = prompt.split(" ")
  if (what === "turns") return turns(Number(n))
  if (what === "tokens") return [nextTurn([text("reading"), usage({ total: Number(n) }), text("read")])]
  if (what === "wait") return [text("so far"), run(() => note), hang]
  if (what === "hold") return [text("so far"), run(() => note), run(() => letGo)]
  return [text("done")]
}

/** The provider `p`, and what its children are at. */
export const makeChildren = (capabilities: Partial<Capabilities.Capabilities> = {}) =>
  Effect.gen(function* () {
    const placed: Array<Placed> = []
    let begun = Deferred.makeUnsafe<void>()
    const over = Deferred.makeUnsafe<void>()
    const note = Effect.suspend(() => Deferred.succeed(begun, undefined))
    const script = (request: Placed): ScriptedProvider.Phases => {
      placed.push(request)
      const prompt = Content.toText(request.prompt)
      return {
        start: prompt === "slow" ? [run(() => note), hang] : [],
        turn: obeying(prompt, note, Deferred.await(over)),
        resumed: (content) => obeying(Content.toText(content), note, Deferred.await(over)),
        token: Effect.succeed("kept")
      }
    }
    const scripted = yield* ScriptedProvider.make(script, { name: "p", capabilities, continued: script })
    return {
      provider: scripted.provider satisfies Provider,
      runs: scripted.runs,
      placed,
      /** The agent of the child that was placed last. */
      agent: (): Agent.Agent => agentOf(placed.at(-1)!),
      /** Lets all who hold go. */
      letGo: Deferred.succeed(over, undefined),
      /** Waits until a child hangs, and forgets that it does. */
      hanging: Effect.suspend(() => Deferred.await(begun)).pipe(
        Effect.tap(() => Effect.sync(() => (begun = Deferred.makeUnsafe<void>())))
      )
    }
  })

export type Children = Effect.Success<ReturnType<typeof makeChildren>>

/** A child that holds, as the agent that others are below. */
export const parentIn = (seam: Seam, children: Children, fields: object = {}, above: Agent.Agent = root) =>
  Effect.gen(function* () {
    const run = yield* seam.start("p", { prompt: "hold", parent: above, ...fields })
    yield* children.hanging
    return { run, agent: children.agent() }
  })
