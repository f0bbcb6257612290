import { assert, describe, it } from "@effect/vitest"
import type { SubagentError } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { ScriptedModel } from "effect-subagent/testing"
import * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { open } from "../harness.ts"

type Runtime = Layer.Layer<AgentRuntime.AgentRuntime, SubagentError.SubagentError, LanguageModel.LanguageModel>

/** Opens an agent whose model calls one tool with these arguments. */
const calling = (name: string, params: unknown, runtime: Runtime) =>
  open(
    Layer.provideMerge(
      runtime,
      ScriptedModel.layer(({ toolResults }) =>
        toolResults.length === 0 ? { toolCalls: [{ name, params, id: "1" }] } : { text: "done" }
      )
    )
  )

/** What that model gets for an answer. */
const answer = Effect.fnUntraced(function* (name: string, params: unknown, runtime: Runtime) {
  const agent = yield* calling(name, params, runtime)
  assert.deepStrictEqual(yield* agent.turn("go"), { stopReason: "completed" })
  const part = (yield* agent.calls)[1]?.toolResults[0]
  assert.deepInclude(part, { id: "1", name, providerExecuted: false })
  const update = agent.updates.at(-3)
  assert.deepStrictEqual(update, {
    _tag: "ToolCall",
    id: "1",
    status: part?.isFailure === true ? "failed" : "completed",
    output: part?.result
  })
  return {
    isFailure: part?.isFailure,
    result: part?.result,
    ...(part?.modelOutput && { modelOutput: part.modelOutput })
  }
})

const given = (result: unknown) => ({ isFailure: false, result })
const failed = (result: unknown) => ({ isFailure: true, result })

/** A runtime with one tool, called `look`, whose handler is given. */
const withTool = <T extends Tool.Any>(tool: T, handler: () => Effect.Effect<unknown, unknown>): Runtime => {
  const toolkit = Toolkit.make(tool as unknown as ReturnType<typeof look>)
  return AgentRuntime.layer({ toolkit }).pipe(
    Layer.provide(toolkit.toLayer({ look: handler as () => Effect.Effect<never> }))
  )
}
const look = () => Tool.make("look", { success: Schema.String })

