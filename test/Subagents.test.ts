import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { SubagentError, Subagents } from "effect-subagent"
import {
  agentOf,
  all,
  completed,
  type Event,
  inSeam,
  lines,
  logged,
  makeSignal,
  nothing,
  type Placed,
  provider,
  reasonOf,
  root,
  say,
  tagOf,
  withSeam
} from "./utils/seam.ts"

const request = { prompt: "go", parent: root }
const Service = Subagents.Subagents

/** Lets fibers that have something to do, do it. */
const settle = Effect.repeat(Effect.yieldNow, { times: 20 })

describe("registering (1, 2)", () => {
  it.effect("lists a provider, finds it as the very same value, and runs can be started on it [seed 1]", () =>
    Effect.gen(function* () {
      const mine = provider({ name: "mine" })
      yield* withSeam([mine], (seam) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* seam.list, ["mine"])
          assert.strictEqual(yield* seam.get("mine"), mine)
          assert.strictEqual((yield* seam.run("mine", request)).stopReason, "completed")
        })
      )
    })
  )

  it.effect("keeps several side by side, in the order of registration [seed 2]", () =>
    withSeam(
      ["c", "a", "b"].map((name) => provider({ name, turn: say(`by ${name}`) })),
      (seam) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* seam.list, ["c", "a", "b"])
          for (const name of ["a", "b", "c"]) {
            const { output } = yield* seam.run(name, request)
            assert.deepStrictEqual(output, [{ type: "text", text: `by ${name}` }])
          }
        })
    )
  )

  it.effect("names what there is if there is no such name [seed 3]", () =>
    withSeam([provider({ name: "a" }), provider({ name: "b" })], (seam) =>
      Effect.gen(function* () {
        for (const attempt of [seam.get("x"), Effect.scoped(seam.start("x", request)), seam.run("x", request)]) {
          assert.deepStrictEqual(
            { ...(reasonOf(yield* Effect.exit(attempt as Effect.Effect<unknown, unknown>)) as object) },
            {
              _tag: "ProviderNotFound",
              name: "x",
              available: ["a", "b"]
            }
          )
        }
        for (const name of [undefined, null, {}, Symbol("s"), "toString"]) {
          assert.strictEqual(tagOf(yield* Effect.exit(seam.get(name as string))), "ProviderNotFound")
        }
      })
    )
  )

  it.effect("refuses a second one of a name, and the first goes on working [seed 4]", () =>
    Effect.gen(function* () {
      const first = provider({ turn: say("first") })
      const { events } = yield* inSeam([first], (seam) =>
        Effect.gen(function* () {
          const exit = yield* Effect.exit(Effect.scoped(seam.register(provider({ turn: say("second") }))))
          assert.deepStrictEqual({ ...(reasonOf(exit) as object) }, { _tag: "DuplicateProvider", name: "p" })
          assert.strictEqual(yield* seam.get("p"), first)
          assert.deepStrictEqual((yield* seam.run("p", request)).output, [{ type: "text", text: "first" }])
        })
      )
      assert.strictEqual(events.filter(({ type }) => type === "subagent/provider-removed").length, 1)
    })
  )

  it.effect("ends with its scope: the name is free again, and accepted runs live on [seeds 5, 6]", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const waiting = provider({ turn: (placed) => Effect.andThen(Deferred.await(gate), say("first")(placed)) })
      const { events } = yield* inSeam([], (seam) =>
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          yield* Scope.provide(seam.register(waiting), scope)
          const run = yield* seam.start("p", request)
          yield* Scope.close(scope, Exit.void)
          assert.deepStrictEqual(yield* seam.list, [])
          assert.strictEqual(tagOf(yield* Effect.exit(seam.run("p", request))), "ProviderNotFound")
          yield* seam.register(provider({ turn: say("second") }))
          assert.deepStrictEqual((yield* seam.run("p", request)).output, [{ type: "text", text: "second" }])
          yield* Deferred.succeed(gate, undefined)
          assert.deepStrictEqual((yield* run.result).output, [{ type: "text", text: "first" }])
        })
      )
      assert.deepStrictEqual(events.map(({ type }) => type.replace("subagent/", "")).slice(0, 7), [
        "provider-added",
        "start",
        "provider-removed",
        "provider-added",
        "start",
        "end",
        "end"
      ])
    })
  )

  it.effect("refuses what is no provider, whole", () =>
    withSeam([], (seam) =>
      Effect.gen(function* () {
        for (const wrong of [undefined, {}, { ...provider(), name: "" }, { ...provider(), capabilities: {} }]) {
          assert.strictEqual(tagOf(yield* Effect.exit(seam.register(wrong as never))), "InvalidProvider")
        }
        assert.deepStrictEqual(yield* seam.list, [])
      })
    )
  )

  it.effect("is refused by a registry that has been released", () =>
    Effect.gen(function* () {
      const seam = yield* withSeam([], Effect.succeed)
      assert.strictEqual(tagOf(yield* Effect.exit(seam.register(provider()))), "RegistryClosed")
      assert.strictEqual(tagOf(yield* Effect.exit(seam.run("p", request))), "RegistryClosed")
      assert.deepStrictEqual(yield* Stream.runCollect(seam.events), [])
      assert.deepStrictEqual([yield* seam.list, yield* seam.live], [[], []])
    })
  )

  it.effect("fixes the name and the capabilities: what the provider says later does not count", () =>
    Effect.gen(function* () {
      const changing = { ...provider({ capabilities: nothing }), name: "first" }
      const { events } = yield* inSeam([], (seam) =>
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          yield* Scope.provide(seam.register(changing), scope)
          changing.name = "second"
          changing.capabilities = all
          assert.deepStrictEqual(yield* seam.list, ["first"])
          const run = yield* seam.start("first", request)
          assert.strictEqual(run.provider, "first")
          const exit = yield* Effect.exit(seam.run("first", { ...request, maxDepth: 1 }))
          assert.deepInclude(reasonOf(exit) as object, { _tag: "UnsupportedCapability", provider: "first" })
          yield* Scope.close(scope, Exit.void)
          assert.deepStrictEqual(yield* seam.list, [])
        })
      )
      const names = new Set(events.map((event) => event.provider))
      assert.deepStrictEqual(Array.from(names), ["first"])
    })
  )
})

