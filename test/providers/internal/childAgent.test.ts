import { assert, describe, it } from "@effect/vitest"
import { Content, type SubagentProvider } from "effect-subagent"
import type { AgentRuntime } from "effect-subagent/agent"
import * as Effect from "effect/Effect"
import { openChild } from "../../../src/providers/internal/childAgent.ts"
import { all, provider, root, withSeam } from "../../utils/seam.ts"

describe("the agent of a placed request", () => {
  const specOf = (capabilities: AgentRuntime.AgentRuntime["Service"]["capabilities"], seed?: AgentRuntime.AgentSeed) =>
    Effect.gen(function* () {
      const placed: Array<SubagentProvider.PlacedRequest> = []
      const specs: Array<AgentRuntime.AgentSpec> = []
      const open: AgentRuntime.AgentRuntime["Service"]["open"] = (spec) =>
        Effect.sync(() => {
          specs.push(spec)
          spec.emit({ _tag: "Content", block: Content.text("done") })
          return { turn: () => Effect.succeed({ stopReason: "completed" }) }
        })
      const start: SubagentProvider.SubagentProvider["start"] = (request) => {
        placed.push(request)
        return openChild({ capabilities, open }, request, seed)
      }
      const parent = { ...root, options: { model: "large" } }
      yield* withSeam([provider({ start })], ({ run }) =>
        run("p", { prompt: "go", parent, toolFilter: { deny: ["rm"] }, maxDepth: 2 })
      )
      return { spec: specs[0]!, placed: placed[0]! }
    })

  it.effect("has the policy in force, and beside it what the request itself asked for", () =>
    Effect.gen(function* () {
      const { placed, spec } = yield* specOf(all)
      assert.strictEqual(spec.policy, placed.policy)
      assert.deepStrictEqual(spec.policy, { maxDepth: 2, toolFilters: [{ deny: ["rm"] }] })
      assert.deepStrictEqual(spec.request?.toolFilter, { deny: ["rm"] })
      assert.deepStrictEqual(spec.request?.agentOptions, {})
    })
  )

  it.effect("inherits the model where there are models", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* specOf(all)).spec.options, { model: "large" })
      assert.deepStrictEqual((yield* specOf({ ...all, model: false })).spec.options, {})
    })
  )

  it.effect("remembers what the seed does, which may be anything", () =>
    Effect.gen(function* () {
      assert.notProperty((yield* specOf(all)).spec, "seed")
      assert.strictEqual((yield* specOf(all, null)).spec.seed, null)
    })
  )
})
