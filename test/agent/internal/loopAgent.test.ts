import { assert, describe, it } from "@effect/vitest"
import { Agent, Content, CurrentAgent, SubagentUpdate } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { ScriptedModel } from "effect-subagent/testing"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import { calculator, filtered, open, outline, resultsOf } from "../harness.ts"

const add = (a: number, b: number, id?: string) => ({ name: "add", params: { a, b }, id })

/** Without the ids of messages, which are random. */
const anonymous = (updates: ReadonlyArray<object>) =>
  updates.map((update) => ("messageId" in update ? { ...update, messageId: "m" } : update))

/** A tool that waits until it is told, and an agent that has it. */
const Wait = Tool.make("wait", { parameters: Schema.Struct({ name: Schema.String }), success: Schema.String })
const waiting = Effect.fnUntraced(function* (
  script: ScriptedModel.Script,
  options: { readonly concurrency?: number } = {}
) {
  const gates = { a: yield* Deferred.make<void>(), b: yield* Deferred.make<void>() }
  const log: Array<string> = []
  const toolkit = Toolkit.make(Wait)
  const handlers = toolkit.toLayer({
    wait: ({ name }) =>
      Effect.suspend(() => {
        log.push(`${name} begins`)
        return Deferred.await(gates[name as "a" | "b"])
      }).pipe(
        Effect.as(name),
        Effect.onExit((exit) => Effect.sync(() => log.push(`${name} ${Exit.isSuccess(exit) ? "ends" : "stops"}`)))
      )
  })
  const runtime = AgentRuntime.layer({ toolkit, ...options }).pipe(
    Layer.provide(handlers),
    Layer.provideMerge(ScriptedModel.layer(script))
  )
  return { gates, log, agent: yield* open(runtime) }
})
const waitFor = (name: string) => ({ name: "wait", params: { name } })

describe("a turn", () => {
  it.effect("ends at once when no tool is called", () =>
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

  const calculation = (text: string | ReadonlyArray<string> = "let me see"): ScriptedModel.Script => [
    { reasoning: "hm", text, toolCalls: [add(1, 2)], usage: { input: 10, output: 1 } },
    ({ toolResults }) => ({ text: `it is ${String(toolResults[0]?.result)}`, usage: { input: 20, cacheRead: 5 } }),
    { text: "bye" }
  ]
  const calculated = [
    { role: "user", content: ["1 + 2?"] },
    { role: "assistant", content: ["hm", "let me see", "call-0-0 add"] },
    { role: "tool", content: ["call-0-0 gave 3"] },
    { role: "assistant", content: ["it is 3"] },
    { role: "user", content: ["thanks"] }
  ]

  it.effect("executes the tools that are called and goes on with their results", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator(calculation()))
      assert.deepStrictEqual(yield* agent.turn("1 + 2?"), {
        stopReason: "completed",
        usage: { input: 30, output: 1, total: 31, cacheRead: 5 }
      })
      assert.deepStrictEqual(anonymous(agent.updates), [
        { _tag: "Thought", text: "hm" },
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
      yield* agent.turn("thanks")
      assert.deepStrictEqual(outline((yield* agent.calls)[2]), calculated)
    })
  )

  it.effect("reports what a streaming model says bit by bit, and remembers it the same", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator(calculation(["let ", "me see"]), { streaming: true }))
      assert.deepStrictEqual(yield* agent.turn("1 + 2?"), {
        stopReason: "completed",
        usage: { input: 30, output: 1, total: 31, cacheRead: 5 }
      })
      assert.deepStrictEqual(anonymous(agent.updates.slice(0, 5)), [
        { _tag: "Thought", text: "hm" },
        { _tag: "MessageStarted", messageId: "m" },
        { _tag: "Content", messageId: "m", block: { type: "text", text: "let " } },
        { _tag: "Content", messageId: "m", block: { type: "text", text: "me see" } },
        { _tag: "ToolCall", id: "call-0-0", name: "add", status: "pending", input: { a: 1, b: 2 } }
      ])
      yield* agent.turn("thanks")
      assert.deepStrictEqual(outline((yield* agent.calls)[2]), calculated)
      assert.isTrue((yield* agent.calls).every((call) => call.streaming))
    })
  )

  it.effect("reports what a streaming model says before it is done", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator([{ text: "so far", hang: true }], { streaming: true }))
      const fiber = yield* Effect.forkChild(agent.turn("hello"), { startImmediately: true })
      assert.strictEqual(agent.updates.length, 2)
      yield* Fiber.interrupt(fiber)
    })
  )

  it.effect("names messages by the Random service, each anew", () =>
    Effect.gen(function* () {
      const ids = Effect.gen(function* () {
        const agent = yield* open(calculator(calculation()))
        yield* agent.turn("1 + 2?")
        return agent.updates.flatMap((update) => (update._tag === "MessageStarted" ? [update.messageId] : []))
      }).pipe(Random.withSeed("seed"))
      const first = yield* ids
      assert.strictEqual(new Set(first).size, 2)
      assert.deepStrictEqual(yield* ids, first)
    })
  )

  it.effect("reports no usage where the model reports none", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator([{ text: "hi" }]))
      assert.deepStrictEqual(yield* agent.turn("hello"), { stopReason: "completed" })
      assert.isFalse(agent.updates.some((update) => update._tag === "Usage"))
    })
  )

  it.effect("counts the usage of each turn by itself", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator(() => ({ text: "hi", usage: { input: 1, output: 1 } })))
      yield* agent.turn("hello")
      assert.deepStrictEqual((yield* agent.turn("hello")).usage, { input: 1, output: 1, total: 2 })
    })
  )

  it.effect("completes with nothing said, and remembers nothing of it", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator([{ text: " " }, {}, { text: "at last" }]))
      assert.deepStrictEqual(yield* agent.turn("hello"), { stopReason: "completed" })
      assert.deepStrictEqual(yield* agent.turn("hello?"), { stopReason: "completed" })
      assert.deepStrictEqual(yield* agent.turn("hello!"), { stopReason: "completed" })
      assert.deepStrictEqual(outline((yield* agent.calls)[2]), [
        { role: "user", content: ["hello"] },
        { role: "user", content: ["hello?"] },
        { role: "user", content: ["hello!"] }
      ])
    })
  )

  it.effect("goes on after a stop that comes with tool calls", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator([{ toolCalls: [add(1, 2)], finishReason: "stop" }, { text: "3" }]))
      assert.strictEqual((yield* agent.turn("1 + 2?")).stopReason, "completed")
      assert.strictEqual((yield* agent.calls).length, 2)
    })
  )
})

