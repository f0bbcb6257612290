/**
 * How a turn ended, from how its last model call did.
 *
 * @since 0.1.0
 */
import * as AiError from "effect/ai/AiError"
import type * as Response from "effect/ai/Response"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import { describeCause, describeUnknown } from "../../internal/describe.ts"
import type { ChildOutcome } from "../../SubagentProvider.ts"
import type { SubagentFailure, SubagentUsage } from "../../SubagentResult.ts"
import { addUsage } from "../../SubagentResult.ts"

const modelFailure = (message: string): SubagentFailure => ({ kind: "model", retryable: false, message })

/** The outcome of a turn whose last reply has nothing more to run. */
export const outcomeOfReply = (reason: Response.FinishReason): ChildOutcome => {
  switch (reason) {
    case "stop":
      return { stopReason: "completed" }
    case "length":
      return { stopReason: "max-tokens", failure: modelFailure("The model's output limit cut its reply short") }
    case "content-filter":
      return { stopReason: "refusal", failure: modelFailure("The model or its content filter declined") }
    case "tool-calls":
      return { stopReason: "error", failure: modelFailure("The model stopped for tool calls and made none") }
    default:
      return { stopReason: "error", failure: modelFailure(`The model stopped with reason ${JSON.stringify(reason)}`) }
  }
}

/** The outcome of a turn whose model call failed or died. */
export const outcomeOfCause = (cause: Cause.Cause<AiError.AiError>): ChildOutcome => {
  const failed = cause.reasons.find(Cause.isFailReason)
  return failed === undefined
    ? { stopReason: "error", failure: modelFailure(describeCause(cause)) }
    : outcomeOfError(failed.error)
}

/** The outcome of a turn whose model call reported an error, whatever it is. */
export const outcomeOfError = (error: unknown): ChildOutcome => {
  if (!AiError.isAiError(error)) return { stopReason: "error", failure: modelFailure(describeUnknown(error)) }
  const { isRetryable, reason, retryAfter } = error
  const status = statusOf(reason)
  return {
    stopReason: reason._tag === "ContentPolicyError" ? "refusal" : "error",
    failure: {
      kind: "model",
      retryable: isRetryable,
      ...(retryAfter === undefined ? undefined : { retryAfter: Duration.toMillis(retryAfter) }),
      ...(status === undefined ? undefined : { status }),
      message: oneLine(describeUnknown(reason))
    }
  }
}

/** What an adapter says about an error, without what an address may give away: a user's name, a key in its query. */
const oneLine = (text: string): string =>
  text.replace(/(https?:\/\/)(?:[^\s/@]*@)?([^\s?#)]*)[^\s)]*/g, "$1$2").replace(/\s+/g, " ")

/** The HTTP status, also where a provider's adapter has told it by the reason alone. */
const statusOf = (reason: AiError.AiErrorReason): number | undefined => {
  const status = "http" in reason ? reason.http?.response?.status : undefined
  if (status !== undefined) return status
  switch (reason._tag) {
    case "RateLimitError":
      return 429
    case "AuthenticationError":
      return reason.kind === "InsufficientPermissions" ? 403 : 401
    default:
      return undefined
  }
}

/** The figures of one model call. What was not reported is absent. */
export const usageOf = ({ inputTokens, outputTokens }: Response.Usage): SubagentUsage => {
  const usage: { -readonly [K in keyof SubagentUsage]: number } = {}
  if (inputTokens.total !== undefined) usage.input = inputTokens.total
  if (outputTokens.total !== undefined) usage.output = outputTokens.total
  if (inputTokens.cacheRead !== undefined) usage.cacheRead = inputTokens.cacheRead
  if (inputTokens.cacheWrite !== undefined) usage.cacheWrite = inputTokens.cacheWrite
  if (outputTokens.reasoning !== undefined) usage.reasoning = outputTokens.reasoning
  return usage
}

/** What a failed model call has used all the same, as far as its error says. */
export const usageOfError = (error: unknown): SubagentUsage => {
  if (!AiError.isAiError(error) || !("usage" in error.reason)) return {}
  const { completionTokens, promptTokens } = error.reason.usage ?? {}
  return {
    ...(promptTokens === undefined ? undefined : { input: promptTokens }),
    ...(completionTokens === undefined ? undefined : { output: completionTokens })
  }
}

/** Two figures as one, whose total is that of the parts it names. */
export const sumOf = (self: SubagentUsage, that: SubagentUsage): SubagentUsage => {
  const { total: _, ...sum } = addUsage(self, that)
  return sum.input === undefined || sum.output === undefined ? sum : { ...sum, total: sum.input + sum.output }
}
