import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { SubagentResult } from "effect-subagent"
import { completed, provider, root, say, withSeam } from "./utils/seam.ts"

describe("addUsage", () => {
  it("adds what both report, keeps what one reports, and invents nothing", () => {
    assert.deepStrictEqual(SubagentResult.addUsage({ input: 1, total: 3 }, { input: 2, output: 4 }), {
      input: 3,
      total: 9,
      output: 4
    })
    assert.deepStrictEqual(SubagentResult.addUsage({ total: 3 }, { total: 4 }), { total: 7 })
    assert.deepStrictEqual(SubagentResult.addUsage({ total: 3 }, { cacheRead: 4 }), { total: 3, cacheRead: 4 })
    assert.deepStrictEqual(SubagentResult.addUsage({}, {}), {})
    assert.deepStrictEqual(SubagentResult.addUsage({ input: 0 }, { cacheRead: 0 }), { input: 0, cacheRead: 0 })
  })

  it("changes neither side", () => {
    const [a, b] = [Object.freeze({ input: 1 }), Object.freeze({ input: 2 })]
    assert.deepStrictEqual(SubagentResult.addUsage(a, b), { input: 3 })
    assert.deepStrictEqual([a, b], [{ input: 1 }, { input: 2 }])
  })
})

describe("a result", () => {
  it.effect("survives a wire as it is, and is frozen as far as it goes (17)", () =>
    Effect.gen(function* () {
      const outcome = {
        stopReason: "error",
        failure: { kind: "limit", retryable: false, name: "turns", limit: 5, used: 5, message: "too many" },
        diagnostic: "d",
        usage: { input: 1, total: 2 }
      }
      const turn = (placed: Parameters<ReturnType<typeof say>>[0]) => Effect.as(say("partly")(placed), outcome)
      const result = yield* withSeam([provider({ turn })], (seam) => seam.run("p", { prompt: "go", parent: root }))
      assert.deepStrictEqual(JSON.parse(JSON.stringify(result)), {
        output: [{ type: "text", text: "partly" }],
        ...outcome,
        treeUsage: outcome.usage
      })
      for (const value of [result, result.output, result.output[0], result.failure, result.usage]) {
        assert.isTrue(Object.isFrozen(value))
      }
    })
  )

  it.effect("does not depend on what the provider does with its outcome afterwards (17)", () =>
    Effect.gen(function* () {
      const outcome = { stopReason: "error", failure: { kind: "model", retryable: true }, usage: { total: 1 } }
      yield* withSeam([provider({ turn: () => Effect.succeed(outcome) })], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", { prompt: "go", parent: root })
          outcome.stopReason = "completed"
          outcome.failure.retryable = false
          outcome.usage.total = 9
          assert.deepStrictEqual(yield* run.result, {
            output: [],
            stopReason: "error",
            failure: { kind: "model", retryable: true },
            usage: { total: 1 },
            treeUsage: { total: 1 }
          })
        })
      )
    })
  )

  it.effect("of a child that was stopped on its own side says so", () =>
    Effect.gen(function* () {
      const turn = () => Effect.succeed({ ...completed, stopReason: "aborted" })
      const result = yield* withSeam([provider({ turn })], (seam) => seam.run("p", { prompt: "go", parent: root }))
      assert.deepStrictEqual(result, { output: [], stopReason: "aborted", cause: { _tag: "Child" } })
    })
  )
})
