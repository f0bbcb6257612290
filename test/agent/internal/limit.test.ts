import { assert, describe, it } from "@effect/vitest"
import { Content, type SubagentProvider, SubagentUpdate } from "effect-subagent"
import type { ScriptedModel } from "effect-subagent/testing"
import * as AiError from "effect/ai/AiError"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import { noticeOf, refusalOf } from "../../../src/agent/internal/limit.ts"
import { tagOf } from "../../utils/seam.ts"
import { inTree } from "../../utils/tree.ts"
import { calculator, open, outline } from "../harness.ts"

const failure = { kind: "limit", retryable: false, name: "maxTokens", limit: 100, used: 104 }
const notice =
  "You have to stop here, for a limit is reached: maxTokens 100. No tool can be called in this reply, which is your " +
  "last. Say what you have got so far, and what is missing."
const error = { stopReason: "error", failure }

const add = { name: "add", params: { a: 1, b: 2 } }
const overloaded = new AiError.InternalProviderError({ description: "overloaded" })

/** Allows so many turns, and counts how often it was asked. */
const allowing = (turns: number, wrapUp = true) => {
  const seam = {
    asked: 0,
    nextTurn: (): SubagentProvider.TurnRefused | undefined => (++seam.asked > turns ? { failure, wrapUp } : undefined)
  }
  return seam
}

const saidBy = (agent: { readonly updates: ReadonlyArray<SubagentUpdate.UnstampedUpdate> }) =>
  Content.toText(SubagentUpdate.pickOutput(agent.updates))

describe("whether there is a further model call", () => {
  const refused = { failure, wrapUp: false }
  const capped = {
    failure: {
      kind: "limit",
      retryable: false,
      name: "maxTurns",
      limit: 2,
      used: 2,
      message: "The agent has used its 2 model calls for one prompt and was not done"
    }
  }
  const table: ReadonlyArray<[string, number, boolean, boolean | undefined, object | undefined, number]> = [
    ["below the cap, where nobody is to be asked", 1, true, undefined, undefined, 0],
    ["below the cap, if the seam allows it", 1, true, true, undefined, 1],
    ["below the cap, if the seam does not", 1, true, false, refused, 1],
    ["at the cap, where nobody is to be asked", 2, true, undefined, { ...capped, wrapUp: true }, 0],
    ["at the cap, if the seam allows the call to wrap up", 2, true, true, { ...capped, wrapUp: true }, 1],
    ["at the cap, if the seam does not", 2, true, false, refused, 1],
    ["at the cap, without a call to wrap up", 2, false, true, { ...capped, wrapUp: false }, 0]
  ]
  for (const [when, calls, wrapUp, isAllowed, expected, timesAsked] of table) {
    it(`is told ${when}`, () => {
      let asked = 0
      const nextTurn = () => {
        asked++
        return isAllowed === true ? undefined : refused
      }
      const cap = { maxTurns: 2, wrapUp }
      assert.deepStrictEqual(refusalOf(cap, isAllowed === undefined ? undefined : nextTurn, calls), expected)
      assert.strictEqual(asked, timesAsked)
    })
  }
})

describe("the notice of a limit", () => {
  const texts: ReadonlyArray<[string, object, string]> = [
    ["and its figure", { name: "maxTurns", limit: 3 }, "maxTurns 3."],
    ["without a figure", { name: "the end of the month" }, "the end of the month."],
    ["that has no name", {}, "a limit."]
  ]
  for (const [what, figures, expected] of texts) {
    it(`names it ${what}`, () => {
      const { content, role } = noticeOf({ kind: "limit", retryable: false, ...figures })
      const part = content[0]
      assert.strictEqual(role, "user")
      assert.include(part?.type === "text" ? part.text : "", `a limit is reached: ${expected} No tool`)
    })
  }
})