describe("tool calls of one reply", () => {
  it.effect("are executed at the same time, and answered in their order", () =>
    Effect.gen(function* () {
      const { agent, gates, log } = yield* waiting([{ toolCalls: [waitFor("a"), waitFor("b")] }, { text: "done" }])
      const fiber = yield* Effect.forkChild(agent.turn("wait"), { startImmediately: true })
      yield* Deferred.succeed(gates.b, undefined)
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(log, ["a begins", "b begins", "b ends"])
      yield* Deferred.succeed(gates.a, undefined)
      assert.strictEqual((yield* Fiber.join(fiber)).stopReason, "completed")
      const results = resultsOf((yield* agent.calls)[1])
      assert.deepStrictEqual(
        results?.map(({ result }) => result),
        ["a", "b"]
      )
    })
  )

  it.effect("are executed no more at a time than the runtime was told", () =>
    Effect.gen(function* () {
      const { agent, gates, log } = yield* waiting([{ toolCalls: [waitFor("a"), waitFor("b")] }, { text: "done" }], {
        concurrency: 1
      })
      yield* Deferred.succeed(gates.a, undefined)
      yield* Deferred.succeed(gates.b, undefined)
      yield* agent.turn("wait")
      assert.deepStrictEqual(log, ["a begins", "a ends", "b begins", "b ends"])
    })
  )

  it.effect("get an id of their own where the model uses one twice", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator([{ toolCalls: [add(1, 2, "same"), add(3, 4, "same")] }, { text: "3, 7" }]))
      assert.strictEqual((yield* agent.turn("sums?")).stopReason, "completed")
      const results = resultsOf((yield* agent.calls)[1])
      assert.deepStrictEqual(
        results?.map(({ result }) => result),
        [3, 7]
      )
      assert.strictEqual(results?.[0]?.id, "same")
    })
  )

  it.effect("answer the model when there is no such tool", () =>
    Effect.gen(function* () {
      const agent = yield* open(
        calculator([{ toolCalls: [{ name: "fly", params: {} }, add(1, 2)] }, { text: "I can't fly" }])
      )
      assert.strictEqual((yield* agent.turn("fly")).stopReason, "completed")
      assert.deepStrictEqual(resultsOf((yield* agent.calls)[1]), [
        {
          id: "call-0-0",
          name: "fly",
          isFailure: true,
          result: 'There is no tool "fly"; the tools there are: "add", "shout"'
        },
        { id: "call-0-1", name: "add", isFailure: false, result: 3 }
      ])
      assert.deepInclude(agent.updates, {
        _tag: "ToolCall",
        id: "call-0-0",
        status: "failed",
        output: 'There is no tool "fly"; the tools there are: "add", "shout"'
      })
    })
  )
})