describe("a tool", () => {
  it.effect("that gets bad arguments answers with what is wrong with them, and where", () =>
    Effect.gen(function* () {
      const toolkit = Toolkit.make(
        Tool.make("go", {
          parameters: Schema.Struct({ to: Schema.Struct({ x: Schema.Int, y: Schema.Int }), by: Schema.String })
        })
      )
      const runtime = AgentRuntime.layer({ toolkit }).pipe(
        Layer.provide(toolkit.toLayer({ go: () => Effect.die("called") }))
      )
      const { isFailure, result } = yield* answer("go", { to: { x: 0.5, y: "one" } }, runtime)
      assert.isTrue(isFailure)
      assert.match(String(result), /^Invalid arguments: to\.x: .*; to\.y: .*; by: /)
    })
  )

  for (const failureMode of ["error", "return"] as const) {
    describe(`with failure mode ${failureMode}`, () => {
      const Lost = Schema.Struct({ at: Schema.FiniteFromString })
      const tool = Tool.make("look", { success: Schema.String, failure: Lost, failureMode })

      it.effect("that fails answers with its failure, encoded", () =>
        Effect.gen(function* () {
          const runtime = withTool(tool, () => Effect.fail({ at: 7 }))
          assert.deepStrictEqual(yield* answer("look", {}, runtime), failed({ at: "7" }))
        })
      )

      it.effect("that fails with what its failure schema does not have answers in words", () =>
        Effect.gen(function* () {
          const runtime = withTool(tool, () => Effect.fail(new Error("no light")))
          assert.deepStrictEqual(yield* answer("look", {}, runtime), failed("no light"))
        })
      )

      it.effect("that fails as a model's tools may answers in words", () =>
        Effect.gen(function* () {
          const reason = new AiError.InvalidUserInputError({ description: "too dark" })
          const error = AiError.make({ module: "Look", method: "look", reason })
          for (const failure of [reason, error]) {
            assert.deepStrictEqual(
              yield* answer(
                "look",
                {},
                withTool(tool, () => Effect.fail(failure))
              ),
              failed(failure.message)
            )
          }
        })
      )
    })
  }

  it.effect("that may fail with anything answers in words where something else went wrong", () =>
    Effect.gen(function* () {
      const tool = Tool.make("look", { success: Schema.String, failure: Schema.Unknown })
      const reason = new AiError.InvalidUserInputError({ description: "too dark" })
      assert.deepStrictEqual(
        yield* answer(
          "look",
          {},
          withTool(tool, () => Effect.fail(reason))
        ),
        failed("Invalid user input: too dark")
      )
      const { result } = yield* answer(
        "look",
        {},
        withTool(tool, () => Effect.succeed(7))
      )
      assert.include(result, "Expected string")
    })
  )

  it.effect("that dies answers with a failed result, however it does", () =>
    Effect.gen(function* () {
      const deaths: ReadonlyArray<() => Effect.Effect<unknown>> = [
        () => Effect.die(new Error("out of order")),
        () => {
          throw new Error("out of order")
        }
      ]
      for (const death of deaths) {
        assert.deepStrictEqual(
          yield* answer("look", {}, withTool(look(), death)),
          failed("The tool failed unexpectedly: out of order")
        )
      }
    })
  )

  it.effect("that interrupts itself answers with a failed result", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        yield* answer(
          "look",
          {},
          withTool(look(), () => Effect.interrupt)
        ),
        failed("The tool failed unexpectedly: it was interrupted")
      )
    })
  )

  it.effect("whose result can't be encoded answers with a failed result", () =>
    Effect.gen(function* () {
      const { isFailure, result } = yield* answer(
        "look",
        {},
        withTool(look(), () => Effect.succeed(7))
      )
      assert.isTrue(isFailure)
      assert.include(result, "Expected string")
    })
  )

  it.effect("whose schemas die answers with a failed result", () =>
    Effect.gen(function* () {
      const broken = (): string => {
        throw new Error("broken")
      }
      const Broken = Schema.String.pipe(
        Schema.decodeTo(Schema.String, SchemaTransformation.transform({ decode: broken, encode: broken }))
      )
      const expected = failed("The tool failed unexpectedly: broken")
      const result = Tool.make("look", { success: Broken })
      assert.deepStrictEqual(
        yield* answer(
          "look",
          {},
          withTool(result, () => Effect.succeed("a"))
        ),
        expected
      )
      const failure = Tool.make("look", { success: Schema.String, failure: Broken })
      assert.deepStrictEqual(
        yield* answer(
          "look",
          {},
          withTool(failure, () => Effect.fail("a"))
        ),
        expected
      )
      const parameters = Tool.make("look", { success: Schema.String, parameters: Schema.Struct({ a: Broken }) })
      assert.deepStrictEqual(
        yield* answer(
          "look",
          { a: "" },
          withTool(parameters, () => Effect.succeed("a"))
        ),
        expected
      )
    })
  )

  it.effect("whose result is no JSON answers with a failed result", () =>
    Effect.gen(function* () {
      const tool = Tool.make("look", { success: Schema.Unknown })
      const circle: Record<string, unknown> = {}
      circle["self"] = circle
      for (const result of [1n, circle]) {
        assert.deepStrictEqual(
          yield* answer(
            "look",
            {},
            withTool(tool, () => Effect.succeed(result))
          ),
          failed("The tool's result can't be written as JSON")
        )
      }
    })
  )

  it.effect("whose result JSON writes as nothing answers with a failed result, and does not end the agent", () =>
    Effect.gen(function* () {
      for (const result of [() => "x", Symbol("x"), { toJSON: () => undefined }]) {
        const runtime = withTool(Tool.make("look", { success: Schema.Any }), () => Effect.succeed(result))
        assert.deepStrictEqual(yield* answer("look", {}, runtime), failed("The tool's result can't be written as JSON"))
      }
    })
  )

  it.effect("whose handler gives no effect answers with a failed result, and does not end the agent", () =>
    Effect.gen(function* () {
      const handlers = [() => undefined, () => Promise.resolve("x"), () => Promise.reject(new Error("async"))]
      for (const handler of handlers) {
        const { isFailure, result } = yield* answer("look", {}, withTool(look(), handler as never))
        assert.isTrue(isFailure)
        assert.include(String(result), "not an effect")
      }
    })
  )

  it.effect("changes nothing of what the model said, nor of what it has answered, whatever it does to them (17)", () =>
    Effect.gen(function* () {
      const answered = { found: ["a"] }
      const toolkit = Toolkit.make(
        Tool.dynamic("pay", { parameters: { type: "object" }, success: Schema.Any, failureMode: "return" })
      )
      const handlers = toolkit.toLayer({
        pay: (params) =>
          Effect.sync(() => {
            ;(params as { body: { to: string } }).body.to = "mallory"
            return answered
          })
      })
      const agent = yield* calling(
        "pay",
        { body: { to: "alice" } },
        AgentRuntime.layer({ toolkit }).pipe(Layer.provide(handlers))
      )
      yield* agent.turn("go")
      answered.found.push("b")
      const [, second] = yield* agent.calls
      const said = second?.prompt.content.slice(-2).map(({ content }): unknown => content[0])
      assert.deepInclude(said?.[0] as object, { type: "tool-call", params: { body: { to: "alice" } } })
      assert.deepInclude(said?.[1] as object, { type: "tool-result", result: { found: ["a"] } })
    })
  )

  it.effect("that gives nothing answers with null", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        yield* answer(
          "look",
          {},
          withTool(Tool.make("look"), () => Effect.void)
        ),
        given(null)
      )
    })
  )

  it.effect("answers with its result encoded, and what it has for the model beside it", () =>
    Effect.gen(function* () {
      const tool = Tool.make("look", {
        success: Schema.FiniteFromString,
        toModelOutput: (found) => [Prompt.makePart("text", { text: `${found + 1}` })]
      })
      assert.deepStrictEqual(
        yield* answer(
          "look",
          {},
          withTool(tool, () => Effect.succeed(7))
        ),
        {
          isFailure: false,
          result: "7",
          modelOutput: [Prompt.makePart("text", { text: "8" })]
        }
      )
    })
  )

  it.effect("knows the id of its call, and reports what it has so far", () =>
    Effect.gen(function* () {
      const toolkit = Toolkit.make(Tool.make("look", { success: Schema.FiniteFromString }))
      const runtime = AgentRuntime.layer({ toolkit }).pipe(
        Layer.provide(
          toolkit.toLayer({
            look: (_, { preliminary, toolCallId }) =>
              preliminary(1).pipe(
                Effect.andThen(preliminary("neither a number nor the end" as never)),
                Effect.as(Number(toolCallId))
              )
          })
        )
      )
      const agent = yield* calling("look", {}, runtime)
      yield* agent.turn("go")
      assert.deepStrictEqual(
        agent.updates.filter((update) => update._tag === "ToolCall"),
        [
          { _tag: "ToolCall", id: "1", name: "look", status: "pending", input: {} },
          { _tag: "ToolCall", id: "1", status: "running" },
          { _tag: "ToolCall", id: "1", status: "running", output: "1" },
          { _tag: "ToolCall", id: "1", status: "completed", output: "1" }
        ]
      )
    })
  )
})

