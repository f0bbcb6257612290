import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { Agent, SubagentUpdate } from "effect-subagent"
import { UpdateLog } from "../../src/internal/updateLog.ts"

type Update = SubagentUpdate.UnstampedUpdate

const runId = "run" as Agent.RunId
const makeLog = (capacity = 100) => {
  let time = 0
  return new UpdateLog(runId, { currentTimeMillisUnsafe: () => time++ }, capacity)
}
const thought = (text: string): Update => ({ _tag: "Thought", text })
const seqs = (updates: ReadonlyArray<SubagentUpdate.SubagentUpdate>) => updates.map(({ seq }) => seq)
const collect = (log: UpdateLog) => Stream.runCollect(log.stream)

describe("UpdateLog", () => {
  it.effect("stamps each update with its run, a number without gaps and the time", () =>
    Effect.gen(function* () {
      const log = makeLog()
      log.add(thought("a"))
      log.add(Object.assign(thought("b"), { runId: "forged", seq: 70, at: 70 }))
      log.end()
      assert.deepStrictEqual(yield* collect(log), [
        { _tag: "Thought", text: "a", runId, seq: 0, at: 0 },
        { _tag: "Thought", text: "b", runId, seq: 1, at: 1 }
      ])
    })
  )

  it.effect("replays to whoever comes late, as far back as the capacity reaches", () =>
    Effect.gen(function* () {
      const log = makeLog(3)
      for (const i of Array.from({ length: 11 }, (_, i) => i)) {
        log.add(thought(String(i)))
        const late = yield* Effect.forkChild(Stream.runCollect(Stream.take(log.stream, Math.min(i + 1, 3))))
        assert.deepStrictEqual(
          seqs(yield* Fiber.join(late)),
          [i - 2, i - 1, i].filter((seq) => seq >= 0)
        )
      }
    })
  )

  it.effect("shows a slow subscriber by a gap in `seq` what it missed, and spares the quick one", () =>
    Effect.gen(function* () {
      const log = makeLog(3)
      const heard: Array<number> = []
      const slow: Array<number> = []
      yield* Effect.forkChild(
        Stream.runForEach(log.stream, ({ seq }) => Effect.sync(() => heard.push(seq))),
        { startImmediately: true }
      )
      const waiting = yield* Effect.forkChild(
        Stream.runForEachArray(log.stream, (some) =>
          Effect.andThen(
            Effect.sync(() => slow.push(...seqs(some))),
            Effect.sleep(1000)
          )
        ),
        { startImmediately: true }
      )
      for (const i of [0, 1, 2, 3, 4, 5, 6, 7]) {
        log.add(thought(String(i)))
        yield* Effect.repeat(Effect.yieldNow, { times: 5 })
      }
      log.end()
      yield* Effect.repeat(Effect.yieldNow, { times: 20 })
      assert.deepStrictEqual(heard, [0, 1, 2, 3, 4, 5, 6, 7])
      yield* Fiber.interrupt(waiting)
      assert.deepStrictEqual(slow, [0])
      assert.deepStrictEqual(seqs(yield* collect(log)), [5, 6, 7])
    })
  )

  it.effect("ends the subscribers when it ends, after what they still have to hear", () =>
    Effect.gen(function* () {
      const log = makeLog()
      const early = yield* Effect.forkChild(collect(log), { startImmediately: true })
      log.add(thought("a"))
      log.end()
      assert.deepStrictEqual(seqs(yield* Fiber.join(early)), [0])
      assert.deepStrictEqual(seqs(yield* collect(log)), [0])
      const empty = makeLog()
      empty.end()
      assert.deepStrictEqual(yield* collect(empty), [])
    })
  )

  it.effect("counts what comes after the end and what is no update, and passes on neither (7)", () =>
    Effect.gen(function* () {
      const log = makeLog()
      const throwing = {
        get _tag(): "Thought" {
          throw new Error("no")
        },
        text: "x"
      }
      const circular: Record<string, unknown> = {}
      circular["self"] = circular
      const malformed: ReadonlyArray<unknown> = [
        undefined,
        null,
        "text",
        [],
        {},
        { _tag: "Unheard" },
        { _tag: "MessageStarted" },
        { _tag: "Content", block: { type: "text" } },
        { _tag: "Content", block: { text: "x" } },
        { _tag: "Content", block: null },
        { _tag: "Content", block: { type: "video" } },
        { _tag: "Content", block: { type: "image" } },
        { _tag: "Content", block: { type: "resource" } },
        { _tag: "Content", messageId: 3, block: { type: "text", text: "x" } },
        { _tag: "Content", block: { type: "resource", resource: circular } },
        { _tag: "Thought" },
        { _tag: "ToolCall", id: "t" },
        { _tag: "ToolCall", id: "t", status: "done" },
        { _tag: "ToolCall", status: "running" },
        { _tag: "Plan" },
        { _tag: "Plan", entries: ["x"] },
        { _tag: "Usage", usage: 3 },
        { _tag: "Usage", usage: {} },
        { _tag: "Usage", usage: { total: 3n, input: "3", output: Number.NaN } },
        { _tag: "Receipt", state: "consumed" },
        { _tag: "Receipt", messageId: "m", state: "queued" },
        throwing
      ]
      for (const update of malformed) log.add(update as Update)
      assert.deepStrictEqual([log.malformed, log.late], [malformed.length, 0])
      log.end()
      log.add(thought("late"))
      log.add({} as Update)
      assert.deepStrictEqual([log.malformed, log.late], [malformed.length, 2])
      assert.deepStrictEqual(yield* collect(log), [])
      assert.deepStrictEqual([log.fold.output(), log.fold.isUnbalanced, log.fold.usage], [[], false, undefined])
    })
  )

  it.effect("takes every kind of update there is", () =>
    Effect.gen(function* () {
      const log = makeLog()
      const updates: ReadonlyArray<Update> = [
        { _tag: "MessageStarted", messageId: "m" },
        { _tag: "Content", messageId: "m", block: { type: "image", data: "aGk=", mimeType: "image/png" } },
        { _tag: "Thought", text: "t" },
        { _tag: "ToolCall", id: "c", name: "n", status: "completed", input: { a: 1 }, output: [1] },
        { _tag: "Plan", entries: [{ content: "c", status: "s" }] },
        { _tag: "Usage", usage: { input: 1 } },
        { _tag: "Permission", toolCallId: "c", outcome: "denied" },
        { _tag: "Receipt", messageId: "r", state: "expired" },
        { _tag: "Raw", kind: "k", value: 1 }
      ]
      for (const update of updates) log.add(update)
      log.end()
      assert.deepStrictEqual(
        (yield* collect(log)).map(({ at: _at, runId: _runId, seq: _seq, ...update }) => update),
        updates
      )
    })
  )

  it.effect("shares nothing that anybody could change: neither the provider, nor one subscriber for another (17)", () =>
    Effect.gen(function* () {
      const log = makeLog()
      const block = {
        type: "resource" as const,
        resource: { uri: "file:a", text: "before" },
        annotations: { audience: ["user" as const] },
        _meta: { deep: { list: [1] } }
      }
      const entries = [{ content: "before" }]
      const usage = { input: 1 }
      log.add({ _tag: "Content", messageId: "m", block })
      log.add({ _tag: "Plan", entries })
      log.add({ _tag: "Usage", usage })
      const expected = structuredClone({ block, entries, usage })
      block.resource.text = "after"
      block.annotations.audience.pop()
      block._meta.deep.list.push(2)
      entries[0]!.content = "after"
      entries.push({ content: "more" })
      usage.input = 2
      log.end()
      const [content, plan, used] = (yield* collect(log)) as ReadonlyArray<unknown> as readonly [
        { readonly block: typeof block },
        { readonly entries: Array<{ content: string }> },
        { readonly usage: { input: number } }
      ]
      assert.deepStrictEqual({ block: content.block, entries: plan.entries, usage: used.usage }, expected)
      assert.throws(() => (content.block.resource.text = "mine"), TypeError)
      assert.throws(() => content.block._meta.deep.list.push(3), TypeError)
      assert.throws(() => plan.entries.push({ content: "mine" }), TypeError)
      assert.throws(() => (plan.entries[0]!.content = "mine"), TypeError)
      assert.throws(() => (used.usage.input = 3), TypeError)
      assert.throws(() => Object.assign(content, { seq: 9 }), TypeError)
      assert.deepStrictEqual(log.fold.output(), [expected.block])
      assert.deepStrictEqual(log.fold.usage, expected.usage)
    })
  )

  it.effect("takes a copy of what a tool is given and gives, and nothing that can't be copied (17)", () =>
    Effect.gen(function* () {
      const log = makeLog()
      const circular: { self?: unknown } = {}
      circular.self = circular
      const when = new Date(0)
      const input = { body: { to: "alice" }, when }
      log.add({ _tag: "ToolCall", id: "c", status: "running", input, output: circular })
      input.body.to = "mallory"
      log.end()
      const call = (yield* collect(log))[0] as SubagentUpdate.ToolCall
      assert.deepStrictEqual(call.input, { body: { to: "alice" }, when })
      assert.isTrue(Object.isFrozen((call.input as typeof input).body))
      assert.isUndefined(call.output)
    })
  )

  it.effect("owes every message that was taken in a receipt: its last updates say which have expired (15)", () =>
    Effect.gen(function* () {
      const log = makeLog(3)
      for (const id of ["early", "a", "b", "c", "d", "open"]) log.offer(id)
      log.add({ _tag: "Receipt", messageId: "early", state: "consumed" })
      log.forget("c")
      for (const id of ["early", "a", "b", "c", "d"]) log.owe(id)
      log.add({ _tag: "Receipt", messageId: "a", state: "consumed" })
      // neither answers for a message
      log.add({ _tag: "Receipt", messageId: "b", state: "read" } as unknown as Update)
      log.add({ _tag: "Receipt", messageId: "unheard of", state: "consumed" })
      log.add(thought("last words"))
      log.end()
      assert.deepStrictEqual(
        (yield* collect(log)).map((update) =>
          update._tag === "Receipt" ? [update.messageId, update.state, update.seq] : [update._tag]
        ),
        [["Thought"], ["b", "expired", 4], ["d", "expired", 5]]
      )
      assert.deepStrictEqual([log.malformed, log.late], [1, 0])
    })
  )
})
