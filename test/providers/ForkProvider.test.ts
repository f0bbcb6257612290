import { assert, describe, it } from "@effect/vitest"
import { Agent, Content, SubagentError, Subagents } from "effect-subagent"
import { AgentModels, AgentRuntime } from "effect-subagent/agent"
import { ForkProvider } from "effect-subagent/providers"
import { ProviderConformance, ScriptedModel } from "effect-subagent/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { outline } from "../agent/harness.ts"
import { conformance, runtime } from "../utils/agentConformance.ts"
import { calls, delegate, inTree } from "../utils/tree.ts"
import { root as stranger } from "../utils/seam.ts"

/** A runtime that has had a word with whoever is to be forked. */
const acquainted = Layer.effect(
  AgentRuntime.AgentRuntime,
  Effect.map(Effect.service(AgentRuntime.AgentRuntime), (runtime) => ({
    ...runtime,
    completedTurns: (agent: Agent.Agent) =>
      Effect.gen(function* () {
        const handle = yield* runtime.open({ agent, options: {}, policy: AgentRuntime.openPolicy, emit: () => {} })
        yield* handle.turn([Content.text("look")])
        return yield* runtime.completedTurns!(agent)
      }).pipe(Effect.scoped)
  }))
)

for (const streaming of [false, true]) {
  ProviderConformance.suite(
    `fork ${streaming ? "with" : "without"} streaming`,
    ForkProvider.layer().pipe(
      Layer.provideMerge(Subagents.layer),
      Layer.provide(acquainted),
      Layer.provideMerge(runtime({ streaming }))
    ),
    { describe, it, ...conformance }
  )
}

/** Delegates what it is asked to, by `fork`; what is not its business it just answers. */
const answering: ScriptedModel.Rule = ({ toolResults, userText }) =>
  toolResults.length === 0 && userText.startsWith("delegate")
    ? { text: "I'll ask", toolCalls: [delegate(userText.replace("delegate ", "")), { name: "read", params: {} }] }
    : { text: `heard ${userText}` }
const forking = { bindings: [{ provider: "fork", inheritsContext: true }] }

/** The conversation of the model call in which the user said this last. */
const conversation = (calls: ReadonlyArray<ScriptedModel.ScriptedCall>, userText: string) =>
  outline(calls.find((call) => call.userText === userText))

