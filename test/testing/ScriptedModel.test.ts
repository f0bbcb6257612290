import { assert, describe, it } from "@effect/vitest"
import { ScriptedModel } from "effect-subagent/testing"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"

const kit = Toolkit.make(Tool.make("look"), Tool.make("add", { parameters: Schema.Struct({ a: Schema.Number }) }))
const bound = { tools: kit.tools, handle: () => Effect.die("not called") } as Toolkit.WithHandler<typeof kit.tools>

const generate = (prompt: Prompt.RawInput, model: LanguageModel.LanguageModel) =>
  model.generateText({
    prompt,
    toolkit: bound,
    toolChoice: { mode: "auto", oneOf: ["look"] },
    disableToolCallResolution: true,
    toolCallValidation: "deferred"
  })

const stream = (prompt: Prompt.RawInput, model: LanguageModel.LanguageModel) =>
  model.streamText({
    prompt,
    toolkit: bound,
    disableToolCallResolution: true,
    toolCallValidation: "deferred"
  })

const everything: ScriptedModel.Step = {
  reasoning: "hm",
  text: ["a", "b"],
  toolCalls: [
    { name: "look", params: {} },
    { name: "add", params: { a: 1 }, id: "own", providerExecuted: true }
  ],
  parts: [{ type: "file", mediaType: "text/plain", data: "YQ==" }],
  usage: { input: 5, output: 7, cacheRead: 1, cacheWrite: 2, reasoning: 3 }
}

const withoutMarks = (parts: ReadonlyArray<unknown>): unknown =>
  JSON.parse(JSON.stringify(parts), (key, value) => (key === "metadata" || key.startsWith("~") ? undefined : value))

const finish = {
  type: "finish",
  reason: "tool-calls",
  usage: { inputTokens: { total: 5, cacheRead: 1, cacheWrite: 2 }, outputTokens: { total: 7, reasoning: 3 } }
}
const others = [
  { type: "tool-call", id: "call-0-0", name: "look", params: {}, providerExecuted: false },
  { type: "tool-call", id: "own", name: "add", params: { a: 1 }, providerExecuted: true },
  { type: "file", mediaType: "text/plain", data: { 0: 97 } }
]

