/**
 * The caller's handle on one accepted delegation.
 *
 * A run belongs to the scope it was started in: closing that scope releases it. `dispose` does so early.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { AgentId, ChildHeader, RunId } from "./Agent.ts"
import type { ContentBlock } from "./Content.ts"
import type { ResumeToken } from "./ResumeToken.ts"
import type { SubagentError } from "./SubagentError.ts"
import type { Lineage } from "./SubagentProvider.ts"
import type { SubagentResult, SubagentUsage } from "./SubagentResult.ts"
import type { MessageReceipt, SubagentUpdate } from "./SubagentUpdate.ts"

/**
 * One accepted delegation.
 *
 * @category models
 * @since 0.1.0
 */
export interface SubagentRun<A = unknown> {
  /** The child agent. */
  readonly id: AgentId
  readonly runId: RunId
  readonly provider: string
  readonly header: ChildHeader
  /**
   * Waits for the verdict. A child's own failure is a verdict; this fails with `ProviderFault`, or with what the
   * provider said, when there is none. Interrupting someone who waits here stops nothing.
   */
  readonly result: Effect.Effect<SubagentResult<A>, SubagentError>
  /**
   * Stops the child and everything it owns. Returns when the run has settled, without waiting for the child; does
   * nothing to a run that has settled already.
   */
  readonly cancel: (reason?: string) => Effect.Effect<void>
  /** Releases the run before its scope does. Returns when the child is quiet, or after `releaseTimeout`. */
  readonly dispose: Effect.Effect<void>
  /**
   * What the child reports, from the start as far as the replay reaches. Never fails, and ends when the run settles.
   * A subscriber that is too slow misses the oldest ones, which shows in `seq`.
   */
  readonly updates: Stream.Stream<SubagentUpdate>
  /**
   * Sends a message to the child at work. There only if the child can take one. The receipt says that it was taken in;
   * a `Receipt` among the updates says that it was consumed or has expired. Fails with `RunSettled` once it is too late.
   */
  readonly sendMessage?: (content: string | ReadonlyArray<ContentBlock>) => Effect.Effect<MessageReceipt, SubagentError>
  /**
   * Goes on with the same child after the run has settled, however it ended: the same id, header, policy and schema, in
   * a run of its own that belongs to the caller's scope. There only if the child can go on. The child itself belongs to
   * the first run: once that is released, this fails with `RunReleased`. Fails with `ChildBusy` while the child works.
   */
  readonly resume?: (
    content: string | ReadonlyArray<ContentBlock>
  ) => Effect.Effect<SubagentRun<A>, SubagentError, Scope.Scope>
  /**
   * What it takes to go on with the child in another process, with `Subagents.resume`: a JSON value. A snapshot of the
   * moment at which it is asked for, best when the run has settled. There only if the provider can go on from one. Fails
   * with `RunReleased` once the child is gone.
   */
  readonly token?: Effect.Effect<ResumeToken, SubagentError>
}

/**
 * An accepted run that has not been released, as the live table shows it.
 *
 * @category models
 * @since 0.1.0
 */
export interface LiveRun {
  readonly id: AgentId
  readonly runId: RunId
  readonly provider: string
  readonly label?: string
  /** Where it stands: its parent, its root, its depth. */
  readonly lineage: Lineage
  readonly header: ChildHeader
  readonly state: "running" | "settled" | "releasing"
  /** When it was accepted: milliseconds since the epoch. */
  readonly since: number
  /** What it has used itself by now. */
  readonly usage?: SubagentUsage
  /** What it and everything below it have used by now. */
  readonly treeUsage?: SubagentUsage
  readonly cancel: (reason?: string) => Effect.Effect<void>
}
