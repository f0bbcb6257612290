/**
 * Checks what a host configures, and gives what it has checked: each field is read once, of an instance of a class too,
 * and what the host changes later changes nothing. A misspelt key is wrong, too.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Options } from "../Budget.ts"
import type { LimitsOptions } from "../Limits.ts"
import { InvalidRequest } from "../SubagentError.ts"
import { isBudget } from "./account.ts"
import { countFrom, durationFrom } from "./figures.ts"
import { issuesOf } from "./issues.ts"
import { NonBlank } from "./nonBlank.ts"
import { limitFields } from "./readLimits.ts"

const checkBy = <A>(fields: Schema.Codec<A>): ((options: unknown) => Result.Result<A, InvalidRequest>) => {
  const decode = Schema.decodeUnknownResult(fields, { errors: "all", onExcessProperty: "error" })
  return (options) => Result.mapError(decode(options), (error) => new InvalidRequest({ issues: issuesOf(error) }))
}

/** The seam's options. */
export const checkOptions: (options: unknown) => Result.Result<
  {
    readonly releaseTimeout?: Duration.Input
    readonly updateCapacity?: number
    readonly eventCapacity?: number
  },
  InvalidRequest
> = checkBy(
  Schema.Struct({
    releaseTimeout: Schema.optionalKey(durationFrom(0)),
    updateCapacity: Schema.optionalKey(countFrom(1)),
    eventCapacity: Schema.optionalKey(countFrom(1))
  })
)

/** Some of a host's limits. */
export const checkLimits: (
  limits: unknown
) => Result.Result<{ readonly [K in keyof LimitsOptions]?: LimitsOptions[K] | undefined }, InvalidRequest> = checkBy(
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

/** A budget that is to be made. */
export const checkBudget: (options: unknown) => Result.Result<Options, InvalidRequest> = checkBy(
  Schema.Struct({
    name: NonBlank,
    maxTokens: Schema.optional(countFrom(0)),
    maxRuns: Schema.optional(countFrom(0)),
    parent: Schema.optional(Schema.declare(isBudget, { expected: "a Budget" }))
  })
)