describe("a tool filter (12)", () => {
  const asked = Effect.fnUntraced(function* (toolFilters: AgentRuntime.AgentSpec["policy"]["toolFilters"]) {
    const agent = yield* open(calculator([{ text: "hi" }]), { policy: filtered(...toolFilters) })
    yield* agent.turn("hello")
    return (yield* agent.calls)[0]
  })
  const offered = (toolFilters: AgentRuntime.AgentSpec["policy"]["toolFilters"]) =>
    Effect.map(asked(toolFilters), (call) => call?.tools)

  it.effect("that takes no tool away asks nothing else of the model", () =>
    Effect.gen(function* () {
      const call = yield* asked([{ allow: ["shout", "add"], deny: [] }])
      assert.deepStrictEqual([call?.tools, call?.toolChoice], [["add", "shout"], "auto"])
    })
  )

  it.effect("hides tools from the model", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* offered([]), ["add", "shout"])
      assert.deepStrictEqual(yield* offered([{ deny: ["add"] }]), ["shout"])
      assert.deepStrictEqual(yield* offered([{ allow: ["add", "shout"] }, { allow: ["add"] }]), ["add"])
      assert.deepStrictEqual(yield* offered([{ deny: ["shout"] }, { allow: ["shout"] }]), [])
      assert.deepStrictEqual(yield* offered([{ allow: [] }]), [])
    })
  )

  it.effect("is enforced when a tool is executed", () =>
    Effect.gen(function* () {
      const agent = yield* open(
        calculator([{ toolCalls: [add(1, 2), { name: "shout", params: { text: "hi" } }] }, { text: "done" }]),
        { policy: filtered({ deny: ["add"] }) }
      )
      assert.strictEqual((yield* agent.turn("add")).stopReason, "completed")
      assert.deepStrictEqual(resultsOf((yield* agent.calls)[1]), [
        {
          id: "call-0-0",
          name: "add",
          isFailure: true,
          result: 'A tool filter denies "add"; the tools there are: "shout"'
        },
        { id: "call-0-1", name: "shout", isFailure: false, result: "HI!" }
      ])
    })
  )
})