describe("a dynamic tool", () => {
  it.effect("with a JSON Schema gets its arguments as they are", () =>
    Effect.gen(function* () {
      const toolkit = Toolkit.make(Tool.dynamic("look", { parameters: { type: "object" } }))
      const runtime = AgentRuntime.layer({ toolkit }).pipe(
        Layer.provide(toolkit.toLayer({ look: (params) => Effect.succeed({ saw: params }) }))
      )
      assert.deepStrictEqual(yield* answer("look", { at: [1] }, runtime), given({ saw: { at: [1] } }))
    })
  )

  it.effect("with a Schema gets them checked", () =>
    Effect.gen(function* () {
      const toolkit = Toolkit.make(
        Tool.dynamic("look", { parameters: Schema.Struct({ at: Schema.FiniteFromString }), success: Schema.Number })
      )
      const runtime = AgentRuntime.layer({ toolkit }).pipe(
        Layer.provide(toolkit.toLayer({ look: ({ at }) => Effect.succeed(at) }))
      )
      assert.deepStrictEqual(yield* answer("look", { at: "7" }, runtime), given(7))
      assert.isTrue((yield* answer("look", { at: "up" }, runtime)).isFailure)
    })
  )
})

describe("a tool of the model's provider", () => {
  const search = Tool.providerDefined({
    id: "acme.search",
    customName: "search",
    providerName: "web_search",
    success: Schema.String
  })()
  const runtime = AgentRuntime.layer({ toolkit: Toolkit.make(search) })
  const call = { name: "search", params: undefined, id: "1", providerExecuted: true }
  const found = {
    type: "tool-result",
    id: "1",
    name: "search",
    isFailure: false,
    result: "found",
    providerExecuted: true
  } as const

  const searched = Effect.fnUntraced(function* (...steps: ReadonlyArray<ScriptedModel.Step>) {
    const agent = yield* open(Layer.provideMerge(runtime, ScriptedModel.layer([...steps, { text: "bye" }])))
    const outcome = yield* agent.turn("search")
    return { ...agent, outcome, toolCalls: agent.updates.filter((update) => update._tag === "ToolCall") }
  })

  it.effect("is not executed here, and reported as it comes", () =>
    Effect.gen(function* () {
      const agent = yield* searched({
        toolCalls: [call],
        parts: [{ ...found, preliminary: true, result: "fo" }, found, { type: "text", text: "I found it" }]
      })
      assert.deepStrictEqual(agent.outcome, { stopReason: "completed" })
      assert.deepStrictEqual(agent.toolCalls, [
        { _tag: "ToolCall", id: "1", name: "search", status: "running", input: undefined },
        { _tag: "ToolCall", id: "1", status: "completed", output: "found" }
      ])
      yield* agent.turn("thanks")
      const message = (yield* agent.calls)[1]?.prompt.content[1]
      assert.deepStrictEqual(Array.isArray(message?.content) && message.content.map(({ type }) => type), [
        "tool-call",
        "tool-result",
        "text"
      ])
    })
  )

  it.effect("may fail", () =>
    Effect.gen(function* () {
      const result = { type: "execution-denied", reason: "no" }
      const agent = yield* searched({ toolCalls: [call], parts: [{ ...found, isFailure: true, result }], text: "no" })
      assert.deepStrictEqual(agent.toolCalls[1], { _tag: "ToolCall", id: "1", status: "failed", output: result })
    })
  )

  it.effect("is done when the reply is, whether or not its result is seen", () =>
    Effect.gen(function* () {
      const agent = yield* searched({ toolCalls: [call], text: "I found it" })
      assert.deepStrictEqual(agent.outcome, { stopReason: "completed" })
      assert.deepStrictEqual(agent.toolCalls[1], { _tag: "ToolCall", id: "1", status: "completed" })
    })
  )

  it.effect("can't be called here", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        yield* answer("search", undefined, runtime),
        failed('There is no tool "search"; the tools there are: none')
      )
    })
  )

  it.effect("is executed here if it asks for a handler", () =>
    Effect.gen(function* () {
      const toolkit = Toolkit.make(
        Tool.providerDefined({
          id: "acme.shell",
          customName: "shell",
          providerName: "shell",
          requiresHandler: true,
          parameters: Schema.Struct({ run: Schema.String }),
          success: Schema.String
        })({})
      )
      const withShell = AgentRuntime.layer({ toolkit }).pipe(
        Layer.provide(toolkit.toLayer({ shell: ({ run }) => Effect.succeed(`ran ${run}`) }))
      )
      assert.deepStrictEqual(yield* answer("shell", { run: "ls" }, withShell), given("ran ls"))
    })
  )
})