describe("ScriptedModel", () => {
  it.effect("answers whole", () =>
    Effect.gen(function* () {
      const { model } = yield* ScriptedModel.make([everything])
      const { content } = yield* generate("hi", model)
      assert.deepStrictEqual(withoutMarks(content), [
        { type: "reasoning", text: "hm" },
        { type: "text", text: "ab" },
        ...others,
        finish
      ])
    })
  )

  it.effect("answers in a stream", () =>
    Effect.gen(function* () {
      const { model } = yield* ScriptedModel.make([everything])
      const parts = yield* Stream.runCollect(stream("hi", model))
      assert.deepStrictEqual(withoutMarks(parts), [
        { type: "reasoning-start", id: "reasoning" },
        { type: "reasoning-delta", id: "reasoning", delta: "hm" },
        { type: "reasoning-end", id: "reasoning" },
        { type: "text-start", id: "text" },
        { type: "text-delta", id: "text", delta: "a" },
        { type: "text-delta", id: "text", delta: "b" },
        { type: "text-end", id: "text" },
        ...others,
        finish
      ])
    })
  )

  it.effect("stops where it calls no tool, and says nothing it is not told to say", () =>
    Effect.gen(function* () {
      const { model } = yield* ScriptedModel.make(() => ({}))
      const stop = { type: "finish", reason: "stop", usage: { inputTokens: {}, outputTokens: {} } }
      assert.deepStrictEqual(withoutMarks((yield* generate("hi", model)).content), [stop])
      assert.deepStrictEqual(withoutMarks(yield* Stream.runCollect(stream("hi", model))), [stop])
    })
  )

  it.effect("finishes for any reason, or not at all", () =>
    Effect.gen(function* () {
      const { model } = yield* ScriptedModel.make([
        { finishReason: "pause" },
        { finishReason: "none" },
        { finishReason: "weary" }
      ])
      assert.strictEqual((yield* generate("hi", model)).finishReason, "pause")
      assert.deepStrictEqual((yield* generate("hi", model)).content, [])
      // a reason of its own is what effect/ai does not take
      const error = yield* Effect.flip(generate("hi", model))
      assert.strictEqual(error.reason._tag, "InvalidOutputError")
    })
  )

  it.effect("waits on the clock", () =>
    Effect.gen(function* () {
      const { model } = yield* ScriptedModel.make([{ delay: "1 second", text: "late" }])
      const fiber = yield* Effect.forkChild(generate("hi", model), { startImmediately: true })
      yield* TestClock.adjust("999 millis")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.strictEqual((yield* Fiber.join(fiber)).text, "late")
    })
  )

  const squashed = <A, R>(effect: Effect.Effect<A, AiError.AiError, R>) =>
    Effect.flip(Effect.mapError(Effect.sandbox(effect), Cause.squash))

  it.effect("fails for a reason, after what it said in a stream", () =>
    Effect.gen(function* () {
      const reason = new AiError.RateLimitError({ retryAfter: Duration.seconds(7) })
      const { model } = yield* ScriptedModel.make(() => ({ text: "so far", fail: reason }))
      assert.strictEqual((yield* Effect.flip(generate("hi", model))).reason, reason)
      const said: Array<string> = []
      const streamed = Stream.runForEach(stream("hi", model), (part) => Effect.sync(() => said.push(part.type)))
      assert.strictEqual((yield* Effect.flip(streamed)).reason, reason)
      assert.deepStrictEqual(said, ["text-start", "text-delta", "text-end"])
    })
  )

  it.effect("dies", () =>
    Effect.gen(function* () {
      const { model } = yield* ScriptedModel.make(() => ({ die: "broken" }))
      assert.strictEqual(yield* squashed(generate("hi", model)), "broken")
      assert.strictEqual(yield* squashed(Stream.runDrain(stream("hi", model))), "broken")
    })
  )

  it.effect("hangs until it is interrupted", () =>
    Effect.gen(function* () {
      const { model } = yield* ScriptedModel.make(() => ({ text: "so far", hang: true }))
      const fiber = yield* Effect.forkChild(generate("hi", model), { startImmediately: true })
      yield* TestClock.adjust("1 hour")
      assert.isUndefined(fiber.pollUnsafe())
      yield* Fiber.interrupt(fiber)
    })
  )

  it.effect("consumes a list in order, whoever calls, and dies past its end", () =>
    Effect.gen(function* () {
      const { model } = yield* ScriptedModel.make([{ text: "one" }, ({ userText }) => ({ text: `two: ${userText}` })])
      assert.strictEqual((yield* generate("a", model)).text, "one")
      assert.strictEqual((yield* generate("b", model)).text, "two: b")
      assert.deepStrictEqual(
        yield* squashed(generate("c", model)),
        new Error("The script has no step for model call 2")
      )
    })
  )

  it.effect("keeps the calls it got, and works out answers from them", () =>
    Effect.gen(function* () {
      const prompt: Prompt.RawInput = [
        { role: "system", content: "be brief" },
        {
          role: "user",
          content: [
            { type: "text", text: "look" },
            { type: "text", text: "here" },
            { type: "file", mediaType: "image/png", data: "" }
          ]
        },
        { role: "assistant", content: [{ type: "tool-call", id: "0", name: "look", params: {} }] },
        { role: "tool", content: [{ type: "tool-result", id: "0", name: "look", isFailure: false, result: "fog" }] },
        { role: "assistant", content: [{ type: "tool-call", id: "1", name: "look", params: {} }] },
        { role: "tool", content: [{ type: "tool-result", id: "1", name: "look", isFailure: false, result: "a hill" }] }
      ]
      const [call, none] = yield* Effect.gen(function* () {
        const model = yield* LanguageModel.LanguageModel
        yield* generate(prompt, model)
        yield* Effect.flip(Stream.runDrain(stream([{ role: "system", content: "alone" }], model)))
        return yield* Effect.flatMap(ScriptedModel.ScriptedModel, ({ calls }) => calls)
      }).pipe(Effect.provide(ScriptedModel.layer(() => ({ text: "seen" }))))
      assert.deepStrictEqual(call, {
        index: 0,
        prompt: Prompt.make(prompt),
        userText: "look\nhere",
        toolResults: [
          Prompt.makePart("tool-result", {
            id: "1",
            name: "look",
            isFailure: false,
            result: "a hill",
            providerExecuted: false
          })
        ],
        tools: ["look"],
        toolChoice: { mode: "auto", oneOf: ["look"] },
        streaming: false
      })
      assert.deepInclude(none, { index: 1, userText: "", toolResults: [], tools: ["look", "add"], streaming: true })
    })
  )

  it.effect("refuses an unbalanced conversation like an API does, with or without streaming", () =>
    Effect.gen(function* () {
      const { calls, model } = yield* ScriptedModel.make([])
      const before = yield* calls
      for (const call of [generate([], model), Stream.runDrain(stream([], model))]) {
        const error = yield* Effect.flip(call as Effect.Effect<unknown, AiError.AiError>)
        assert.instanceOf(error.reason, AiError.InvalidRequestError)
        assert.include(error.message, "messages: the last message must be the user's or tool results")
        assert.isFalse(error.isRetryable)
      }
      assert.strictEqual((yield* calls).length, 2)
      assert.deepStrictEqual(before, [])
    })
  )
})
