/**
 * Checks how agents are to be run, so that a cap that caps nothing is refused at once and not met by the first agent.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { issuesOf } from "../../internal/issues.ts"
import type { RequestIssue } from "../../SubagentError.ts"

const countFrom = (least: number) => Schema.Int.check(Schema.isGreaterThanOrEqualTo(least))

const decode = Schema.decodeUnknownResult(
  Schema.Struct({
    toolkit: Schema.optional(Schema.Unknown),
    maxTurns: Schema.optional(countFrom(1)),
    wrapUp: Schema.optional(Schema.Boolean),
    systemPrompt: Schema.optional(Schema.String),
    streaming: Schema.optional(Schema.Boolean),
    concurrency: Schema.optional(Schema.Union([Schema.Literal("unbounded"), countFrom(1)])),
    repairs: Schema.optional(countFrom(0)),
    retry: Schema.optional(Schema.declare(Schedule.isSchedule, { expected: "a Schedule" }))
  }),
  { errors: "all", onExcessProperty: "error" }
)

/** What is wrong with the options of a loop, if anything. */
export const wrongOptions = (options: unknown): ReadonlyArray<RequestIssue> =>
  Result.match(decode(options), { onFailure: (error) => issuesOf(error), onSuccess: () => [] })