describe("a toolkit that has its handlers with it", () => {
  const Look = Tool.make("look", {
    parameters: Schema.Struct({ at: Schema.FiniteFromString }),
    success: Schema.FiniteFromString,
    failure: Schema.FiniteFromString,
    toModelOutput: (found) => [Prompt.makePart("text", { text: `${found}` })]
  })
  const Try = Tool.make("try", { failure: Schema.FiniteFromString, failureMode: "return" })
  const toolkit = Toolkit.make(Look, Try)
  const make = (look: (at: number) => Effect.Effect<number, number>) =>
    Effect.map(
      Effect.provide(
        toolkit,
        toolkit.toLayer({
          look: ({ at }, { preliminary }) => Effect.andThen(preliminary(at), look(at)),
          try: () => Effect.fail(1)
        })
      ),
      (bound) => AgentRuntime.layer({ toolkit: bound })
    )

  it.effect("has its tools executed as well", () =>
    Effect.gen(function* () {
      const runtime = yield* make((at) => Effect.succeed(at + 1))
      assert.deepStrictEqual(yield* answer("look", { at: "7" }, runtime), {
        isFailure: false,
        result: "8",
        modelOutput: [Prompt.makePart("text", { text: "8" })]
      })
      assert.isTrue((yield* answer("look", { at: "up" }, runtime)).isFailure)
      assert.deepStrictEqual(yield* answer("try", {}, runtime), failed("1"))
    })
  )

  it.effect("reports what a tool has so far", () =>
    Effect.gen(function* () {
      const agent = yield* calling("look", { at: "7" }, yield* make((at) => Effect.succeed(at + 1)))
      yield* agent.turn("go")
      assert.deepInclude(agent.updates, { _tag: "ToolCall", id: "1", status: "running", output: "7" })
    })
  )

  it.effect("may fail, die, or give nothing", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* answer("look", { at: "7" }, yield* make((at) => Effect.fail(at))), failed("7"))
      assert.deepStrictEqual(
        yield* answer("look", { at: "7" }, yield* make(() => Effect.die("out of order"))),
        failed("The tool failed unexpectedly: out of order")
      )
      const silent = { tools: toolkit.tools, handle: () => Effect.succeed(Stream.empty) }
      assert.deepStrictEqual(
        yield* answer("look", { at: "7" }, AgentRuntime.layer({ toolkit: silent })),
        failed("The tool gave no result")
      )
    })
  )
})