describe("a turn whose calls are counted", () => {
  it.effect("asks before each model call, but not before it is tried again", () =>
    Effect.gen(function* () {
      const seam = allowing(Number.POSITIVE_INFINITY)
      const script = [{ toolCalls: [add] }, { fail: overloaded }, { toolCalls: [add] }, { text: "3" }]
      const agent = yield* open(calculator(script, { retry: Schedule.recurs(1) }), seam)
      assert.deepStrictEqual(yield* agent.turn("1 + 2?"), { stopReason: "completed" })
      assert.strictEqual((yield* agent.calls).length, 4)
      assert.strictEqual(seam.asked, 3)
    })
  )

  for (const streaming of [false, true]) {
    const how = streaming ? "streaming" : "whole"
    it.effect(`that is refused one ends with a reply without tools, to say what there is (${how})`, () =>
      Effect.gen(function* () {
        const usage = { input: 10, output: 1 }
        const script: ScriptedModel.Script = [
          { text: "let me see", toolCalls: [add], usage },
          { text: "so far 3", usage },
          { text: "as I said" }
        ]
        const agent = yield* open(calculator(script, { streaming }), allowing(1))
        assert.deepStrictEqual(yield* agent.turn("1 + 2?"), { ...error, usage: { input: 20, output: 2, total: 22 } })
        const [first, last] = yield* agent.calls
        assert.deepStrictEqual(first?.tools, ["add", "shout"])
        assert.deepStrictEqual(last?.tools, [])
        assert.deepStrictEqual(outline(last)?.slice(-3), [
          { role: "assistant", content: ["let me see", "call-0-0 add"] },
          { role: "tool", content: ["call-0-0 gave 3"] },
          { role: "user", content: [notice] }
        ])
        assert.strictEqual(saidBy(agent), "so far 3")
      })
    )

    it.effect(`that calls a tool all the same has it answered, not executed (${how})`, () =>
      Effect.gen(function* () {
        const { nextTurn } = allowing(1)
        let isLimited = true
        const agent = yield* open(
          calculator(
            [
              { toolCalls: [add] },
              { text: "just one more", toolCalls: [add, { name: "shout", params: { text: "hi" } }] },
              { text: "3" }
            ],
            { streaming }
          ),
          { nextTurn: () => (isLimited ? nextTurn() : undefined) }
        )
        assert.deepStrictEqual(yield* agent.turn("1 + 2?"), error)
        const output = {
          type: "execution-interrupted",
          reason: "The tool was not executed. None can be once a limit is reached"
        }
        assert.deepStrictEqual(
          agent.updates.filter((update) => update._tag === "ToolCall" && update.id.startsWith("call-1")).slice(2),
          [
            { _tag: "ToolCall", id: "call-1-0", status: "failed", output },
            { _tag: "ToolCall", id: "call-1-1", status: "failed", output }
          ]
        )
        isLimited = false
        assert.deepStrictEqual(yield* agent.turn("go on"), { stopReason: "completed" })
        const result = JSON.stringify(output)
        assert.deepStrictEqual(outline((yield* agent.calls)[2])?.slice(-4), [
          { role: "user", content: [notice] },
          { role: "assistant", content: ["just one more", "call-1-0 add", "call-1-1 shout"] },
          { role: "tool", content: [`call-1-0 failed ${result}`, `call-1-1 failed ${result}`] },
          { role: "user", content: ["go on"] }
        ])
      })
    )
  }

  it.effect("that is refused one and not to wrap up ends at once", () =>
    Effect.gen(function* () {
      const { nextTurn } = allowing(1, false)
      let isLimited = true
      const agent = yield* open(calculator([{ text: "let me see", toolCalls: [add] }, { text: "3" }]), {
        nextTurn: () => (isLimited ? nextTurn() : undefined)
      })
      assert.deepStrictEqual(yield* agent.turn("1 + 2?"), error)
      assert.strictEqual((yield* agent.calls).length, 1)
      isLimited = false
      assert.deepStrictEqual(yield* agent.turn("go on"), { stopReason: "completed" })
      assert.deepStrictEqual(outline((yield* agent.calls)[1])?.slice(-2), [
        { role: "tool", content: ["call-0-0 gave 3"] },
        { role: "user", content: ["go on"] }
      ])
    })
  )

  it.effect("that is refused its first one has its prompt all the same", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator([{ text: "nothing yet" }]), allowing(0))
      assert.deepStrictEqual(yield* agent.turn("1 + 2?"), error)
      assert.deepStrictEqual(outline((yield* agent.calls)[0]), [
        { role: "user", content: ["1 + 2?"] },
        { role: "user", content: [notice] }
      ])
    })
  )

  const failures: ReadonlyArray<[string, ScriptedModel.Step, string]> = [
    ["fails", { fail: overloaded }, "Internal provider error: overloaded"],
    ["dies", { die: new Error("out of order") }, "out of order"],
    // only streams have such parts
    ["reports an error amid its stream", { parts: [{ type: "error", error: "cut" }] as never }, "cut"]
  ]
  for (const [how, step, message] of failures) {
    it.effect(`ends for its limit also if the last model call ${how}`, () =>
      Effect.gen(function* () {
        const { nextTurn } = allowing(1)
        let isLimited = true
        const agent = yield* open(
          calculator([{ toolCalls: [add] }, step, { text: "3" }], { streaming: true, retry: Schedule.recurs(0) }),
          { nextTurn: () => (isLimited ? nextTurn() : undefined) }
        )
        const diagnostic = `Its last reply, to wrap up, failed: ${message}`
        assert.deepStrictEqual(yield* agent.turn("1 + 2?"), { ...error, diagnostic })
        isLimited = false
        assert.deepStrictEqual(yield* agent.turn("go on"), { stopReason: "completed" })
      })
    )
  }

  it.effect("reads no more messages, and takes none in while it wraps up (15)", () =>
    Effect.gen(function* () {
      const agent = yield* open(
        calculator(({ index }) => ({ ...(index === 0 && { toolCalls: [add] }), delay: "1 second" })),
        allowing(1)
      )
      const fiber = yield* Effect.forkChild(agent.turn("1 + 2?"), { startImmediately: true })
      yield* agent.steer("and 3 + 4?")
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* agent.calls).length, 2)
      assert.strictEqual(tagOf(yield* Effect.exit(agent.steer("hurry"))), "RunSettled")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(fiber), error)
      assert.isFalse(agent.updates.some(({ _tag }) => _tag === "Receipt"))
      assert.notInclude(JSON.stringify(outline((yield* agent.calls)[1])), "and 3 + 4?")
    })
  )

  it.effect("keeps an answer that was there when only messages were left to read (15)", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator([{ text: "3", delay: "1 second" }]), allowing(1))
      const fiber = yield* Effect.forkChild(agent.turn("1 + 2?"), { startImmediately: true })
      yield* agent.steer("and 3 + 4?")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(fiber), { stopReason: "completed" })
      assert.strictEqual((yield* agent.calls).length, 1)
    })
  )

  it.effect("does not ask for a call that its own cap leaves no room for, when it has its answer (15)", () =>
    Effect.gen(function* () {
      const seam = allowing(1)
      const agent = yield* open(calculator([{ text: "3", delay: "1 second" }], { maxTurns: 1 }), seam)
      const fiber = yield* Effect.forkChild(agent.turn("1 + 2?"), { startImmediately: true })
      yield* agent.steer("and 3 + 4?")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(fiber), { stopReason: "completed" })
      assert.strictEqual(seam.asked, 1)
    })
  )

  it.effect("that has read them is not done with its earlier answer", () =>
    Effect.gen(function* () {
      const script: ScriptedModel.Script = [{ text: "3", delay: "1 second" }, { toolCalls: [add] }, { text: "wait" }]
      const agent = yield* open(calculator(script), allowing(2))
      const fiber = yield* Effect.forkChild(agent.turn("1 + 2?"), { startImmediately: true })
      yield* agent.steer("and 3 + 4?")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(fiber), error)
      assert.strictEqual(saidBy(agent), "wait")
    })
  )

  it.effect("that is interrupted while it wraps up can be gone on from", () =>
    Effect.gen(function* () {
      const { nextTurn } = allowing(1)
      let isLimited = true
      const agent = yield* open(calculator([{ toolCalls: [add] }, { hang: true }, { text: "3" }]), {
        nextTurn: () => (isLimited ? nextTurn() : undefined)
      })
      const fiber = yield* Effect.forkChild(agent.turn("1 + 2?"), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      isLimited = false
      assert.deepStrictEqual(yield* agent.turn("go on"), { stopReason: "completed" })
      assert.deepStrictEqual(outline((yield* agent.calls)[2])?.slice(-2), [
        { role: "user", content: [notice] },
        { role: "user", content: ["go on"] }
      ])
    })
  )
})

