import { assert, describe, it } from "@effect/vitest"
import { type Agent, Capabilities, Content, SubagentError, SubagentProvider, Subagents } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { PromiseSubagents } from "effect-subagent/promise"
import { SpawnProvider } from "effect-subagent/providers"
import { ScriptedProvider } from "effect-subagent/testing"
import { PlainTool, SubagentTool } from "effect-subagent/tool"
import * as Tool from "effect/ai/Tool"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { getEventListeners } from "node:events"
import { gate, make, untilAborted } from "../fixtures/promiseProvider.ts"
import { agentOf, type Placed, provider, root, withSeam } from "../utils/seam.ts"

const input = (prompt: string) => ({ description: "a task", prompt })

/** The tool of a host with promises, and of a host with Effect: both on the same provider. */
const hosts: ReadonlyArray<
  readonly [
    name: string,
    use: (
      provider: SubagentProvider.SubagentProvider,
      options: Partial<SubagentTool.Options>,
      body: (tool: PlainTool.PlainTool, live: () => Promise<number>) => Promise<void>
    ) => Promise<void>
  ]
> = [
  [
    "the facade",
    async (provider, options, body) => {
      const facade = PromiseSubagents.fromProviders([provider])
      try {
        await body(facade.tool({ provider: "p", ...options }), async () => (await facade.live()).length)
      } finally {
        await facade.dispose()
      }
    }
  ],
  [
    "Effect",
    (provider, options, body) =>
      Effect.gen(function* () {
        const tool = yield* PlainTool.make({ provider: "p", ...options })
        const { live } = yield* Subagents.Subagents
        yield* Effect.promise(() => body(tool, () => Effect.runPromise(Effect.map(live, (runs) => runs.length))))
      }).pipe(
        Effect.scoped,
        Effect.provide(Subagents.add(provider).pipe(Layer.provideMerge(Subagents.layer))),
        Effect.runPromise
      )
  ]
]

