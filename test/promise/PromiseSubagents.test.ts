import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Approvals, Content, SubagentError, type SubagentEvent, SubagentProvider, Subagents } from "effect-subagent"
import { PromiseSubagents } from "effect-subagent/promise"
import { ScriptedProvider } from "effect-subagent/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import { getEventListeners } from "node:events"
import { gate, make, untilAborted } from "../fixtures/promiseProvider.ts"

const unhandled: Array<unknown> = []
const note = (reason: unknown) => unhandled.push(reason)
beforeAll(() => void process.on("unhandledRejection", note))
afterAll(() => void process.off("unhandledRejection", note))

/** Unhandled rejections are told after the microtasks. */
const macrotask = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Waits for what listeners hear, which takes a few turns of the event loop. */
const until = async (holds: () => boolean) => {
  for (let turns = 0; turns < 1000 && !holds(); turns++) await macrotask()
  assert.isTrue(holds(), "it never held")
}

const rejected = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => assert.fail("it did not reject"),
    (thrown: unknown) => thrown
  )

const reasonOf = async (promise: Promise<unknown>): Promise<unknown> => {
  const error = await rejected(promise)
  assert.instanceOf(error, SubagentError.SubagentError)
  return error.reason
}

/** A facade that is disposed of whatever happens. */
const using = async <A>(
  facade: PromiseSubagents.PromiseSubagents,
  body: (facade: PromiseSubagents.PromiseSubagents) => Promise<A>
): Promise<A> => {
  try {
    return await body(facade)
  } finally {
    await facade.dispose()
  }
}

const withFixture = (
  body: (
    facade: PromiseSubagents.PromiseSubagents,
    world: { readonly sessions: number; readonly turns: number }
  ) => Promise<void>,
  options?: PromiseSubagents.Options
) => {
  const { provider, world } = make("p")
  return using(PromiseSubagents.fromProviders([provider], options), (facade) => body(facade, world))
}

const slow = (turn: Promise<string>) => SubagentProvider.fromPromise({ name: "slow", run: () => turn })

