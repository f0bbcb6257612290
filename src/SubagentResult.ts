/**
 * How a child ended.
 *
 * A result is a value in the success channel, whatever became of the child: `stopReason` says how it ended, `cause`
 * whose will stopped it, `failure` what went wrong. Results are frozen, and serialisable as far as `structured` is.
 *
 * @since 0.1.0
 */
import type { RunId } from "./Agent.ts"
import type { ContentBlock } from "./Content.ts"

/**
 * The stop reasons there are. A host or a provider adds one by declaration merging.
 *
 * @category models
 * @since 0.1.0
 */
export interface SubagentStopReasonMap {
  /** The child ended its turn by itself, with something to say and every tool call answered. */
  readonly completed: true
  /** Somebody's will stopped it: see `cause`. */
  readonly aborted: true
  /** Something went wrong, or a limit that we enforce was reached: see `failure`. */
  readonly error: true
  /** The model's own output limit cut it short. */
  readonly "max-tokens": true
  /** The model, or its provider's content filter, declined. */
  readonly refusal: true
}

/**
 * A known stop reason, or any other non-empty string that a provider reports. Branch on the known ones and treat the
 * rest as a failure.
 *
 * @category models
 * @since 0.1.0
 */
export type SubagentStopReason = keyof SubagentStopReasonMap | (string & {})

/**
 * Whose will ended an aborted run: somebody's `cancel`, the request's `signal`, the release of the run, the
 * interruption of the fiber that owned its scope, the end of the parent's run, or the child's own side (an external
 * agent that its own user stopped).
 *
 * @category models
 * @since 0.1.0
 */
export type AbortCause =
  | { readonly _tag: "Caller"; readonly reason?: string }
  | { readonly _tag: "Signal" }
  | { readonly _tag: "Release" }
  | { readonly _tag: "Interrupt" }
  | { readonly _tag: "Parent"; readonly runId: RunId }
  | { readonly _tag: "Child" }

/**
 * The kinds of failure there are. Add one by declaration merging.
 *
 * @category models
 * @since 0.1.0
 */
export interface SubagentFailureKindMap {
  /** The model call failed. */
  readonly model: true
  /** The way to the child broke. */
  readonly transport: true
  /** A schema was asked for and no value was ever submitted. */
  readonly "schema-missing": true
  /** A schema was asked for and what was submitted does not satisfy it. */
  readonly "schema-invalid": true
  /** The turn ended with an unanswered tool call. */
  readonly unbalanced: true
  /** The turn ended and the child had said nothing. */
  readonly empty: true
  readonly timeout: true
  /** A turn cap or another limit that we enforce: `limit` and `used` have the figures. */
  readonly limit: true
  readonly permission: true
  /** The provider itself is at fault: `result` fails with `ProviderFault`. */
  readonly provider: true
}

/**
 * What went wrong in the child, as data: enough to tell a 429 from a 401 from a missing schema.
 *
 * @category models
 * @since 0.1.0
 */
export interface SubagentFailure {
  readonly kind: keyof SubagentFailureKindMap | (string & {})
  /** Whether the same request may succeed later. */
  readonly retryable: boolean
  /** How long to wait before that, in milliseconds. */
  readonly retryAfter?: number
  /** An HTTP status, where there was one. */
  readonly status?: number
  /** Which limit or timeout, for `limit` and `timeout`. */
  readonly name?: string
  readonly limit?: number
  readonly used?: number
  /** What was asked for, where something tighter holds. */
  readonly asked?: number
  /** One line for people, bounded like `diagnostic`. */
  readonly message?: string
}

/**
 * Tokens. What was not reported is absent.
 *
 * @category models
 * @since 0.1.0
 */
export interface SubagentUsage {
  readonly input?: number
  readonly output?: number
  readonly total?: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
  readonly reasoning?: number
}

/**
 * The verdict on a child.
 *
 * @category models
 * @since 0.1.0
 */
export interface SubagentResult<A = unknown> {
  /** The last thing the child said; also what it had said so far when it was stopped. */
  readonly output: ReadonlyArray<ContentBlock>
  /** There only if a schema was asked for and the child satisfied it. */
  readonly structured?: A
  readonly stopReason: SubagentStopReason
  /** There only if `stopReason` is `aborted`. */
  readonly cause?: AbortCause
  /** There on every result that is neither completed nor aborted. */
  readonly failure?: SubagentFailure
  /** Text for people, at most 4096 bytes, without secrets. */
  readonly diagnostic?: string
  /** What the run has used itself. */
  readonly usage?: SubagentUsage
  /** What the run and everything below it have used by now: the sum of what each of them has used itself. */
  readonly treeUsage?: SubagentUsage
}

/**
 * Adds two figures of usage; what neither reports stays absent. A side that reports its parts and no total adds those to
 * the total of the other.
 *
 * @category combinators
 * @since 0.1.0
 */
export const addUsage = (self: SubagentUsage, that: SubagentUsage): SubagentUsage => {
  const sum: { -readonly [K in keyof SubagentUsage]: number } = { ...self }
  for (const [key, value] of Object.entries(that) as Array<[keyof SubagentUsage, number]>) {
    sum[key] = (sum[key] ?? 0) + value
  }
  if (sum.total !== undefined) sum.total = tokensOf(self) + tokensOf(that)
  return sum
}

const tokensOf = ({ input = 0, output = 0, total = input + output }: SubagentUsage): number => total
