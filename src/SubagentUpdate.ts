/**
 * What a child reports while it runs.
 *
 * A provider emits updates without the stamp; the seam stamps each with its run, a sequence number and the time, keeps
 * the last ones for late subscribers, and folds them into the run's output. Updates are frozen values.
 *
 * @since 0.1.0
 */
import type { RunId } from "./Agent.ts"
import type { ContentBlock } from "./Content.ts"
import { OutputFold } from "./internal/outputFold.ts"
import type { SubagentUsage } from "./SubagentResult.ts"

/**
 * What the seam adds to each update.
 *
 * @category models
 * @since 0.1.0
 */
export interface UpdateStamp {
  readonly runId: RunId
  /** From 0, without gaps: a gap is what a slow subscriber missed. */
  readonly seq: number
  /** Milliseconds since the epoch, by the `Clock` service. */
  readonly at: number
}

/**
 * The child begins a message.
 *
 * @category models
 * @since 0.1.0
 */
export interface MessageStarted {
  readonly _tag: "MessageStarted"
  readonly messageId: string
}

/**
 * A piece of a message: a whole block, or a bit of text that goes on where the last one ended. Content without a
 * message id is streamed text that belongs to no message; it counts as output only if no message says anything.
 *
 * @category models
 * @since 0.1.0
 */
export interface Content {
  readonly _tag: "Content"
  readonly messageId?: string
  readonly block: ContentBlock
}

/**
 * A bit of the child's reasoning. Never part of the output.
 *
 * @category models
 * @since 0.1.0
 */
export interface Thought {
  readonly _tag: "Thought"
  readonly text: string
}

/**
 * A tool call of the child's, merged by `id`: a later update of one call carries what has changed.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolCall {
  readonly _tag: "ToolCall"
  readonly id: string
  readonly name?: string
  readonly status: "pending" | "running" | "completed" | "failed"
  readonly input?: unknown
  readonly output?: unknown
}

/**
 * The child's plan, whole each time.
 *
 * @category models
 * @since 0.1.0
 */
export interface Plan {
  readonly _tag: "Plan"
  readonly entries: ReadonlyArray<{
    readonly content: string
    readonly priority?: string
    readonly status?: string
  }>
}

/**
 * What the run has used so far, in all. What is no figure, which a negative number is not either, is dropped.
 *
 * @category models
 * @since 0.1.0
 */
export interface Usage {
  readonly _tag: "Usage"
  readonly usage: SubagentUsage
}

/**
 * A tool call waits for an approval; with `outcome`, it no longer does.
 *
 * @category models
 * @since 0.1.0
 */
export interface Permission {
  readonly _tag: "Permission"
  readonly toolCallId: string
  readonly outcome?: "approved" | "denied" | "no-approver" | "approver-failed" | "timed-out" | "withdrawn"
}

/**
 * What became of a message that was sent to the running child.
 *
 * @category models
 * @since 0.1.0
 */
export interface Receipt {
  readonly _tag: "Receipt"
  readonly messageId: string
  readonly state: "consumed" | "expired"
}

/**
 * Something a provider knows beside these, passed through as it came.
 *
 * @category models
 * @since 0.1.0
 */
export interface Raw {
  readonly _tag: "Raw"
  readonly kind: string
  readonly value: unknown
}

/**
 * An update before the seam has stamped it: what a provider emits.
 *
 * @category models
 * @since 0.1.0
 */
export type UnstampedUpdate = MessageStarted | Content | Thought | ToolCall | Plan | Usage | Permission | Receipt | Raw

/**
 * An update as subscribers see it.
 *
 * @category models
 * @since 0.1.0
 */
export type SubagentUpdate = UnstampedUpdate & UpdateStamp

/**
 * Says that a message was taken in, not yet that the child has read it: a `Receipt` among the updates tells that.
 *
 * @category models
 * @since 0.1.0
 */
export interface MessageReceipt {
  readonly messageId: string
  readonly state: "queued"
}

/**
 * The output that follows from a list of updates: the content of the last message that says anything, else what was
 * streamed outside any message, else nothing. The seam picks the output of a run by the same code.
 *
 * @category combinators
 * @since 0.1.0
 */
export const pickOutput = (updates: Iterable<UnstampedUpdate>): ReadonlyArray<ContentBlock> => {
  const fold = new OutputFold()
  for (const update of updates) fold.add(update)
  return fold.output()
}