describe("the end of a turn", () => {
  const failure = (message: string) => ({ kind: "model", retryable: false, message })
  const ends: ReadonlyArray<[string, unknown]> = [
    ["length", { stopReason: "max-tokens", failure: failure("The model's output limit cut its reply short") }],
    ["content-filter", { stopReason: "refusal", failure: failure("The model or its content filter declined") }],
    ["error", { stopReason: "error", failure: failure('The model stopped with reason "error"') }],
    ["pause", { stopReason: "error", failure: failure('The model stopped with reason "pause"') }],
    ["other", { stopReason: "error", failure: failure('The model stopped with reason "other"') }],
    ["unknown", { stopReason: "error", failure: failure('The model stopped with reason "unknown"') }],
    ["none", { stopReason: "error", failure: failure('The model stopped with reason "unknown"') }]
  ]
  for (const [finishReason, expected] of ends) {
    it.effect(`is what follows from finish reason ${finishReason}`, () =>
      Effect.gen(function* () {
        const agent = yield* open(calculator([{ text: "so", finishReason }]))
        assert.deepStrictEqual(yield* agent.turn("hello"), expected)
      })
    )

    it.effect(`after finish reason ${finishReason} leaves no tool call unanswered, and executes none`, () =>
      Effect.gen(function* () {
        const agent = yield* open(calculator([{ text: "so", toolCalls: [add(1, 2)], finishReason }, { text: "hi" }]))
        const ended = yield* agent.turn("hello")
        assert.deepStrictEqual(ended, expected)
        const result = { type: "execution-interrupted", reason: `The tool was not executed. ${ended.failure?.message}` }
        assert.deepStrictEqual(agent.updates.at(-1), {
          _tag: "ToolCall",
          id: "call-0-0",
          status: "failed",
          output: result
        })
        assert.strictEqual((yield* agent.turn("go on")).stopReason, "completed")
        assert.deepStrictEqual(outline((yield* agent.calls)[1])?.[2], {
          role: "tool",
          content: [`call-0-0 failed ${JSON.stringify(result)}`]
        })
      })
    )
  }

  it.effect("is an error when the model stops for tool calls and makes none", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator([{ text: "so", finishReason: "tool-calls" }]))
      assert.deepStrictEqual(yield* agent.turn("hello"), {
        stopReason: "error",
        failure: failure("The model stopped for tool calls and made none")
      })
    })
  )

  const capped = {
    stopReason: "error",
    failure: {
      kind: "limit",
      retryable: false,
      name: "maxTurns",
      limit: 2,
      used: 2,
      message: "The agent has used its 2 model calls for one prompt and was not done"
    }
  }
  const onAndOn: ScriptedModel.Rule = ({ tools, userText }) =>
    userText === "stop"
      ? { text: "hi" }
      : { ...(tools.length > 0 ? { toolCalls: [add(1, 2)] } : { text: "3 so far" }), usage: { input: 1 } }

  it.effect("comes when the model calls are used up, with the tools of the last executed and one more to wrap up", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator(onAndOn, { maxTurns: 2 }))
      assert.deepStrictEqual(yield* agent.turn("on and on"), { ...capped, usage: { input: 3 } })
      assert.strictEqual(Content.toText(SubagentUpdate.pickOutput(agent.updates)), "3 so far")
      assert.deepStrictEqual(yield* agent.turn("stop"), { stopReason: "completed" })
      const calls = yield* agent.calls
      assert.deepStrictEqual(
        calls.map(({ tools }) => tools.length),
        [2, 2, 0, 2]
      )
      assert.deepStrictEqual(
        outline(calls.at(-1))?.map(({ content }) => content[0]?.slice(0, 16)),
        [
          "on and on",
          "call-0-0 add",
          "call-0-0 gave 3",
          "call-1-0 add",
          "call-1-0 gave 3",
          "You have to stop",
          "3 so far",
          "stop"
        ]
      )
    })
  )

  it.effect("comes without one more where the runtime says so, with the tools of the last executed all the same", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator(onAndOn, { maxTurns: 2, wrapUp: false }))
      assert.deepStrictEqual(yield* agent.turn("on and on"), { ...capped, usage: { input: 2 } })
      assert.deepInclude(agent.updates.at(-1), { _tag: "ToolCall", id: "call-1-0", status: "completed" })
      assert.deepStrictEqual(yield* agent.turn("stop"), { stopReason: "completed" })
    })
  )

  it.effect("comes after 50 model calls by default", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator(onAndOn))
      assert.strictEqual((yield* agent.turn("on and on")).failure?.used, 50)
      assert.strictEqual((yield* agent.calls).length, 51)
    })
  )

  for (const streaming of [false, true]) {
    const mode = streaming ? "a streaming" : "a"
    it.effect(`is an error with its figures when ${mode} model call fails`, () =>
      Effect.gen(function* () {
        const fail = new AiError.RateLimitError({ retryAfter: Duration.seconds(7) })
        const agent = yield* open(
          calculator([{ toolCalls: [add(1, 2)], usage: { input: 1 } }, { fail }, { text: "3" }], {
            streaming,
            retry: Schedule.recurs(0)
          })
        )
        assert.deepStrictEqual(yield* agent.turn("1 + 2?"), {
          stopReason: "error",
          failure: {
            kind: "model",
            retryable: true,
            retryAfter: 7000,
            status: 429,
            message: "Rate limit exceeded. Retry after 7s"
          },
          usage: { input: 1 }
        })
        assert.deepStrictEqual(yield* agent.turn("again"), { stopReason: "completed" })
      })
    )

    it.effect(`is an error of the agent's own when ${mode} model dies`, () =>
      Effect.gen(function* () {
        const agent = yield* open(calculator([{ die: new Error("out of order") }], { streaming }))
        assert.deepStrictEqual(yield* agent.turn("hello"), { stopReason: "error", failure: failure("out of order") })
      })
    )
  }

  it.effect("is an error of the agent's own when a model throws", () =>
    Effect.gen(function* () {
      const thrower = () => {
        throw new Error("out of order")
      }
      const scripted = ScriptedModel.layer([])
      const broken = Layer.effect(
        LanguageModel.LanguageModel,
        Effect.map(LanguageModel.LanguageModel, (model) => ({ ...model, generateText: thrower }))
      )
      const agent = yield* open(
        Layer.merge(AgentRuntime.layer().pipe(Layer.provide(Layer.provide(broken, scripted))), scripted)
      )
      assert.deepStrictEqual(yield* agent.turn("hello"), { stopReason: "error", failure: failure("out of order") })
    })
  )

  it.effect("is an error when a stream reports one", () =>
    Effect.gen(function* () {
      const reported = { type: "error", error: "overloaded" }
      const agent = yield* open(
        calculator(
          // only streams have such parts
          [{ text: "so", toolCalls: [add(1, 2)], parts: [reported] as never }, { text: "hi" }],
          { streaming: true }
        )
      )
      assert.deepStrictEqual(yield* agent.turn("hello"), { stopReason: "error", failure: failure("overloaded") })
      assert.strictEqual((yield* agent.turn("hello?")).stopReason, "completed")
    })
  )
})

