import { assert, describe, it } from "@effect/vitest"
import { Content, type SubagentError } from "effect-subagent"
import { AgentModels } from "effect-subagent/agent"
import { ScriptedModel } from "effect-subagent/testing"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { inTree } from "../utils/tree.ts"

const named = (name: string) => ScriptedModel.layer(() => ({ text: name }))
const usage = { inputTokens: {}, outputTokens: {} }
const unnamed: ScriptedModel.Script = () => ({ text: "unnamed" })

describe("AgentModels", () => {
  it.effect("are built once each, and released with their layer", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const counted = (name: string) =>
        Layer.effect(
          LanguageModel.LanguageModel,
          Effect.acquireRelease(
            Effect.map(ScriptedModel.make([]), ({ model }) => {
              log.push(`${name} built`)
              return model
            }),
            () => Effect.sync(() => log.push(`${name} released`))
          )
        )
      const scope = yield* Scope.make()
      const fast = counted("fast")
      const context = yield* Layer.buildWithScope(
        AgentModels.layer({ fast, deep: counted("deep"), quick: fast }),
        scope
      )
      const models = Context.get(context, AgentModels.AgentModels)
      assert.deepStrictEqual([...models.keys()], ["fast", "deep", "quick"])
      assert.strictEqual(models.get("fast"), models.get("quick"))
      assert.deepStrictEqual(log, ["fast built", "deep built"])
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(log.slice(2).toSorted(), ["deep released", "fast released"])
    })
  )

  it.effect("are what a child is run on that names one; any other child is on the model in the context", () =>
    inTree(
      unnamed,
      ({ runtime, start }) =>
        Effect.gen(function* () {
          assert.strictEqual(runtime.capabilities.model, true)
          const said = (model?: string) =>
            Effect.flatMap(start("spawn", "hi", { agentOptions: { model } }), (run) =>
              Effect.map(run.result, ({ output }) => Content.toText(output))
            )
          assert.deepStrictEqual(yield* Effect.all([said("fast"), said("deep"), said()]), ["fast", "deep", "unnamed"])
        }),
      { models: AgentModels.layer({ fast: named("fast"), deep: named("deep") }) }
    )
  )

  it.effect("serve two children at once", () =>
    Effect.gen(function* () {
      const gates = [yield* Deferred.make<void>(), yield* Deferred.make<void>()] as const
      // each of them answers when the other has been asked
      const waiting = (name: string, mine: 0 | 1) => {
        const answer = Deferred.succeed(gates[mine], undefined).pipe(
          Effect.andThen(Deferred.await(gates[mine === 0 ? 1 : 0])),
          Effect.as([
            { type: "text" as const, text: name },
            { type: "finish" as const, reason: "stop" as const, usage }
          ])
        )
        const model = LanguageModel.make({ generateText: () => answer, streamText: () => Stream.die("not streamed") })
        return Layer.effect(LanguageModel.LanguageModel, model)
      }
      yield* inTree(
        unnamed,
        ({ start }) =>
          Effect.gen(function* () {
            const runs = yield* Effect.forEach(["fast", "deep"], (model) =>
              start("spawn", "hi", { agentOptions: { model } })
            )
            const said = yield* Effect.forEach(runs, (run) => run.result)
            assert.deepStrictEqual(
              said.map(({ output }) => Content.toText(output)),
              ["fast", "deep"]
            )
          }),
        { models: AgentModels.layer({ fast: waiting("fast", 0), deep: waiting("deep", 1) }) }
      )
    })
  )

  it.effect("refuse a start that names none of them, asked for or inherited, and say which there are", () =>
    inTree(
      unnamed,
      ({ root, start }) =>
        Effect.gen(function* () {
          const issues = (error: SubagentError.SubagentError) =>
            error.reason._tag === "InvalidRequest" ? error.reason.issues.map(String) : error
          const message = 'There is no model "huge"; the models there are: "fast"'
          const asked = yield* Effect.flip(start("spawn", "hi", { agentOptions: { model: "huge" } }))
          assert.deepStrictEqual(issues(asked), [`agentOptions.model: ${message}`])
          const parent = { ...root, options: { model: "huge" } }
          const inherited = yield* Effect.flip(start("spawn", "hi", { parent }))
          assert.deepStrictEqual(issues(inherited), [`parent.options.model: ${message}`])
          const overridden = yield* start("spawn", "hi", { parent, agentOptions: { model: "fast" } })
          assert.strictEqual((yield* overridden.result).stopReason, "completed")
          const both = yield* Effect.flip(
            start("spawn", "hi", { agentOptions: { model: "huge" }, toolFilter: { deny: ["raed"] } })
          )
          assert.strictEqual((issues(both) as ReadonlyArray<string>).length, 2)
        }),
      { models: AgentModels.layer({ fast: named("fast") }) }
    )
  )

  it.effect("are inherited by what a child starts", () =>
    Effect.gen(function* () {
      const fast = ScriptedModel.layer(({ toolResults, userText }) =>
        userText === "delegate" && toolResults.length === 0
          ? { toolCalls: [{ name: "subagent", params: { description: "a part", prompt: "be fast" } }] }
          : { text: userText === "delegate" ? `they said: ${String(toolResults[0]?.result)}` : "fast" }
      )
      yield* inTree(
        unnamed,
        ({ start }) =>
          Effect.gen(function* () {
            const run = yield* start("spawn", "delegate", { agentOptions: { model: "fast" } })
            assert.strictEqual(Content.toText((yield* run.result).output), "they said: fast")
          }),
        { models: AgentModels.layer({ fast }) }
      )
    })
  )

  it.effect("that are not there make a request for one unsupported", () =>
    inTree(unnamed, ({ runtime, start }) =>
      Effect.gen(function* () {
        assert.notProperty(runtime.capabilities, "model")
        const error = yield* Effect.flip(start("spawn", "hi", { agentOptions: { model: "fast" } }))
        assert.strictEqual(error.message, 'Provider "spawn" does not support model')
      })
    )
  )
})

describe("a system prompt", () => {
  it.effect("reaches only the child that it is for", () =>
    inTree(unnamed, ({ calls, start }) =>
      Effect.gen(function* () {
        for (const systemPrompt of ["be one", undefined, "be other"]) {
          yield* Effect.flatMap(start("spawn", "hi", { agentOptions: { systemPrompt } }), (run) => run.result)
        }
        assert.deepStrictEqual(
          (yield* calls).map(({ prompt }) => prompt.content.map(({ content }) => content)[0]).map(String),
          ["be one", "[object Object]", "be other"]
        )
      })
    )
  )
})
