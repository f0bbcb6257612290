import { assert, describe, it } from "@effect/vitest"
import { Content, SubagentUpdate } from "effect-subagent"
import type { ScriptedModel } from "effect-subagent/testing"
import * as AiError from "effect/ai/AiError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import { TestClock } from "effect/testing"
import { calculator, open, outline } from "../harness.ts"

const add = { name: "add", params: { a: 1, b: 2 } }
const overloaded = new AiError.InternalProviderError({
  description: "overloaded",
  http: { response: { status: 529, headers: {} } }
})
const limited = new AiError.RateLimitError({ retryAfter: Duration.seconds(7) })
const once = { retry: Schedule.recurs(1) }

/** Gives an agent a prompt in a fiber, and counts its model calls so far. */
const asking = Effect.fnUntraced(function* (
  script: ScriptedModel.Script,
  options: Parameters<typeof calculator>[1] = {}
) {
  const agent = yield* open(calculator(script, options))
  const fiber = yield* Effect.forkChild(agent.turn("go"), { startImmediately: true })
  const after = (duration: Duration.Input) =>
    Effect.andThen(
      TestClock.adjust(duration),
      Effect.map(agent.calls, (calls) => calls.length)
    )
  return { agent, after, fiber }
})

describe("a model call that fails for a while", () => {
  it.effect("is made again after about 1, 2 and 4 seconds, and then no more", () =>
    Effect.gen(function* () {
      const { after, fiber } = yield* asking(() => ({ fail: overloaded }))
      assert.strictEqual(yield* after("799 millis"), 1)
      assert.strictEqual(yield* after("401 millis"), 2)
      assert.strictEqual(yield* after("1200 millis"), 2)
      assert.strictEqual(yield* after("1200 millis"), 3)
      assert.strictEqual(yield* after("4800 millis"), 4)
      assert.deepStrictEqual(yield* Fiber.join(fiber), {
        stopReason: "error",
        failure: { kind: "model", retryable: true, status: 529, message: "Internal provider error: overloaded" }
      })
      assert.strictEqual(yield* after("1 hour"), 4)
    })
  )

  it.effect("is not made again before its provider wants it to be", () =>
    Effect.gen(function* () {
      const { after, fiber } = yield* asking([{ fail: limited }, { text: "hi" }], once)
      assert.strictEqual(yield* after("6999 millis"), 1)
      assert.strictEqual(yield* after("1 millis"), 2)
      assert.deepStrictEqual(yield* Fiber.join(fiber), { stopReason: "completed" })
    })
  )

  it.effect("is made again when the schedule says, if that is later", () =>
    Effect.gen(function* () {
      const retry = Schedule.spaced("10 seconds")
      const { after } = yield* asking([{ fail: limited }, { text: "hi" }], { retry })
      assert.strictEqual(yield* after("9999 millis"), 1)
      assert.strictEqual(yield* after("1 millis"), 2)
    })
  )

  it.effect("tells the schedule what went wrong", () =>
    Effect.gen(function* () {
      const retry = Schedule.forever.pipe(
        Schedule.setInputType<AiError.AiError>(),
        Schedule.while(({ input }) => input.reason._tag !== "RateLimitError")
      )
      const { after, fiber } = yield* asking([{ fail: overloaded }, { fail: overloaded }, { fail: limited }], { retry })
      assert.strictEqual(yield* after("1 hour"), 3)
      assert.strictEqual((yield* Fiber.join(fiber)).failure?.retryAfter, 7000)
    })
  )

  it.effect("is reported, with how often and for how long", () =>
    Effect.gen(function* () {
      const { after, agent } = yield* asking([{ fail: limited }, { fail: overloaded }, { text: "hi" }], {
        retry: Schedule.recurs(2)
      })
      yield* after("7 seconds")
      assert.deepStrictEqual(
        agent.updates.filter(({ _tag }) => _tag === "Raw"),
        [
          {
            _tag: "Raw",
            kind: "model-retry",
            value: {
              retry: 1,
              delay: 7000,
              failure: {
                kind: "model",
                retryable: true,
                retryAfter: 7000,
                status: 429,
                message: "Rate limit exceeded. Retry after 7s"
              }
            }
          },
          {
            _tag: "Raw",
            kind: "model-retry",
            value: {
              retry: 2,
              delay: 0,
              failure: { kind: "model", retryable: true, status: 529, message: "Internal provider error: overloaded" }
            }
          }
        ]
      )
    })
  )

  it.effect("begins a new series of attempts with each step", () =>
    Effect.gen(function* () {
      const agent = yield* open(
        calculator([{ fail: overloaded }, { toolCalls: [add] }, { fail: overloaded }, { text: "3" }], once)
      )
      assert.deepStrictEqual(yield* agent.turn("1 + 2?"), { stopReason: "completed" })
    })
  )

  it.effect("does not count as a call of the turn's", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator([{ fail: overloaded }, { text: "hi" }], { ...once, maxTurns: 1 }))
      assert.deepStrictEqual(yield* agent.turn("hello"), { stopReason: "completed" })
    })
  )

  for (const streaming of [false, true]) {
    const how = streaming ? "a stream" : "a call"
    it.effect(`goes on from the last whole step after ${how} (P4)`, () =>
      Effect.gen(function* () {
        const broken = { text: "it is f", toolCalls: [add], fail: overloaded }
        const agent = yield* open(
          calculator([{ toolCalls: [add] }, broken, { text: "it is 3" }, { text: "bye" }], { ...once, streaming })
        )
        assert.deepStrictEqual(yield* agent.turn("1 + 2?"), { stopReason: "completed" })
        const calls = yield* agent.calls
        assert.deepStrictEqual(outline(calls[2]), outline(calls[1]))
        assert.deepStrictEqual(outline(calls[2]), [
          { role: "user", content: ["1 + 2?"] },
          { role: "assistant", content: ["call-0-0 add"] },
          { role: "tool", content: ["call-0-0 gave 3"] }
        ])
        assert.strictEqual(Content.toText(SubagentUpdate.pickOutput(agent.updates)), "it is 3")
        yield* agent.turn("thanks")
        assert.deepStrictEqual(outline((yield* agent.calls)[3])?.slice(3), [
          { role: "assistant", content: ["it is 3"] },
          { role: "user", content: ["thanks"] }
        ])
      })
    )

    it.effect(`that is given up after ${how} can be gone on from, with what was said kept (16)`, () =>
      Effect.gen(function* () {
        const agent = yield* open(
          calculator(
            ({ userText }) =>
              userText === "go on" ? { text: "3" } : { text: "it is f", toolCalls: [add], fail: limited },
            { retry: Schedule.recurs(0), streaming }
          )
        )
        const { failure, stopReason } = yield* agent.turn("1 + 2?")
        assert.strictEqual(stopReason, "error")
        assert.deepInclude(failure, { kind: "model", retryable: true, retryAfter: 7000, status: 429 })
        assert.strictEqual(Content.toText(SubagentUpdate.pickOutput(agent.updates)), streaming ? "it is f" : "")
        assert.deepStrictEqual(yield* agent.turn("go on"), { stopReason: "completed" })
        assert.deepStrictEqual(outline((yield* agent.calls)[1]), [
          { role: "user", content: ["1 + 2?"] },
          { role: "user", content: ["go on"] }
        ])
      })
    )
  }

  it.effect("leaves no message of its own open, and no tool call", () =>
    Effect.gen(function* () {
      const agent = yield* open(
        calculator([{ text: "it is f", toolCalls: [add], fail: overloaded }, { text: "it is 3" }], {
          ...once,
          streaming: true
        })
      )
      yield* agent.turn("1 + 2?")
      const messages = agent.updates.flatMap((update) => (update._tag === "MessageStarted" ? [update.messageId] : []))
      assert.strictEqual(new Set(messages).size, 2)
      assert.deepStrictEqual(
        agent.updates.filter(({ _tag }) => _tag === "ToolCall"),
        [
          { _tag: "ToolCall", id: "call-0-0", name: "add", status: "pending", input: { a: 1, b: 2 } },
          { _tag: "ToolCall", id: "call-0-0", status: "failed", output: "The model call broke off" }
        ]
      )
    })
  )

  it.effect("ends at once when it is stopped while it waits, and makes no further call (9)", () =>
    Effect.gen(function* () {
      const { after, agent, fiber } = yield* asking(({ index }) => (index === 0 ? { fail: limited } : { text: "hi" }))
      assert.strictEqual(yield* after("1 second"), 1)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
      assert.strictEqual(yield* after("1 hour"), 1)
      assert.deepStrictEqual(yield* agent.turn("hello"), { stopReason: "completed" })
    })
  )

  it.effect("takes in what was sent while it waited (15)", () =>
    Effect.gen(function* () {
      const { after, agent, fiber } = yield* asking([{ fail: limited }, { text: "hi" }], once)
      yield* agent.steer("never mind")
      yield* after("7 seconds")
      assert.deepStrictEqual(yield* Fiber.join(fiber), { stopReason: "completed" })
      assert.deepStrictEqual(outline((yield* agent.calls)[1]), [
        { role: "user", content: ["go"] },
        { role: "user", content: ["never mind"] }
      ])
    })
  )
})

