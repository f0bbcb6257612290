/**
 * What a provider is: one named way to run children.
 *
 * The seam asks a provider for a session in the run's scope and runs the session's turn once; interrupting the turn is
 * how a child is cancelled, closing the scope is how it is released. So a provider has no cancel, no signal, no events
 * and no state machine: everything it acquires goes into the scope of `start`, everything it has to stop into the
 * turn's own interruption.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { AgentId, AgentOptions, ChildHeader, RunId } from "./Agent.ts"
import type { ApprovalOutcome, ApprovalRequest } from "./Approvals.ts"
import type { Capabilities } from "./Capabilities.ts"
import type { ContentBlock } from "./Content.ts"
import { promisedProvider } from "./internal/promisedProvider.ts"
import type { RequestIssue, SubagentError } from "./SubagentError.ts"
import type { Bounds, CheckedRequest, SchemaSpec, ToolFilter } from "./SubagentRequest.ts"
import type { SubagentFailure, SubagentStopReason, SubagentUsage } from "./SubagentResult.ts"
import type { UnstampedUpdate } from "./SubagentUpdate.ts"

/**
 * Where a run stands in its tree. A value that survives a wire.
 *
 * @category models
 * @since 0.1.0
 */
export interface Lineage {
  /** The child agent. */
  readonly id: AgentId
  readonly runId: RunId
  /** The agent that delegated, as its host names it. */
  readonly parentId: string
  /** The run of that agent, if it is a live child itself. */
  readonly parentRunId?: RunId
  /** The agent at the top that nobody delegated to, as far as it is known here. */
  readonly rootId: string
  /** 1 for a child of a root. */
  readonly depth: number
  readonly label?: string
}

/**
 * What holds for a run and for everything below it. It only tightens on the way down.
 *
 * @category models
 * @since 0.1.0
 */
export interface Policy {
  /** No child may be deeper than this. */
  readonly maxDepth: number
  /** The filters in force, the outermost first. A tool is usable if every one of them lets it through. */
  readonly toolFilters: ReadonlyArray<ToolFilter>
  /** The limits of each run. The seam sees to them. */
  readonly limits?: Bounds
}

/**
 * The structured output that was asked for. Show `schema` to the child as JSON Schema, check the JSON it submits with
 * `decode`, and return the value as it was submitted: the seam decodes it once more, for the caller.
 *
 * @category models
 * @since 0.1.0
 */
export interface OutputSpec {
  readonly schema: SchemaSpec
  readonly decode: (encoded: unknown) => Effect.Effect<unknown, ReadonlyArray<RequestIssue>>
}

/**
 * Why there is no further turn for a child: the failure that its run is going to have. A child that can is to use one
 * last turn, without tools, to say what it has got, if `wrapUp` is true; then it ends.
 *
 * @category models
 * @since 0.1.0
 */
export interface TurnRefused {
  readonly failure: SubagentFailure
  readonly wrapUp: boolean
}

/**
 * A request that has been checked and placed: all that a provider gets. It never carries the signal.
 *
 * @category models
 * @since 0.1.0
 */
export interface PlacedRequest extends CheckedRequest {
  readonly runId: RunId
  /** The child's own header. */
  readonly header: ChildHeader
  readonly lineage: Lineage
  readonly policy: Policy
  /** What the seam read of the parent's own options, for a provider whose children inherit them. */
  readonly parentOptions: AgentOptions
  readonly output?: OutputSpec
  /** Reports what the child does. Never fails, never waits; what comes after the run has settled is dropped. */
  readonly emit: (update: UnstampedUpdate) => void
  /**
   * Counts a turn, which is one model call and what follows from it, unless a limit does not allow it. To be called
   * before each by a provider that declares `turns`, from when the session is there. Whatever the child makes of a
   * refusal, its run ends with that failure.
   */
  readonly nextTurn: () => TurnRefused | undefined
}

/**
 * How a turn ended. It has no output: the seam picks that from the updates. Without a `stopReason` of `completed`,
 * `failure` says what went wrong.
 *
 * @category models
 * @since 0.1.0
 */
export interface ChildOutcome {
  readonly stopReason: SubagentStopReason
  /** The submitted value, encoded, if one was asked for. */
  readonly structured?: unknown
  readonly failure?: SubagentFailure
  readonly diagnostic?: string
  /** What the run has used in all. Absent: what the last `Usage` update said. */
  readonly usage?: SubagentUsage
}

/**
 * A message to a child at work.
 *
 * @category models
 * @since 0.1.0
 */
export interface ChildMessage {
  readonly messageId: string
  readonly content: ReadonlyArray<ContentBlock>
}

/**
 * One child. It lives in the scope that `start` was given. A method that is there is a capability; a child without it
 * has no key for it, either.
 *
 * @category models
 * @since 0.1.0
 */
