import { assert, describe, it } from "@effect/vitest"
import { Content, type ResumeToken, SubagentError, type SubagentProvider } from "effect-subagent"
import type { AgentRuntime } from "effect-subagent/agent"
import * as Effect from "effect/Effect"
import { openChild, resuming } from "../../../src/providers/internal/childAgent.ts"
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

  it.effect("asks the seam for each of its turns", () =>
    Effect.gen(function* () {
      const { placed, spec } = yield* specOf(all)
      assert.isFunction(spec.nextTurn)
      assert.strictEqual(spec.nextTurn, placed.nextTurn)
    })
  )

  it.effect("remembers what the seed does, which may be anything", () =>
    Effect.gen(function* () {
      assert.notProperty((yield* specOf(all)).spec, "seed")
      assert.strictEqual((yield* specOf(all, null)).spec.seed, null)
    })
  )

  const lacking: ReadonlyArray<[string, Partial<AgentRuntime.AgentHandle>, boolean, ReadonlyArray<string>]> = [
    ["only has turns", {}, false, ["turn", "resumeTurn"]],
    ["takes messages", { steer: () => Effect.void }, false, ["turn", "resumeTurn", "sendMessage"]],
    ["can say what it remembers", {}, true, ["turn", "resumeTurn", "token"]]
  ]
  for (const [how, handle, hasMemory, keys] of lacking) {
    it.effect(`that ${how} is a session of just that (15, 16)`, () =>
      Effect.gen(function* () {
        const runtime: AgentRuntime.AgentRuntime["Service"] = {
          capabilities: all,
          open: ({ emit }) =>
            Effect.sync(() => {
              emit({ _tag: "Content", block: Content.text("done") })
              return { turn: () => Effect.succeed({ stopReason: "completed" }), ...handle }
            }),
          ...(hasMemory && { completedTurns: () => Effect.succeed("all of it") })
        }
        const { resume } = resuming(runtime)
        assert.strictEqual(resume !== undefined, hasMemory)
        assert.strictEqual("resume" in resuming(runtime), hasMemory)
        const sessions: Array<SubagentProvider.ChildSession> = []
        const start: SubagentProvider.SubagentProvider["start"] = (request) =>
          Effect.tap(openChild(runtime, request), (session) => Effect.sync(() => sessions.push(session)))
        const token = yield* withSeam([{ ...provider({ start }), ...resuming(runtime) }], ({ start }) =>
          Effect.gen(function* () {
            const run = yield* start("p", { prompt: "go", parent: { ...root, options: { model: "large" } } })
            yield* run.result
            return run.token === undefined ? undefined : yield* run.token
          })
        )
        assert.deepStrictEqual(Object.keys(sessions[0]!), keys)
        assert.deepStrictEqual(
          token?.payload,
          hasMemory ? { agentOptions: { model: "large" }, seed: "all of it" } : undefined
        )
      })
    )
  }

  it.effect("keeps no token for an agent that is not known any more, and no seed that is none", () =>
    Effect.gen(function* () {
      const gone = SubagentError.fromReason(new SubagentError.HistoryUnavailable({ agentId: "a" }))
      const refused = SubagentError.fromReason(new SubagentError.StartFailed({ provider: "p", detail: "no room" }))
      const runtime: AgentRuntime.AgentRuntime["Service"] = {
        capabilities: all,
        open: ({ seed }) =>
          seed === undefined
            ? Effect.succeed({ turn: () => Effect.succeed({ stopReason: "completed" }) })
            : Effect.fail(refused),
        completedTurns: () => Effect.fail(gone)
      }
      const start: SubagentProvider.SubagentProvider["start"] = (request) => openChild(runtime, request)
      yield* withSeam([{ ...provider({ start }), ...resuming(runtime) }], ({ resume, start }) =>
        Effect.gen(function* () {
          const run = yield* start("p", { prompt: "go", parent: root })
          assert.strictEqual(yield* Effect.flip(run.token!), gone)
          const token = {
            version: 1,
            provider: "p",
            id: "agent_1",
            header: { id: "session_1", parentSession: root.session.header.id, delegationDepth: 1 },
            policy: { maxDepth: 3, toolFilters: [] },
            agentOptions: {},
            payload: { agentOptions: {}, seed: 1 }
          } as unknown as ResumeToken.ResumeToken
          assert.strictEqual(yield* Effect.flip(resume(token, "go on", { parent: root })), refused)
        })
      )
    })
  )
})
