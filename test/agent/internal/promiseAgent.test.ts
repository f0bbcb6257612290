import { assert, describe, it } from "@effect/vitest"
import { type Agent, Content, Subagents } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { SpawnProvider } from "effect-subagent/providers"
import { ProviderConformance } from "effect-subagent/testing"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { gate, untilAborted } from "../../fixtures/promiseProvider.ts"
import { reasonOf, root, withSeam } from "../../utils/seam.ts"

const tools = { read: () => "a file", write: () => "written" }

const loop = AgentRuntime.fromPromise({
  tools,
  run: async ({ onText, prompt, signal, tools }) => {
    if (prompt === "wait") return untilAborted(signal)
    if (prompt === "fail") throw new Error("no model")
    onText("So: ")
    return prompt === "go on" ? untilAborted(signal) : Object.keys(tools).join()
  }
})

ProviderConformance.suite(
  "spawn on an async function",
  Subagents.add(SpawnProvider.fromRuntime(loop)).pipe(Layer.provideMerge(Subagents.layer)),
  {
    describe,
    it,
    prompts: { complete: "hello", hang: "wait", stream: "go on", fail: "fail", resume: "hello" },
    capabilities: { outputSchema: false, depthLimit: true, toolFilter: true }
  }
)

describe("a runtime made of an async function", () => {
  it.effect("gives its loop the tools that the filters let through, and no other (12)", () =>
    withSeam([SpawnProvider.fromRuntime(loop)], ({ run }) =>
      Effect.gen(function* () {
        const usable = (toolFilter?: object) =>
          Effect.map(run("spawn", { prompt: "list", parent: root, toolFilter }), ({ output }) => Content.toText(output))
        assert.strictEqual(yield* usable(), "read,write")
        assert.strictEqual(yield* usable({ deny: ["write"] }), "read")
        assert.strictEqual(yield* usable({ allow: [] }), "So: ")
      })
    )
  )

  it.effect("refuses a filter with a name that no tool has (12)", () =>
    withSeam([SpawnProvider.fromRuntime(loop)], ({ run }) =>
      Effect.gen(function* () {
        const exit = yield* Effect.exit(run("spawn", { prompt: "x", parent: root, toolFilter: { deny: ["wirte"] } }))
        assert.include((reasonOf(exit) as Error).message, 'There is no tool "wirte"')
      })
    )
  )

  it.effect("lets its loop ask for each of its turns, if anybody counts them", () =>
    Effect.gen(function* () {
      const failure = { kind: "limit", retryable: false, name: "maxTurns", limit: 2, used: 2 }
      const counted = AgentRuntime.fromPromise({
        capabilities: { turns: true },
        run: ({ nextTurn, onText }) => {
          for (let turn = 1; turn <= 3; turn++) {
            const refused = nextTurn()
            if (refused !== undefined) return { failure: refused.failure }
            onText(`turn ${turn} `)
          }
          return undefined
        }
      })
      assert.isTrue(counted.capabilities.turns)
      let used = 0
      const nextTurn = () => (++used > 2 ? { failure, wrapUp: false } : undefined)
      const spec = { agent: root, options: {}, policy: AgentRuntime.openPolicy, emit: () => {} }
      const limited = yield* counted.open({ ...spec, nextTurn })
      assert.deepStrictEqual(yield* limited.turn([Content.text("go")]), { stopReason: "error", failure })
      const free = yield* counted.open(spec)
      assert.deepStrictEqual(yield* free.turn([Content.text("go")]), { stopReason: "completed" })
    })
  )

  it.effect("takes no memory that it could not have made", () =>
    Effect.gen(function* () {
      const { openPolicy } = AgentRuntime
      const spec = { agent: root, options: {}, policy: openPolicy, emit: () => {}, seed: [] }
      const exit = yield* Effect.exit(Effect.scoped(loop.open(spec)))
      assert.include((reasonOf(exit) as Error).message, "This runtime makes no seeds")
    })
  )

  it("honours a filter only if it has the tools", () => {
    const run = () => "x"
    assert.isFalse(AgentRuntime.fromPromise({ run }).capabilities.toolFilter)
    assert.isTrue(AgentRuntime.fromPromise({ run, tools: {} }).capabilities.toolFilter)
    assert.isTrue(AgentRuntime.fromPromise({ run, capabilities: { systemPrompt: true } }).capabilities.systemPrompt)
  })

  it.effect("makes the tools for each agent, and hands it over as the parent of what they start (11)", () =>
    Effect.gen(function* () {
      const seen: Array<Agent.Agent> = []
      const nested = AgentRuntime.fromPromise({
        tools: (agent: Agent.Agent) => ({ who: () => agent }),
        run: ({ agent, content, tools }) => {
          seen.push(agent)
          assert.strictEqual(tools.who?.(), agent)
          return Content.toText(content)
        }
      })
      yield* withSeam([SpawnProvider.fromRuntime(nested)], ({ run }) => run("spawn", { prompt: "x", parent: root }))
      assert.lengthOf(seen, 1)
      assert.strictEqual(seen[0]!.session.header.delegationDepth, 1)
    })
  )

  it.effect("takes one turn of an agent after the other", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const first = gate()
      const runtime = AgentRuntime.fromPromise({
        run: async ({ prompt }) => {
          order.push(`${prompt} begins`)
          if (prompt === "one") await first.promise
          order.push(`${prompt} ends`)
        }
      })
      const agent = yield* runtime.open({ agent: root, options: {}, policy: AgentRuntime.openPolicy, emit: () => {} })
      const one = yield* Effect.forkChild(agent.turn([Content.text("one")]), { startImmediately: true })
      const two = yield* Effect.forkChild(agent.turn([Content.text("two")]), { startImmediately: true })
      first.resolve("")
      yield* Fiber.join(one)
      yield* Fiber.join(two)
      assert.deepStrictEqual(order, ["one begins", "one ends", "two begins", "two ends"])
    })
  )
})