describe("a model call that fails for good", () => {
  const key = new AiError.AuthenticationError({ kind: "InvalidKey" })
  const ends: ReadonlyArray<[string, ScriptedModel.Step, object]> = [
    ["fails", { fail: key }, { retryable: false, status: 401 }],
    ["dies", { die: "out of order" }, { retryable: false, message: "out of order" }]
  ]
  for (const [how, step, failure] of ends) {
    it.effect(`is not made again when it ${how}`, () =>
      Effect.gen(function* () {
        const agent = yield* open(calculator([step]))
        assert.deepInclude((yield* agent.turn("hello")).failure, failure)
        assert.strictEqual((yield* agent.calls).length, 1)
      })
    )
  }

  it.effect("leaves no tool call of its stream open when it is stopped", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator([{ toolCalls: [add], hang: true }], { streaming: true }))
      const fiber = yield* Effect.forkChild(agent.turn("1 + 2?"), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      assert.deepInclude(agent.updates.at(-1), { _tag: "ToolCall", id: "call-0-0", status: "failed" })
    })
  )
})

describe("an error amid a stream", () => {
  const reporting = (reason: AiError.AiErrorReason): ScriptedModel.Step => ({
    text: "so fa",
    toolCalls: [add],
    // only streams have such parts
    parts: [{ type: "error", error: AiError.make({ module: "Acme", method: "streamText", reason }) }] as never
  })

  it.effect("is like a failure if it is one that may pass", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator([reporting(overloaded), { text: "hi" }], { ...once, streaming: true }))
      assert.deepStrictEqual(yield* agent.turn("hello"), { stopReason: "completed" })
      assert.deepStrictEqual(outline((yield* agent.calls)[1]), [{ role: "user", content: ["hello"] }])
    })
  )

  it.effect("ends the turn otherwise", () =>
    Effect.gen(function* () {
      const reason = new AiError.AuthenticationError({ kind: "ExpiredKey" })
      const agent = yield* open(calculator([reporting(reason)], { ...once, streaming: true }))
      assert.deepInclude((yield* agent.turn("hello")).failure, { kind: "model", retryable: false, status: 401 })
      assert.strictEqual((yield* agent.calls).length, 1)
    })
  )
})