export interface ChildSession {
  /** The child's name on its own side, where it has one. Otherwise the seam's. */
  readonly id?: string
  /**
   * Runs the prompt to its end. The seam runs it once. A child's own failure is an outcome; failing here says that
   * the provider could not get one.
   */
  readonly turn: Effect.Effect<ChildOutcome, SubagentError>
  /**
   * Takes a message in for the turn that is running, in the order of the calls. Emits a `Receipt` of `consumed` when
   * the child has it before it; what was not consumed when the run settles has expired. Fails with `RunSettled` from
   * the moment at which the turn has decided to end: what was taken in is never passed over in silence.
   */
  readonly sendMessage?: (message: ChildMessage) => Effect.Effect<void, SubagentError>
  /** Runs one more turn of the same child. Called only when no turn is running any more. */
  readonly resumeTurn?: (prompt: ReadonlyArray<ContentBlock>) => Effect.Effect<ChildOutcome, SubagentError>
  /**
   * What the provider's `resume` needs to go on with this child elsewhere, as it is when this is run. A snapshot: JSON,
   * and nothing that changes later.
   */
  readonly token?: Effect.Effect<Schema.Json, SubagentError>
}

/**
 * One named way to run children.
 *
 * @category models
 * @since 0.1.0
 */
export interface SubagentProvider {
  readonly name: string
  readonly capabilities: Capabilities
  /** Whether its children know the parent's conversation. */
  readonly inheritsContext: boolean
  /**
   * Makes a child ready to run. What it acquires belongs to the scope, also when it fails or is interrupted halfway;
   * the seam closes the scope on every path.
   */
  readonly start: (placed: PlacedRequest) => Effect.Effect<ChildSession, SubagentError, Scope.Scope>
  /**
   * Makes a child of an earlier process ready to go on, from what its session's `token` gave; its first turn here is for
   * the prompt of this request. Otherwise like `start`. Only a provider that has this can be resumed with a token.
   */
  readonly resume?: (
    placed: PlacedRequest,
    payload: Schema.Json
  ) => Effect.Effect<ChildSession, SubagentError, Scope.Scope>
}

/**
 * What an async function is called with, for one turn.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromiseCall {
  /** The text of the prompt. */
  readonly prompt: string
  /** The system prompt that was asked for. */
  readonly system?: string
  /** The model that was asked for. */
  readonly model?: string
  /**
   * Aborted when the turn is to stop. A function that takes no notice is waited for at its run's release, no longer
   * than `releaseTimeout`, and then announced as what still lives.
   */
  readonly signal: AbortSignal
  /** Streams a bit of the answer. */
  readonly onText: (delta: string) => void
  /** Reports anything else: tool calls, usage, a plan. */
  readonly emit: (update: UnstampedUpdate) => void
  /** Asks for an approval. Only `approved` lets a tool that needs one be executed. Rejects when the turn is to stop. */
  readonly ask: (call: Omit<ApprovalRequest, "lineage">) => Promise<ApprovalOutcome>
}

/**
 * What an async function answers: its text, nothing if it has streamed that, or an outcome with a text. Without a
 * `stopReason` an outcome is `completed`, or `error` if it has a `failure`.
 *
 * @category models
 * @since 0.1.0
 */
export type PromiseAnswer = string | undefined | void | (Partial<ChildOutcome> & { readonly text?: string })

/**
 * A provider as async functions.
 *
 * @category options
 * @since 0.1.0
 */
export interface PromiseOptions<Session = undefined> {
  readonly name: string
  /**
   * What it honours beside a prompt.
   *
   * @default {}
   */
  readonly capabilities?: Partial<Capabilities> | undefined
  /** @default false */
  readonly inheritsContext?: boolean | undefined
  /** Opens what the child needs. The run is accepted when it has; rejecting refuses the start. */
  readonly open?: ((request: PlacedRequest, signal: AbortSignal) => PromiseLike<Session> | Session) | undefined
  /**
   * Whether `run` can be called again for the same session, with the next prompt, once a turn is over.
   *
   * @default false
   */
  readonly canResume?: boolean | undefined
  /** Runs a turn. What it throws is the child's own failure. */
  readonly run: (
    call: PromiseCall & { readonly session: Session; readonly request: PlacedRequest }
  ) => PromiseLike<PromiseAnswer> | PromiseAnswer
  /** Closes what was opened, also by a start that came to nothing. */
  readonly close?: ((session: Session) => unknown) | undefined
}

/**
 * A provider made of async functions: a loop of the host's own, a remote agent.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromPromise = <Session = undefined>(options: PromiseOptions<Session>): SubagentProvider =>
  promisedProvider(options)