describe("the order of a start's checks (3)", () => {
  it.effect(
    "is registry, name, request, capabilities, place, signal: each before the next, and none asks the provider",
    () =>
      Effect.gen(function* () {
        let asked = 0
        const careful = (capabilities = all) =>
          provider({
            name: capabilities === all ? "able" : "unable",
            capabilities,
            start: () => {
              asked++
              return Effect.die("asked")
            }
          })
        const bad = {
          prompt: "go",
          parent: { id: "deep", session: { header: { id: "deep-session", delegationDepth: 7 } } },
          signal: AbortSignal.abort(),
          outputSchema: Schema.String
        }
        const invalid = { ...bad, prompt: "" }
        const shallow = { ...bad, parent: root }
        const { events, value: seam } = yield* inSeam([careful(), careful(nothing)], (seam) =>
          Effect.gen(function* () {
            const tag = (name: string, each: object) =>
              Effect.map(Effect.exit(seam.run(name, each as typeof request)), tagOf)
            assert.strictEqual(yield* tag("nobody", invalid), "ProviderNotFound")
            assert.strictEqual(yield* tag("unable", invalid), "InvalidRequest")
            assert.strictEqual(yield* tag("unable", bad), "UnsupportedCapability")
            assert.strictEqual(yield* tag("able", bad), "DepthExceeded")
            assert.strictEqual(yield* tag("able", shallow), "AbortedBeforeStart")
            return seam
          })
        )
        assert.strictEqual(tagOf(yield* Effect.exit(seam.run("nobody", invalid))), "RegistryClosed")
        assert.strictEqual(asked, 0)
        assert.deepStrictEqual(lines(events), [])
      })
  )

  it.effect("has the path of every fault in an invalid request", () =>
    withSeam([provider()], (seam) =>
      Effect.gen(function* () {
        const wrong = { ...request, maxDepth: -1, toolFilter: { alow: [] } }
        const reason = reasonOf(yield* Effect.exit(seam.run("p", wrong as never))) as SubagentError.InvalidRequest
        assert.instanceOf(reason, SubagentError.InvalidRequest)
        assert.deepStrictEqual(reason.issues.map(({ path }) => path.join(".")).toSorted(), [
          "maxDepth",
          "toolFilter.alow"
        ])
      })
    )
  )

  it.effect("refuses what the provider lacks without ever asking it, and lets through what it has [seeds 7-10]", () =>
    Effect.gen(function* () {
      const asks = [
        ["outputSchema", { outputSchema: Schema.Unknown }],
        ["depthLimit", { maxDepth: 2 }],
        ["toolFilter", { toolFilter: { allow: ["read"] } }]
      ] as const
      for (const [capability, extra] of asks) {
        const asked: Array<Placed> = []
        const having = (name: string, has: boolean) =>
          provider({
            name,
            capabilities: { ...nothing, [capability]: has },
            start: (placed) => {
              asked.push(placed)
              return Effect.succeed({ turn: Effect.as(say("ok")(placed), { ...completed, structured: 1 }) })
            }
          })
        yield* withSeam([having("lacks", false), having("has", true)], (seam) =>
          Effect.gen(function* () {
            const exit = yield* Effect.exit(seam.run("lacks", { ...request, ...extra }))
            assert.deepInclude(reasonOf(exit) as object, { capability, missing: [capability] })
            assert.deepStrictEqual(asked, [])
            assert.strictEqual((yield* seam.run("has", { ...request, ...extra })).stopReason, "completed")
            assert.strictEqual(asked.length, 1)
          })
        )
      }
    })
  )
})

