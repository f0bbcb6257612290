/**
 * What the cases of the conformance suite work with: the provider as its users see it, the provider under observation,
 * a signal that counts its listeners, the events so far, and checks that say what they expected.
 *
 * @since 0.1.0
 */
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Exit from "effect/Exit"
import { format } from "effect/Formatter"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Agent from "../../Agent.ts"
import type { Capabilities } from "../../Capabilities.ts"
import type { SubagentError, SubagentErrorReason } from "../../SubagentError.ts"
import type { SubagentEvent } from "../../SubagentEvent.ts"
import type { ChildOutcome, PlacedRequest, SubagentProvider } from "../../SubagentProvider.ts"
import type { AbortSignalLike, SubagentStartRequest } from "../../SubagentRequest.ts"
import type { SubagentRun } from "../../SubagentRun.ts"
import type { Subagents } from "../../Subagents.ts"

/** A promise of the contract that does not hold. */
export class Violation extends Data.TaggedError("Violation")<{ readonly message: string }> {}

/** Fails, unless it holds. */
export const expect = (holds: boolean, expected: string): Effect.Effect<void, Violation> =>
  holds ? Effect.void : Effect.fail(new Violation({ message: `Expected ${expected}` }))

/** Fails, unless both are equal, part for part. */
export const expectEqual = (actual: unknown, expected: unknown, what: string): Effect.Effect<void, Violation> =>
  expect(Equal.equals(actual, expected), `${what} to be ${format(expected)}, and it is ${format(actual)}`)

/** Gives the reason for which an effect is refused, and fails if it is not refused. */
export const refusal = <A, R>(
  effect: Effect.Effect<A, SubagentError, R>,
  what: string
): Effect.Effect<SubagentErrorReason, Violation, R> =>
  Effect.matchEffect(effect, {
    onFailure: ({ reason }) => Effect.succeed(reason),
    onSuccess: () => Effect.fail(new Violation({ message: `Expected ${what} to be refused, and it was accepted` }))
  })

/** A signal of nobody's runtime, and how many listeners it has. */
export interface Signal extends AbortSignalLike {
  readonly abort: () => void
  readonly listeners: () => number
}

/** A signal that has not been aborted. */
export const makeSignal = (): Signal => {
  const listeners = new Set<() => void>()
  let aborted = false
  return {
    get aborted() {
      return aborted
    },
    addEventListener: (_type, listener) => listeners.add(listener),
    removeEventListener: (_type, listener) => listeners.delete(listener),
    abort: () => {
      aborted = true
      for (const listener of Array.from(listeners)) listener()
    },
    listeners: () => listeners.size
  }
}

/** One start that reached the provider, and what has been seen of it. */
export interface Seen {
  readonly placed: PlacedRequest
  /** Done when the provider has given a session. */
  readonly opened: Deferred.Deferred<void>
  turns: number
  /** How the turn ended, once it has. */
  readonly turn: Deferred.Deferred<Exit.Exit<ChildOutcome, SubagentError>>
}

/** A provider under observation. */
export interface Observed {
  readonly provider: SubagentProvider
  /** Every start that reached it, in order. */
  readonly seen: ReadonlyArray<Seen>
}

/**
 * The same provider under another name, with every start and turn noted. With `hold`, a start never comes to its end:
 * what is open by then has to be cleaned up.
 */
export const observe = (
  provider: SubagentProvider,
  name: string,
  options: { readonly hold: boolean } = { hold: false }
): Observed => {
  const seen: Array<Seen> = []
  const start: SubagentProvider["start"] = (placed) => {
    const noted: Seen = { placed, opened: Deferred.makeUnsafe(), turns: 0, turn: Deferred.makeUnsafe() }
    seen.push(noted)
    return Effect.flatMap(provider.start(placed), (session) => {
      Deferred.doneUnsafe(noted.opened, Exit.void)
      const turn = Effect.suspend(() => {
        noted.turns++
        return session.turn
      }).pipe(Effect.onExit((exit) => Deferred.succeed(noted.turn, exit)))
      return options.hold ? Effect.never : Effect.succeed({ ...session, turn })
    })
  }
  const { capabilities, inheritsContext } = provider
  return { provider: { name, capabilities, inheritsContext, start }, seen }
}

