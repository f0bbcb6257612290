import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { Agent } from "effect-subagent"

describe("Agent.root", () => {
  it.effect("makes an agent that nobody delegated to, with ids of its own", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.root({ cwd: "/project", options: { model: "m" } })
      const { id, session } = agent
      assert.deepStrictEqual(agent, {
        id,
        session: { header: { id: session.header.id, cwd: "/project", delegationDepth: 0 } },
        options: { model: "m" }
      })
      const other = yield* Agent.root()
      assert.strictEqual(new Set([id, session.header.id, other.id, other.session.header.id]).size, 4)
    })
  )

  it.effect("has no keys for what it was not given", () =>
    Effect.gen(function* () {
      for (const agent of [yield* Agent.root(), yield* Agent.root({ cwd: undefined, options: undefined })]) {
        assert.deepStrictEqual(Object.keys(agent), ["id", "session"])
        assert.deepStrictEqual(Object.keys(agent.session.header), ["id", "delegationDepth"])
      }
    })
  )

  it.effect("has the ids that a seeded Random gives (18)", () =>
    Effect.gen(function* () {
      const seeded = Random.withSeed(Agent.root(), "seed")
      assert.deepStrictEqual(yield* seeded, yield* seeded)
    })
  )

  it.effect("shares nothing with what it was made of (17)", () =>
    Effect.gen(function* () {
      const options = { model: "before" }
      const agent = yield* Agent.root({ options })
      options.model = "after"
      assert.strictEqual(agent.options?.model, "before")
      assert.isTrue(Object.isFrozen(agent.options) && Object.isFrozen(agent.session.header))
    })
  )
})