describe("depth through live runs (11)", () => {
  it.effect("counts from the live table and holds the inherited and the configured cap", () =>
    Effect.gen(function* () {
      const agents: Array<ReturnType<typeof agentOf>> = []
      const keeping = provider({
        turn: (placed) =>
          Effect.andThen(
            Effect.sync(() => agents.push(agentOf(placed))),
            Effect.never
          )
      })
      yield* withSeam(
        [keeping],
        (seam) =>
          Effect.gen(function* () {
            const one = yield* seam.start("p", { ...request, maxDepth: 2 })
            const liar = { id: one.id, session: { header: { id: "other", delegationDepth: 0 } } }
            const two = yield* seam.start("p", { prompt: "go", parent: liar })
            assert.deepStrictEqual([one.header.delegationDepth, two.header.delegationDepth], [1, 2])
            assert.strictEqual(two.header.parentSession, one.header.id)
            // the child of that child is over the cap that the top was given, however much it asks for
            for (const maxDepth of [undefined, 9]) {
              const exit = yield* Effect.exit(seam.start("p", { prompt: "go", parent: agents[1]!, maxDepth }))
              assert.deepInclude(reasonOf(exit) as object, { _tag: "DepthExceeded", depth: 3, maxDepth: 2 })
            }
            // a parent is also known by its session alone
            const bySession = { id: "renamed", session: { header: { id: two.header.id } } }
            const exit = yield* Effect.exit(seam.start("p", { prompt: "go", parent: bySession }))
            assert.deepInclude(reasonOf(exit) as object, { depth: 3 })
          }),
        { maxDepth: 5 }
      )
      yield* withSeam([keeping], (seam) => Effect.exit(seam.start("p", request)), { maxDepth: 0 }).pipe(
        Effect.map((exit) => assert.deepInclude(reasonOf(exit) as object, { depth: 1, maxDepth: 0 }))
      )
    })
  )

  it.effect("is 3 if nobody has said anything", () =>
    withSeam([provider()], (seam) =>
      Effect.gen(function* () {
        const at = (delegationDepth: number) => ({
          prompt: "go",
          parent: { id: "a", session: { header: { id: "s", delegationDepth } } }
        })
        assert.strictEqual((yield* seam.run("p", at(2))).stopReason, "completed")
        const exit = yield* Effect.exit(seam.run("p", at(3)))
        assert.deepInclude(reasonOf(exit) as object, { depth: 4, maxDepth: 3 })
      })
    )
  )
})

describe("run", () => {
  it.effect("starts, waits and releases", () =>
    Effect.gen(function* () {
      let closed = 0
      const start = (placed: Placed) =>
        Effect.as(
          Effect.addFinalizer(() => Effect.sync(() => closed++)),
          { turn: say("hi")(placed) }
        )
      yield* withSeam([provider({ start })], (seam) =>
        Effect.gen(function* () {
          assert.deepStrictEqual((yield* seam.run("p", request)).output, [{ type: "text", text: "hi" }])
          assert.deepStrictEqual([closed, yield* seam.live], [1, []])
        })
      )
    })
  )

  it.effect("stops the child when whoever waits is interrupted (9)", () =>
    Effect.gen(function* () {
      let interrupted = false
      const turn = () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => (interrupted = true)))
      const { events } = yield* inSeam([provider({ turn })], (seam) =>
        Effect.gen(function* () {
          const running = yield* Effect.forkChild(seam.run("p", request), { startImmediately: true })
          yield* Fiber.interrupt(running)
          assert.deepStrictEqual([interrupted, yield* seam.live], [true, []])
        })
      )
      assert.deepStrictEqual(lines(events), ["start p", "end p aborted Interrupt"])
    })
  )
})

