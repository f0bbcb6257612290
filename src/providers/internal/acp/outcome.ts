/**
 * How a turn ended, from how its prompt was answered. Stop reasons are hints: the seam judges what there is.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import type { ChildOutcome } from "../../../SubagentProvider.ts"
import type { SubagentUsage } from "../../../SubagentResult.ts"
import type { RpcError } from "./connection.ts"
import { codes } from "./connection.ts"
import { PromptResponse, reader } from "./messages.ts"

const readResponse = reader(PromptResponse)

const failed = (stopReason: string, message: string): ChildOutcome => ({
  stopReason,
  failure: { kind: "model", retryable: false, message }
})

/** The outcome of a prompt that was answered. Some agents cancel their own turn over a tool call that was denied. */
export const outcomeOfAnswer = (answer: unknown, denial: string | undefined): ChildOutcome => {
  const { stopReason, usage } = readResponse(answer) ?? {}
  const used = usage === undefined ? {} : usageOf(usage)
  const outcome =
    stopReason === "cancelled" && denial !== undefined ? outcomeOfDenial(denial) : outcomeOfStop(stopReason)
  return { ...outcome, ...(Object.keys(used).length > 0 && { usage: used }) }
}

const outcomeOfDenial = (denial: string): ChildOutcome => ({
  stopReason: "error",
  failure: {
    kind: "permission",
    retryable: false,
    message: `The agent stopped at a tool call that was not permitted: ${denial}`
  }
})

const outcomeOfStop = (stopReason: string | undefined): ChildOutcome => {
  switch (stopReason) {
    case "end_turn":
      return { stopReason: "completed" }
    case "max_tokens":
      return failed("max-tokens", "The model's output limit cut its reply short")
    case "refusal":
      return failed("refusal", "The agent or its model declined")
    case "cancelled":
      return { stopReason: "aborted" }
    case "max_turn_requests":
      return {
        stopReason: "error",
        failure: {
          kind: "limit",
          retryable: false,
          name: "max_turn_requests",
          message: "The agent has made as many model calls as it may for one prompt"
        }
      }
    default:
      return failed("error", `The agent stopped with reason ${JSON.stringify(stopReason ?? null)}`)
  }
}

const usageOf = (usage: NonNullable<(typeof PromptResponse.Type)["usage"]>): SubagentUsage => {
  const { cachedReadTokens, cachedWriteTokens, inputTokens, outputTokens, thoughtTokens, totalTokens } = usage
  return {
    ...(inputTokens !== undefined && { input: inputTokens }),
    ...(outputTokens !== undefined && { output: outputTokens }),
    ...(totalTokens !== undefined && { total: totalTokens }),
    ...(cachedReadTokens !== undefined && { cacheRead: cachedReadTokens }),
    ...(cachedWriteTokens !== undefined && { cacheWrite: cachedWriteTokens }),
    ...(thoughtTokens !== undefined && { reasoning: thoughtTokens })
  }
}

/** The outcome of a prompt that was answered with an error. */
export const outcomeOfError = (error: RpcError) => ({
  stopReason: "error",
  failure: {
    kind: error.code === codes.authRequired ? "permission" : "model",
    retryable: false,
    message: describeError(error)
  }
})

/** An agent's error in a line. Many say `Internal error` and put what it was into the data. */
export const describeError = ({ code, data, message }: RpcError): string => {
  const detail = Predicate.isObject(data) ? (data["details"] ?? data["message"]) : data
  return Predicate.isString(detail) && detail !== message ? `${message}: ${detail} (${code})` : `${message} (${code})`
}
