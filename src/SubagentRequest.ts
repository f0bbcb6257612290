/**
 * What a caller asks for.
 *
 * A request is immutable and checked whole before anything happens: every fault is reported with its path, an unknown
 * key is refused (a misspelt filter must never widen access), a key whose value is `undefined` is not asked for.
 * `parent` and `signal` pass by identity and are never copied, changed or serialised.
 *
 * @since 0.1.0
 */
import type * as Schema from "effect/Schema"
import type { Agent, AgentOptions } from "./Agent.ts"
import type { ContentBlock } from "./Content.ts"
import type { RunLimits } from "./Limits.ts"

/**
 * The part of an `AbortSignal` that is used, so that a signal of any realm will do. One listener is added to a signal
 * however many runs share it, and removed with the last of them.
 *
 * @category models
 * @since 0.1.0
 */
export interface AbortSignalLike {
  readonly aborted: boolean
  readonly addEventListener: (type: "abort", listener: () => void) => void
  readonly removeEventListener: (type: "abort", listener: () => void) => void
}

/**
 * What `outputSchema` takes: an Effect Schema that needs no services. A JSON Schema becomes one with `fromJsonSchema`
 * of `effect-subagent/json-schema`.
 *
 * @category models
 * @since 0.1.0
 */
export type SchemaSpec = Schema.Codec<unknown, unknown>

/**
 * The type of `structured` for a request: the schema's type, `unknown` for a schema that is not known statically,
 * `never` (the key is never there) without one.
 *
 * @category type-level
 * @since 0.1.0
 */
export type Structured<S extends SchemaSpec> = [S] extends [never] ? never : S["Type"]

/**
 * Which tools a child may use: those in `allow` (all, if absent), less those in `deny`. `{ allow: [] }` hides every
 * tool. A filter also holds for everything the child starts.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolFilter {
  readonly allow?: ReadonlyArray<string> | undefined
  readonly deny?: ReadonlyArray<string> | undefined
}

/**
 * What a caller asks for. The limits can only tighten what holds for the parent.
 *
 * @category models
 * @since 0.1.0
 */
export interface SubagentStartRequest<S extends SchemaSpec = SchemaSpec> extends RunLimits {
  /** The task. Must say something. */
  readonly prompt: string | ReadonlyArray<ContentBlock>
  /** The agent that delegates, by identity. */
  readonly parent: Agent
  /** Aborting it stops the run, or the start. */
  readonly signal?: AbortSignalLike | undefined
  readonly agentOptions?: AgentOptions | undefined
  /** The child is to end with a value of this schema. */
  readonly outputSchema?: S | undefined
  /** The greatest depth that this child and anything below it may have: 0 forbids any child. Only tightens. */
  readonly maxDepth?: number | undefined
  readonly toolFilter?: ToolFilter | undefined
  /** A short name for people, in events and the live table. */
  readonly label?: string | undefined
}

/**
 * What a caller says who resumes a child with a token, beside what the token and the prompt say. The limits can only
 * tighten what the token says.
 *
 * @category models
 * @since 0.1.0
 */
export interface SubagentResumeRequest<S extends SchemaSpec = SchemaSpec> extends RunLimits {
  /** The agent that delegated, as its session's id shows, wherever it is now. */
  readonly parent: Agent
  /** Aborting it stops the run, or the start. */
  readonly signal?: AbortSignalLike | undefined
  /** The child is to end with a value of this schema: a token can't carry one. */
  readonly outputSchema?: S | undefined
}

/**
 * Limits of one run, as figures: durations in milliseconds. What is absent is not limited.
 *
 * @category models
 * @since 0.1.0
 */
export interface Bounds {
  readonly startTimeout?: number
  readonly timeout?: number
  readonly idleTimeout?: number
  readonly maxTurns?: number
  readonly maxTokens?: number
  readonly maxRuns?: number
}

/**
 * A request that has been checked: what is absent was not asked for.
 *
 * @category models
 * @since 0.1.0
 */
export interface CheckedRequest {
  readonly prompt: ReadonlyArray<ContentBlock>
  readonly parent: Agent
  readonly agentOptions: AgentOptions
  readonly maxDepth?: number
  readonly toolFilter?: ToolFilter
  readonly label?: string
}

/**
 * Whether a list of filters, the outermost first, lets a tool be used.
 *
 * @category guards
 * @since 0.1.0
 */
export const allowsTool = (filters: ReadonlyArray<ToolFilter>, name: string): boolean =>
  filters.every((filter) => filter.allow?.includes(name) !== false && filter.deny?.includes(name) !== true)