describe("listeners (6)", () => {
  const unprintable = new Proxy(
    {},
    {
      get: () => {
        throw new Error("no")
      }
    }
  )

  it.effect(
    "that throw, die, fail, interrupt themselves or are none hurt nobody, and hear what comes next [seeds 13, 14]",
    () =>
      Effect.gen(function* () {
        const heard = new Map<string, number>()
        const broken: Record<string, () => Effect.Effect<unknown, unknown>> = {
          throws: () => {
            throw new Error("boom")
          },
          throwsUnprintable: () => {
            throw unprintable
          },
          dies: () => Effect.die(new Error("boom")),
          diesUnprintable: () => Effect.die(unprintable),
          fails: () => Effect.fail("failed"),
          interrupts: () => Effect.interrupt,
          isNone: () => undefined as never,
          rejectsLater: () => Effect.promise(() => Promise.reject(new Error("late")))
        }
        const good: Array<Event> = []
        const [value, messages] = yield* logged(
          withSeam([provider()], (seam) =>
            Effect.gen(function* () {
              for (const [name, listen] of Object.entries(broken)) {
                yield* seam.on(() => {
                  heard.set(name, (heard.get(name) ?? 0) + 1)
                  return listen()
                })
              }
              yield* seam.on(() => Effect.never)
              yield* seam.on((event) => Effect.sync(() => good.push(event)))
              const run = yield* seam.start("p", request)
              yield* settle
              yield* Effect.promise(() => Promise.resolve())
              yield* settle
              return yield* run.result
            })
          )
        )
        assert.strictEqual(value.stopReason, "completed")
        assert.deepStrictEqual(
          good.map(({ type }) => type),
          ["subagent/start", "subagent/end"]
        )
        for (const name of Object.keys(broken)) assert.strictEqual(heard.get(name), 2, name)
        const warnings = messages.filter((message) => message.startsWith("Warn A listener of subagent events failed"))
        assert.strictEqual(warnings.length, messages.length)
        assert.strictEqual(warnings.length, 2 * Object.keys(broken).length)
        assert.isTrue(warnings.some((message) => message.endsWith("a value that can't be printed")))
      })
  )

  it.effect("get the live run's events while the caller goes on, one at a time and in order", () =>
    withSeam([provider()], (seam) =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const slow: Array<string> = []
        yield* seam.on((event) =>
          Effect.andThen(
            Deferred.await(gate),
            Effect.sync(() => slow.push(event.type))
          )
        )
        yield* seam.run("p", request)
        assert.deepStrictEqual(slow, [])
        yield* Deferred.succeed(gate, undefined)
        yield* settle
        assert.deepStrictEqual(slow, ["subagent/start", "subagent/end"])
      })
    )
  )

  it.effect("that are too slow miss the oldest, and only they", () =>
    withSeam(
      [provider()],
      (seam) =>
        Effect.gen(function* () {
          const gate = yield* Deferred.make<void>()
          const slow: Array<Event> = []
          const quick: Array<Event> = []
          yield* seam.on((event) =>
            Effect.andThen(
              Deferred.await(gate),
              Effect.sync(() => slow.push(event))
            )
          )
          yield* seam.on((event) => Effect.sync(() => quick.push(event)))
          for (let i = 0; i < 5; i++) {
            yield* seam.run("p", { ...request, label: String(i) })
            yield* settle
          }
          yield* Deferred.succeed(gate, undefined)
          yield* settle
          assert.deepStrictEqual(lines(quick).length, 10)
          // the one in hand, and the last two
          assert.deepStrictEqual(lines(slow), ["start 0", "start 4", "end 4 completed"])
        }),
      { eventCapacity: 2 }
    )
  )

  it.effect("may need services of their own", () =>
    withSeam([provider()], (seam) =>
      Effect.gen(function* () {
        class Journal extends Context.Service<Journal, { readonly write: (line: string) => void }>()("test/Journal") {}
        const written: Array<string> = []
        const listen = seam.on((event) => Effect.map(Effect.service(Journal), ({ write }) => write(event.type)))
        yield* Effect.provideService(listen, Journal, { write: (line) => written.push(line) })
        yield* seam.run("p", request)
        yield* settle
        assert.deepStrictEqual(written, ["subagent/start", "subagent/end"])
      })
    )
  )

  it.effect("hear nothing any more when their scope is closed", () =>
    withSeam([provider()], (seam) =>
      Effect.gen(function* () {
        const heard: Array<Event> = []
        yield* Effect.scoped(seam.on((event) => Effect.sync(() => heard.push(event))))
        yield* seam.run("p", request)
        yield* settle
        assert.deepStrictEqual(heard, [])
      })
    )
  )

  it.effect("can start runs themselves", () =>
    Effect.gen(function* () {
      const { events } = yield* inSeam([provider()], (seam) =>
        Effect.gen(function* () {
          yield* seam.on((event) =>
            event.type === "subagent/end" && event.label === "first"
              ? seam.run("p", { ...request, label: "second" })
              : Effect.void
          )
          yield* seam.run("p", { ...request, label: "first" })
          yield* settle
        })
      )
      assert.deepStrictEqual(lines(events), [
        "start first",
        "end first completed",
        "start second",
        "end second completed"
      ])
    })
  )
})