describe("a value that was asked for (13)", () => {
  const outputSchema = Schema.Struct({ count: Schema.Number })
  const submit = { name: "submit_result", params: { count: 3 } }
  const counting = (script: ScriptedModel.Script, maxTurns: number) =>
    inTree(
      script,
      (tree) =>
        Effect.gen(function* () {
          const run = yield* tree.start("spawn", "count", { outputSchema })
          const result = yield* run.result
          return { calls: yield* tree.calls, result }
        }),
      { loop: { maxTurns } }
    )

  it.effect("is not taken from the reply that wraps up, which is not shown how to submit it", () =>
    Effect.gen(function* () {
      const read = { toolCalls: [{ name: "read", params: {} }] }
      const { value } = yield* counting([read, { text: "three", toolCalls: [submit] }], 1)
      assert.deepStrictEqual([value.result.stopReason, value.result.failure?.name], ["error", "maxTurns"])
      assert.notProperty(value.result, "structured")
      assert.deepStrictEqual(value.result.output, [Content.text("three")])
      assert.deepStrictEqual(value.calls[1]?.tools, [])
    })
  )

  it.effect("is still missing when its agent has said something and has messages left to read (15)", () =>
    Effect.gen(function* () {
      const runtime = calculator(({ index }) => ({ text: index === 0 ? "three" : "no value", delay: "1 second" }))
      const output = { schema: outputSchema, decode: Effect.succeed }
      const agent = yield* open(runtime, { ...allowing(1), output })
      const fiber = yield* Effect.forkChild(agent.turn("count"), { startImmediately: true })
      yield* agent.steer("and again")
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* Fiber.join(fiber), error)
      assert.strictEqual(saidBy(agent), "no value")
    })
  )

  it.effect("is not asked for once more when there is no call left to submit it in", () =>
    Effect.gen(function* () {
      const { value } = yield* counting([{ text: "three" }, { text: "three, as I said" }], 1)
      assert.strictEqual(value.result.failure?.name, "maxTurns")
      assert.deepStrictEqual(
        outline(value.calls[1])?.map(({ role }) => role),
        ["user", "assistant", "user"]
      )
    })
  )
})

