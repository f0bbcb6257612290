/**
 * A provider that plays a script: for tests of whoever delegates, and of the seam itself.
 *
 * Its script says, step by step, what a child does while it starts, in its turn and when it is released: what it
 * reports, how long it takes, how it ends, and what goes wrong. Steps are small functions; the constructors here make
 * the usual ones, and `run` makes one of any effect. Time passes by the `Clock` service and gates are the test's own,
 * so a test decides when anything happens. What the provider saw is kept, to assert on.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { ask as askApprover } from "../Approvals.ts"
import type { Capabilities } from "../Capabilities.ts"
import type { ContentBlock } from "../Content.ts"
import { text as textBlock } from "../Content.ts"
import { makeId } from "../internal/id.ts"
import type { SubagentErrorReason } from "../SubagentError.ts"
import { fromReason, type SubagentError } from "../SubagentError.ts"
import type { ChildMessage, ChildOutcome, PlacedRequest, SubagentProvider } from "../SubagentProvider.ts"
import type { SubagentStopReason, SubagentUsage } from "../SubagentResult.ts"
import { Subagents } from "../Subagents.ts"
import type { UnstampedUpdate } from "../SubagentUpdate.ts"
import { startSession } from "./internal/scriptedSession.ts"

/**
 * What a step gets to work with.
 *
 * @category models
 * @since 0.1.0
 */
export interface Play {
  readonly placed: PlacedRequest
  /** The next message that was sent to the child, when there is one. It counts as read from here on. */
  readonly receive: Effect.Effect<ChildMessage>
  /** Sets the structured value that the turn ends with. */
  readonly submit: (structured: unknown) => void
  /** Ends the turn with this, outcome or not: the steps that follow are not played. */
  readonly end: (outcome: unknown) => void
  /** Plays these, one after the other, until one ends the turn. */
  readonly playAll: (steps: ReadonlyArray<Step>) => Effect.Effect<void, SubagentError, Scope.Scope>
}

/**
 * One thing that a scripted child does. In `start`, what it acquires belongs to the session.
 *
 * @category models
 * @since 0.1.0
 */
export type Step = (play: Play) => Effect.Effect<unknown, SubagentError, Scope.Scope>

/**
 * The script of one run.
 *
 * @category models
 * @since 0.1.0
 */
export interface Phases {
  /** Before there is a session. */
  readonly start?: ReadonlyArray<Step> | undefined
  /**
   * The first turn. If no step ends it, it ends `completed` after the last one.
   *
   * @default [text("done")]
   */
  readonly turn?: ReadonlyArray<Step> | undefined
  /** Makes a child that can be resumed: its further turns, one script for all, or one for each prompt. */
  readonly resumed?: ReadonlyArray<Step> | ((prompt: ReadonlyArray<ContentBlock>) => ReadonlyArray<Step>) | undefined
  /** Makes a child that can be resumed elsewhere, if the provider has `continued`: what it gives to go on from. */
  readonly token?: Effect.Effect<Schema.Json, SubagentError> | undefined
  /**
   * Makes a child that takes messages. The `receive` steps of a turn read them; when its last step is over, it takes in
   * no more, and what it has not read has expired.
   *
   * @default false
   */
  readonly takesMessages?: boolean | undefined
  /** In each turn's finalizer, however the turn ended; also when it was interrupted. */
  readonly turnFinalizer?: ReadonlyArray<Step> | undefined
  /** In the session's finalizer: when the run is released, and when a start that got this far comes to nothing. */
  readonly release?: ReadonlyArray<Step> | undefined
  /** The child's name on its own side. */
  readonly id?: string | undefined
}

/**
 * What one child does: all its phases, or only its turn. An empty turn says `done` and ends.
 *
 * @category models
 * @since 0.1.0
 */
export type RunScript = Phases | ReadonlyArray<Step>

/**
 * One script for every run, or a function that picks one for each request, so that one provider serves many prompts.
 * A function that throws makes `start` throw.
 *
 * @category models
 * @since 0.1.0
 */
export type Script = RunScript | ((placed: PlacedRequest) => RunScript)

/**
 * How a scripted provider presents itself.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** @default "scripted" */
  readonly name?: string | undefined
  /**
   * What it declares beside the default, which is everything.
   */
  readonly capabilities?: Partial<Capabilities> | undefined
  /** @default false */
  readonly inheritsContext?: boolean | undefined
  /** Makes a provider that goes on with children of elsewhere: the script of one, from its token's payload. */
  readonly continued?: ((placed: PlacedRequest, payload: Schema.Json) => RunScript) | undefined
  /** The value submitted, encoded, when a schema is asked for and no step has submitted one. */
  readonly structured?: unknown
}

/**
 * A moment in the life of a run, as the provider saw it. `interrupted` also says that it interrupted itself.
 *
 * @category models
 * @since 0.1.0
 */
export type Moment = `${"start" | "turn" | "release"}-${"begun" | "ended" | "failed" | "interrupted"}`

/**
 * A run, as the provider saw it.
 *
 * @category models
 * @since 0.1.0
 */