describe("the live table", () => {
  it.effect("shows each accepted run until it is released, by the Clock, and can cancel it (18)", () =>
    Effect.gen(function* () {
      const turn = (placed: Placed) => {
        placed.emit({ _tag: "Usage", usage: { total: 3 } })
        return Effect.never
      }
      const { events } = yield* inSeam([provider({ turn })], (seam) =>
        Effect.gen(function* () {
          yield* TestClock.setTime(1000)
          const first = yield* seam.start("p", { ...request, label: "first" })
          yield* TestClock.adjust(500)
          const second = yield* seam.start("p", request)
          const live = yield* seam.live
          const lineage = { parentId: "root", rootId: "root", depth: 1 }
          assert.deepStrictEqual(live.map(({ cancel: _cancel, ...rest }) => rest) as unknown, [
            {
              id: first.id,
              runId: first.runId,
              provider: "p",
              label: "first",
              lineage: { ...lineage, id: first.id, runId: first.runId, label: "first" },
              header: first.header,
              state: "running",
              since: 1000,
              usage: { total: 3 },
              treeUsage: { total: 3 }
            },
            {
              id: second.id,
              runId: second.runId,
              provider: "p",
              lineage: { ...lineage, id: second.id, runId: second.runId },
              header: second.header,
              state: "running",
              since: 1500,
              usage: { total: 3 },
              treeUsage: { total: 3 }
            }
          ])
          yield* live[0]!.cancel("over the budget")
          assert.deepStrictEqual((yield* first.result).cause, { _tag: "Caller", reason: "over the budget" })
          assert.deepStrictEqual(
            (yield* seam.live).map(({ state }) => state),
            ["settled", "running"]
          )
          yield* first.dispose
          assert.deepStrictEqual(
            (yield* seam.live).map(({ runId }) => runId),
            [second.runId]
          )
        })
      )
      assert.deepStrictEqual(lines(events).slice(2), ["end first aborted Caller", "end p aborted Release"])
    })
  )

  it.effect("has no usage where none was reported", () =>
    withSeam([provider({ turn: () => Effect.never })], (seam) =>
      Effect.gen(function* () {
        yield* seam.start("p", request)
        assert.notProperty((yield* seam.live)[0], "usage")
      })
    )
  )
})

describe("ids (18)", () => {
  it.effect("come from Random: a seed gives the same run again", () =>
    withSeam([provider()], (seam) =>
      Effect.gen(function* () {
        const ids = Effect.scoped(seam.start("p", request)).pipe(
          Effect.map(({ header, id, runId }) => [id, runId, header.id] as ReadonlyArray<string>)
        )
        const seeded = yield* Random.withSeed(ids, "seed")
        assert.deepStrictEqual(yield* Random.withSeed(ids, "seed"), seeded)
        assert.strictEqual(new Set([...seeded, ...(yield* ids), ...(yield* ids)]).size, 9)
      })
    )
  )
})