for (const [host, use] of hosts) {
  const withTool = (
    body: (
      tool: PlainTool.PlainTool,
      live: () => Promise<number>,
      world: { readonly sessions: number; readonly turns: number }
    ) => Promise<void>,
    options: Partial<SubagentTool.Options> = {}
  ) => {
    const { provider, world } = make("p")
    return use(provider, options, (tool, live) => body(tool, live, world))
  }

  describe(`a plain tool of a host with ${host}`, () => {
    it("answers with the output of a completed run, which is released (10) (14) [seed 16] [seed 28]", () =>
      withTool(async ({ execute, executeOrThrow }, live, world) => {
        const answer = await execute(input("complete"), { parent: root })
        const { runId, treeUsage: _tree, ...rest } = answer
        assert.deepStrictEqual(rest, {
          content: [Content.text("the answer")],
          text: "the answer",
          isError: false,
          stopReason: "completed",
          usage: { total: 3 }
        })
        assert.isTrue(runId?.startsWith("run_"))
        assert.strictEqual((await executeOrThrow(input("complete"), { parent: root })).text, "the answer")
        assert.strictEqual(await live(), 0)
        assert.deepStrictEqual(world, { sessions: 0, turns: 0 })
      }))

    it("answers with its child's last words, not with those before a tool call (14)", () =>
      withTool(async ({ execute }) => {
        assert.strictEqual((await execute(input("callTool"), { parent: root })).text, "the answer")
      }))

    it("answers a child's failure as an error, with what went wrong as data (8) [seed 19] [seed 29]", () =>
      withTool(async ({ execute, executeOrThrow }, live, world) => {
        const answer = await execute(input("fail"), { parent: root })
        assert.isTrue(answer.isError)
        assert.strictEqual(answer.stopReason, "error")
        assert.strictEqual(answer.failure?.status, 429)
        assert.include(answer.text, "The subagent failed (error).")
        assert.isUndefined(answer.error)
        const thrown: unknown = await executeOrThrow(input("fail"), { parent: root }).catch((error: unknown) => error)
        assert.instanceOf(thrown, PlainTool.PlainToolError)
        assert.strictEqual(thrown.name, "PlainToolError")
        assert.strictEqual(thrown.message, answer.text)
        assert.strictEqual(thrown.answer.failure?.status, 429)
        assert.strictEqual(await live(), 0)
        assert.deepStrictEqual(world, { sessions: 0, turns: 0 })
      }))

    it("stops its run when the call is aborted, and keeps what was said, labelled (9) [seed 30]", () =>
      withTool(async ({ execute }, live, world) => {
        const controller = new AbortController()
        const calling = execute(input("stream"), { parent: root, signal: controller.signal })
        while (world.turns === 0) await new Promise((resolve) => setImmediate(resolve))
        controller.abort()
        const answer = await calling
        assert.isTrue(answer.isError)
        assert.strictEqual(answer.stopReason, "aborted")
        assert.include(answer.text, "the call was aborted")
        assert.include(answer.text, "Partial output, not a finished answer:\nso far")
        assert.isDefined(answer.runId)
        assert.strictEqual(await live(), 0)
        assert.deepStrictEqual(world, { sessions: 0, turns: 0 })
        assert.lengthOf(getEventListeners(controller.signal, "abort"), 0)
      }))

    it("starts nothing for a signal that was aborted before (4) [seed 31]", () =>
      withTool(async ({ execute }, live) => {
        const answer = await execute(input("complete"), { parent: root, signal: AbortSignal.abort(new Error("no")) })
        assert.isTrue(answer.isError)
        assert.strictEqual(answer.stopReason, "aborted")
        assert.isFalse("runId" in answer)
        assert.strictEqual(answer.error?.code, "ABORTED_BEFORE_START")
        assert.strictEqual(await live(), 0)
      }))

    it("leaves nothing of a start that fails (4)", () =>
      withTool(async ({ execute }, live, world) => {
        const answer = await execute(input("failStart"), { parent: root })
        assert.strictEqual(answer.error?.code, "START_FAILED")
        assert.include(answer.text, "no room")
        assert.isFalse("runId" in answer)
        assert.strictEqual(await live(), 0)
        assert.deepStrictEqual(world, { sessions: 0, turns: 0 })
      }))

    const refused: ReadonlyArray<readonly [string, unknown, object | undefined, string]> = [
      ["keys that it does not know", { ...input("x"), provider: "acp" }, { parent: root }, "provider"],
      ["blank arguments", { description: " ", prompt: "x" }, { parent: root }, "description"],
      ["arguments that are missing", { description: "x" }, { parent: root }, "prompt"],
      ["arguments that are none", "text", { parent: root }, "Expected"],
      ["nothing at all", undefined, { parent: root }, "Expected"],
      ["a call without an agent [seed 26]", input("x"), {}, "No agent is running here"],
      ["a parent that is no agent", input("x"), { parent: {} }, "parent.id"],
      ["a signal that is none", input("x"), { parent: root, signal: "no signal" }, "signal"]
    ]
    for (const [what, given, context, word] of refused) {
      it(`refuses ${what}, and never throws (3)`, () =>
        withTool(async ({ execute }, live) => {
          const answer = await execute(given, context as PlainTool.PlainToolContext)
          assert.isTrue(answer.isError)
          assert.strictEqual(answer.stopReason, "error")
          assert.include(answer.text, word)
          assert.strictEqual(answer.error?.code, "INVALID_REQUEST")
          assert.strictEqual(await live(), 0)
        }))
    }

    it("survives a call without a context", () =>
      withTool(async ({ execute }) => {
        const answer = await execute(input("x"), undefined as never)
        assert.isTrue(answer.isError)
        assert.strictEqual(answer.stopReason, "error")
      }))

    it("takes a signal that is null for none", () =>
      withTool(async ({ execute }) => {
        assert.isFalse((await execute(input("complete"), { parent: root, signal: null as never })).isError)
      }))

    it("names a provider that is not there at the time of the call [seed 27]", () =>
      withTool(
        async ({ execute }) => {
          const answer = await execute(input("complete"), { parent: root })
          assert.isTrue(answer.isError)
          assert.deepStrictEqual(
            answer.error?.reason,
            new SubagentError.ProviderNotFound({ name: "nowhere", available: ["p"] })
          )
          assert.include(answer.text, '"nowhere"')
        },
        { provider: "nowhere" }
      ))

    it("answers a provider's fault as an error, and releases the run (8) (10)", () =>
      use(SubagentProvider.fromPromise({ name: "p", run: () => 7 as never }), {}, async ({ execute }, live) => {
        const answer = await execute(input("x"), { parent: root })
        assert.isTrue(answer.isError)
        assert.strictEqual(answer.error?.code, "PROVIDER_FAULT")
        assert.isDefined(answer.runId)
        assert.strictEqual(await live(), 0)
      }))

    it("keeps blocks for a host that carries them, and names them for one that does not", () => {
      const image: Content.ContentBlock = { type: "image", data: "AA==", mimeType: "image/png" }
      const provider = SubagentProvider.fromPromise({
        name: "p",
        run: ({ emit }) => emit({ _tag: "Content", messageId: "1", block: image })
      })
      return use(provider, {}, async ({ execute }) => {
        const { content, text } = await execute(input("x"), { parent: root })
        assert.deepStrictEqual(content, [image])
        assert.strictEqual(text, "[image: image/png]")
      })
    })

    it("caps its answer, and says so", () =>
      withTool(
        async ({ execute }) => {
          const { content, text } = await execute(input("complete"), { parent: root })
          assert.strictEqual(text, "the a…\n\n[This answer was longer than 8 bytes; the rest was cut off.]")
          assert.deepStrictEqual(content, [Content.text(text)])
        },
        { maxResultBytes: 8 }
      ))

    it("asks for what its binding says (3)", () =>
      withTool(
        async ({ execute }) => {
          const answer = await execute(input("complete"), { parent: root })
          assert.strictEqual(answer.error?.code, "UNSUPPORTED_CAPABILITY")
        },
        { toolFilter: { deny: ["rm"] } }
      ))

    it("lets calls overlap", () => {
      const both = gate<void>()
      let running = 0
      const provider = SubagentProvider.fromPromise({
        name: "p",
        run: async ({ prompt }) => {
          if (++running === 2) both.resolve()
          await both.promise
          return prompt
        }
      })
      return use(provider, {}, async ({ execute }) => {
        const answers = await Promise.all(["a", "b"].map((prompt) => execute(input(prompt), { parent: root })))
        assert.deepStrictEqual(
          answers.map(({ text }) => text),
          ["a", "b"]
        )
      })
    })
  })
}

