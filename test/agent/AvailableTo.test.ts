import { assert, describe, it } from "@effect/vitest"
import { AgentRuntime, AvailableTo } from "effect-subagent/agent"
import { ScriptedModel } from "effect-subagent/testing"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { filtered, open, resultsOf } from "./harness.ts"

/** A tool for roots, and one for all. */
const kit = Toolkit.make(
  Tool.make("announce", { success: Schema.String }).annotate(
    AvailableTo.AvailableTo,
    ({ session }, { maxDepth }) => session.header.delegationDepth === 0 && maxDepth > 0
  ),
  Tool.make("read", { success: Schema.String })
)
const runtime = (script: ScriptedModel.Script) =>
  AgentRuntime.layer({ toolkit: kit }).pipe(
    Layer.provide(kit.toLayer({ announce: () => Effect.succeed("said"), read: () => Effect.succeed("seen") })),
    Layer.provideMerge(ScriptedModel.layer(script))
  )
const child = { id: "c", session: { header: { id: "s", delegationDepth: 1 } } }

describe("AvailableTo", () => {
  const offered = Effect.fnUntraced(function* (spec: Partial<AgentRuntime.AgentSpec>) {
    const agent = yield* open(runtime([{ text: "hi" }]), spec)
    yield* agent.turn("hello")
    return (yield* agent.calls)[0]
  })

  it.effect("hides a tool from the agents that it is not for", () =>
    Effect.gen(function* () {
      const root = yield* offered({})
      assert.deepStrictEqual([root?.tools, root?.toolChoice], [["announce", "read"], "auto"])
      assert.deepStrictEqual((yield* offered({ agent: child }))?.tools, ["read"])
      assert.deepStrictEqual((yield* offered({ policy: { maxDepth: 0, toolFilters: [] } }))?.tools, ["read"])
    })
  )

  it.effect("gives nothing back that a filter takes away (12)", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* offered({ policy: filtered({ deny: ["announce"] }) }))?.tools, ["read"])
      assert.deepStrictEqual((yield* offered({ agent: child, policy: filtered({ deny: ["read"] }) }))?.tools, [])
    })
  )

  it.effect("leaves the answer to the tool if it is called all the same", () =>
    Effect.gen(function* () {
      const agent = yield* open(runtime([{ toolCalls: [{ name: "announce", params: {} }] }, { text: "done" }]), {
        agent: child
      })
      yield* agent.turn("announce")
      assert.deepStrictEqual(
        resultsOf((yield* agent.calls)[1])?.map(({ result }) => result),
        ["said"]
      )
    })
  )

  it("lets everybody have a tool that says nothing", () => {
    assert.isTrue(Context.get(kit.tools.read.annotations, AvailableTo.AvailableTo)(child, AgentRuntime.openPolicy))
  })
})
