import { assert, describe, it } from "@effect/vitest"
import { Content, CurrentAgent } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { ScriptedModel } from "effect-subagent/testing"
import * as AiError from "effect/ai/AiError"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import { calculator, open, outline, resultsOf } from "../harness.ts"

const add = (a: number, b: number) => ({ name: "add", params: { a, b } })
const seeded = Random.withSeed("seed")

/** Without the ids of messages, which are random. */
const anonymous = (updates: ReadonlyArray<object>) =>
  updates.map((update) => ("messageId" in update ? { ...update, messageId: "m" } : update))

describe("the loop", () => {
  it.effect("answers at once when no tool is called", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator([{ text: "hi", reasoning: "a greeting", usage: { input: 3, output: 2 } }]))
      assert.deepStrictEqual(yield* agent.turn("hello"), {
        stopReason: "completed",
        usage: { input: 3, output: 2, total: 5 }
      })
      assert.deepStrictEqual(anonymous(agent.updates), [
        { _tag: "Thought", text: "a greeting" },
        { _tag: "MessageStarted", messageId: "m" },
        { _tag: "Content", messageId: "m", block: { type: "text", text: "hi" } },
        { _tag: "Usage", usage: { input: 3, output: 2, total: 5 } }
      ])
    })
  )

  it.effect("executes the tools that are called and goes on with their results", () =>
    Effect.gen(function* () {
      const agent = yield* open(
        calculator([
          { text: "let me see", toolCalls: [add(1, 2)], usage: { input: 10, output: 1 } },
          ({ toolResults }) => ({ text: `it is ${toolResults[0]?.result}`, usage: { input: 20, cacheRead: 5 } })
        ])
      )
      assert.deepStrictEqual(yield* agent.turn("1 + 2?"), {
        stopReason: "completed",
        usage: { input: 30, output: 1, total: 31, cacheRead: 5 }
      })
      assert.deepStrictEqual(anonymous(agent.updates), [
        { _tag: "MessageStarted", messageId: "m" },
        { _tag: "Content", messageId: "m", block: { type: "text", text: "let me see" } },
        { _tag: "ToolCall", id: "call-0-0", name: "add", status: "pending", input: { a: 1, b: 2 } },
        { _tag: "Usage", usage: { input: 10, output: 1, total: 11 } },
        { _tag: "ToolCall", id: "call-0-0", status: "running" },
        { _tag: "ToolCall", id: "call-0-0", status: "completed", output: 3 },
        { _tag: "MessageStarted", messageId: "m" },
        { _tag: "Content", messageId: "m", block: { type: "text", text: "it is 3" } },
        { _tag: "Usage", usage: { input: 30, output: 1, total: 31, cacheRead: 5 } }
      ])
    })
  )
})