describe("a fork", () => {
  it.effect("M1: knows the completed turns, not the open one with its two sibling calls", () =>
    Effect.gen(function* () {
      const { value } = yield* inTree(
        answering,
        (tree) =>
          Effect.gen(function* () {
            yield* tree.ask("hello")
            const outcome = yield* tree.ask("delegate a task")
            assert.strictEqual(outcome.stopReason, "completed")
            return yield* tree.calls
          }),
        forking
      )
      assert.deepStrictEqual(conversation(value, "a task"), [
        { role: "user", content: ["hello"] },
        { role: "assistant", content: ["heard hello"] },
        { role: "user", content: ["a task"] }
      ])
    })
  )

  it.effect("knows what tools have answered in the turns that are over", () =>
    Effect.gen(function* () {
      const { value } = yield* inTree(
        ({ toolResults, userText }) =>
          userText === "look" && toolResults.length === 0 ? calls("read", "write") : { text: "seen" },
        (tree) =>
          Effect.gen(function* () {
            yield* tree.ask("look")
            const run = yield* tree.start("fork", "a task")
            assert.deepStrictEqual((yield* run.result).output, [Content.text("seen")])
            return yield* tree.calls
          })
      )
      assert.deepStrictEqual(conversation(value, "a task"), [
        { role: "user", content: ["look"] },
        { role: "assistant", content: ["call-0-0 read", "call-0-1 write"] },
        { role: "tool", content: ["call-0-0 gave null", "call-0-1 gave null"] },
        { role: "assistant", content: ["seen"] },
        { role: "user", content: ["a task"] }
      ])
    })
  )

  it.effect("of a parent that has not ended a turn is a fresh child", () =>
    Effect.gen(function* () {
      const { value } = yield* inTree(answering, (tree) => Effect.andThen(tree.ask("delegate a task"), tree.calls), {
        ...forking,
        root: { options: { systemPrompt: "be the parent" } },
        loop: { systemPrompt: "be yourself" }
      })
      assert.deepStrictEqual(conversation(value, "a task"), [
        { role: "system", content: "be yourself" },
        { role: "user", content: ["a task"] }
      ])
    })
  )

  it.effect("of a stranger is refused, and never a fresh child", () =>
    Effect.gen(function* () {
      const { events, value } = yield* inTree(answering, ({ calls, start }) =>
        Effect.gen(function* () {
          const error = yield* Effect.flip(start("fork", "a task", { parent: stranger }))
          assert.deepStrictEqual(error.reason, new SubagentError.HistoryUnavailable({ agentId: "root" }))
          return yield* calls
        })
      )
      assert.deepStrictEqual([value, events], [[], []])
    })
  )

  it.effect("of an agent that has been closed is refused", () =>
    inTree(answering, ({ runtime, start }) =>
      Effect.gen(function* () {
        const agent = yield* Agent.root()
        const open = runtime.open({ agent, options: {}, policy: AgentRuntime.openPolicy, emit: () => {} })
        const run = yield* Effect.scoped(Effect.andThen(open, start("fork", "a task", { parent: agent })))
        assert.strictEqual((yield* run.result).stopReason, "completed")
        const error = yield* Effect.flip(start("fork", "a task", { parent: agent }))
        assert.strictEqual(error.reason._tag, "HistoryUnavailable")
      })
    )
  )

  it.effect("shares nothing with its parent: what either learns later the other never hears (17)", () =>
    inTree(answering, (tree) =>
      Effect.gen(function* () {
        yield* tree.ask("hello")
        yield* Effect.flatMap(tree.start("fork", "one task"), (run) => run.result)
        yield* tree.ask("bye")
        yield* Effect.flatMap(tree.start("fork", "other task"), (run) => run.result)
        const all = yield* tree.calls
        const said = (userText: string) => JSON.stringify(conversation(all, userText))
        assert.notInclude(said("bye"), "one task")
        assert.include(said("other task"), "bye")
        assert.notInclude(said("other task"), "one task")
        // the same message of one history is an object of its own in the other
        const [parents, childs] = ["bye", "other task"].map((text) => all.find(({ userText }) => userText === text)!)
        assert.deepStrictEqual(childs!.prompt.content[0], parents!.prompt.content[0])
        assert.notStrictEqual(childs!.prompt.content[0], parents!.prompt.content[0])
      })
    )
  )

  it.effect("of a fork knows what that one was seeded with", () =>
    Effect.gen(function* () {
      const { value } = yield* inTree(
        answering,
        (tree) =>
          Effect.gen(function* () {
            yield* tree.ask("hello")
            yield* tree.ask("delegate delegate a task")
            return yield* tree.calls
          }),
        forking
      )
      assert.deepStrictEqual(conversation(value, "a task"), [
        { role: "user", content: ["hello"] },
        { role: "assistant", content: ["heard hello"] },
        { role: "user", content: ["a task"] }
      ])
    })
  )

  it.effect("knows a turn that failed as its parent remembers it", () =>
    inTree(
      ({ userText }) => (userText === "fail" ? { finishReason: "error" } : { text: `heard ${userText}` }),
      (tree) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* tree.ask("fail")).stopReason, "error")
          yield* Effect.flatMap(tree.start("fork", "a task"), (run) => run.result)
          assert.deepStrictEqual(conversation(yield* tree.calls, "a task"), [
            { role: "user", content: ["fail"] },
            { role: "user", content: ["a task"] }
          ])
        })
    )
  )

  it.effect("that says nothing has no output, and is no success (14)", () =>
    inTree(
      ({ userText }) => (userText === "hello" ? { text: "the parent's words" } : {}),
      (tree) =>
        Effect.gen(function* () {
          yield* tree.ask("hello")
          const run = yield* tree.start("fork", "say nothing")
          const { failure, output, stopReason } = yield* run.result
          assert.deepStrictEqual([stopReason, failure?.kind, output], ["error", "empty", []])
        })
    )
  )

  it.effect("has its parent's system prompt, or the request's in its place", () =>
    inTree(
      answering,
      (tree) =>
        Effect.gen(function* () {
          yield* tree.ask("hello")
          yield* Effect.flatMap(tree.start("fork", "one"), (run) => run.result)
          const agentOptions = { systemPrompt: "be the child" }
          yield* Effect.flatMap(tree.start("fork", "other", { agentOptions }), (run) => run.result)
          const all = yield* tree.calls
          const systemOf = (userText: string) =>
            conversation(all, userText)?.flatMap(({ content, role }) => (role === "system" ? [content] : []))
          assert.deepStrictEqual(systemOf("one"), ["be the parent"])
          assert.deepStrictEqual(systemOf("other"), ["be the child"])
        }),
      { root: { options: { systemPrompt: "be the parent" } } }
    )
  )

  it.effect("M3: runs on the model that the request names, or the start is refused", () =>
    Effect.gen(function* () {
      const refused = yield* Effect.flip(
        inTree(answering, ({ ask, start }) =>
          Effect.andThen(ask("hello"), start("fork", "a task", { agentOptions: { model: "deep" } }))
        )
      )
      assert.deepStrictEqual(
        refused,
        SubagentError.fromReason(
          new SubagentError.UnsupportedCapability({ provider: "fork", capability: "model", missing: ["model"] })
        )
      )
      const deep = ScriptedModel.layer(({ prompt }) => ({ text: `deep, after ${prompt.content.length}` }))
      yield* inTree(
        answering,
        (tree) =>
          Effect.gen(function* () {
            yield* tree.ask("hello")
            const run = yield* tree.start("fork", "a task", { agentOptions: { model: "deep" } })
            assert.deepStrictEqual((yield* run.result).output, [Content.text("deep, after 3")])
          }),
        { models: AgentModels.layer({ deep }) }
      )
    })
  )

  it.effect("has tools by its own filter, whatever its parent has used (12)", () =>
    inTree(
      ({ toolResults, userText }) =>
        toolResults.length === 0 && userText !== "answer" ? calls("read") : { text: "done" },
      (tree) =>
        Effect.gen(function* () {
          yield* tree.ask("read")
          const run = yield* tree.start("fork", "read again", { toolFilter: { deny: ["read"] } })
          assert.strictEqual((yield* run.result).stopReason, "completed")
          assert.deepStrictEqual(tree.executed, ["read@0"])
        })
    )
  )
})

describe("ForkProvider", () => {
  it.effect("is called fork or otherwise, and declares what the runtime does", () =>
    inTree([], ({ runtime }) =>
      Effect.gen(function* () {
        const provider = yield* ForkProvider.fromRuntime(runtime)
        assert.strictEqual(provider.name, "fork")
        assert.strictEqual(provider.capabilities, runtime.capabilities)
        assert.strictEqual(provider.inheritsContext, true)
        const other = yield* Effect.provideService(
          ForkProvider.make({ name: "twin" }),
          AgentRuntime.AgentRuntime,
          runtime
        )
        assert.strictEqual(other.name, "twin")
      })
    )
  )

  it.effect("can't be built on a runtime that keeps no histories", () =>
    Effect.gen(function* () {
      const runtime = Layer.succeed(AgentRuntime.AgentRuntime, AgentRuntime.fromPromise({ run: () => "hi" }))
      const layer = ForkProvider.layer().pipe(Layer.provideMerge(Subagents.layer), Layer.provide(runtime))
      const error = yield* Effect.flip(Effect.scoped(Layer.build(layer)))
      assert.strictEqual(
        error.message,
        "Not a provider: completedTurns: The agent runtime keeps no histories, so its agents can't be forked"
      )
    })
  )
})
