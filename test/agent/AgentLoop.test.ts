import { assert, describe, it } from "@effect/vitest"
import { AgentLoop, AgentRuntime } from "effect-subagent/agent"
import { ScriptedModel } from "effect-subagent/testing"
import * as Effect from "effect/Effect"

describe("AgentLoop.make", () => {
  it.effect("makes a runtime out of a language model alone", () =>
    Effect.gen(function* () {
      const runtime = yield* Effect.provide(AgentLoop.make(), ScriptedModel.layer([{ text: "hi" }]))
      const agent = { id: "a", session: { header: { id: "s" } } }
      const handle = yield* runtime.open({ agent, options: {}, policy: AgentRuntime.openPolicy, emit: () => {} })
      assert.deepStrictEqual(yield* handle.turn([{ type: "text", text: "hello" }]), { stopReason: "completed" })
    })
  )
})