describe("the layers", () => {
  it.effect("share one registry by reference, however often it is named", () =>
    Effect.gen(function* () {
      const a = Subagents.add(provider({ name: "a" })).pipe(Layer.provide(Subagents.layer))
      const b = Subagents.add(provider({ name: "b" })).pipe(Layer.provide(Subagents.layer))
      const seam = yield* Service.pipe(Effect.provide(Layer.mergeAll(Subagents.layer, a, b)), Effect.scoped)
      assert.deepStrictEqual(yield* seam.list, [])
      const list = Effect.flatMap(Service, ({ list }) => list)
      assert.deepStrictEqual((yield* list.pipe(Effect.provide(Layer.mergeAll(Subagents.layer, a, b)))).toSorted(), [
        "a",
        "b"
      ])
      const main = Layer.mergeAll(Subagents.add(provider({ name: "c" })), Subagents.add(provider({ name: "d" })))
      assert.deepStrictEqual(yield* list.pipe(Effect.provide(Layer.provideMerge(main, Subagents.layer))), ["c", "d"])
    })
  )

  it.effect("make an invisible registry of a fresh one", () =>
    Effect.gen(function* () {
      const hidden = Subagents.add(provider({ name: "a" })).pipe(Layer.provide(Layer.fresh(Subagents.layer)))
      const list = Effect.flatMap(Service, ({ list }) => list)
      assert.deepStrictEqual(yield* list.pipe(Effect.provide(Layer.mergeAll(Subagents.layer, hidden))), [])
    })
  )

  it.effect("contribute a provider that takes an effect, services and a scope to make, and take it back", () =>
    Effect.gen(function* () {
      class Name extends Context.Service<Name, string>()("test/Name") {}
      const closed: Array<string> = []
      const made = Effect.gen(function* () {
        const name = yield* Name
        yield* Effect.addFinalizer(() => Effect.sync(() => closed.push(name)))
        return provider({ name })
      })
      const contribution = Subagents.addEffect(made).pipe(Layer.provide(Layer.succeed(Name, "made")))
      yield* Effect.gen(function* () {
        const seam = yield* Service
        yield* Effect.gen(function* () {
          assert.deepStrictEqual(yield* seam.list, ["made"])
        }).pipe(Effect.provide(contribution))
        assert.deepStrictEqual([yield* seam.list, closed], [[], ["made"]])
      }).pipe(Effect.provide(Subagents.layer))
    })
  )

  it.effect("fail with the contribution that fails: a duplicate, or one that can't be made", () =>
    Effect.gen(function* () {
      const twice = Layer.mergeAll(Subagents.add(provider()), Subagents.add(provider()))
      const exit = yield* Effect.exit(Effect.scoped(Layer.build(Layer.provide(twice, Subagents.layer))))
      assert.strictEqual(tagOf(exit), "DuplicateProvider")
      const failing = Layer.provide(Subagents.addEffect(Effect.fail("no" as const)), Subagents.layer)
      assert.strictEqual(yield* Effect.flip(Effect.scoped(Layer.build(failing))), "no")
    })
  )

  it.effect("release every run when the registry's is released; results that are held stay readable", () =>
    Effect.gen(function* () {
      let closed = 0
      const start = (placed: Placed) =>
        Effect.as(
          Effect.addFinalizer(() => Effect.sync(() => closed++)),
          { turn: placed.label === "quick" ? say("done")(placed) : Effect.andThen(say("partly")(placed), Effect.never) }
        )
      const { events, value } = yield* inSeam([provider({ start })], (seam) =>
        Effect.forEach(["quick", "a", "b"], (label) => seam.start("p", { ...request, label }))
      )
      assert.strictEqual(closed, 3)
      const results = yield* Effect.forEach(value, ({ result }) => result)
      assert.deepStrictEqual(
        results.map(({ cause, output, stopReason }) => ({ cause, output, stopReason })) as unknown,
        [
          { cause: undefined, output: [{ type: "text", text: "done" }], stopReason: "completed" },
          { cause: { _tag: "Release" }, output: [{ type: "text", text: "partly" }], stopReason: "aborted" },
          { cause: { _tag: "Release" }, output: [{ type: "text", text: "partly" }], stopReason: "aborted" }
        ]
      )
      assert.strictEqual((yield* Stream.runCollect(value[1]!.updates)).length, 1)
      assert.strictEqual(lines(events).filter((line) => line.startsWith("end")).length, 3)
      yield* Effect.forEach(value, (run) => Effect.andThen(run.cancel(), run.dispose))
      assert.strictEqual(closed, 3)
    })
  )

  it.effect("wait for runs that hang together no longer than for one", () =>
    Effect.gen(function* () {
      const start = () =>
        Effect.as(
          Effect.addFinalizer(() => Effect.never),
          { turn: Effect.never }
        )
      const whole = yield* Effect.forkChild(
        inSeam([provider({ start })], (seam) => Effect.forEach([1, 2, 3], () => seam.start("p", request)))
      )
      yield* TestClock.adjust("9 seconds")
      assert.isUndefined(whole.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const { events } = yield* Fiber.join(whole)
      assert.strictEqual(lines(events).filter((line) => line === "problem timed-out").length, 3)
    })
  )
})

describe("the options", () => {
  it.effect("are set one by one, over those in force", () =>
    Effect.gen(function* () {
      const defaults = yield* Subagents.Options
      assert.deepStrictEqual(defaults, {
        releaseTimeout: "10 seconds",
        updateCapacity: 1024,
        eventCapacity: 1024
      })
      const both = Layer.provideMerge(
        Subagents.layerOptions({ eventCapacity: 5 }),
        Subagents.layerOptions({ updateCapacity: 1 })
      )
      assert.deepStrictEqual(yield* Effect.provide(Effect.service(Subagents.Options), both), {
        ...defaults,
        eventCapacity: 5,
        updateCapacity: 1
      })
    })
  )

  it.effect("are refused if they make no sense", () =>
    Effect.gen(function* () {
      const wrong = Subagents.layerOptions({ updateCapacity: -1, releaseTimeout: Number.POSITIVE_INFINITY })
      const reason = reasonOf(yield* Effect.exit(Effect.scoped(Layer.build(wrong)))) as SubagentError.InvalidRequest
      assert.deepStrictEqual(reason.issues.map(String), [
        "releaseTimeout: Expected a finite duration",
        "updateCapacity: Expected a whole number from 1"
      ])
    })
  )

  it.effect("bound the replay of a run's updates", () =>
    withSeam(
      [
        provider({
          turn: (placed) => {
            for (const text of ["a", "b", "c"]) placed.emit({ _tag: "Thought", text })
            return say("d")(placed)
          }
        })
      ],
      (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          assert.deepStrictEqual(
            (yield* Stream.runCollect(run.updates)).map(({ seq }) => seq),
            [2, 3]
          )
        }),
      { updateCapacity: 2 }
    )
  )
})

