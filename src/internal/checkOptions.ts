/**
 * Checks the numbers and durations a host configures.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import type { RequestIssue } from "../SubagentError.ts"
import { issueAt } from "./issues.ts"

const isCount = (least: number) => (value: unknown) => Number.isSafeInteger(value) && (value as number) >= least

const isBound = (value: unknown) =>
  Option.match(Duration.fromInput(value as Duration.Input), {
    onNone: () => false,
    onSome: (duration) => Duration.isFinite(duration)
  })

const checks: { readonly [key: string]: readonly [(value: unknown) => boolean, string] } = {
  maxDepth: [isCount(0), "Expected a whole number from 0"],
  releaseTimeout: [isBound, "Expected a finite duration"],
  updateCapacity: [isCount(1), "Expected a whole number from 1"],
  eventCapacity: [isCount(1), "Expected a whole number from 1"]
}

/** What is wrong with the seam's options, if anything. An unknown key is wrong, too. */
export const checkOptions = (options: object): ReadonlyArray<RequestIssue> =>
  Object.entries(options).flatMap(([key, value]) => {
    const check = Object.hasOwn(checks, key) ? checks[key] : undefined
    if (check === undefined) return [issueAt([key], "Unexpected key")]
    return check[0](value) ? [] : [issueAt([key], check[1])]
  })
