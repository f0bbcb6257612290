import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { SubagentUpdate } from "effect-subagent"
import { completed, type Placed, provider, root, withSeam } from "./utils/seam.ts"

/** The run of a child that emits these and then says it has completed. */
const emitting = (...updates: ReadonlyArray<SubagentUpdate.UnstampedUpdate>) =>
  withSeam(
    [
      provider({
        turn: (placed: Placed) =>
          Effect.sync(() => {
            for (const update of updates) placed.emit(update)
            return completed
          })
      })
    ],
    (seam) =>
      Effect.gen(function* () {
        const run = yield* seam.start("p", { prompt: "go", parent: root })
        return { result: yield* run.result, updates: yield* Stream.runCollect(run.updates) }
      })
  )
const content = (text: string, messageId?: string): SubagentUpdate.UnstampedUpdate => ({
  _tag: "Content",
  block: { type: "text", text },
  ...(messageId !== undefined && { messageId })
})

describe("what a child reports", () => {
  it.effect("is passed on whole and in order, and folded into the output (14)", () =>
    Effect.gen(function* () {
      const { result, updates } = yield* emitting(
        { _tag: "MessageStarted", messageId: "a" },
        content("Let me ", "a"),
        content("look.", "a"),
        { _tag: "ToolCall", id: "t", name: "read", status: "running", input: { path: "x" } },
        { _tag: "ToolCall", id: "t", status: "completed", output: "text" },
        { _tag: "MessageStarted", messageId: "b" },
        { _tag: "Thought", text: "hm" },
        content("It says ", "b"),
        content("text.", "b"),
        { _tag: "MessageStarted", messageId: "c" },
        { _tag: "Usage", usage: { total: 9 } }
      )
      assert.deepStrictEqual(result, {
        output: [{ type: "text", text: "It says text." }],
        stopReason: "completed",
        usage: { total: 9 },
        treeUsage: { total: 9 }
      })
      assert.deepStrictEqual(
        updates.map(({ seq }) => seq),
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
      )
    })
  )

  it.effect("is no completed end while a tool call is unanswered, or nothing was said (14)", () =>
    Effect.gen(function* () {
      const open = yield* emitting(content("so"), { _tag: "ToolCall", id: "t", status: "pending" })
      assert.deepInclude(open.result.failure, { kind: "unbalanced" })
      const silent = yield* emitting({ _tag: "Thought", text: "hm" }, content(" \n", "a"))
      assert.deepInclude(silent.result.failure, { kind: "empty" })
      assert.deepStrictEqual([open.result.stopReason, silent.result.stopReason], ["error", "error"])
    })
  )

  it.effect("that is no update is dropped, and does not disturb the child", () =>
    Effect.gen(function* () {
      const { result, updates } = yield* emitting(undefined as never, { _tag: "Odd" } as never, content("fine"))
      assert.deepStrictEqual(
        updates.map(({ seq }) => seq),
        [0]
      )
      assert.strictEqual(result.stopReason, "completed")
    })
  )
})

describe("pickOutput (14)", () => {
  it("picks from a list of updates what the seam picks from a run", () => {
    const { pickOutput } = SubagentUpdate
    assert.deepStrictEqual(pickOutput([content("first", "a"), content("last", "b"), content(" ", "c")]), [
      { type: "text", text: "last" }
    ])
    assert.deepStrictEqual(pickOutput(new Set([content("a"), content("b")])), [{ type: "text", text: "ab" }])
    assert.deepStrictEqual(pickOutput([]), [])
  })
})