describe("the Promise facade", () => {
  it("runs a child and gives its result", () =>
    withFixture(async ({ root, run }, world) => {
      const result = await run("p", { prompt: "complete", parent: root({ cwd: "/here" }) })
      assert.deepStrictEqual(result, {
        output: [Content.text("the answer")],
        stopReason: "completed",
        usage: { total: 3 },
        treeUsage: { total: 3 }
      })
      assert.deepStrictEqual(world, { sessions: 0, turns: 0 })
    }))

  it("gives a run whose child's failure resolves (8)", () =>
    withFixture(async ({ root, start }) => {
      const run = await start("p", { prompt: "fail", parent: root() })
      const { failure, stopReason } = await run.result
      assert.strictEqual(stopReason, "error")
      assert.strictEqual(failure?.status, 429)
    }))

  it("rejects when a provider is at fault, and releases all the same (8) (10)", () =>
    using(
      PromiseSubagents.fromProviders([SubagentProvider.fromPromise({ name: "p", run: () => 7 as never })]),
      async ({ live, root, run }) => {
        const reason = await reasonOf(run("p", { prompt: "x", parent: root() }))
        assert.instanceOf(reason, SubagentError.ProviderFault)
        assert.deepStrictEqual(await live(), [])
      }
    ))

  it("keeps the class, the code and the fields of an error", () =>
    withFixture(async ({ root, run }) => {
      const error = await rejected(run("nowhere", { prompt: "x", parent: root() }))
      assert.instanceOf(error, SubagentError.SubagentError)
      assert.instanceOf(error, Error)
      assert.strictEqual(error.code, "NO_PROVIDER")
      assert.deepStrictEqual(error.reason, new SubagentError.ProviderNotFound({ name: "nowhere", available: ["p"] }))
      const filtered = run("p", { prompt: "x", parent: root(), toolFilter: { deny: ["a"] } })
      assert.instanceOf(await reasonOf(filtered), SubagentError.UnsupportedCapability)
    }))

  const bad: ReadonlyArray<unknown> = [
    undefined,
    null,
    "text",
    {},
    { prompt: "x", parent: {} },
    { prompt: "x", parent: { id: "a", session: { header: { id: "b" } } }, signal: "no signal" },
    { prompt: "x", parent: { id: "a", session: { header: { id: "b" } } }, sgnal: 1 },
    { prompt: "x", parent: { id: "a", session: { header: { id: "b" } } }, outputSchema: 1 },
    {
      get signal() {
        throw new Error("no")
      }
    }
  ]
  for (const [index, request] of bad.entries()) {
    it(`refuses a request that is none, whether or not the seam is built (3): ${index}`, () =>
      withFixture(async (facade) => {
        const start = () => facade.start("p", request as never)
        assert.instanceOf(await reasonOf(start()), SubagentError.InvalidRequest)
        await facade.list()
        assert.instanceOf(await reasonOf(start()), SubagentError.InvalidRequest)
        assert.deepStrictEqual(await facade.live(), [])
      }))
  }

  it("gives providers to look up, and takes more of them (1) (2)", () =>
    withFixture(async ({ get, list, register, root, run }) => {
      const provider = SubagentProvider.fromPromise({ name: "q", run: () => "from q" })
      const registration = await register(provider)
      assert.deepStrictEqual(await list(), ["p", "q"])
      assert.strictEqual(await get("q"), provider)
      assert.instanceOf(await reasonOf(register(provider)), SubagentError.DuplicateProvider)
      assert.strictEqual((await run("q", { prompt: "x", parent: root() })).stopReason, "completed")
      await registration.dispose()
      await registration[Symbol.asyncDispose]()
      assert.instanceOf(await reasonOf(get("q")), SubagentError.ProviderNotFound)
    }))

  it("registers providers in their order, with the options of the seam (1) (11)", () => {
    const named = ["c", "a", "b"].map((name) => SubagentProvider.fromPromise({ name, run: () => name }))
    return using(PromiseSubagents.fromProviders(named, { limits: { maxDepth: 0 } }), async ({ list, root, run }) => {
      assert.deepStrictEqual(await list(), ["c", "a", "b"])
      assert.instanceOf(await reasonOf(run("a", { prompt: "x", parent: root() })), SubagentError.DepthExceeded)
    })
  })

  it("shows the live runs, each to be cancelled", () =>
    withFixture(async ({ live, root, start }) => {
      const run = await start("p", { prompt: "hang", parent: root(), label: "a label" })
      const [only, ...others] = await live()
      assert.lengthOf(others, 0)
      assert.deepInclude(only, { id: run.id, runId: run.runId, provider: "p", label: "a label", state: "running" })
      await only!.cancel("enough")
      assert.deepStrictEqual((await run.result).cause, { _tag: "Caller", reason: "enough" })
      await run.dispose()
      assert.deepStrictEqual(await live(), [])
    }))

  it("cancels a run by its id, or by its agent's, and says whether there is one (9)", () =>
    withFixture(async ({ cancel, root, start }) => {
      for (const idOf of [({ runId }: { readonly runId: string }) => runId, ({ id }: { readonly id: string }) => id]) {
        const run = await start("p", { prompt: "hang", parent: root() })
        const id = idOf(run)
        assert.isTrue(await cancel(id, "enough"))
        assert.deepStrictEqual((await run.result).cause, { _tag: "Caller", reason: "enough" })
        assert.isTrue(await cancel(id))
        await run.dispose()
        assert.isFalse(await cancel(id))
      }
      assert.isFalse(await cancel("nobody"))
    }))

  it("makes budgets, says what has been used of them, and refuses figures that are none (20)", () =>
    withFixture(async ({ budget, root, run, spent }) => {
      const acme = budget({ name: "acme", maxRuns: 1, maxTokens: 100 })
      assert.deepStrictEqual(spent(acme), { tokens: 0, reserved: 0, runs: 0 })
      await run("p", { prompt: "complete", parent: root() }, { budget: acme })
      assert.deepStrictEqual(spent(acme), { tokens: 3, reserved: 0, runs: 1 })
      const second = run("p", { prompt: "complete", parent: root() }, { budget: acme })
      assert.deepInclude(await reasonOf(second), { _tag: "LimitReached", name: "maxRuns", limit: 1, used: 1 })
      assert.throws(() => budget({ name: " ", maxTokens: -1 }), SubagentError.SubagentError)
    }))

  it("rejects everything with what its layer failed with", async () => {
    const provider = SubagentProvider.fromPromise({ name: "p", run: () => "x" })
    const facade = PromiseSubagents.fromProviders([provider, provider])
    const parent = facade.root()
    const duplicate = new SubagentError.DuplicateProvider({ name: "p" })
    assert.deepStrictEqual(await reasonOf(facade.start("p", { prompt: "x", parent })), duplicate)
    assert.deepStrictEqual(await reasonOf(facade.run("p", { prompt: "x", parent })), duplicate)
    assert.deepStrictEqual(await reasonOf(facade.list()), duplicate)
    assert.deepStrictEqual(await reasonOf(facade.events[Symbol.asyncIterator]().next()), duplicate)
    const answer = await facade.tool({ provider: "p" }).execute({ description: "a", prompt: "b" }, { parent })
    assert.deepStrictEqual(answer.error?.reason, duplicate)
    await facade.dispose()
  })
})