/** What there is on the provider's own side. */
export interface World {
  readonly sessions: number
  readonly turns: number
}

/** The kinds of prompt that cases need. */
export type PromptKind =
  | "complete"
  | "hang"
  | "fail"
  | "stream"
  | "callTool"
  | "ask"
  | "submit"
  | "submitInvalid"
  | "steer"
  | "resume"
  | "failStart"

/** What the suite was given, as the cases see it. */
export interface Given {
  readonly layer: Layer.Layer<Subagents, unknown>
  readonly provider: string | undefined
  readonly prompts: { readonly [K in PromptKind]?: string | undefined }
  readonly capabilities: { readonly [K in keyof Capabilities]?: boolean | undefined }
  readonly cwd: string | undefined
  readonly world: Effect.Effect<World> | undefined
}

/** What a case works with, made afresh for each case. */
export interface Harness {
  readonly given: Given
  readonly subagents: Subagents["Service"]
  /** The provider as it was registered. */
  readonly provider: SubagentProvider
  /** The same under observation, which is what most cases start. */
  readonly observed: Observed
  /** A request with the prompt of this kind, by a parent that nobody else has. */
  readonly request: (kind: PromptKind, fields?: Partial<SubagentStartRequest>) => Effect.Effect<SubagentStartRequest>
  /** Starts the observed provider. */
  readonly start: (
    kind: PromptKind,
    fields?: Partial<SubagentStartRequest>
  ) => Effect.Effect<SubagentRun, SubagentError, Scope.Scope>
  /** What was seen of a run's start. */
  readonly seen: (run: SubagentRun) => Seen
  /** Every event until now. */
  readonly events: Effect.Effect<ReadonlyArray<SubagentEvent>, SubagentError>
}

/** The harness for one case, in the case's scope. */
export const make = Effect.fnUntraced(function* (subagents: Subagents["Service"], given: Given) {
  const names = yield* subagents.list
  const [only, ...others] = names
  const name = given.provider ?? (others.length === 0 ? only : undefined)
  if (name === undefined) {
    const message = `Expected one provider in the layer, or options.provider to name one of: ${names.join(", ")}`
    return yield* new Violation({ message })
  }
  const provider = yield* subagents.get(name)
  const observed = observe(provider, `${name} (observed)`)
  yield* subagents.register(observed.provider)

  const events: Array<SubagentEvent> = []
  const marks = new Map<string, Deferred.Deferred<void>>()
  yield* subagents.on((event) =>
    Effect.sync(() => {
      const mark = event.type === "subagent/provider-added" ? marks.get(event.provider) : undefined
      if (mark === undefined) events.push(event)
      else Deferred.doneUnsafe(mark, Exit.void)
    })
  )
  // an event of our own comes after all that were announced before it
  const untilNow = Effect.gen(function* () {
    const mark = yield* Deferred.make<void>()
    const name = `${provider.name} (mark ${marks.size})`
    marks.set(name, mark)
    yield* subagents.register({ ...observed.provider, name })
    yield* Deferred.await(mark)
    return events.filter((event) => !marks.has(event.provider))
  })

  // a case is run only with the prompts it needs
  const request: Harness["request"] = (kind, fields) =>
    Effect.map(Agent.root({ cwd: given.cwd }), (parent) => ({ prompt: given.prompts[kind]!, parent, ...fields }))
  const harness: Harness = {
    given,
    subagents,
    provider,
    observed,
    request,
    start: (kind, fields) =>
      Effect.flatMap(request(kind, fields), (request) => subagents.start(observed.provider.name, request)),
    seen: (run) => observed.seen.find(({ placed }) => placed.runId === run.runId)!,
    events: Effect.scoped(untilNow)
  }
  return harness
})
