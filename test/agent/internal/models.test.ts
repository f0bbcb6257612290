import { assert, describe, it } from "@effect/vitest"
import { AgentRuntime } from "effect-subagent/agent"
import { ScriptedModel } from "effect-subagent/testing"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { modelOf } from "../../../src/agent/internal/models.ts"

describe("the model of an agent", () => {
  const make = Effect.map(Effect.all([ScriptedModel.make([]), ScriptedModel.make([])]), ([unnamed, fast]) => ({
    unnamed: unnamed.model,
    named: new Map([["fast", fast.model]])
  }))
  const spec: AgentRuntime.AgentSpec = {
    agent: { id: "a", session: { header: { id: "s" } } },
    options: {},
    policy: AgentRuntime.openPolicy,
    emit: () => {}
  }

  it.effect("is the one it names, else the runtime's", () =>
    Effect.gen(function* () {
      const models = yield* make
      assert.strictEqual(Result.getOrThrow(modelOf(models, spec)), models.unnamed)
      assert.strictEqual(
        Result.getOrThrow(modelOf(models, { ...spec, options: { model: "fast" } })),
        models.named.get("fast")
      )
    })
  )

  it.effect("is refused with the names there are, where it was named", () =>
    Effect.gen(function* () {
      const models = yield* make
      const issue = (request: AgentRuntime.AgentSpec["request"] | undefined, known = models) =>
        Result.flip(modelOf(known, { ...spec, options: { model: "toString" }, ...(request && { request }) })).pipe(
          Result.getOrThrow,
          String
        )
      const message = 'There is no model "toString"; the models there are: "fast"'
      assert.strictEqual(issue({ agentOptions: { model: "toString" } }), `agentOptions.model: ${message}`)
      assert.strictEqual(issue({ agentOptions: {} }), `parent.options.model: ${message}`)
      assert.strictEqual(issue(undefined), `options.model: ${message}`)
      assert.include(issue(undefined, { ...models, named: new Map() }), "the models there are: none")
    })
  )
})