describe("the services that tools ask for", () => {
  class Lamp extends Context.Service<Lamp, string>()("test/Lamp") {}
  const Look = Tool.make("look", { success: Schema.String, dependencies: [Lamp] })
  const toolkit = Toolkit.make(Look)
  const handlers = toolkit.toLayer({ look: () => Effect.map(Effect.service(Lamp), (lamp) => `by ${lamp}`) })
  const runtime = AgentRuntime.layer({ toolkit }).pipe(
    Layer.provide([handlers, Layer.succeed(Lamp, "the runtime's lamp")])
  )

  it.effect("come with the runtime", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* answer("look", {}, runtime), given("by the runtime's lamp"))
    })
  )

  it.effect("are the caller's own, where it has them", () =>
    Effect.gen(function* () {
      const agent = yield* calling("look", {}, runtime)
      yield* Effect.provideService(agent.turn("go"), Lamp, "my lamp")
      assert.strictEqual((yield* agent.calls)[1]?.toolResults[0]?.result, "by my lamp")
    })
  )

  it.effect("are those that the handlers were built with, sooner than the runtime's", () =>
    Effect.gen(function* () {
      const built = toolkit.toLayer({
        look: () => Effect.map(Effect.serviceOption(Lamp), (lamp) => `by ${lamp.valueOrUndefined}`)
      })
      const runtime = AgentRuntime.layer({ toolkit }).pipe(
        Layer.provide([
          Layer.provide(built, Layer.succeed(Lamp, "the handlers' lamp")),
          Layer.succeed(Lamp, "the runtime's lamp")
        ])
      )
      assert.deepStrictEqual(yield* answer("look", {}, runtime), given("by the handlers' lamp"))
    })
  )

  it.effect("reach its schemas", () =>
    Effect.gen(function* () {
      const Lit = Schema.String.pipe(
        Schema.decodeTo(
          Schema.String,
          SchemaTransformation.transformEffect({
            decode: (text) => Effect.map(Effect.service(Lamp), (lamp) => `${text} by ${lamp}`),
            encode: (text) => Effect.map(Effect.service(Lamp), (lamp) => `${text}, ${lamp}`)
          })
        )
      )
      const toolkit = Toolkit.make(Tool.make("look", { parameters: Schema.Struct({ at: Lit }), success: Lit }))
      const runtime = AgentRuntime.layer({ toolkit }).pipe(
        Layer.provide([toolkit.toLayer({ look: ({ at }) => Effect.succeed(at) }), Layer.succeed(Lamp, "lamp")])
      )
      assert.deepStrictEqual(yield* answer("look", { at: "it" }, runtime), given("it by lamp, lamp"))
    })
  )

  it.effect("have the scope of the agent among them", () =>
    Effect.gen(function* () {
      let isClosed = false
      const toolkit = Toolkit.make(Tool.make("look", { dependencies: [Scope.Scope] }))
      const runtime = AgentRuntime.layer({ toolkit }).pipe(
        Layer.provide(
          toolkit.toLayer({
            look: () => Effect.addFinalizer(() => Effect.sync(() => void (isClosed = true)))
          })
        )
      )
      const scope = yield* Scope.make()
      const agent = yield* Scope.provide(calling("look", {}, runtime), scope)
      yield* Effect.scoped(agent.turn("go"))
      assert.isFalse(isClosed)
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(isClosed)
    })
  )
})
