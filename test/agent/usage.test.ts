/** What agents of the default loop have used, however it ends: told while they are at work, and in the result. */
import { assert, describe, it } from "@effect/vitest"
import type { SubagentUpdate } from "effect-subagent"
import type { ScriptedModel } from "effect-subagent/testing"
import * as AiError from "effect/ai/AiError"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { inTree } from "../utils/tree.ts"
import { calculator, open } from "./harness.ts"

const usage = { input: 10, output: 1 }
const add = { name: "add", params: { a: 1, b: 2 } }
const calls = (name: string): ScriptedModel.Step => ({ toolCalls: [{ name, params: {} }], usage })
const overloaded = new AiError.InternalProviderError({ description: "overloaded" })

const reported = (updates: ReadonlyArray<SubagentUpdate.UnstampedUpdate>) =>
  updates.flatMap((update) => (update._tag === "Usage" ? [update.usage] : []))

const times = (n: number) => ({ input: 10 * n, output: n, total: 11 * n })

describe("the usage of a run", () => {
  const ends: ReadonlyArray<[string, ScriptedModel.Script, number]> = [
    ["completed", [calls("read"), calls("read"), { text: "done", usage }], 3],
    ["error", [calls("read"), { fail: overloaded }], 1],
    ["max-tokens", [calls("read"), { text: "cut sh", finishReason: "length", usage }], 2],
    ["error", [calls("read"), calls("read"), calls("read"), { text: "so far", usage }], 4],
    ["aborted", [calls("read"), calls("wait")], 2]
  ]
  for (const [index, [stopReason, script, n]] of ends.entries()) {
    it.effect(`is that of all its calls when it ends as ${stopReason} (${index + 1})`, () =>
      Effect.gen(function* () {
        const { value } = yield* inTree(
          script,
          (tree) =>
            Effect.gen(function* () {
              const run = yield* tree.start("spawn", "read all")
              yield* TestClock.adjust(0)
              yield* run.cancel()
              return { result: yield* run.result, updates: yield* Stream.runCollect(run.updates) }
            }),
          { loop: { maxTurns: 3, retry: Schedule.recurs(0) } }
        )
        assert.strictEqual(value.result.stopReason, stopReason)
        assert.deepStrictEqual(value.result.usage, times(n))
        assert.deepStrictEqual(
          reported(value.updates),
          Array.from({ length: n }, (_, before) => times(before + 1))
        )
      })
    )
  }
})

describe("the usage of a model call that fails", () => {
  const finish = (input: number, output: number) => ({
    type: "finish" as const,
    reason: "stop" as const,
    usage: { inputTokens: { total: input }, outputTokens: { total: output } }
  })
  const invalid = (usage: typeof AiError.UsageInfo.Type) =>
    new AiError.InvalidOutputError({ description: "no JSON", usage })
  const used = (...steps: ReadonlyArray<ScriptedModel.Step>) =>
    Effect.gen(function* () {
      const script = [...steps, { text: "hi", usage }]
      const agent = yield* open(calculator(script, { streaming: true, retry: Schedule.recurs(steps.length) }))
      const { stopReason, usage: total } = yield* agent.turn("hello")
      assert.strictEqual(stopReason, "completed")
      return [...reported(agent.updates), total]
    })

  it.effect("is counted if its stream breaks after its figures", () =>
    Effect.gen(function* () {
      const broken = { text: "so fa", parts: [finish(5, 2)], fail: overloaded }
      const first = { input: 5, output: 2, total: 7 }
      const second = { input: 10, output: 4, total: 14 }
      const all = { input: 20, output: 5, total: 25 }
      assert.deepStrictEqual(yield* used(broken, broken), [first, second, all, all])
    })
  )

  it.effect("is counted if its error has the figures, as far as it has them", () =>
    Effect.gen(function* () {
      const steps = [
        { fail: invalid({ promptTokens: 5, completionTokens: 2, totalTokens: 7 }) },
        { fail: invalid({ promptTokens: 5 }) },
        { fail: invalid({ completionTokens: 1 }) },
        { fail: invalid({}) },
        { fail: new AiError.InvalidOutputError({ description: "no JSON" }) },
        { fail: new AiError.InvalidOutputError({ description: "no JSON", usage: undefined }) },
        { fail: overloaded }
      ]
      assert.deepStrictEqual(yield* used(...steps), [
        { input: 5, output: 2, total: 7 },
        { input: 10, output: 2, total: 12 },
        { input: 10, output: 3, total: 13 },
        { input: 20, output: 4, total: 24 },
        { input: 20, output: 4, total: 24 }
      ])
    })
  )

  it.effect("is counted where nothing is streamed", () =>
    Effect.gen(function* () {
      const script = [{ fail: invalid({ promptTokens: 5, completionTokens: 2 }) }, { text: "hi", usage }]
      const agent = yield* open(calculator(script, { retry: Schedule.recurs(1) }))
      assert.deepStrictEqual((yield* agent.turn("hello")).usage, { input: 15, output: 3, total: 18 })
    })
  )

  it.effect("is counted once if it is told twice, as it was told last", () =>
    Effect.gen(function* () {
      const error = AiError.make({
        module: "Acme",
        method: "streamText",
        reason: invalid({ promptTokens: 6, completionTokens: 2 })
      })
      const steps = [
        { parts: [finish(5, 2)], fail: invalid({ promptTokens: 5, completionTokens: 3 }) },
        // only streams have such parts
        { parts: [finish(6, 1), { type: "error", error }] as never }
      ]
      const before = { input: 5, output: 3, total: 8 }
      assert.deepStrictEqual((yield* used(...steps)).slice(1), [
        before,
        { input: 11, output: 4, total: 15 },
        { input: 11, output: 5, total: 16 },
        { input: 21, output: 6, total: 27 },
        { input: 21, output: 6, total: 27 }
      ])
    })
  )

  it.effect("is counted if it ends the turn", () =>
    Effect.gen(function* () {
      const script = [
        { toolCalls: [add], usage },
        { parts: [finish(5, 2)], die: "out of order" }
      ]
      const agent = yield* open(calculator(script, { streaming: true }))
      assert.deepStrictEqual((yield* agent.turn("hello")).usage, { input: 15, output: 3, total: 18 })
    })
  )

  it.effect("is told before it is over, for whoever stops it then", () =>
    Effect.gen(function* () {
      const script = [{ text: "so fa", parts: [finish(5, 2)], hang: true }]
      const agent = yield* open(calculator(script, { streaming: true }))
      const fiber = yield* Effect.forkChild(agent.turn("hello"), { startImmediately: true })
      assert.deepStrictEqual(reported(agent.updates), [{ input: 5, output: 2, total: 7 }])
      yield* Fiber.interrupt(fiber)
    })
  )
})
