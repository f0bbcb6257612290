import { assert, describe, it } from "@effect/vitest"
import type { SubagentResult } from "effect-subagent"
import * as AiError from "effect/ai/AiError"
import * as Response from "effect/ai/Response"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import { outcomeOfCause, outcomeOfError, sumOf, usageOf } from "../../../src/agent/internal/outcome.ts"

const failing = (reason: AiError.AiErrorReason) =>
  outcomeOfCause(Cause.fail(AiError.make({ module: "Acme", method: "generateText", reason })))
const http = { response: { status: 503, headers: {} } }

describe("the outcome of a failed model call", () => {
  const reasons: ReadonlyArray<[string, AiError.AiErrorReason, Omit<SubagentResult.SubagentFailure, "kind">]> = [
    [
      "a limit with a time to wait",
      new AiError.RateLimitError({ retryAfter: Duration.seconds(7), http: { response: { status: 429, headers: {} } } }),
      { retryable: true, retryAfter: 7000, status: 429, message: "Rate limit exceeded. Retry after 7s" }
    ],
    [
      "a limit that came without its status",
      new AiError.RateLimitError({}),
      { retryable: true, status: 429, message: "Rate limit exceeded" }
    ],
    [
      "a wrong key",
      new AiError.AuthenticationError({ kind: "InvalidKey" }),
      { retryable: false, status: 401, message: "InvalidKey: Verify your API key is correct" }
    ],
    [
      "a key that may not",
      new AiError.AuthenticationError({ kind: "InsufficientPermissions" }),
      { retryable: false, status: 403, message: "InsufficientPermissions: Your API key lacks required permissions" }
    ],
    [
      "a server that is down",
      new AiError.InternalProviderError({ description: "down", http }),
      { retryable: true, status: 503, message: "Internal provider error: down" }
    ],
    [
      "a server that says nothing more",
      new AiError.InternalProviderError({ description: "down" }),
      { retryable: true, message: "Internal provider error: down" }
    ],
    [
      "a reply that is none",
      new AiError.InvalidOutputError({ description: "no JSON" }),
      { retryable: true, message: "Invalid output: no JSON" }
    ]
  ]
  for (const [name, reason, failure] of reasons) {
    it(`tells of ${name}`, () =>
      assert.deepStrictEqual(failing(reason), { stopReason: "error", failure: { kind: "model", ...failure } }))
  }

  it("is a refusal when the content was against a policy", () => {
    assert.deepStrictEqual(failing(new AiError.ContentPolicyError({ description: "no" })), {
      stopReason: "refusal",
      failure: { kind: "model", retryable: false, message: "Content policy violation: no" }
    })
  })

  it("tells of a defect, or of anything that a provider reports", () => {
    const outcome = { stopReason: "error", failure: { kind: "model", retryable: false, message: "out of order" } }
    assert.deepStrictEqual(outcomeOfCause(Cause.die(new Error("out of order"))), outcome)
    assert.deepStrictEqual(outcomeOfError("out of order"), outcome)
  })

  it("is one line that gives no secret of an address away", () => {
    const { failure } = failing(
      new AiError.NetworkError({
        reason: "InvalidUrlError",
        method: "POST",
        url: "https://me:secret@acme.test/v1/models?key=secret#secret"
      })
    )
    assert.include(failure?.message, "(POST https://acme.test/v1/models) Verify")
    assert.notInclude(failure?.message, "secret")
    assert.notInclude(failure?.message, "\n")
  })

  it("is bounded", () => {
    const long = failing(new AiError.InternalProviderError({ description: "x".repeat(100_000) }))
    assert.isBelow(long.failure?.message?.length ?? Infinity, 1100)
  })
})

describe("usage", () => {
  const usage = (
    inputTokens: ConstructorParameters<typeof Response.Usage>[0]["inputTokens"],
    outputTokens: ConstructorParameters<typeof Response.Usage>[0]["outputTokens"]
  ) => usageOf(new Response.Usage({ inputTokens, outputTokens }))

  it("has what the model reported, and nothing else", () => {
    assert.deepStrictEqual(usage({}, {}), {})
    assert.deepStrictEqual(
      usage({ total: 5, uncached: 2, cacheRead: 1, cacheWrite: 2 }, { total: 7, text: 4, reasoning: 3 }),
      { input: 5, output: 7, cacheRead: 1, cacheWrite: 2, reasoning: 3 }
    )
  })

  it("adds up, with a total once both of its parts are known", () => {
    assert.deepStrictEqual(sumOf({}, { input: 1 }), { input: 1 })
    assert.deepStrictEqual(sumOf({}, { output: 2 }), { output: 2 })
    assert.deepStrictEqual(sumOf({ input: 1, output: 1, total: 2 }, { output: 2, reasoning: 1 }), {
      input: 1,
      output: 3,
      reasoning: 1,
      total: 4
    })
  })
})
