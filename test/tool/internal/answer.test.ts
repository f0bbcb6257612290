import { assert, describe, it } from "@effect/vitest"
import { type Agent, Content, type SubagentResult } from "effect-subagent"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import { answerFor, answerOf } from "../../../src/tool/internal/answer.ts"

const told = (result: Partial<SubagentResult.SubagentResult>) => {
  const answer = answerOf({ output: [], stopReason: "aborted", ...result })
  assert.isTrue(answer.isError)
  return answer.text
}

describe("what a model is told of a run that is over", () => {
  const causes: ReadonlyArray<readonly [SubagentResult.AbortCause, string]> = [
    [{ _tag: "Caller", reason: "changed my mind" }, "it was cancelled"],
    [{ _tag: "Signal" }, "the call was aborted"],
    [{ _tag: "Release" }, "its run was released"],
    [{ _tag: "Interrupt" }, "the call was interrupted"],
    [{ _tag: "Parent", runId: "run_1" as Agent.RunId }, "its parent was stopped"],
    [{ _tag: "Child" }, "it was stopped on its own side"]
  ]
  for (const [cause, words] of causes) {
    it(`says whose will it was: ${words}`, () => {
      assert.strictEqual(told({ cause }), `The subagent was stopped before it was done (aborted: ${words}).`)
    })
  }

  it("does not invent a cause", () => {
    assert.strictEqual(told({}), "The subagent was stopped before it was done (aborted).")
  })

  it("says the headline, the failure, the diagnostic and the partial output, in this order", () => {
    const text = told({
      stopReason: "error",
      failure: { kind: "transport", retryable: true },
      diagnostic: "after 10 s",
      output: [Content.text("one "), Content.text("two")]
    })
    assert.strictEqual(
      text,
      "The subagent failed (error).\n\ntransport\n\nafter 10 s\n\nPartial output, not a finished answer:\none two"
    )
  })

  const limits: ReadonlyArray<readonly [Partial<SubagentResult.SubagentFailure>, string]> = [
    [{ kind: "limit", name: "maxTurns", limit: 10, used: 10 }, "maxTurns 10, 10 used"],
    [{ kind: "limit", name: "maxTokens", limit: 100 }, "maxTokens 100"],
    [{ kind: "limit", name: "quota" }, "quota"],
    [{ kind: "limit" }, "limit"],
    [{ kind: "timeout", name: "idleTimeout", limit: 60_000 }, "idleTimeout 60000 ms"],
    [{ kind: "timeout", limit: 1000, used: 1001 }, "timeout 1000 ms, 1001 ms used"]
  ]
  for (const [failure, words] of limits) {
    it(`says that it was stopped, and at which limit: ${words}`, () => {
      const text = told({ stopReason: "error", failure: { kind: "limit", retryable: false, ...failure } })
      assert.strictEqual(text, `The subagent was stopped at its limit (error): ${words}.\n\n${failure.kind}`)
    })
  }

  const image: Content.ContentBlock = { type: "image", data: "AA==", mimeType: "image/png" }

  it("keeps the blocks of a completed run, and names in the text what a text can't carry", () => {
    const output = [Content.text("See: "), image]
    const answer = answerOf({ output, stopReason: "completed" })
    assert.deepStrictEqual(answer, { isError: false, content: output, text: "See: [image: image/png]" })
  })

  it("keeps the other blocks of partial output behind the account of its end", () => {
    const { content, isError, text } = answerOf({ output: [Content.text("So"), image], stopReason: "refusal" })
    assert.isTrue(isError)
    assert.deepStrictEqual(content, [Content.text(text), image])
  })

  it("is capped on a character, with a notice that can be seen, whether it is an error or not", () => {
    const notice = "\n\n[This answer was longer than 10 bytes; the rest was cut off.]"
    const output = [Content.text("ééééééé"), image]
    const completed = answerOf({ output, stopReason: "completed" }, 10)
    assert.strictEqual(completed.text, `ééé…${notice}`)
    assert.deepStrictEqual(completed.content, [Content.text(completed.text), image])
    assert.strictEqual(answerOf({ output, stopReason: "refusal" }, 10).text, `The sub…${notice}`)
    const exact = answerOf({ output: [Content.text("ééééé")], stopReason: "completed" }, 10)
    assert.strictEqual(exact.text, "ééééé")
    const long = Content.text("x".repeat(65_537))
    assert.include(answerOf({ output: [long], stopReason: "completed" }).text, "longer than 65536 bytes")
  })

  it.effect("says that a value can't be written as JSON, if its schema can only read", () =>
    Effect.gen(function* () {
      const outputSchema = Schema.String.pipe(
        Schema.decodeTo(Schema.Number, {
          decode: SchemaGetter.transform(Number),
          encode: SchemaGetter.forbidden(() => "one way")
        })
      )
      const answer = yield* answerFor({ outputSchema }, { output: [], stopReason: "completed", structured: 1 })
      assert.isTrue(answer.isError)
      assert.include(answer.text, "one way")
    })
  )

  it.effect("has no value for a run that did not complete", () =>
    Effect.gen(function* () {
      const result = { output: [Content.text("half")], stopReason: "max-tokens" }
      assert.deepStrictEqual(yield* answerFor({ outputSchema: Schema.Number }, result), answerOf(result))
    })
  )
})