describe("a child of the seam's, limited", () => {
  const used = { input: 10, output: 1 }
  const reading: ScriptedModel.Rule = ({ tools, userText }) =>
    userText === "go on"
      ? { text: "all of it", usage: used }
      : tools.length > 0
        ? { toolCalls: [{ name: "read", params: {} }], usage: used }
        : { text: "half of it", usage: used }
  const limits: ReadonlyArray<[string, object, object, number]> = [
    ["turns", { maxTurns: 2 }, { name: "maxTurns", limit: 2, used: 2 }, 2],
    ["tokens", { maxTokens: 25 }, { name: "maxTokens", limit: 25, used: 33 }, 3]
  ]
  for (const [what, fields, figures, steps] of limits) {
    it.effect(`in ${what} gives what it has got, with its figures, and can be gone on with (16)`, () =>
      Effect.gen(function* () {
        const { value } = yield* inTree(reading, (tree) =>
          Effect.gen(function* () {
            const run = yield* tree.start("spawn", "read all", fields)
            const result = yield* run.result
            const calls = (yield* tree.calls).length
            const resumed = yield* Effect.flatMap(run.resume!("go on"), ({ result }) => result)
            return { executed: tree.executed.length, result, calls, resumed }
          })
        )
        assert.strictEqual(value.executed, steps)
        assert.strictEqual(value.calls, steps + 1)
        const { failure, output, stopReason, usage } = value.result
        assert.deepStrictEqual([stopReason, output], ["error", [Content.text("half of it")]])
        assert.deepInclude(failure, { kind: "limit", ...figures })
        const n = steps + 1
        assert.deepStrictEqual(usage, { input: 10 * n, output: n, total: 11 * n })
        assert.deepStrictEqual(value.resumed.output, [Content.text("all of it")])
        assert.strictEqual(value.resumed.stopReason, "completed")
      })
    )
  }
})