describe("an abort", () => {
  const reason = new Error("changed my mind")

  it("that came before the start rejects with the caller's own reason, and starts nothing (4)", () =>
    withFixture(async (facade, world) => {
      const request = { prompt: "complete", parent: facade.root(), signal: AbortSignal.abort(reason) }
      // the seam is not built yet, then it is
      assert.strictEqual(await rejected(facade.start("p", request)), reason)
      await facade.list()
      assert.strictEqual(await rejected(facade.start("p", request)), reason)
      assert.strictEqual(await rejected(facade.run("p", request)), reason)
      assert.deepStrictEqual(await facade.live(), [])
      assert.deepStrictEqual(world, { sessions: 0, turns: 0 })
    }))

  it("whose reason is not an error rejects with that", () =>
    withFixture(async ({ list, root, start }) => {
      await list()
      const signal = AbortSignal.abort("just text")
      assert.strictEqual(await rejected(start("p", { prompt: "complete", parent: root(), signal })), "just text")
    }))

  it("of a signal without reasons rejects with the seam's own error", () =>
    withFixture(async ({ root, start }) => {
      const signal = { aborted: true, addEventListener: () => {}, removeEventListener: () => {} }
      const starting = start("p", { prompt: "complete", parent: root(), signal })
      assert.deepStrictEqual(await reasonOf(starting), new SubagentError.AbortedBeforeStart({ provider: "p" }))
    }))

  it("while the provider starts rejects with the reason and leaves nothing (4)", async () => {
    const opening = gate<number>()
    const closed: Array<number> = []
    const provider = SubagentProvider.fromPromise({
      name: "p",
      open: (_, signal) => {
        signal.addEventListener("abort", () => opening.resolve(1))
        return opening.promise
      },
      run: () => "x",
      close: (session) => closed.push(session)
    })
    await using(PromiseSubagents.fromProviders([provider]), async ({ list, live, root, start }) => {
      await list()
      const controller = new AbortController()
      const starting = start("p", { prompt: "x", parent: root(), signal: controller.signal })
      controller.abort(reason)
      assert.strictEqual(await rejected(starting), reason)
      assert.deepStrictEqual(closed, [1])
      assert.deepStrictEqual(await live(), [])
      assert.lengthOf(getEventListeners(controller.signal, "abort"), 0)
    })
  })

  it("while the layer is built does not wait for the layer", async () => {
    const { promise, resolve } = gate<void>()
    const layer = Layer.effectDiscard(Effect.promise(() => promise)).pipe(Layer.provideMerge(Subagents.layer))
    const facade = PromiseSubagents.makeSubagents(layer)
    const controller = new AbortController()
    const starting = facade.start("p", { prompt: "x", parent: facade.root(), signal: controller.signal })
    controller.abort(reason)
    assert.strictEqual(await rejected(starting), reason)
    assert.lengthOf(getEventListeners(controller.signal, "abort"), 0)
    resolve()
    await facade.list()
    await facade.dispose()
  })

  it("after acceptance resolves `aborted`, with what there is (9)", () =>
    withFixture(async ({ root, run, start }, world) => {
      const controller = new AbortController()
      const started = await start("p", { prompt: "stream", parent: root(), signal: controller.signal })
      for await (const _ of started.updates) break
      const running = run("p", { prompt: "hang", parent: root(), signal: controller.signal })
      await macrotask()
      controller.abort(reason)
      const result = await started.result
      assert.strictEqual(result.stopReason, "aborted")
      assert.deepStrictEqual(result.cause, { _tag: "Signal" })
      assert.strictEqual(Content.toText(result.output), "so far")
      assert.deepStrictEqual((await running).cause, { _tag: "Signal" })
      await started.dispose()
      assert.deepStrictEqual(world, { sessions: 0, turns: 0 })
    }))

  it("of one signal shared by 10,000 runs reaches them all, through one listener (9)", () => {
    const provider = SubagentProvider.fromPromise({ name: "p", run: ({ signal }) => untilAborted(signal) })
    return using(PromiseSubagents.fromProviders([provider]), async ({ live, root, start }) => {
      const controller = new AbortController()
      const parent = root()
      const request = { prompt: "x", parent, signal: controller.signal }
      const runs = await Promise.all(Array.from({ length: 10_000 }, () => start("p", request)))
      assert.lengthOf(getEventListeners(controller.signal, "abort"), 1)
      assert.lengthOf(await live(), 10_000)
      controller.abort()
      const results = await Promise.all(runs.map((run) => run.result))
      assert.isTrue(results.every(({ cause }) => cause?._tag === "Signal"))
      assert.lengthOf(getEventListeners(controller.signal, "abort"), 0)
      await Promise.all(runs.map((run) => run.dispose()))
      assert.lengthOf(await live(), 0)
    })
  })
})

