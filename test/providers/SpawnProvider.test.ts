import { assert, describe, it } from "@effect/vitest"
import { Agent, type Capabilities, Content, SubagentError, type SubagentRequest, Subagents } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { SpawnProvider } from "effect-subagent/providers"
import { ProviderConformance } from "effect-subagent/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { conformance, runtime } from "../utils/agentConformance.ts"

for (const streaming of [false, true]) {
  ProviderConformance.suite(
    `spawn ${streaming ? "with" : "without"} streaming`,
    SpawnProvider.layer().pipe(Layer.provideMerge(Subagents.layer), Layer.provideMerge(runtime({ streaming }))),
    { describe, it, ...conformance }
  )
}

describe("SpawnProvider", () => {
  const none = { outputSchema: false, depthLimit: false, toolFilter: false }
  const every = { outputSchema: true, depthLimit: true, toolFilter: true, model: true, systemPrompt: true }

  /** Runs a child on a runtime that keeps what it is given, and gives that. */
  const specOf = (
    capabilities: Capabilities.Capabilities,
    fields: Partial<SubagentRequest.SubagentStartRequest> = {}
  ) =>
    Effect.gen(function* () {
      const specs: Array<AgentRuntime.AgentSpec> = []
      const prompts: Array<unknown> = []
      const runtime = Layer.succeed(AgentRuntime.AgentRuntime, {
        capabilities,
        open: (spec) =>
          Effect.sync(() => {
            specs.push(spec)
            return {
              turn: (prompt) =>
                Effect.sync(() => {
                  prompts.push(prompt)
                  spec.emit({ _tag: "Content", messageId: "1", block: Content.text("done") })
                  return { stopReason: "completed", structured: 1 }
                })
            }
          })
      })
      const parent = yield* Agent.root({ cwd: "/a folder", options: { model: "large", systemPrompt: "be the parent" } })
      const run = yield* Effect.gen(function* () {
        const subagents = yield* Subagents.Subagents
        const run = yield* subagents.start("spawn", { prompt: "go", parent, ...fields })
        yield* run.result
        return run
      }).pipe(
        Effect.scoped,
        Effect.provide(SpawnProvider.layer().pipe(Layer.provideMerge(Subagents.layer), Layer.provide(runtime)))
      )
      assert.strictEqual(specs.length, 1)
      return { parent, prompts, result: yield* run.result, run, spec: specs[0]! }
    })

  it.effect("tells the runtime who the child is and where it stands", () =>
    Effect.gen(function* () {
      const { parent, run, spec } = yield* specOf(none, { label: "a part" })
      assert.deepStrictEqual(spec.agent, { id: run.id, session: { header: run.header }, options: {} })
      assert.deepStrictEqual(spec.lineage, {
        id: run.id,
        runId: run.runId,
        parentId: parent.id,
        rootId: parent.id,
        depth: 1,
        label: "a part"
      })
    })
  )

  it.effect("gives the child the parent's working directory", () =>
    Effect.gen(function* () {
      const { parent, spec } = yield* specOf(none)
      const { id: _, ...header } = spec.agent.session.header
      assert.deepStrictEqual(header, {
        cwd: "/a folder",
        parentSession: parent.session.header.id,
        delegationDepth: 1
      })
    })
  )

  it.effect("hands the prompt over as blocks, and gives back what the agent said", () =>
    Effect.gen(function* () {
      const { prompts, result } = yield* specOf(none)
      assert.deepStrictEqual(prompts, [[Content.text("go")]])
      assert.deepStrictEqual(result, { output: [Content.text("done")], stopReason: "completed" })
    })
  )

  describe("options", () => {
    const optionsOf = (
      capabilities: Capabilities.Capabilities,
      agentOptions?: SubagentRequest.SubagentStartRequest["agentOptions"]
    ) =>
      Effect.map(specOf(capabilities, { agentOptions }), ({ spec }) => {
        assert.deepStrictEqual(spec.agent.options, spec.options)
        return spec.options
      })

    it.effect("inherit the parent's model on a runtime that has models, never its system prompt", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* optionsOf(every), { model: "large" })
      })
    )

    it.effect("inherit nothing on a runtime that has no models", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* optionsOf({ ...every, model: false }), {})
      })
    )

    it.effect("are what the request asks for, before what the parent has", () =>
      Effect.gen(function* () {
        const asked = { model: "small", systemPrompt: "be the child" }
        assert.deepStrictEqual(yield* optionsOf(every, asked), asked)
        assert.deepStrictEqual(yield* optionsOf(every, { systemPrompt: "be the child" }), {
          model: "large",
          systemPrompt: "be the child"
        })
      })
    )

    it.effect("can't be changed by the runtime (17)", () =>
      Effect.gen(function* () {
        const { spec } = yield* specOf(every)
        for (const value of [spec.options, spec.agent, spec.agent.session, spec.agent.session.header]) {
          assert.isTrue(Object.isFrozen(value))
        }
      })
    )
  })

  it.effect("hands over the tool filters in force, and the value that was asked for", () =>
    Effect.gen(function* () {
      const plain = yield* specOf(every)
      assert.deepStrictEqual(plain.spec.policy.toolFilters, [])
      assert.notProperty(plain.spec, "output")
      const { result, spec } = yield* specOf(every, { toolFilter: { deny: ["rm"] }, outputSchema: Schema.Number })
      assert.deepStrictEqual(spec.policy.toolFilters, [{ deny: ["rm"] }])
      assert.strictEqual(spec.output?.schema, Schema.Number)
      assert.strictEqual(result.structured, 1)
    })
  )

  it.effect("declares what the runtime does, knows no context of the parent's, and is called spawn or otherwise", () =>
    Effect.gen(function* () {
      const provider = yield* SpawnProvider.make()
      assert.strictEqual(provider.name, "spawn")
      assert.strictEqual(provider.capabilities, every)
      assert.strictEqual(provider.inheritsContext, false)
      assert.strictEqual((yield* SpawnProvider.make({ name: "local" })).name, "local")
      const subagents = yield* Subagents.Subagents
      assert.deepStrictEqual(yield* subagents.list, ["inner"])
    }).pipe(
      Effect.provide(
        SpawnProvider.layer({ name: "inner" }).pipe(
          Layer.provideMerge(Subagents.layer),
          Layer.provideMerge(
            Layer.succeed(AgentRuntime.AgentRuntime, { capabilities: every, open: () => Effect.die("not opened") })
          )
        )
      )
    )
  )

  it.effect("fails to start if no agent can be opened, and leaves nothing (4)", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const failed = SubagentError.fromReason(new SubagentError.StartFailed({ provider: "spawn", detail: "no room" }))
      const runtime = Layer.succeed(AgentRuntime.AgentRuntime, {
        capabilities: none,
        open: () =>
          Effect.acquireRelease(
            Effect.sync(() => log.push("opened")),
            () => Effect.sync(() => log.push("closed"))
          ).pipe(Effect.andThen(Effect.fail(failed)))
      })
      yield* Effect.gen(function* () {
        const subagents = yield* Subagents.Subagents
        const error = yield* Effect.flip(subagents.run("spawn", { prompt: "go", parent: yield* Agent.root() }))
        assert.strictEqual(error, failed)
        assert.deepStrictEqual(log, ["opened", "closed"])
        assert.deepStrictEqual(yield* subagents.live, [])
      }).pipe(Effect.provide(SpawnProvider.layer().pipe(Layer.provideMerge(Subagents.layer), Layer.provide(runtime))))
    })
  )

  it.effect("closes the agent when the run is released", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const runtime = Layer.succeed(AgentRuntime.AgentRuntime, {
        capabilities: none,
        open: () =>
          Effect.acquireRelease(
            Effect.sync(() => {
              log.push("opened")
              return { turn: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => log.push("stopped"))) }
            }),
            () => Effect.sync(() => log.push("closed"))
          )
      })
      yield* Effect.gen(function* () {
        const subagents = yield* Subagents.Subagents
        const run = yield* subagents.start("spawn", { prompt: "go", parent: yield* Agent.root() })
        yield* run.cancel()
        yield* run.dispose
        assert.deepStrictEqual(log, ["opened", "stopped", "closed"])
      }).pipe(Effect.provide(SpawnProvider.layer().pipe(Layer.provideMerge(Subagents.layer), Layer.provide(runtime))))
    })
  )
})
