/**
 * What is kept of a child so that it can go on elsewhere: in another process, after this one has ended.
 *
 * A token is a JSON value that `run.token` gives and `Subagents.resume` takes. It is a snapshot: what the child does
 * after it was taken is not in it. It is no proof of anything either: whoever can write where it is kept can write
 * another, so the seam checks what it would check of a start once more, and lets a token tighten, never widen, what
 * holds for its parent.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import type { AgentId, ChildHeader, SessionId } from "./Agent.ts"
import { NonBlank } from "./internal/nonBlank.ts"
import { BoundsOf } from "./internal/readLimits.ts"
import { Depth, Filter } from "./internal/readRequest.ts"
import type { Bounds, ToolFilter } from "./SubagentRequest.ts"

/**
 * One child, to go on with.
 *
 * @category models
 * @since 0.1.0
 */
export interface ResumeToken {
  /** The version of this shape. */
  readonly version: 1
  /** The name of the provider that runs the child. */
  readonly provider: string
  readonly id: AgentId
  readonly header: ChildHeader
  /** What held for the child. */
  readonly policy: {
    readonly maxDepth: number
    readonly toolFilters: ReadonlyArray<ToolFilter>
    readonly limits?: Bounds
  }
  /** What was asked for when it was started. */
  readonly agentOptions: { readonly [option: string]: Schema.Json }
  readonly label?: string
  /** The provider's own: its child's history, or where that is kept. */
  readonly payload: Schema.Json
}

/** Ids are strings that only the seam makes, and that only their types tell apart. */
const id = <Id extends string>(): Schema.Codec<Id> => NonBlank as Schema.Codec<unknown> as Schema.Codec<Id>

/**
 * The schema of a token, for whoever keeps one.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ResumeToken: Schema.Codec<ResumeToken> = Schema.Struct({
  version: Schema.Literal(1),
  provider: NonBlank,
  id: id<AgentId>(),
  header: Schema.Struct({
    id: id<SessionId>(),
    cwd: Schema.optionalKey(NonBlank),
    parentSession: id<SessionId>(),
    delegationDepth: Depth
  }),
  policy: Schema.Struct({ maxDepth: Depth, toolFilters: Schema.Array(Filter), limits: Schema.optionalKey(BoundsOf) }),
  agentOptions: Schema.Record(Schema.String, Schema.Json),
  label: Schema.optionalKey(NonBlank),
  payload: Schema.Json
})