describe("a run of the facade", () => {
  it("is released when it is disposed of, however often and in whatever way (10)", () =>
    withFixture(async ({ live, root, start }, world) => {
      const run = await start("p", { prompt: "hang", parent: root() })
      assert.strictEqual(run.dispose(), run.dispose())
      await run[Symbol.asyncDispose]()
      assert.deepStrictEqual((await run.result).cause, { _tag: "Release" })
      assert.deepStrictEqual(await live(), [])
      assert.deepStrictEqual(world, { sessions: 0, turns: 0 })
    }))

  it("has its header and its names", () =>
    withFixture(async ({ root, start }) => {
      const parent = root({ cwd: "/here" })
      const { header, id, provider, runId } = await start("p", { prompt: "complete", parent })
      assert.strictEqual(provider, "p")
      assert.strictEqual(header.cwd, "/here")
      assert.strictEqual(header.parentSession, parent.session.header.id)
      assert.isTrue(id.startsWith("agent_") && runId.startsWith("run_"))
    }))

  it("replays its updates for each iteration, and ends them with itself (7)", () =>
    withFixture(async ({ root, start }) => {
      const { result, updates } = await start("p", { prompt: "callTool", parent: root() })
      await result
      const tags = async () => {
        const all: Array<string> = []
        for await (const { _tag } of updates) all.push(_tag)
        return all
      }
      const expected = ["Content", "ToolCall", "ToolCall", "Content"]
      assert.deepStrictEqual([await tags(), await tags()], [expected, expected])
    }))

  it("lets go of a subscriber that breaks off, returns or throws, and goes on", () =>
    withFixture(async ({ root, start }) => {
      const run = await start("p", { prompt: "stream", parent: root() })
      for await (const _ of run.updates) break
      await rejected(
        (async () => {
          for await (const _ of run.updates) throw new Error("enough")
        })()
      )
      const iterator = run.updates[Symbol.asyncIterator]()
      await iterator.next()
      // one that waits for an update which does not come
      const waiting = iterator.next()
      assert.deepStrictEqual(await iterator.return!(), { done: true, value: undefined })
      assert.isTrue((await waiting).done)
      assert.isTrue((await iterator.next()).done)
      await run.cancel()
      assert.strictEqual((await run.result).stopReason, "aborted")
    }))

  it("takes an Effect Schema, and a JSON Schema (13)", () => {
    const { provider } = Effect.runSync(ScriptedProvider.make([ScriptedProvider.submit({ files: 3 })]))
    return using(PromiseSubagents.fromProviders([provider]), async ({ root, run }) => {
      const ask = { prompt: "count", parent: root() }
      const typed = await run("scripted", { ...ask, outputSchema: Schema.Struct({ files: Schema.Number }) })
      assert.strictEqual(typed.structured?.files, 3)
      const properties = { files: { type: "number" } }
      const plain = await run("scripted", { ...ask, outputSchema: { type: "object", properties } })
      assert.deepStrictEqual(plain.structured, { files: 3 })
      const wrong = { files: { type: "string" } }
      const other = await run("scripted", { ...ask, outputSchema: { type: "object", properties: wrong } })
      assert.strictEqual(other.failure?.kind, "schema-invalid")
      const malformed = await reasonOf(run("scripted", { ...ask, outputSchema: { type: "objekt" } }))
      assert.instanceOf(malformed, SubagentError.InvalidRequest)
      // what is missing comes first, as in any start
      const nowhere = await reasonOf(run("nowhere", { ...ask, outputSchema: { type: "objekt" } }))
      assert.instanceOf(nowhere, SubagentError.ProviderNotFound)
    })
  })
})

