/**
 * Checks what a host configures. A misspelt key is wrong, too.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { RequestIssue } from "../SubagentError.ts"
import { isBudget } from "./account.ts"
import { countFrom, durationFrom } from "./figures.ts"
import { issuesOf } from "./issues.ts"
import { NonBlank } from "./nonBlank.ts"
import { limitFields } from "./readLimits.ts"

const decode = <A>(fields: Schema.Codec<A>) =>
  Schema.decodeUnknownResult(fields, { errors: "all", onExcessProperty: "error" })

const issuesBy =
  (decoded: ReturnType<typeof decode>) =>
  (options: unknown): ReadonlyArray<RequestIssue> =>
    Result.match(decoded(options), { onFailure: (error) => issuesOf(error), onSuccess: () => [] })

/** What is wrong with the seam's options, if anything. */
export const checkOptions: (options: unknown) => ReadonlyArray<RequestIssue> = issuesBy(
  decode(
    Schema.Struct({
      releaseTimeout: Schema.optionalKey(durationFrom(0)),
      updateCapacity: Schema.optionalKey(countFrom(1)),
      eventCapacity: Schema.optionalKey(countFrom(1))
    })
  )
)

/** What is wrong with a host's limits, if anything. */
export const checkLimits: (limits: unknown) => ReadonlyArray<RequestIssue> = issuesBy(
  decode(
    Schema.Struct({
      ...limitFields,
      maxDepth: Schema.optional(countFrom(0)),
      maxConcurrent: Schema.optional(
        Schema.Struct({
          overall: Schema.optional(countFrom(1)),
          tree: Schema.optional(countFrom(1)),
          provider: Schema.optional(Schema.Union([countFrom(1), Schema.Record(Schema.String, countFrom(1))]))
        })
      ),
      maxQueued: Schema.optional(countFrom(0)),
      wrapUp: Schema.optional(Schema.Boolean)
    })
  )
)

/** What is wrong with a budget that is to be made, if anything. */
export const checkBudget: (options: unknown) => ReadonlyArray<RequestIssue> = issuesBy(
  decode(
    Schema.Struct({
      name: NonBlank,
      maxTokens: Schema.optional(countFrom(0)),
      maxRuns: Schema.optional(countFrom(0)),
      parent: Schema.optional(Schema.declare(isBudget, { expected: "a Budget" }))
    })
  )
)
