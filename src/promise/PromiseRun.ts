/**
 * A run as its caller sees it without Effect: promises for effects, an async iterable for the stream of updates.
 *
 * What comes of a run is the same as in Effect, and so is who owns it: a run is released when it is disposed of, or with
 * the `PromiseSubagents` that it was started with.
 *
 * @since 0.1.0
 */
import type { AgentId, ChildHeader, RunId } from "../Agent.ts"
import type { ApprovalDecision, ApprovalRequest } from "../Approvals.ts"
import type { ContentBlock } from "../Content.ts"
import type { ResumeToken } from "../ResumeToken.ts"
import type { SchemaSpec, SubagentResumeRequest, SubagentStartRequest } from "../SubagentRequest.ts"
import type { SubagentResult } from "../SubagentResult.ts"
import type { MessageReceipt, SubagentUpdate } from "../SubagentUpdate.ts"

/**
 * What `outputSchema` takes here: an Effect Schema, or a JSON Schema whose root is an object.
 *
 * @category models
 * @since 0.1.0
 */
export type OutputSchema = SchemaSpec | { readonly [key: string]: unknown }

/**
 * The type of `structured`: that of an Effect Schema, `unknown` for a JSON Schema, `never` (the key is never there)
 * without one.
 *
 * @category type-level
 * @since 0.1.0
 */
export type Structured<O extends OutputSchema> = [O] extends [never]
  ? never
  : O extends SchemaSpec
    ? O["Type"]
    : unknown

/**
 * What a caller asks for.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromiseRequest<O extends OutputSchema = OutputSchema> extends Omit<
  SubagentStartRequest,
  "outputSchema"
> {
  /** The child is to end with a value of this schema. */
  readonly outputSchema?: O | undefined
}

/**
 * What a caller asks for who goes on with a child of an earlier process.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromiseResumeRequest<O extends OutputSchema = OutputSchema> extends Omit<
  SubagentResumeRequest,
  "outputSchema"
> {
  /** The child is to end with a value of this schema: a token can't carry one. */
  readonly outputSchema?: O | undefined
}

/**
 * Says whether a tool call may be executed. The signal is aborted when nobody waits for the answer any more. Throwing,
 * or anything but `approved`, leaves the tool unexecuted.
 *
 * @category models
 * @since 0.1.0
 */
export type Approve = (
  request: ApprovalRequest,
  signal: AbortSignal
) => PromiseLike<ApprovalDecision> | ApprovalDecision

/**
 * One accepted delegation.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromiseRun<A = unknown> extends AsyncDisposable {
  /** The child agent. */
  readonly id: AgentId
  readonly runId: RunId
  readonly provider: string
  readonly header: ChildHeader
  /**
   * The verdict. A child's own failure resolves, and so does an abort; it rejects when the provider is at fault. It may
   * be left unawaited, and can be read for ever.
   */
  readonly result: Promise<SubagentResult<A>>
  /**
   * What the child reports, from the start as far as the replay reaches, for each iteration anew. Ends when the run
   * settles. Breaking off unsubscribes.
   */
  readonly updates: AsyncIterable<SubagentUpdate>
  /** Stops the child and everything it owns. Resolves when the run has settled, without waiting for the child. */
  readonly cancel: (reason?: string) => Promise<void>
  /** Releases the run. Resolves when the child is quiet, or after `releaseTimeout`. Idempotent. */
  readonly dispose: () => Promise<void>
  /** Sends a message to the child at work. There only if the child can take one. Rejects once it is too late. */
  readonly sendMessage?: (content: string | ReadonlyArray<ContentBlock>) => Promise<MessageReceipt>
  /**
   * Goes on with the same child after the run has settled, in a run of its own, until the first one is released. There
   * only if the child can go on.
   */
  readonly resume?: (content: string | ReadonlyArray<ContentBlock>) => Promise<PromiseRun<A>>
  /** What another process needs to go on with the child, as of now: JSON. There only if the child can be gone on with. */
  readonly token?: () => Promise<ResumeToken>
}
