/** What a provider is given, and what becomes of what it gives. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type { SubagentProvider } from "effect-subagent"
import {
  agentOf,
  all,
  completed,
  inSeam,
  makeSignal,
  type Placed,
  provider,
  root,
  say,
  withSeam
} from "./utils/seam.ts"

const request = { prompt: "go", parent: root }

/** Starts a run and gives what its provider was given. */
const placedOf = (extra: object, capabilities = all) =>
  Effect.gen(function* () {
    let placed: Placed | undefined
    const start = (given: Placed) => {
      placed = given
      return Effect.succeed({ turn: say("ok")(given) })
    }
    const run = yield* withSeam([provider({ start, capabilities })], (seam) =>
      seam.start("p", { ...request, ...extra })
    )
    return { placed: placed!, run }
  })

describe("what a provider is given", () => {
  it.effect("is what was asked for and where the run stands, and nothing else", () =>
    Effect.gen(function* () {
      const { placed, run } = yield* placedOf({ parent: { ...root, options: { model: "m", systemPrompt: "s" } } })
      const { emit, nextTurn, ...rest } = placed
      assert.isFunction(emit)
      assert.isFunction(nextTurn)
      assert.deepStrictEqual(rest, {
        prompt: [{ type: "text", text: "go" }],
        parent: { ...root, options: { model: "m", systemPrompt: "s" } },
        agentOptions: {},
        runId: run.runId,
        header: run.header,
        lineage: { id: run.id, runId: run.runId, parentId: "root", rootId: "root", depth: 1 },
        policy: { maxDepth: 3, toolFilters: [] },
        // a child runs on its parent's model unless told otherwise, but not with its prompt
        parentOptions: { model: "m" }
      })
      assert.isTrue(Object.isFrozen(placed))
    })
  )

  it.effect("has what was asked for, and never the signal", () =>
    Effect.gen(function* () {
      const asked = {
        agentOptions: { model: "m", systemPrompt: undefined },
        maxDepth: 2,
        toolFilter: { allow: ["a"], deny: undefined },
        label: "l"
      }
      const { placed } = yield* placedOf({ ...asked, signal: makeSignal().signal })
      const { agentOptions, label, maxDepth, policy, toolFilter } = placed
      assert.deepStrictEqual(
        { agentOptions, label, maxDepth, toolFilter },
        {
          agentOptions: { model: "m" },
          label: "l",
          maxDepth: 2,
          toolFilter: { allow: ["a"] }
        }
      )
      assert.deepStrictEqual(policy, { maxDepth: 2, toolFilters: [{ allow: ["a"] }] })
      assert.notProperty(placed, "signal")
      assert.notProperty(placed, "outputSchema")
    })
  )

  it.effect("has the very parent of the caller: a host's own class goes through untouched", () =>
    Effect.gen(function* () {
      class HostAgent {
        readonly #history: Array<string> = ["private"]
        readonly id = "host"
        readonly session = Object.freeze({ header: Object.freeze({ id: "host-session" }) })
        history() {
          return this.#history
        }
      }
      const parent = Object.freeze(new HostAgent())
      const { placed, run } = yield* placedOf({ parent })
      assert.strictEqual(placed.parent, parent)
      assert.deepStrictEqual((placed.parent as HostAgent).history(), ["private"])
      assert.notProperty(run.header, "cwd")
      assert.strictEqual(run.header.delegationDepth, 1)
    })
  )

  it.effect("has options that a host has merged in, if it declares them", () =>
    Effect.gen(function* () {
      const { placed } = yield* placedOf({ agentOptions: { effort: "high" } }, { ...all, effort: true } as typeof all)
      assert.deepStrictEqual<unknown>(placed.agentOptions, { effort: "high" })
    })
  )

  it.effect("can't be used to widen what holds below it (12, 17)", () =>
    Effect.gen(function* () {
      const { placed } = yield* placedOf({ toolFilter: { allow: ["a"] } })
      const filter = placed.policy.toolFilters[0] as { readonly allow: Array<string> }
      assert.throws(() => filter.allow.push("b"), TypeError)
      assert.throws(() => (placed.policy.toolFilters as Array<unknown>).pop(), TypeError)
      assert.throws(() => Object.assign(placed.policy, { maxDepth: 9 }), TypeError)
      assert.throws(() => Object.assign(placed.lineage, { depth: 0 }), TypeError)
      assert.throws(() => Object.assign(placed.header, { delegationDepth: 0 }), TypeError)
    })
  )

  it.effect("has the filters of everything above it, the outermost first (12)", () =>
    Effect.gen(function* () {
      const seen: Array<Placed> = []
      const keeping = provider({
        turn: (placed) =>
          Effect.andThen(
            Effect.sync(() => seen.push(placed)),
            Effect.never
          )
      })
      yield* withSeam([keeping], (seam) =>
        Effect.gen(function* () {
          yield* seam.start("p", { ...request, toolFilter: { allow: ["a", "b"] } })
          yield* seam.start("p", { prompt: "go", parent: agentOf(seen[0]!) })
          yield* seam.start("p", { prompt: "go", parent: agentOf(seen[1]!), toolFilter: { deny: ["b"] } })
        })
      )
      assert.deepStrictEqual(seen.map(({ policy, toolFilter }) => [policy.toolFilters.length, toolFilter]) as unknown, [
        [1, { allow: ["a", "b"] }],
        [1, undefined],
        [2, { deny: ["b"] }]
      ])
      assert.deepStrictEqual(seen[2]!.policy.toolFilters, [{ allow: ["a", "b"] }, { deny: ["b"] }])
    })
  )

  it.effect("runs in the caller's context: its services, its span, its log annotations", () =>
    Effect.gen(function* () {
      class Host extends Context.Service<Host, string>()("test/Host") {}
      const seen: Array<unknown> = []
      const look = Effect.gen(function* () {
        seen.push([(yield* Effect.serviceOption(Host))._tag, yield* References.CurrentLogAnnotations])
        return completed
      })
      const start = (placed: Placed) => Effect.as(look, { turn: Effect.andThen(say("x")(placed), look) })
      yield* withSeam([provider({ start })], (seam) =>
        seam.run("p", request).pipe(Effect.provideService(Host, "host"), Effect.annotateLogs("caller", "me"))
      )
      assert.deepStrictEqual(seen, [
        ["Some", { caller: "me" }],
        ["Some", { caller: "me" }]
      ])
    })
  )

  it.effect("may be an instance of a class, called as such", () =>
    Effect.gen(function* () {
      class Mine implements SubagentProvider.SubagentProvider {
        readonly #word = "from a class"
        readonly name = "mine"
        readonly capabilities = all
        readonly inheritsContext = false
        start(placed: Placed) {
          return Effect.succeed({ turn: say(this.#word)(placed) })
        }
      }
      const result = yield* withSeam([new Mine()], (seam) => seam.run("mine", request))
      assert.deepStrictEqual(result.output, [{ type: "text", text: "from a class" }])
    })
  )
})

describe("what a provider acquires", () => {
  it.effect("in the start and in the turn lives as long as the run, not as long as the turn", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const acquire = (name: string) =>
        Effect.acquireRelease(
          Effect.sync(() => log.push(`+${name}`)),
          () => Effect.sync(() => log.push(`-${name}`))
        )
      const start = () =>
        Effect.map(Effect.andThen(acquire("session"), Effect.scope), (scope) => ({
          turn: Scope.provide(Effect.as(acquire("turn"), { stopReason: "error" }), scope)
        }))
      yield* withSeam([provider({ start })], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          yield* run.result
          assert.deepStrictEqual(log, ["+session", "+turn"])
          yield* run.dispose
          assert.deepStrictEqual(log, ["+session", "+turn", "-turn", "-session"])
        })
      )
    })
  )

  it.effect("a turn is run once, lazily, and only when the run was accepted", () =>
    Effect.gen(function* () {
      let turns = 0
      const gate = yield* Deferred.make<void>()
      const start = (placed: Placed) =>
        Effect.succeed({
          turn: Effect.suspend(() => {
            turns++
            return Effect.andThen(Deferred.await(gate), say("ok")(placed))
          })
        })
      const { events } = yield* inSeam([provider({ start })], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          yield* Deferred.succeed(gate, undefined)
          yield* Effect.all([run.result, run.result, run.result])
          assert.strictEqual(turns, 1)
        })
      )
      assert.strictEqual(events.filter(({ type }) => type === "subagent/end").length, 1)
    })
  )
})