describe("a plain tool", () => {
  it("answers to whatever a loop calls it with", async () => {
    const facade = PromiseSubagents.fromProviders([make("p").provider])
    const { execute } = facade.tool({ provider: "p" })
    const unreadable = {
      description: "a",
      get prompt() {
        throw new Error("no")
      }
    }
    const answers = [
      await (execute as (input: unknown) => ReturnType<typeof execute>)(input("go")),
      await execute(unreadable, { parent: root })
    ]
    await facade.dispose()
    assert.deepStrictEqual(
      answers.map(({ error, isError, text }) => [isError, error?.code, text]),
      [
        [true, "INVALID_REQUEST", "No agent is running here: a subagent needs the agent that calls it."],
        [true, "INVALID_REQUEST", "Invalid arguments: Could not be read"]
      ]
    )
  })

  it("answers with what its host's layer failed with", async () => {
    const facade = PromiseSubagents.makeSubagents(
      Layer.provideMerge(Layer.effectDiscard(Effect.fail("no disk")), Subagents.layer)
    )
    const answer = await facade.tool({ provider: "p" }).execute(input("go"), { parent: root })
    await facade.dispose()
    assert.deepStrictEqual(answer, {
      content: [Content.text("no disk")],
      text: "no disk",
      isError: true,
      stopReason: "error"
    })
  })

  it("answers with what its run and all below it have used, which the model is not told", async () => {
    const usage = { input: 10, output: 1, total: 11 }
    const treeUsage = { input: 30, output: 3, total: 33 }
    const failure = { kind: "limit", retryable: false, name: "maxTokens", limit: 30, used: 33 }
    const result = { output: [], stopReason: "error", failure, usage, treeUsage }
    const start = () => Promise.resolve({ runId: "run_1", result: Promise.resolve(result), dispose: async () => {} })
    // of a run, a tool looks at nothing else
    const tool = PlainTool.fromStart({ provider: "p" }, start as never)
    const text = "The subagent was stopped at its limit (error): maxTokens 30, 33 used.\n\nlimit"
    assert.deepStrictEqual(await tool.execute(input("go"), { parent: root }), {
      content: [Content.text(text)],
      text,
      isError: true,
      stopReason: "error",
      runId: "run_1",
      failure,
      usage,
      treeUsage
    } as unknown as PlainTool.PlainToolAnswer)
  })

  it("can't be had for options that are none", async () => {
    const options = { provider: "p", tolFilter: {} } as SubagentTool.Options
    const error = await Effect.runPromise(
      Effect.flip(Effect.scoped(Effect.provide(PlainTool.make(options), Subagents.layer)))
    )
    assert.strictEqual(error.code, "INVALID_REQUEST")
    const facade = PromiseSubagents.fromProviders([])
    assert.throws(() => facade.tool(options), /tolFilter/)
    await facade.dispose()
  })

  it("answers with the value that its configuration asks for: as JSON for the model, decoded for the host (13)", async () => {
    const scripted = Effect.runSync(
      ScriptedProvider.make([ScriptedProvider.submit({ when: "2026-11-30T00:00:00.000Z" })], { name: "p" })
    )
    const facade = PromiseSubagents.fromProviders([scripted.provider])
    const tool = facade.tool({ provider: "p", outputSchema: Schema.Struct({ when: Schema.Date }) })
    const answer = await tool.execute(input("when?"), { parent: root })
    await facade.dispose()
    assert.strictEqual(answer.text, '{"when":"2026-11-30T00:00:00.000Z"}')
    assert.deepStrictEqual(answer.structured, { when: new Date("2026-11-30T00:00:00.000Z") })
    assert.isFalse(answer.isError)
  })

  const toolOf = async (options: SubagentTool.Options) => {
    const facade = PromiseSubagents.fromProviders([])
    const tool = facade.tool(options)
    await facade.dispose()
    return tool
  }

  it("shows the model what the tool of `effect/ai` shows, the same for every provider [seed 17]", async () => {
    const spawn = await toolOf({ provider: "spawn" })
    const fork = await toolOf({ provider: "fork", toolName: "ask_me", inheritsContext: true, maxDepth: 1 })
    const byEffect = Tool.getJsonSchema(SubagentTool.make({ provider: "acp" }))
    assert.strictEqual(JSON.stringify(spawn.inputSchema), JSON.stringify(fork.inputSchema))
    assert.strictEqual(JSON.stringify(spawn.inputSchema), JSON.stringify(byEffect))
    // a host may change its own
    spawn.inputSchema.required.pop()
    assert.lengthOf(fork.inputSchema.required, 2)
    assert.strictEqual(spawn.name, "subagent")
    assert.strictEqual(fork.name, "ask_me")
    assert.strictEqual(spawn.description, SubagentTool.make({ provider: "spawn" }).description)
    assert.notStrictEqual(spawn.description, fork.description)
  })

  it("has a name that no other has, nor a tool of the host's [seed 23]", async () => {
    const [one, other] = [
      await toolOf({ provider: "a", toolName: "a" }),
      await toolOf({ provider: "b", toolName: "b" })
    ]
    assert.deepStrictEqual(PlainTool.byName([one, other]), { a: one, b: other })
    const codeOf = (call: () => unknown) => {
      try {
        return call()
      } catch (error) {
        return (error as SubagentError.SubagentError).reason
      }
    }
    const duplicate = new SubagentError.DuplicateTool({ name: "a" })
    assert.deepStrictEqual(
      codeOf(() => PlainTool.byName([one, other, one])),
      duplicate
    )
    assert.deepStrictEqual(
      codeOf(() => PlainTool.byName([one], { with: { a: "the host's" } })),
      duplicate
    )
  })

  it("answers that the seam has ended, once it has", async () => {
    const tool = await toolOf({ provider: "p" })
    const answer = await tool.execute(input("x"), { parent: root })
    assert.strictEqual(answer.error?.code, "REGISTRY_CLOSED")
  })

  it("answers `aborted` if the facade ends under it, with whose will that was (9)", async () => {
    const { provider, world } = make("p")
    const facade = PromiseSubagents.fromProviders([provider])
    const calling = facade.tool({ provider: "p" }).execute(input("stream"), { parent: root })
    while (world.turns === 0) await new Promise((resolve) => setImmediate(resolve))
    await facade.dispose()
    const answer = await calling
    assert.strictEqual(answer.stopReason, "aborted")
    assert.include(answer.text, "its run was released")
    assert.include(answer.text, "so far")
  })

  it("of a host with Effect ends a start that is under way with its scope", async () => {
    const isOpening = gate<void>()
    const provider = SubagentProvider.fromPromise({
      name: "p",
      open: (_, signal) => {
        isOpening.resolve()
        return untilAborted(signal)
      },
      run: () => "x"
    })
    const answer = await Effect.gen(function* () {
      const scope = yield* Scope.make()
      const tool = yield* Scope.provide(PlainTool.make({ provider: "p" }), scope)
      const calling = tool.execute(input("x"), { parent: root })
      yield* Effect.promise(() => isOpening.promise)
      yield* Scope.close(scope, Exit.void)
      return yield* Effect.promise(() => calling)
    }).pipe(Effect.provide(Subagents.add(provider).pipe(Layer.provideMerge(Subagents.layer))), Effect.runPromise)
    assert.isTrue(answer.isError)
    assert.strictEqual(answer.error?.code, "REGISTRY_CLOSED")
  })

  it("delegates on behalf of a child, one deeper (11)", async () => {
    let depth: number | undefined
    const facade = PromiseSubagents.fromProviders([
      SubagentProvider.fromPromise({
        name: "outer",
        capabilities: { ...Capabilities.none, depthLimit: true },
        run: async ({ request, signal }) => {
          const agent = { id: request.lineage.id, session: { header: request.header } }
          return (await facade.tool({ provider: "inner" }).execute(input("x"), { parent: agent, signal })).text
        }
      }),
      SubagentProvider.fromPromise({
        name: "inner",
        run: ({ request }) => {
          depth = request.lineage.depth
          return "from below"
        }
      })
    ])
    const { text } = await facade.tool({ provider: "outer" }).execute(input("x"), { parent: root })
    assert.strictEqual(text, "from below")
    assert.strictEqual(depth, 2)
    await facade.dispose()
  })

  /** Agents that delegate to one another as deep as they may, then do as they are told. */
  const chain = (atBottom: (signal: AbortSignal) => Promise<string>, options: { readonly maxDepth?: number } = {}) => {
    const depths: Array<number | undefined> = []
    const runtime = AgentRuntime.fromPromise({
      tools: (agent: Agent.Agent) => ({
        delegate: (signal: AbortSignal) =>
          facade.tool({ provider: "spawn" }).execute(input("go on"), { parent: agent, signal })
      }),
      run: async ({ agent, signal, tools }) => {
        const depth = agent.session.header.delegationDepth
        depths.push(depth)
        if (depth === 3) return atBottom(signal)
        const { isError, text } = await tools.delegate!(signal)
        return isError ? `I could not go on: ${text}` : text
      }
    })
    const facade: PromiseSubagents.PromiseSubagents = PromiseSubagents.fromProviders(
      [SpawnProvider.fromRuntime(runtime)],
      { limits: options }
    )
    return { facade, depths }
  }

  it("passes an abort on through three levels, each of which settles as aborted (9) [A5]", async () => {
    const isDeep = gate<void>()
    let stopped = 0
    const { depths, facade } = chain(async (signal) => {
      isDeep.resolve()
      try {
        return await untilAborted(signal)
      } finally {
        stopped++
      }
    })
    const ends: Array<string | undefined> = []
    facade.on((event) => event.type === "subagent/end" && ends.push(event.cause?._tag))
    const controller = new AbortController()
    const calling = facade.tool({ provider: "spawn" }).execute(input("go"), { parent: root, signal: controller.signal })
    await isDeep.promise
    assert.lengthOf(await facade.live(), 3)
    controller.abort()
    assert.strictEqual((await calling).stopReason, "aborted")
    assert.deepStrictEqual(depths, [1, 2, 3])
    assert.strictEqual(stopped, 1)
    assert.deepStrictEqual(await facade.live(), [])
    await facade.dispose()
    for (let turns = 0; turns < 1000 && ends.length < 3; turns++) await new Promise((resolve) => setImmediate(resolve))
    assert.deepStrictEqual(ends, ["Parent", "Parent", "Signal"])
  })

  it("is under the same cap on depth as every other way in (11) [H2]", async () => {
    const { depths, facade } = chain(() => Promise.resolve("never"), { maxDepth: 2 })
    const { isError, text } = await facade.tool({ provider: "spawn" }).execute(input("go"), { parent: root })
    assert.isFalse(isError)
    assert.strictEqual(
      text,
      "I could not go on: The subagent could not be run: Delegation depth 3 exceeds the limit of 2"
    )
    assert.deepStrictEqual(depths, [1, 2])
    const { result } = await facade.start("spawn", { prompt: "go", parent: root })
    assert.strictEqual(Content.toText((await result).output), text)
    await facade.dispose()
  })
})

describe("a call that was not under way yet", () => {
  it.effect("is aborted when the run that makes it is, as one that was under way would be [C3]", () =>
    Effect.gen(function* () {
      const seen = yield* Deferred.make<Placed>()
      const calling = provider({
        name: "calling",
        turn: (placed) => Effect.andThen(Deferred.succeed(seen, placed), Effect.never)
      })
      const slow = provider({ name: "slow", start: () => Effect.never })
      yield* withSeam([calling, slow], (seam) =>
        Effect.gen(function* () {
          const tool = yield* Effect.provideService(PlainTool.make({ provider: "slow" }), Subagents.Subagents, seam)
          const run = yield* seam.start("calling", { prompt: "go", parent: root })
          const parent = agentOf(yield* Deferred.await(seen))
          const answer = tool.execute({ description: "a task", prompt: "go on" }, { parent })
          yield* Effect.yieldNow
          yield* run.cancel()
          const { error, isError, stopReason } = yield* Effect.promise(() => answer)
          assert.deepStrictEqual([isError, stopReason, error?.reason._tag], [true, "aborted", "ParentSettled"])
        })
      )
    })
  )
})