describe("many runs", () => {
  it.effect("at once, in trees and by signals, leave nothing and are announced once each", () =>
    Effect.gen(function* () {
      const { listeners, signal } = makeSignal()
      const { events } = yield* inSeam([], (seam, scope) =>
        Effect.gen(function* () {
          const branching = provider({
            turn: (placed) =>
              Effect.gen(function* () {
                yield* Effect.yieldNow
                if (placed.lineage.depth < 3) {
                  const child = { prompt: "go", parent: agentOf(placed), signal }
                  yield* Effect.all([seam.run("p", child), seam.run("p", child)], { concurrency: "unbounded" })
                }
                return yield* say("done")(placed)
              })
          })
          yield* Scope.provide(seam.register(branching), scope)
          const runs = Array.from({ length: 50 }, (_, i) =>
            i % 5 === 0
              ? Effect.asVoid(Effect.timeoutOption(seam.run("p", { ...request, signal }), i))
              : Effect.asVoid(seam.run("p", { ...request, signal }))
          )
          const running = yield* Effect.forkChild(Effect.all(runs, { concurrency: 7 }))
          yield* TestClock.adjust("1 minute")
          yield* Fiber.join(running)
          assert.deepStrictEqual([yield* seam.live, listeners()], [[], 0])
        })
      )
      const open = new Map<string, string | undefined>()
      for (const event of events) {
        if (event.type === "subagent/start") {
          assert.isTrue(event.parentRunId === undefined || open.has(event.parentRunId))
          open.set(event.runId, event.parentRunId)
        } else if (event.type === "subagent/end") {
          assert.isTrue(open.delete(event.runId))
          assert.isFalse(Array.from(open.values()).includes(event.runId), "a child outlived its parent's end")
        }
      }
      assert.strictEqual(open.size, 0)
      assert.isAbove(events.length, 500)
    })
  )
})
