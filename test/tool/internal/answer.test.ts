import { assert, describe, it } from "@effect/vitest"
import { type Agent, Content, type SubagentResult } from "effect-subagent"
import * as Effect from "effect/Effect"
import { answerOf } from "../../../src/tool/internal/answer.ts"

const told = (result: Partial<SubagentResult.SubagentResult>) =>
  Effect.flip(answerOf({ output: [], stopReason: "aborted", ...result }))

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
    it.effect(`says whose will it was: ${words}`, () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* told({ cause }), `The subagent was stopped before it was done (aborted: ${words}).`)
      })
    )
  }

  it.effect("does not invent a cause", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* told({}), "The subagent was stopped before it was done (aborted).")
    })
  )

  it.effect("says the headline, the failure, the diagnostic and the partial output, in this order", () =>
    Effect.gen(function* () {
      const text = yield* told({
        stopReason: "error",
        failure: { kind: "timeout", retryable: true },
        diagnostic: "after 10 s",
        output: [Content.text("one "), Content.text("two")]
      })
      assert.strictEqual(
        text,
        "The subagent failed (error).\n\ntimeout\n\nafter 10 s\n\nPartial output, not a finished answer:\none two"
      )
    })
  )
})