describe("an approver of the facade", () => {
  const outcome = async (facade: PromiseSubagents.PromiseSubagents, options?: PromiseSubagents.Options) => {
    const run = await facade.start("p", { prompt: "ask", parent: facade.root() }, options)
    await run.result
    const outcomes: Array<unknown> = []
    for await (const update of run.updates) if (update._tag === "Permission") outcomes.push(update.outcome)
    return outcomes.at(-1)
  }

  it("may be async, and is told on whose behalf it is asked (19)", () => {
    const asked: Array<Approvals.ApprovalRequest> = []
    const approve = async (request: Approvals.ApprovalRequest) => {
      asked.push(request)
      await macrotask()
      return "approved" as const
    }
    return withFixture(
      async (facade) => {
        assert.strictEqual(await outcome(facade), "approved")
        assert.strictEqual(asked[0]!.toolName, "rm")
        assert.strictEqual(asked[0]!.lineage?.depth, 1)
      },
      { approve }
    )
  })

  it("of one start stands in for that of the whole, and nobody for none (19)", () =>
    withFixture(async (facade) => {
      assert.strictEqual(await outcome(facade), "no-approver")
      assert.strictEqual(await outcome(facade, { approve: () => "denied" }), "denied")
      assert.strictEqual(await outcome(facade, { approve: () => "approved" }), "approved")
    }))

  it("stays with a start that says something else only (19)", () =>
    withFixture(
      async (facade) => {
        assert.strictEqual(await outcome(facade, { approvalTimeout: "1 minute" }), "approved")
      },
      { approve: () => "approved" }
    ))

  it("is refused if it is misspelt, none, or has no time that makes sense", async () => {
    const wrong: ReadonlyArray<readonly [object, string]> = [
      [{ aprove: () => "approved" }, "options.aprove"],
      [{ approve: "yes" }, "options.approve"],
      [{ approvalTimeout: "bogus" }, "options.approvalTimeout"]
    ]
    const facade = PromiseSubagents.fromProviders([make("p").provider])
    const parent = facade.root()
    for (const [options, path] of wrong) {
      assert.throws(() => PromiseSubagents.makeSubagents(Subagents.layer, options), path)
      const error = await facade.run("p", { prompt: "complete", parent }, options).catch((thrown) => thrown)
      assert.instanceOf(error, SubagentError.SubagentError)
      assert.include((error as Error).message, path)
    }
    await facade.dispose()
  })

  it("that throws, rejects or says something else leaves the tool unexecuted (19)", () => {
    const { provider } = make("p")
    const quiet = Layer.succeed(References.MinimumLogLevel, "None")
    const layer = Layer.mergeAll(Subagents.add(provider), quiet).pipe(Layer.provideMerge(Subagents.layer))
    return using(PromiseSubagents.makeSubagents(layer), async (facade) => {
      const rejecting = { approve: () => Promise.reject(new Error("no")) }
      assert.strictEqual(await outcome(facade, rejecting), "approver-failed")
      const throwing = {
        approve: () => {
          throw new Error("no")
        }
      }
      assert.strictEqual(await outcome(facade, throwing), "approver-failed")
      assert.strictEqual(await outcome(facade, { approve: () => "yes" as never }), "approver-failed")
      assert.strictEqual(
        await outcome(facade, { approve: () => new Promise(() => {}), approvalTimeout: 1 }),
        "timed-out"
      )
    })
  })

  it("is told when nobody waits for its answer any more (19)", () =>
    withFixture(async ({ root, start }) => {
      const asked = gate<AbortSignal>()
      const approve = (_: Approvals.ApprovalRequest, signal: AbortSignal) => {
        asked.resolve(signal)
        return new Promise<never>(() => {})
      }
      const run = await start("p", { prompt: "ask", parent: root() }, { approve })
      const signal = await asked.promise
      assert.isFalse(signal.aborted)
      await run.dispose()
      assert.isTrue(signal.aborted)
    }))

  it("of a host's layer is asked if there is no other (19)", () => {
    const { provider } = make("p")
    const approver = Layer.succeed(Approvals.Approvals, { decide: () => Effect.succeed("approved" as const) })
    const layer = Layer.mergeAll(Subagents.add(provider), approver).pipe(Layer.provideMerge(Subagents.layer))
    return using(PromiseSubagents.makeSubagents(layer), async (facade) => {
      assert.strictEqual(await outcome(facade), "approved")
    })
  })
})