describe("an agent", () => {
  it.effect("has one turn at a time, each knowing those before it", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator(({ index }) => ({ text: `answer ${index}`, delay: "1 second" })))
      const first = yield* Effect.forkChild(agent.turn("one"), { startImmediately: true })
      const second = yield* Effect.forkChild(agent.turn("two"), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      assert.isDefined(first.pollUnsafe())
      assert.isUndefined(second.pollUnsafe())
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(second)
      assert.deepStrictEqual(outline((yield* agent.calls)[1]), [
        { role: "user", content: ["one"] },
        { role: "assistant", content: ["answer 0"] },
        { role: "user", content: ["two"] }
      ])
    })
  )

  it.effect("lets a turn go that is interrupted while it waits", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator([{ text: "one", delay: "1 second" }, { text: "three" }]))
      const first = yield* Effect.forkChild(agent.turn("one"), { startImmediately: true })
      const second = yield* Effect.forkChild(agent.turn("two"), { startImmediately: true })
      yield* Fiber.interrupt(second)
      const third = yield* Effect.forkChild(agent.turn("three"), { startImmediately: true })
      yield* TestClock.adjust("999 millis")
      assert.strictEqual((yield* agent.calls).length, 1)
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(first)
      yield* Fiber.join(third)
      assert.deepStrictEqual(outline((yield* agent.calls)[1]), [
        { role: "user", content: ["one"] },
        { role: "assistant", content: ["one"] },
        { role: "user", content: ["three"] }
      ])
    })
  )

  it.effect("that is interrupted stops its tools, and keeps the steps that were whole", () =>
    Effect.gen(function* () {
      const { agent, gates, log } = yield* waiting(({ userText, index }) =>
        userText === "wait" && index < 2
          ? { text: `step ${index}`, toolCalls: [waitFor(index === 0 ? "a" : "b"), waitFor("a")] }
          : { text: "fine" }
      )
      yield* Deferred.succeed(gates.a, undefined)
      const fiber = yield* Effect.forkChild(agent.turn("wait"), { startImmediately: true })
      yield* TestClock.adjust(0)
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      assert.strictEqual(log.at(-1), "b stops")
      assert.strictEqual((yield* agent.turn("and now?")).stopReason, "completed")
      assert.deepStrictEqual(outline((yield* agent.calls)[2]), [
        { role: "user", content: ["wait"] },
        { role: "assistant", content: ["step 0", "call-0-0 wait", "call-0-1 wait"] },
        { role: "tool", content: ['call-0-0 gave "a"', 'call-0-1 gave "a"'] },
        { role: "user", content: ["and now?"] }
      ])
    })
  )

  it.effect("that is interrupted stops a lone tool too", () =>
    Effect.gen(function* () {
      const { agent, log } = yield* waiting([{ toolCalls: [waitFor("a")] }])
      const fiber = yield* Effect.forkChild(agent.turn("wait"), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      assert.deepStrictEqual(log, ["a begins", "a stops"])
    })
  )

  it.effect("that is interrupted stops its model call", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator([{ hang: true }, { text: "hi" }]))
      const fiber = yield* Effect.forkChild(agent.turn("hello"), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      assert.strictEqual((yield* agent.turn("hello?")).stopReason, "completed")
    })
  )

  it.effect("works by its own system prompt, else by the runtime's, else by none", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.layer(() => ({ text: "hi" }))
      const runtime = AgentRuntime.layer({ systemPrompt: "the runtime's" }).pipe(Layer.provideMerge(model))
      const systems = Effect.fnUntraced(function* (systemPrompt: string | undefined) {
        const agent = yield* open(runtime, { options: { systemPrompt } })
        yield* agent.turn("hello")
        return outline((yield* agent.calls)[0])?.filter(({ role }) => role === "system")
      })
      assert.deepStrictEqual(yield* systems("its own"), [{ role: "system", content: "its own" }])
      assert.deepStrictEqual(yield* systems(undefined), [{ role: "system", content: "the runtime's" }])
      assert.deepStrictEqual(yield* systems(""), [])
    })
  )

  it.effect("is what its tools see as the current agent, itself and not a copy", () =>
    Effect.gen(function* () {
      const seen: Array<Agent.Agent> = []
      const toolkit = Toolkit.make(Tool.make("look", { dependencies: [CurrentAgent.CurrentAgent] }))
      const handlers = toolkit.toLayer({
        look: () => Effect.map(CurrentAgent.CurrentAgent, (agent) => void seen.push(agent))
      })
      const runtime = AgentRuntime.layer({ toolkit }).pipe(
        Layer.provide(handlers),
        Layer.provideMerge(ScriptedModel.layer([{ toolCalls: [{ name: "look", params: {} }] }, { text: "me" }]))
      )
      const agent = yield* open(runtime)
      const parent = yield* Agent.root()
      yield* Effect.provideService(agent.turn("who am I?"), CurrentAgent.CurrentAgent, parent)
      assert.strictEqual(seen.length, 1)
      assert.strictEqual(seen[0], agent.agent)
    })
  )

  it.effect("stays on the model of its runtime", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator([{ text: "hi" }]))
      const other = yield* ScriptedModel.make([])
      const outcome = yield* Effect.provideService(agent.turn("hello"), LanguageModel.LanguageModel, other.model)
      assert.strictEqual(outcome.stopReason, "completed")
    })
  )

  it.effect("gets the blocks of its prompt as the model takes them", () =>
    Effect.gen(function* () {
      const agent = yield* open(calculator([{ text: "a cat" }]))
      yield* agent.prompt([Content.text("what is this?"), { type: "image", data: "AA==", mimeType: "image/png" }])
      assert.deepStrictEqual(outline((yield* agent.calls)[0]), [{ role: "user", content: ["what is this?", "file"] }])
    })
  )
})

