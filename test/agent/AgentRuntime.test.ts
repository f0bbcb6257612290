import { assert, describe, it } from "@effect/vitest"
import { Agent, SubagentError } from "effect-subagent"
import { AgentLoop, AgentRuntime } from "effect-subagent/agent"
import { ScriptedModel } from "effect-subagent/testing"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { messagesOf } from "../../src/agent/internal/seed.ts"
import { Add, calculator, filtered, handlers, kit, open, resultsOf, Shout } from "./harness.ts"

const byFunction = Layer.succeed(AgentRuntime.AgentRuntime, AgentRuntime.fromPromise({ run: () => "hi" }))

describe("AgentRuntime.layer", () => {
  it.effect("says what its agents honour", () =>
    Effect.gen(function* () {
      const { capabilities } = yield* Effect.provide(AgentRuntime.AgentRuntime, calculator([]))
      assert.deepStrictEqual(capabilities, {
        outputSchema: true,
        depthLimit: true,
        toolFilter: true,
        systemPrompt: true,
        usage: true,
        turns: true,
        content: ["image", "audio", "resource_link", "resource"]
      })
    })
  )

  it.effect("does without tools", () =>
    Effect.gen(function* () {
      const call = { name: "add", params: {} }
      for (const options of [undefined, {}, { toolkit: Toolkit.empty }, { toolkit: undefined }]) {
        const agent = yield* open(
          AgentRuntime.layer(options).pipe(
            Layer.provideMerge(ScriptedModel.layer([{ toolCalls: [call] }, { text: "I can't" }]))
          )
        )
        assert.deepStrictEqual(yield* agent.turn("1 + 2?"), { stopReason: "completed" })
        assert.deepStrictEqual(resultsOf((yield* agent.calls)[1]), [
          {
            id: "call-0-0",
            name: "add",
            isFailure: true,
            result: 'There is no tool "add"; the tools there are: none'
          }
        ])
      }
    })
  )

  it.effect("takes merged toolkits", () =>
    Effect.gen(function* () {
      const toolkit = Toolkit.merge(kit, Toolkit.make(Tool.make("nod")))
      const nod = Toolkit.make(Tool.make("nod")).toLayer({ nod: () => Effect.void })
      const runtime = AgentRuntime.layer({ toolkit }).pipe(
        Layer.provide([handlers, nod]),
        Layer.provideMerge(
          ScriptedModel.layer([
            {
              toolCalls: [
                { name: "nod", params: {} },
                { name: "add", params: { a: 1, b: 2 } }
              ]
            },
            { text: "done" }
          ])
        )
      )
      const agent = yield* open(runtime)
      yield* agent.turn("go")
      assert.deepStrictEqual(
        resultsOf((yield* agent.calls)[1])?.map(({ result }) => result),
        [null, 3]
      )
    })
  )

  it.effect("opens no agent with a filter that names a tool there is not", () =>
    Effect.gen(function* () {
      const refused = yield* Effect.flip(
        open(calculator([]), {
          policy: filtered({ allow: ["gone"] }, { allow: ["add"], deny: ["shuot"] }),
          request: { agentOptions: {}, toolFilter: { allow: ["add"], deny: ["shuot"] } }
        })
      )
      assert.deepStrictEqual(
        refused,
        SubagentError.fromReason(
          new SubagentError.InvalidRequest({
            issues: [
              new SubagentError.RequestIssue({
                path: ["toolFilter", "deny", 0],
                message: 'There is no tool "shuot"; the tools there are: "add", "shout"'
              })
            ]
          })
        )
      )
    })
  )

  it.effect("keeps agents apart", () =>
    Effect.gen(function* () {
      const runtime = yield* Effect.provide(
        AgentLoop.make({ toolkit: Toolkit.make(Add, Shout), systemPrompt: "be brief" }),
        Layer.merge(
          handlers,
          ScriptedModel.layer(({ prompt }) => ({ text: `${prompt.content.length}` }))
        )
      )
      const said: Array<string> = []
      const opened = Effect.flatMap(Agent.root(), (agent) =>
        runtime.open({
          agent,
          options: {},
          policy: AgentRuntime.openPolicy,
          emit: (update) => {
            if (update._tag === "Content" && update.block.type === "text") said.push(update.block.text)
          }
        })
      )
      const one = yield* opened
      const other = yield* opened
      const hello = [{ type: "text", text: "hello" }] as const
      yield* one.turn(hello)
      yield* one.turn(hello)
      yield* other.turn(hello)
      assert.deepStrictEqual(said, ["2", "4", "2"])
    })
  )

  it.effect("knows an agent for as long as it is open, and opens no other of its id until then", () =>
    Effect.gen(function* () {
      const runtime = yield* Effect.provide(
        AgentLoop.make(),
        ScriptedModel.layer(() => ({ text: "hi" }))
      )
      const agent = yield* Agent.root()
      const spec = { agent, options: {}, policy: AgentRuntime.openPolicy, emit: () => {} }
      const known = Effect.map(Effect.result(runtime.completedTurns!(agent)), Result.getOrUndefined)
      assert.isUndefined(yield* known)
      const earlier = yield* Scope.make()
      const later = yield* Scope.make()
      const handle = yield* Scope.provide(runtime.open(spec), earlier)
      const nothing = yield* known
      yield* handle.turn([{ type: "text", text: "hello" }])
      const something = yield* known
      assert.notDeepEqual(something, nothing)
      const error = yield* Effect.flip(Scope.provide(runtime.open(spec), later))
      assert.strictEqual(error.message, "Invalid request: agent.id: An agent of this id is open already")
      assert.deepStrictEqual(yield* known, something)
      yield* Scope.close(earlier, Exit.void)
      assert.isUndefined(yield* known)
      yield* Scope.provide(runtime.open(spec), later)
      yield* Scope.close(later, Exit.void)
      assert.isUndefined(yield* known)
    })
  )

  it.effect("opens no agent with a memory that it has not made", () =>
    Effect.gen(function* () {
      for (const runtime of [calculator([]), Layer.merge(byFunction, ScriptedModel.layer([]))]) {
        const error = yield* Effect.flip(open(runtime, { seed: { made: "elsewhere" } }))
        assert.match(error.message, /^Invalid request: seed: /)
      }
    })
  )

  it.effect("remembers nothing of a turn at work, and of an interrupted one what was whole", () =>
    Effect.gen(function* () {
      const script: ScriptedModel.Script = [
        { text: "hi" },
        { toolCalls: [{ name: "add", params: { a: 1, b: 2 } }] },
        { hang: true }
      ]
      const runtime = yield* Layer.build(calculator(script))
      const { completedTurns, open } = Context.get(runtime, AgentRuntime.AgentRuntime)
      const agent = yield* Agent.root()
      const handle = yield* open({ agent, options: {}, policy: AgentRuntime.openPolicy, emit: () => {} })
      const roles = Effect.map(Effect.flatMap(completedTurns!(agent), messagesOf), (messages) =>
        messages.map(({ role }) => role)
      )
      yield* handle.turn([{ type: "text", text: "hello" }])
      const turn = yield* Effect.forkChild(handle.turn([{ type: "text", text: "1 + 2?" }]), { startImmediately: true })
      assert.deepStrictEqual(yield* roles, ["user", "assistant"])
      yield* Fiber.interrupt(turn)
      assert.deepStrictEqual(yield* roles, ["user", "assistant", "user", "assistant", "tool"])
    })
  )
})
