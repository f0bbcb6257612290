/**
 * What the seam announces about runs and providers.
 *
 * Observe-only: events are frozen copies, and nothing a listener does reaches a run. A run is announced once when it
 * was accepted and once when it has settled, its own children before it.
 *
 * @since 0.1.0
 */
import type { AgentId, RunId } from "./Agent.ts"
import type { AbortCause, SubagentFailure, SubagentStopReason, SubagentUsage } from "./SubagentResult.ts"

/**
 * A run was accepted.
 *
 * @category models
 * @since 0.1.0
 */
export interface StartEvent {
  readonly type: "subagent/start"
  readonly provider: string
  readonly id: AgentId
  readonly runId: RunId
  /** The id of the agent that delegated, as its host gave it. */
  readonly parentId: string
  /** The run whose child this is, if the parent is a live child itself. */
  readonly parentRunId?: RunId
  readonly label?: string
}

/**
 * A run has settled. A run whose `result` fails ends with stop reason `error`.
 *
 * @category models
 * @since 0.1.0
 */
export interface EndEvent {
  readonly type: "subagent/end"
  readonly provider: string
  readonly id: AgentId
  readonly runId: RunId
  readonly parentId: string
  readonly parentRunId?: RunId
  readonly label?: string
  readonly stopReason: SubagentStopReason
  readonly cause?: AbortCause
  readonly failure?: SubagentFailure
  /** What the run has used itself. */
  readonly usage?: SubagentUsage
  /** What the run and everything below it have used. */
  readonly treeUsage?: SubagentUsage
}

/**
 * A provider can be used from now on.
 *
 * @category models
 * @since 0.1.0
 */
export interface ProviderAddedEvent {
  readonly type: "subagent/provider-added"
  readonly provider: string
}

/**
 * A provider takes no more starts. Its accepted runs live on.
 *
 * @category models
 * @since 0.1.0
 */
export interface ProviderRemovedEvent {
  readonly type: "subagent/provider-removed"
  readonly provider: string
}

/**
 * A release, or the clean-up of a start that came to nothing, did not go as it should: a finalizer failed, or it was
 * not over within `releaseTimeout` and goes on by itself.
 *
 * @category models
 * @since 0.1.0
 */
export interface ReleaseProblemEvent {
  readonly type: "subagent/release-problem"
  readonly provider: string
  readonly id: AgentId
  readonly runId: RunId
  readonly problem: "timed-out" | "failed"
  /** What still lives, or what failed, in a line for people. */
  readonly detail: string
}

/**
 * Anything the seam announces.
 *
 * @category models
 * @since 0.1.0
 */
export type SubagentEvent = StartEvent | EndEvent | ProviderAddedEvent | ProviderRemovedEvent | ReleaseProblemEvent
