/**
 * The contract as tests that any provider's author runs, in their own repository and with their own test runner.
 *
 * `suite` registers one test per promise that can be seen from a provider. Each builds the layer afresh, runs in real
 * time unless the layer brings another clock, and ends within a bound. When all have run, a table of provider and
 * contract item is printed. This module imports no test runner: `describe` and `it` come in through the options.
 *
 * @since 0.1.0
 */
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { Capabilities } from "../Capabilities.ts"
import { Subagents } from "../Subagents.ts"
import { capabilityCases } from "./internal/capabilityCases.ts"
import type { Given } from "./internal/harness.ts"
import * as Harness from "./internal/harness.ts"
import { lifeCases } from "./internal/lifeCases.ts"
import { runCases } from "./internal/runCases.ts"
import type { Case } from "./internal/startCases.ts"
import { startCases } from "./internal/startCases.ts"

/**
 * The prompts that make a provider's child do what a case needs. A case whose prompt is absent is not run.
 *
 * @category options
 * @since 0.1.0
 */
export interface Prompts {
  /** The child answers in words and ends its turn. */
  readonly complete: string
  /** The child works, or waits, until it is stopped. */
  readonly hang?: string | undefined
  /** The child fails by itself: its model does, say. */
  readonly fail?: string | undefined
  /** The child says something, then works until it is stopped. */
  readonly stream?: string | undefined
  /** The child says something, calls a tool, and answers. */
  readonly callTool?: string | undefined
  /** The child calls a tool that needs an approval, and answers whatever comes of it. */
  readonly ask?: string | undefined
  /** The child submits `{ "count": "3" }` when it is asked for a value, of a schema that this is a value of. */
  readonly submit?: string | undefined
  /** The child submits what that schema refuses, such as `{ "count": 3 }`, as often as it is asked. */
  readonly submitInvalid?: string | undefined
  /** The child waits for a message, reads it, and answers. Says that its children take messages. */
  readonly steer?: string | undefined
  /** The child of an earlier run answers in words. Says that its children can be resumed. */
  readonly resume?: string | undefined
  /** There is no child: `start` fails. */
  readonly failStart?: string | undefined
}

/**
 * What there is on the provider's own side at the moment.
 *
 * @category models
 * @since 0.1.0
 */
export interface World {
  /** Whatever a start opens: sessions, processes, connections. */
  readonly sessions: number
  /** Turns that are being worked on, whether or not anybody waits for them. */
  readonly turns: number
}

/**
 * What a test is registered with: the `it` of vitest, of `@effect/vitest`, of `node:test`, or one like them. Without a
 * `skip`, a case that is not run is registered as a test that does nothing.
 *
 * @category models
 * @since 0.1.0
 */
export interface It {
  (name: string, run: () => Promise<void>): unknown
  readonly skip?: ((name: string, run: () => Promise<void>) => unknown) | undefined
}

/**
 * How the suite is run.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options<R = never> {
  /** The test runner's. */
  readonly describe: (name: string, define: () => void) => unknown
  /** The test runner's. */
  readonly it: It
  readonly prompts: Prompts
  /**
   * What the provider is meant to declare, which is checked. `false` also leaves out the cases that need it.
   *
   * @default {}
   */
  readonly capabilities?: { readonly [K in keyof Capabilities]?: boolean | undefined } | undefined
  /**
   * The provider's name in the registry.
   *
   * @default the name of the one provider there is
   */
  readonly provider?: string | undefined
  /** The working directory of the parents that delegate. */
  readonly cwd?: string | undefined
  /**
   * Looks at the provider's own side, so that what leaks or goes on behind the seam's back is seen. Without it the
   * suite sees only what the seam sees. If an end takes a moment to show there, it waits for that moment.
   */
  readonly world?: Effect.Effect<World, never, R> | undefined
  /**
   * How long one case may take, in real time. Keep it below the test runner's own limit.
   *
   * @default "4 seconds"
   */
  readonly timeout?: Duration.Input | undefined
  /**
   * Where the table goes.
   *
   * @default the `Console` service
   */
  readonly print?: ((table: string) => void) | undefined
}

