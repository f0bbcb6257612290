import { assert, describe, it } from "@effect/vitest"
import { RpcError } from "../../../../src/providers/internal/acp/connection.ts"
import {
  describeError,
  outcomeOfAnswer as outcomeOf,
  outcomeOfError
} from "../../../../src/providers/internal/acp/outcome.ts"

const outcomeOfAnswer = (answer: unknown) => outcomeOf(answer, undefined)

describe("the outcome of a prompt", () => {
  it("follows the stop reason, and an unknown one is an error", () => {
    const reasons = ["end_turn", "max_tokens", "refusal", "cancelled", "max_turn_requests", "bored"]
    assert.deepStrictEqual(
      reasons.map((stopReason) => outcomeOfAnswer({ stopReason }).stopReason),
      ["completed", "max-tokens", "refusal", "aborted", "error", "error"]
    )
    assert.strictEqual(outcomeOfAnswer({ stopReason: "max_turn_requests" }).failure?.kind, "limit")
    assert.strictEqual(
      outcomeOfAnswer({ stopReason: "bored" }).failure?.message,
      'The agent stopped with reason "bored"'
    )
  })

  it("is a matter of permission if the agent stops at a tool call that was denied, and only then", () => {
    assert.deepStrictEqual(outcomeOf({ stopReason: "cancelled" }, "no-approver").failure, {
      kind: "permission",
      retryable: false,
      message: "The agent stopped at a tool call that was not permitted: no-approver"
    })
    assert.deepStrictEqual(outcomeOf({ stopReason: "end_turn" }, "denied"), { stopReason: "completed" })
  })

  it("is an error without a stop reason", () => {
    for (const answer of [null, {}, { stopReason: 7 }, "end_turn"]) {
      assert.strictEqual(outcomeOfAnswer(answer).failure?.message, "The agent stopped with reason null")
    }
  })

  it("has the usage that was reported, and no more", () => {
    const usage = {
      inputTokens: 1,
      outputTokens: 2,
      totalTokens: 3,
      cachedReadTokens: 4,
      cachedWriteTokens: 5,
      thoughtTokens: 6
    }
    assert.deepStrictEqual(outcomeOfAnswer({ stopReason: "end_turn", usage }).usage, {
      input: 1,
      output: 2,
      total: 3,
      cacheRead: 4,
      cacheWrite: 5,
      reasoning: 6
    })
    assert.deepStrictEqual(outcomeOfAnswer({ stopReason: "end_turn", usage: { inputTokens: 1, totalTokens: null } }), {
      stopReason: "completed",
      usage: { input: 1 }
    })
    // nobody gives anything back
    assert.deepStrictEqual(
      outcomeOfAnswer({ stopReason: "end_turn", usage: { inputTokens: -5, outputTokens: 2 } }).usage,
      { output: 2 }
    )
    assert.deepStrictEqual(outcomeOfAnswer({ stopReason: "end_turn", usage: {} }), { stopReason: "completed" })
  })

  it("of an error says what the agent says, which may be in the data", () => {
    const error = (data?: unknown) => new RpcError({ code: -32603, message: "Internal error", data })
    assert.strictEqual(describeError(error()), "Internal error (-32603)")
    assert.strictEqual(describeError(error("no credit")), "Internal error: no credit (-32603)")
    assert.strictEqual(describeError(error({ details: "no credit" })), "Internal error: no credit (-32603)")
    assert.strictEqual(describeError(error({ message: "no credit" })), "Internal error: no credit (-32603)")
    assert.strictEqual(describeError(error({ message: "Internal error" })), "Internal error (-32603)")
    assert.deepStrictEqual(outcomeOfError(error("no credit")), {
      stopReason: "error",
      failure: { kind: "model", retryable: false, message: "Internal error: no credit (-32603)" }
    })
    const unauthenticated = new RpcError({ code: -32000, message: "log in" })
    assert.strictEqual(outcomeOfError(unauthenticated).failure.kind, "permission")
  })
})