export interface ScriptedRun {
  readonly placed: PlacedRequest
  /** In the order in which they happened. */
  readonly moments: ReadonlyArray<Moment>
}

/**
 * The scripted provider's own side: the provider, and what it saw.
 *
 * @category services
 * @since 0.1.0
 */
export class ScriptedProvider extends Context.Service<
  ScriptedProvider,
  {
    readonly provider: SubagentProvider
    /** Every start that reached the provider, in order. */
    readonly runs: Effect.Effect<ReadonlyArray<ScriptedRun>>
  }
>()("effect-subagent/ScriptedProvider") {}

/**
 * A provider that plays the script.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (script: Script = [], options: Options = {}): Effect.Effect<ScriptedProvider["Service"]> =>
  Effect.sync(() => {
    const runs: Array<{ readonly placed: PlacedRequest; readonly moments: Array<Moment> }> = []
    const { capabilities, continued, inheritsContext = false, name = "scripted", structured } = options
    const play = (placed: PlacedRequest, pick: () => RunScript) => {
      const moments: Array<Moment> = []
      runs.push({ placed, moments })
      const picked = pick()
      const phases = isTurn(picked) ? { turn: picked } : picked
      return startSession({ placed, phases, moments, structured, idle: [text("done")] })
    }
    return {
      provider: {
        name,
        capabilities: Object.freeze({ ...everything, ...capabilities }),
        inheritsContext,
        start: (placed) => play(placed, () => (typeof script === "function" ? script(placed) : script)),
        ...(continued && { resume: (placed, payload) => play(placed, () => continued(placed, payload)) })
      },
      runs: Effect.sync(() => runs.map(({ moments, placed }) => ({ placed, moments: [...moments] })))
    }
  })

const everything: Capabilities = {
  outputSchema: true,
  depthLimit: true,
  toolFilter: true,
  model: true,
  systemPrompt: true,
  usage: true,
  turns: true,
  content: ["image", "audio", "resource_link", "resource"]
}

const isTurn = (script: RunScript): script is ReadonlyArray<Step> => Array.isArray(script)

/**
 * A tool call that a child asks an approval for, or makes.
 *
 * @category models
 * @since 0.1.0
 */
export interface ScriptedCall {
  readonly name: string
  /** @default a fresh one */
  readonly id?: string | undefined
  readonly input?: unknown
  readonly output?: unknown
  /**
   * How it ends; `undefined` leaves it unanswered.
   *
   * @default "completed"
   */
  readonly status?: "completed" | "failed" | undefined
}

/**
 * Plays any effect as a step: a gate, a delegation of the child's own, a fork.
 *
 * @category constructors
 * @since 0.1.0
 */
export const run =
  (effect: (placed: PlacedRequest) => Effect.Effect<unknown, SubagentError, Scope.Scope>): Step =>
  ({ placed }) =>
    effect(placed)

/**
 * Reports this, whether or not it is an update.
 *
 * @category constructors
 * @since 0.1.0
 */
export const emit = (update: unknown): Step => run((placed) => report(placed, update))

const report = (placed: PlacedRequest, update: unknown): Effect.Effect<void> =>
  // what is no update is for the seam to drop
  Effect.sync(() => placed.emit(update as UnstampedUpdate))

/**
 * Says a message, in one or more bits.
 *
 * @category constructors
 * @since 0.1.0
 */
export const text = (...deltas: ReadonlyArray<string>): Step =>
  run((placed) =>
    Effect.flatMap(freshId, (messageId) =>
      Effect.andThen(
        report(placed, { _tag: "MessageStarted", messageId }),
        Effect.forEach(deltas, (delta) => report(placed, { _tag: "Content", messageId, block: textBlock(delta) }))
      )
    )
  )

const freshId: Effect.Effect<string> = Effect.map(Effect.service(Random.Random), makeId)

/**
 * Streams text that belongs to no message, in one or more bits.
 *
 * @category constructors
 * @since 0.1.0
 */
export const stream = (...deltas: ReadonlyArray<string>): Step =>
  run((placed) => Effect.forEach(deltas, (delta) => report(placed, { _tag: "Content", block: textBlock(delta) })))

/**
 * Thinks aloud.
 *
 * @category constructors
 * @since 0.1.0
 */
export const thought = (text: string): Step => emit({ _tag: "Thought", text })

/**
 * Reports what the run has used so far.
 *
 * @category constructors
 * @since 0.1.0
 */
export const usage = (usage: SubagentUsage): Step => emit({ _tag: "Usage", usage })

/**
 * Makes a tool call, answered at once.
 *
 * @category constructors
 * @since 0.1.0
 */
export const toolCall = (call: ScriptedCall): Step =>
  run((placed) => Effect.flatMap(idOf(call), (id) => Effect.andThen(begin(placed, call, id), answer(placed, call, id))))

/**
 * Makes a tool call that needs an approval: asks whoever there is, and makes the call only if it is approved.
 *
 * @category constructors
 * @since 0.1.0
 */