/**
 * Registers the contract as tests of a provider. The layer contributes it over `Subagents.layer`:
 *
 * ```ts
 * ProviderConformance.suite("mine", MyProvider.layer().pipe(Layer.provideMerge(Subagents.layer)), {
 *   describe,
 *   it,
 *   prompts: { complete: "say hello", hang: "wait" }
 * })
 * ```
 *
 * @category suites
 * @since 0.1.0
 */
export const suite = <R, E>(name: string, layer: Layer.Layer<Subagents | R, E>, options: Options<R>): void => {
  const cases = [...startCases, ...runCases, ...capabilityCases, ...lifeCases].toSorted((a, b) => a.item - b.item)
  const outcomes = new Map<Case, string>()
  const print = options.print === undefined ? Console.log : (table: string) => Effect.sync(() => options.print!(table))

  const report = (each: Case, outcome: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      outcomes.set(each, outcome)
      return outcomes.size === cases.length ? print(table(name, cases, outcomes)) : Effect.void
    })

  options.describe(`${name} keeps the contract of a provider`, () => {
    for (const each of cases) {
      const lacking = lackingFor(each, options)
      const title = `(${each.item}) ${each.title}`
      if (lacking.length > 0) {
        outcomes.set(each, `not run: ${lacking.join(", ")}`)
        const register = options.it.skip?.bind(options.it) ?? options.it
        register(`${title} [not run: needs ${lacking.join(", ")}]`, () => Effect.runPromise(Effect.void))
        continue
      }
      options.it(title, () =>
        within(options.timeout ?? Duration.seconds(4), attempt(each, layer, options)).pipe(
          Effect.onExit((exit) => report(each, Exit.isSuccess(exit) ? "pass" : "fail")),
          Effect.runPromise
        )
      )
    }
  })
}

const lackingFor = <R>({ capability, needs }: Case, options: Options<R>): ReadonlyArray<string> => [
  ...needs.filter((kind) => options.prompts[kind] === undefined).map((kind) => `prompts.${kind}`),
  ...(capability !== undefined && options.capabilities?.[capability] === false ? [capability] : [])
]

/** Runs a case on a layer of its own. */
const attempt = <R, E>(each: Case, layer: Layer.Layer<Subagents | R, E>, options: Options<R>) =>
  Effect.gen(function* () {
    const context = yield* Layer.buildWithMemoMap(layer, yield* Layer.makeMemoMap, yield* Effect.scope)
    const given: Given = {
      layer,
      provider: options.provider,
      prompts: options.prompts,
      capabilities: options.capabilities ?? {},
      cwd: options.cwd,
      world: options.world && Effect.provideContext(options.world, context)
    }
    yield* Harness.make(Context.get(context, Subagents), given).pipe(
      Effect.flatMap(each.run),
      Effect.scoped,
      Effect.provideContext(context)
    )
  }).pipe(Effect.scoped)

/** Waits no longer than this, not even for what an interruption has to wait for. */
const within = <A, E>(timeout: Duration.Input, effect: Effect.Effect<A, E>): Effect.Effect<A, unknown> =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkDetach(effect, { startImmediately: true })
    const exit = yield* Effect.timeoutOption(Fiber.await(fiber), timeout)
    if (Option.isSome(exit)) return yield* exit.value
    fiber.interruptUnsafe()
    const message = `Expected an end within ${Duration.format(Duration.fromInputUnsafe(timeout))}`
    return yield* new Harness.Violation({ message })
  })

const table = (name: string, cases: ReadonlyArray<Case>, outcomes: ReadonlyMap<Case, string>): string =>
  [
    `| contract | a provider | ${name} |`,
    "| ---: | --- | --- |",
    ...cases.map((each) => `| ${each.item} | ${each.title} | ${outcomes.get(each)} |`)
  ].join("\n")