describe("the history", () => {
  const Call = Schema.Literals(["good", "bad arguments", "unknown", "same id"])
  const Reply = Schema.Struct({
    text: Schema.Literals(["", " ", "words"]),
    calls: Schema.Array(Call),
    finishReason: Schema.Literals(["stop", "tool-calls", "length", "content-filter", "pause", "none"]),
    ending: Schema.Literals(["", "", "", "fail", "die"])
  })
  const toolCalls = {
    good: add(1, 2),
    "bad arguments": { name: "add", params: { a: "one" } },
    unknown: { name: "fly", params: {} },
    "same id": add(3, 4, "same")
  }

  it.effect.prop(
    "is one that a model API takes, whatever the model does",
    [Schema.Array(Reply), Schema.Boolean],
    ([replies, streaming]) =>
      Effect.gen(function* () {
        const steps = replies.map(({ calls, ending, finishReason, text }) => ({
          text,
          toolCalls: calls.map((call) => toolCalls[call]),
          finishReason,
          ...(ending === "fail" ? { fail: new AiError.InternalProviderError({ description: "down" }) } : undefined),
          ...(ending === "die" ? { die: "broken" } : undefined)
        }))
        const agent = yield* open(
          calculator(({ index }) => steps[index] ?? { text: "done" }, {
            streaming,
            maxTurns: 3,
            retry: Schedule.recurs(1)
          })
        )
        for (let turn = 0; turn <= replies.length; turn++) {
          const { failure, stopReason } = yield* agent.turn("go on")
          assert.notStrictEqual(failure?.status, 400)
          assert.strictEqual(failure === undefined, stopReason === "completed")
        }
        assert.deepStrictEqual(yield* agent.turn("done?"), { stopReason: "completed" })
      }).pipe(Effect.scoped)
  )
})