describe("the events of the facade", () => {
  it("reach a listener that was there before, until it is stopped (5)", () =>
    withFixture(async ({ on, root, run }) => {
      const heard: Array<string> = []
      const stop = on(({ type }) => heard.push(type))
      await run("p", { prompt: "complete", parent: root() })
      await until(() => heard.includes("subagent/end"))
      assert.deepStrictEqual(heard.slice(-2), ["subagent/start", "subagent/end"])
      stop()
      stop()
      const { length } = heard
      const others: Array<string> = []
      on(({ type }) => others.push(type))
      await run("p", { prompt: "complete", parent: root() })
      await until(() => others.includes("subagent/end"))
      assert.lengthOf(heard, length)
    }))

  it("are not kept from anybody by a listener that throws, rejects or hangs (6)", () => {
    const { provider } = make("p")
    const quiet = Layer.succeed(References.MinimumLogLevel, "None")
    const layer = Layer.mergeAll(Subagents.add(provider), quiet).pipe(Layer.provideMerge(Subagents.layer))
    return using(PromiseSubagents.makeSubagents(layer), async ({ list, on, root, run }) => {
      await list()
      on(() => {
        throw new Error("no")
      })
      on(() => Promise.reject(new Error("later")))
      on(() => new Promise(() => {}))
      const heard: Array<string> = []
      on((event) => heard.push(event.type))
      assert.strictEqual((await run("p", { prompt: "complete", parent: root() })).stopReason, "completed")
      await until(() => heard.length === 2)
      assert.deepStrictEqual(heard, ["subagent/start", "subagent/end"])
      assert.deepStrictEqual(unhandled, [])
    })
  })

  // accepted without waiting for anything
  const prompt = SubagentProvider.fromPromise({ name: "p", run: () => "x" })
  for (const isBuilt of [false, true]) {
    it(`reach a listener before a start that follows at once, with a seam ${isBuilt ? "" : "not yet "}built (5)`, () =>
      using(PromiseSubagents.fromProviders([prompt]), async ({ list, on, root, run }) => {
        if (isBuilt) await list()
        const heard: Array<string> = []
        on(({ type }) => heard.push(type))
        await run("p", { prompt: "x", parent: root() })
        await until(() => heard.includes("subagent/end"))
        assert.include(heard, "subagent/start")
      }))
  }

  it("reach nobody who stopped listening before the seam was built", () =>
    withFixture(async ({ on, root, run }) => {
      const heard: Array<string> = []
      on(({ type }) => heard.push(`stopped ${type}`))()
      on(({ type }) => heard.push(type))
      await run("p", { prompt: "complete", parent: root() })
      await until(() => heard.includes("subagent/end"))
      assert.deepStrictEqual(
        heard.filter((line) => line.startsWith("stopped")),
        []
      )
    }))

  it("end with the facade, and tell of that end (5)", async () => {
    const { provider } = make("p")
    const facade = PromiseSubagents.fromProviders([provider])
    await facade.list()
    const heard: Array<SubagentEvent.SubagentEvent> = []
    const hearing = (async () => {
      for await (const event of facade.events) heard.push(event)
    })()
    const called: Array<string> = []
    facade.on(({ type }) => called.push(type))
    await facade.start("p", { prompt: "hang", parent: facade.root() })
    await facade.dispose()
    await hearing
    await until(() => called.length === 3)
    const types = ["subagent/start", "subagent/end", "subagent/provider-removed"]
    assert.sameMembers(called, types)
    assert.sameMembers(
      heard.map(({ type }) => type),
      types
    )
    assert.isTrue((await facade.events[Symbol.asyncIterator]().next()).done)
  })
})

