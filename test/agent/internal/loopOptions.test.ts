import { assert, describe, it } from "@effect/vitest"
import { AgentRuntime, type AgentLoop } from "effect-subagent/agent"
import { ScriptedModel } from "effect-subagent/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { wrongOptions } from "../../../src/agent/internal/loopOptions.ts"

describe("the options of a loop", () => {
  it("may be absent, undefined, or what they say they are", () => {
    for (const options of [
      {},
      { maxTurns: undefined },
      { maxTurns: 1, repairs: 0, concurrency: 2, streaming: true, systemPrompt: "", wrapUp: false },
      { concurrency: "unbounded", retry: Schedule.recurs(0) }
    ]) {
      assert.deepStrictEqual(wrongOptions(options), [])
    }
  })

  it.effect("are else refused with their paths before there is a runtime", () =>
    Effect.gen(function* () {
      const wrong: ReadonlyArray<readonly [object, string]> = [
        ...[0, -1, Number.NaN, 1.5, "3", Number.POSITIVE_INFINITY].map(
          (maxTurns) => [{ maxTurns }, "maxTurns"] as const
        ),
        ...[0, "all", Number.NaN].map((concurrency) => [{ concurrency }, "concurrency"] as const),
        [{ repairs: -1 }, "repairs"],
        [{ streaming: "yes" }, "streaming"],
        [{ wrapUp: 1 }, "wrapUp"],
        [{ systemPrompt: 1 }, "systemPrompt"],
        [{ retry: 3 }, "retry"],
        [{ maxTurn: 3 }, "maxTurn"]
      ]
      for (const [options, path] of wrong) {
        const layer = AgentRuntime.layer(options as AgentLoop.Options).pipe(Layer.provide(ScriptedModel.layer([])))
        const error = yield* Effect.flip(Layer.build(layer))
        assert.strictEqual(error.code, "INVALID_REQUEST")
        assert.include(error.message, `Invalid request: ${path}: `)
      }
    })
  )
})
