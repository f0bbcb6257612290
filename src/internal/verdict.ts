/**
 * From what a provider reports to the one verdict on a run.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import type { RequestIssue } from "../SubagentError.ts"
import { fromReason, ProviderFault, SubagentError } from "../SubagentError.ts"
import type { ChildOutcome, OutputSpec } from "../SubagentProvider.ts"
import type { AbortCause, SubagentFailure, SubagentResult, SubagentUsage } from "../SubagentResult.ts"
import { addUsage } from "../SubagentResult.ts"
import { bound, describeCause } from "./describe.ts"
import { frozen } from "./frozen.ts"
import type { OutputFold } from "./outputFold.ts"
import { figuresIn } from "./usage.ts"

/** The terminal cell of a run: a result, or the error that stands in for one. */
export type Verdict = Exit.Exit<SubagentResult, SubagentError>

/** What a provider has broken. */
export const fault = (provider: string, detail: string): SubagentError =>
  fromReason(new ProviderFault({ provider, detail: bound(detail) }))

/** The error of a provider that failed or died, whatever it failed with. */
export const errorOf = (provider: string, cause: Cause.Cause<unknown>): SubagentError => {
  const failed = cause.reasons.find(Cause.isFailReason)
  return failed !== undefined && failed.error instanceof SubagentError
    ? failed.error
    : fault(provider, describeCause(cause))
}

const result = (fold: OutputFold, fields: Omit<SubagentResult, "output">): SubagentResult => {
  const { diagnostic, failure, usage = fold.usage } = fields
  return Object.freeze({
    output: fold.output(),
    ...fields,
    ...(failure && { failure: bounded(failure) }),
    ...(diagnostic !== undefined && { diagnostic: bound(diagnostic) }),
    ...(usage && { usage })
  })
}

const bounded = (failure: SubagentFailure): SubagentFailure =>
  frozen({ ...failure, ...(failure.message !== undefined && { message: bound(failure.message) }) })

/** Whether all that is read of an outcome is what it should be. */
const isOutcome = (outcome: unknown): outcome is ChildOutcome => {
  if (!Predicate.isObject(outcome)) return false
  const { diagnostic, failure, stopReason, usage } = outcome
  return (
    Predicate.isString(stopReason) &&
    stopReason.trim() !== "" &&
    (diagnostic === undefined || Predicate.isString(diagnostic)) &&
    (usage === undefined || Predicate.isObject(usage)) &&
    (failure === undefined ||
      (Predicate.isObject(failure) &&
        Predicate.isString(failure["kind"]) &&
        Predicate.isBoolean(failure["retryable"]) &&
        (failure["message"] === undefined || Predicate.isString(failure["message"]))))
  )
}

/** The verdict on a run that somebody's will ended, with what the child had said so far. */
export const aborted = (fold: OutputFold, cause: AbortCause): SubagentResult =>
  result(fold, { stopReason: "aborted", cause: Object.freeze(cause) })

/** The verdict on a run that had to be stopped, with what the child had said so far. */
export const stopped = (fold: OutputFold, failure: SubagentFailure, diagnostic?: string): SubagentResult =>
  result(fold, { stopReason: "error", failure, ...(diagnostic !== undefined && { diagnostic }) })

/** A verdict, with what everything below the run has used beside what it has used itself. */
export const withTree = (verdict: Verdict, below: SubagentUsage | undefined): Verdict => {
  if (Exit.isFailure(verdict)) return verdict
  const treeUsage = sumOf(verdict.value.usage, below)
  return treeUsage === undefined ? verdict : Exit.succeed(Object.freeze({ ...verdict.value, treeUsage }))
}

/** What has been used in all, as far as anything has been. */
export const sumOf = (self: SubagentUsage | undefined, that: SubagentUsage | undefined): SubagentUsage | undefined =>
  self === undefined || that === undefined ? (self ?? that) : Object.freeze(addUsage(self, that))

/**
 * The verdict on a turn that ended by itself. An end that is empty, unbalanced or without the value that was asked
 * for is never a completed one, whatever the provider says.
 */
export const judge = (
  provider: string,
  outcome: ChildOutcome,
  fold: OutputFold,
  output: OutputSpec | undefined,
  limit: SubagentFailure | undefined
): Effect.Effect<SubagentResult, SubagentError> => {
  if (!isOutcome(outcome)) {
    return Effect.fail(fault(provider, "its turn ended with something that is not an outcome"))
  }
  const { diagnostic, stopReason } = outcome
  const usage = outcome.usage && figuresIn(outcome.usage)
  const shared = { ...(diagnostic !== undefined && { diagnostic }), ...(usage && { usage }) }
  const failed = (failure: SubagentFailure) => result(fold, { ...shared, stopReason: "error", failure })

  if (limit !== undefined) return Effect.succeed(failed(limit))
  if (stopReason === "aborted") {
    return Effect.succeed(result(fold, { ...shared, stopReason, cause: Object.freeze({ _tag: "Child" }) }))
  }
  if (stopReason !== "completed") {
    const failure = outcome.failure ?? {
      kind: "model",
      retryable: false,
      message: `The child stopped: ${stopReason}`
    }
    return Effect.succeed(result(fold, { ...shared, stopReason, failure }))
  }
  if (fold.isUnbalanced) {
    return Effect.succeed(failed({ kind: "unbalanced", retryable: true, message: "A tool call was never answered" }))
  }
  if (output !== undefined) {
    if (outcome.structured === undefined) {
      return Effect.succeed(
        failed({ kind: "schema-missing", retryable: true, message: "The child submitted no value for the schema" })
      )
    }
    return decode(output, outcome.structured).pipe(
      Effect.map((structured) => result(fold, { ...shared, stopReason, structured })),
      Effect.catch((issues) =>
        Effect.succeed(failed({ kind: "schema-invalid", retryable: true, message: issues.join("; ") }))
      )
    )
  }
  const completed = result(fold, { ...shared, stopReason })
  return Effect.succeed(
    completed.output.length > 0
      ? completed
      : failed({ kind: "empty", retryable: true, message: "The child ended without saying anything" })
  )
}

/** A schema whose own code dies has not been satisfied. */
const decode = (
  output: OutputSpec,
  structured: unknown
): Effect.Effect<unknown, ReadonlyArray<RequestIssue | string>> =>
  Effect.catchDefect(output.decode(structured), (defect) => Effect.fail([describeCause(Cause.die(defect))]))

/** What the end event says of a verdict. */
export const endOf = (verdict: Verdict): Pick<SubagentResult, "stopReason" | "cause" | "failure"> => {
  if (Exit.isFailure(verdict)) {
    return {
      stopReason: "error",
      failure: { kind: "provider", retryable: false, message: bound(describeCause(verdict.cause)) }
    }
  }
  const { cause, failure, stopReason } = verdict.value
  return { stopReason, ...(cause && { cause }), ...(failure && { failure }) }
}