describe("the end of the facade", () => {
  it("releases every run; results that are held stay readable, and new runs are refused (9) (10)", async () => {
    const { provider, world } = make("p")
    const facade = PromiseSubagents.fromProviders([provider])
    const parent = facade.root()
    const done = await facade.start("p", { prompt: "complete", parent })
    await done.result
    const hanging = await facade.start("p", { prompt: "hang", parent })
    const running = facade.run("p", { prompt: "hang", parent })
    await macrotask()
    assert.deepStrictEqual(world, { sessions: 3, turns: 2 })
    assert.strictEqual(facade.dispose(), facade.dispose())
    await facade[Symbol.asyncDispose]()
    assert.deepStrictEqual(world, { sessions: 0, turns: 0 })
    assert.strictEqual((await done.result).stopReason, "completed")
    assert.deepStrictEqual((await hanging.result).cause, { _tag: "Release" })
    assert.deepStrictEqual((await running).cause, { _tag: "Release" })
    await hanging.cancel("too late")
    await hanging.dispose()
    for (const refused of [facade.start("p", { prompt: "x", parent }), facade.run("p", { prompt: "x", parent })]) {
      const error = await rejected(refused)
      assert.instanceOf(error, SubagentError.SubagentError)
      assert.strictEqual(error.code, "REGISTRY_CLOSED")
    }
    assert.deepStrictEqual(await facade.live(), [])
  })

  it("refuses a start that is under way, and leaves nothing of it (4)", async () => {
    const isOpening = gate<void>()
    const provider = SubagentProvider.fromPromise({
      name: "p",
      open: (_, signal) => {
        isOpening.resolve()
        return untilAborted(signal)
      },
      run: () => "x"
    })
    const facade = PromiseSubagents.fromProviders([provider])
    const starting = facade.start("p", { prompt: "x", parent: facade.root() })
    await isOpening.promise
    await facade.dispose()
    assert.instanceOf(await reasonOf(starting), SubagentError.RegistryClosed)
  })

  it("before it was built refuses what waits for that", async () => {
    const layer = Layer.effectDiscard(Effect.never).pipe(Layer.provideMerge(Subagents.layer))
    const facade = PromiseSubagents.makeSubagents(layer)
    const waiting = [facade.start("p", { prompt: "x", parent: facade.root() }), facade.list()]
    await facade.dispose()
    for (const each of waiting) assert.instanceOf(await reasonOf(each), SubagentError.RegistryClosed)
  })
})

describe("what nobody awaits", () => {
  it("is never an unhandled rejection", async () => {
    const fault = SubagentProvider.fromPromise({ name: "fault", run: () => 7 as never })
    const broken = PromiseSubagents.fromProviders([fault, fault])
    const { promise, resolve } = gate()
    const quiet = Layer.succeed(References.MinimumLogLevel, "None")
    const layer = Layer.mergeAll(Subagents.add(fault), Subagents.add(slow(promise)), quiet)
    const facade = PromiseSubagents.makeSubagents(layer.pipe(Layer.provideMerge(Subagents.layer)))
    const parent = facade.root()
    void facade.start("nowhere", { prompt: "x", parent })
    void facade.run("nowhere", { prompt: "x", parent })
    void facade.run("fault", { prompt: "x", parent })
    void facade.start("fault", { prompt: "x", parent })
    void facade.start("slow", { prompt: "x", parent, signal: AbortSignal.abort(new Error("no")) })
    void facade.get("nowhere")
    void facade.register({} as never)
    void facade
      .tool({ provider: "nowhere" })
      .executeOrThrow({}, {})
      .catch(() => {})
    const run = await facade.start("fault", { prompt: "x", parent })
    void run.cancel()
    const held = await facade.start("slow", { prompt: "x", parent })
    for (const each of [broken, facade]) {
      void each.list()
      void each.live()
      void each.start("slow", { prompt: "x", parent })
      each.on(() => Promise.reject(new Error("no")))
      void each.events[Symbol.asyncIterator]()
        .next()
        .catch(() => {})
    }
    await macrotask()
    void held.dispose()
    void facade.dispose()
    void facade.start("slow", { prompt: "x", parent })
    resolve("late")
    await facade.dispose()
    await broken.dispose()
    await macrotask()
    await macrotask()
    assert.deepStrictEqual(unhandled, [])
  })
})