describe("structured output (13)", () => {
  const Count = Schema.Struct({ n: Schema.NumberFromString })

  it.effect("is shown and checked with one schema, and decoded once for the caller", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const turn = (placed: Placed) =>
        Effect.gen(function* () {
          const { decode, schema } = placed.output!
          seen.push(schema === Count, yield* Effect.orDie(decode({ n: "7" })))
          const issues = yield* Effect.orDie(Effect.flip(decode({ n: true })))
          seen.push(issues.map(({ path }) => path))
          return { ...completed, structured: { n: "7" } }
        })
      const result = yield* withSeam([provider({ turn })], (seam) => seam.run("p", { ...request, outputSchema: Count }))
      assert.deepStrictEqual(result, { output: [], stopReason: "completed", structured: { n: 7 } })
      assert.deepStrictEqual(seen, [true, { n: 7 }, [["n"]]])
    })
  )

  it.effect("is never satisfied by what the schema refuses, or by nothing", () =>
    Effect.gen(function* () {
      for (const [structured, kind] of [
        [{ n: 7 }, "schema-invalid"],
        [undefined, "schema-missing"]
      ] as const) {
        const turn = () => Effect.succeed({ ...completed, structured })
        const result = yield* withSeam([provider({ turn })], (seam) =>
          seam.run("p", { ...request, outputSchema: Count })
        )
        assert.deepInclude(result as object, { stopReason: "error" })
        assert.strictEqual(result.failure?.kind, kind)
        assert.notProperty(result, "structured")
      }
    })
  )

  it.effect("survives a schema whose own code dies", () =>
    Effect.gen(function* () {
      const Dying = Schema.String.check(
        Schema.makeFilter((): boolean => {
          throw new Error("boom")
        })
      )
      const turn = () => Effect.succeed({ ...completed, structured: "x" })
      const result = yield* withSeam([provider({ turn })], (seam) => seam.run("p", { ...request, outputSchema: Dying }))
      assert.strictEqual(result.failure?.kind, "schema-invalid")
    })
  )
})