export const ask = (call: ScriptedCall): Step =>
  run((placed) =>
    Effect.gen(function* () {
      const id = yield* idOf(call)
      yield* begin(placed, call, id)
      yield* report(placed, { _tag: "Permission", toolCallId: id })
      const { input, name: toolName } = call
      const outcome = yield* askApprover({ toolCallId: id, toolName, input, lineage: placed.lineage })
      yield* report(placed, { _tag: "Permission", toolCallId: id, outcome })
      yield* answer(placed, outcome === "approved" ? call : { name: toolName, output: outcome, status: "failed" }, id)
    })
  )

const idOf = (call: ScriptedCall): Effect.Effect<string> => (call.id === undefined ? freshId : Effect.succeed(call.id))

const begin = (placed: PlacedRequest, { input, name }: ScriptedCall, id: string): Effect.Effect<void> =>
  report(placed, { _tag: "ToolCall", id, name, status: "running", input })

const answer = (placed: PlacedRequest, call: ScriptedCall, id: string): Effect.Effect<void> => {
  const { name, output, status } = { status: "completed", ...call }
  return status === undefined ? Effect.void : report(placed, { _tag: "ToolCall", id, name, status, output })
}

/**
 * Takes its time, by the `Clock` service.
 *
 * @category constructors
 * @since 0.1.0
 */
export const sleep = (duration: Duration.Input): Step => run(() => Effect.sleep(duration))

/**
 * Waits for the next message to the child, reads it, and plays what follows from it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const receive =
  (answer: (message: ChildMessage) => ReadonlyArray<Step> = () => []): Step =>
  (play) =>
    Effect.flatMap(play.receive, (message) => play.playAll(answer(message)))

/**
 * Asks for a turn, as a child does before it calls its model, and plays these steps if it is allowed one. If it is not, it
 * plays those of `wrapUp`, as far as the refusal leaves it that, and ends the turn for the limit.
 *
 * @category constructors
 * @since 0.1.0
 */
export const nextTurn =
  (steps: ReadonlyArray<Step>, options: { readonly wrapUp?: ReadonlyArray<Step> | undefined } = {}): Step =>
  (play) =>
    Effect.suspend(() => {
      const refused = play.placed.nextTurn()
      if (refused === undefined) return play.playAll(steps)
      const { failure, wrapUp } = refused
      return Effect.andThen(
        wrapUp && options.wrapUp !== undefined ? play.playAll(options.wrapUp) : Effect.void,
        Effect.sync(() => play.end({ stopReason: "error", failure }))
      )
    })

/**
 * Waits for ever.
 *
 * @category constructors
 * @since 0.1.0
 */
export const hang: Step = run(() => Effect.never)

/**
 * Fails: the provider could not do its part. A child's own failure is `stop("error", { failure })`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fail = (reason: SubagentErrorReason): Step => run(() => Effect.fail(fromReason(reason)))

/**
 * Dies.
 *
 * @category constructors
 * @since 0.1.0
 */
export const die = (defect: unknown): Step => run(() => Effect.die(defect))

/**
 * Interrupts itself, which nobody asked for.
 *
 * @category constructors
 * @since 0.1.0
 */
export const interrupt: Step = run(() => Effect.interrupt)

/**
 * Submits a structured value, encoded.
 *
 * @category constructors
 * @since 0.1.0
 */
export const submit =
  (structured: unknown): Step =>
  (play) =>
    Effect.sync(() => play.submit(structured))

/**
 * Ends the turn with this stop reason, known or not. What follows is not played.
 *
 * @category constructors
 * @since 0.1.0
 */
export const stop = (stopReason: SubagentStopReason, fields: Omit<ChildOutcome, "stopReason"> = {}): Step =>
  end({ ...fields, stopReason })

/**
 * Ends the turn with this, whether or not it is an outcome. What follows is not played.
 *
 * @category constructors
 * @since 0.1.0
 */
export const end =
  (outcome: unknown): Step =>
  (play) =>
    Effect.sync(() => play.end(outcome))

/**
 * Makes a step deaf to interruption.
 *
 * @category combinators
 * @since 0.1.0
 */
export const uninterruptible =
  (step: Step): Step =>
  (play) =>
    Effect.uninterruptible(step(play))

/**
 * Plays other steps if a step is interrupted, before the interruption goes on.
 *
 * @category combinators
 * @since 0.1.0
 */
export const onInterrupt =
  (step: Step, ...steps: ReadonlyArray<Step>): Step =>
  (play) =>
    Effect.onInterrupt(step(play), () => Effect.forEach(steps, (next) => next(play), { discard: true }))

/**
 * Registers a scripted provider for as long as the layer lives, and provides `ScriptedProvider` to look into it.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  script: Script = [],
  options: Options = {}
): Layer.Layer<ScriptedProvider, SubagentError, Subagents> =>
  Layer.effect(
    ScriptedProvider,
    Effect.gen(function* () {
      const scripted = yield* make(script, options)
      const subagents = yield* Subagents
      yield* subagents.register(scripted.provider)
      return scripted
    })
  )
