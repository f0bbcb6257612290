/** Children, and providers, that lie about what they do, and hosts that are careless. */
import { assert, describe, it } from "@effect/vitest"
import type { SubagentResult } from "effect-subagent"
import { Approvals, Budget, Limits, SubagentError, Subagents } from "effect-subagent"
import { PromiseSubagents } from "effect-subagent/promise"
import { ScriptedProvider } from "effect-subagent/testing"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { agentOf, inSeam, type Placed, root, type Seam, withSeam } from "./utils/seam.ts"

const { run, text, usage } = ScriptedProvider

/** A child of this provider below a run, waited for and released. */
const delegate = (seam: () => Seam, placed: Placed, provider: string) =>
  Effect.suspend(() => seam().run(provider, { prompt: "a part", parent: agentOf(placed) }))

describe("a provider whose usage is no figure (20)", () => {
  const lies: ReadonlyArray<readonly [string, unknown]> = [
    ["a bigint", 5n],
    ["a text", "5"],
    ["a symbol", Symbol("5")],
    ["not a number", Number.NaN],
    ["infinite", Number.POSITIVE_INFINITY],
    ["negative", -5],
    ["an object that throws", { valueOf: () => assert.fail("nobody reads it") }],
    ["null", null]
  ]
  for (const [name, total] of lies) {
    const lie = { total, output: 2 } as unknown as SubagentResult.SubagentUsage
    const nothing = { total } as unknown as SubagentResult.SubagentUsage
    it.effect(`costs its tree what it has said beside, and ends it as ever: ${name}`, () =>
      Effect.gen(function* () {
        let seam: Seam
        const parent = yield* ScriptedProvider.make(
          [
            usage({ total: 10, output: 1 }),
            ...["says so", "says so at its end", "says nothing else"].map((kid) =>
              run((placed) => delegate(() => seam, placed, kid))
            ),
            text("done")
          ],
          { name: "parent" }
        )
        const kids = yield* Effect.all([
          ScriptedProvider.make([usage(lie), text("done")], { name: "says so" }),
          ScriptedProvider.make([text("done"), ScriptedProvider.stop("completed", { usage: lie })], {
            name: "says so at its end"
          }),
          ScriptedProvider.make(
            [usage(nothing), text("done"), ScriptedProvider.stop("completed", { usage: nothing })],
            {
              name: "says nothing else"
            }
          )
        ])
        const budget = yield* Budget.make({ name: "acme", maxTokens: 100 })
        const { events, value } = yield* inSeam(
          [parent, ...kids].map(({ provider }) => provider),
          (made) => {
            seam = made
            return Effect.provideService(made.run("parent", { prompt: "all", parent: root }), Budget.Current, budget)
          }
        )
        assert.deepStrictEqual([value.stopReason, value.usage], ["completed", { total: 10, output: 1 }])
        assert.deepStrictEqual(value.treeUsage, { total: 14, output: 5 })
        assert.deepStrictEqual(yield* budget.spent, { tokens: 14, reserved: 0, runs: 4 })
        const ends = events.flatMap((event) => (event.type === "subagent/end" ? [[event.provider, event.usage]] : []))
        assert.deepStrictEqual(ends, [
          ["says so", { output: 2 }],
          ["says so at its end", { output: 2 }],
          ["says nothing else", undefined],
          ["parent", { total: 10, output: 1 }]
        ])
      })
    )
  }
})

describe("a child that was refused a turn (20)", () => {
  const crashes: ReadonlyArray<readonly [string, ScriptedProvider.Step]> = [
    ["fails", ScriptedProvider.fail(new SubagentError.ProviderFault({ provider: "p", detail: "lost" }))],
    ["dies", ScriptedProvider.die(new Error("lost"))],
    ["interrupts itself", ScriptedProvider.interrupt],
    ["ends with no outcome", ScriptedProvider.end("lost")],
    ["says that it was aborted", ScriptedProvider.stop("aborted")],
    ["says that it is done", ScriptedProvider.stop("completed")]
  ]
  for (const [name, crash] of crashes) {
    it.effect(`ends with the limit, and with what it had said, if it ${name}`, () =>
      Effect.gen(function* () {
        const turns = run(({ nextTurn }) => Effect.sync(() => [nextTurn(), nextTurn()]))
        const { provider } = yield* ScriptedProvider.make([text("so far"), turns, crash], { name: "p" })
        const { events, value } = yield* inSeam([provider], (seam) =>
          seam.run("p", { prompt: "all", parent: root, maxTurns: 1 })
        )
        assert.deepInclude(value.failure, { kind: "limit", name: "maxTurns", limit: 1, used: 1 })
        assert.deepStrictEqual(value.output, [{ type: "text", text: "so far" }])
        const end = events.find((event) => event.type === "subagent/end")
        assert.deepInclude(end, { stopReason: "error", failure: value.failure! })
        if (name === "fails" || name === "dies") assert.include(value.diagnostic, "lost")
      })
    )
  }
})

describe("a provider that declares turns and never asks for one (20)", () => {
  it.effect("is stopped when it reports more tokens than it may use, as one that declares none", () =>
    Effect.gen(function* () {
      for (const turns of [true, false]) {
        const reports = [5, 10, 11, 12].flatMap((total) => [usage({ total }), text(`${total}`)])
        const { provider } = yield* ScriptedProvider.make(reports, { name: "p", capabilities: { turns } })
        const result = yield* withSeam([provider], (seam) =>
          seam.run("p", { prompt: "all", parent: root, maxTokens: 10 })
        )
        assert.deepInclude(result.failure, { kind: "limit", name: "maxTokens", limit: 10, used: 11 })
        assert.deepStrictEqual(result.output, [{ type: "text", text: "10" }])
      }
    })
  )
})

describe("what is asked for by an object that inherits it (20)", () => {
  const plain = { prompt: "all", parent: root }
  class Asked {
    prompt = "all"
    parent = root
    get maxTurns() {
      return 1
    }
  }
  const turns = run(({ nextTurn }) => Effect.sync(() => [nextTurn(), nextTurn()]))
  const making = ScriptedProvider.make(() => ({ turn: [text("so far"), turns], token: Effect.succeed("kept") }), {
    name: "p",
    continued: () => [text("so far"), turns],
    structured: {}
  })
  const limitOf = ({ failure }: SubagentResult.SubagentResult) => failure?.name

  it.effect("holds, whoever it is from, and whichever way it comes", () =>
    Effect.gen(function* () {
      const { provider } = yield* making
      const names = yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const first = yield* seam.start("p", plain)
          const token = yield* first.token!
          yield* first.dispose
          const { parent, prompt: _, ...asked } = new Asked()
          const again = Object.assign(Object.create(new Asked()), { parent })
          assert.deepStrictEqual<object>(asked, {})
          return [
            limitOf(yield* first.result),
            limitOf(yield* seam.run("p", new Asked())),
            limitOf(yield* seam.run("p", Object.create(new Asked()))),
            limitOf(yield* Effect.flatMap(seam.resume(token, "go on", again), ({ result }) => result))
          ]
        }).pipe(Effect.scoped)
      )
      assert.deepStrictEqual(names, [undefined, "maxTurns", "maxTurns", "maxTurns"])
    })
  )

  it.effect("holds where it is the host's, as it was when it was given", () =>
    Effect.gen(function* () {
      const { provider } = yield* making
      class Host {
        maxConcurrent = { overall: 1 }
        get maxTurns() {
          return 1
        }
      }
      const host = new Host()
      const limits = Subagents.layer.pipe(Layer.provide(Limits.layer(host)))
      const context = yield* Layer.build(limits)
      host.maxConcurrent.overall = Number.NaN
      const seam = Context.get(context, Subagents.Subagents)
      yield* seam.register(provider)
      assert.strictEqual(limitOf(yield* seam.run("p", plain)), "maxTurns")
      yield* seam.start("p", plain)
      assert.strictEqual(limitOf(yield* seam.run("p", plain)), "maxTurns")
    })
  )

  it.effect("holds at the facade, with a JSON Schema and without, and its budget pays where a start names none", () =>
    Effect.gen(function* () {
      const { provider } = yield* making
      const budget = yield* Budget.make({ name: "acme" })
      const facade = PromiseSubagents.fromProviders([provider], Object.create({ budget }))
      class Structured extends Asked {
        outputSchema = { type: "object", properties: {} } as const
      }
      const asking: PromiseSubagents.Options = { budget: undefined }
      const results = yield* Effect.promise(async () => {
        await using seam = facade
        return [
          await seam.run("p", new Asked(), asking),
          await seam.run("p", new Structured(), Object.create(asking)),
          await seam.run("p", plain, Object.create({ budget: await other }))
        ]
      })
      assert.deepStrictEqual(results.map(limitOf), ["maxTurns", "maxTurns", undefined])
      assert.strictEqual((yield* budget.spent).runs, 2)
    })
  )
  const other = Effect.runPromise(Budget.make({ name: "other" }))
})

describe("an approver that is none (20)", () => {
  const answers: ReadonlyArray<readonly [string, () => unknown]> = [
    ["gives a promise", () => Promise.resolve("approved")],
    ["gives nothing", () => undefined],
    ["gives its answer as it is", () => "approved"],
    [
      "throws",
      () => {
        throw new Error("lost")
      }
    ],
    ["dies", () => Effect.die("lost")],
    ["interrupts itself", () => Effect.interrupt]
  ]
  for (const [name, decide] of answers) {
    it.effect(`denies, and lets no clock stand still, if it ${name}`, () =>
      Effect.gen(function* () {
        const { provider } = yield* ScriptedProvider.make(
          [ScriptedProvider.ask({ name: "write" }), ScriptedProvider.hang],
          {
            name: "p"
          }
        )
        const approver = { decide: decide as Approvals.Approver["decide"] }
        const result = yield* withSeam([provider], (seam) =>
          Effect.gen(function* () {
            const running = yield* Effect.forkChild(
              Effect.provideService(
                seam.run("p", { prompt: "all", parent: root, timeout: 10 }),
                Approvals.Approvals,
                approver
              ),
              { startImmediately: true }
            )
            yield* TestClock.adjust(10)
            const [live] = yield* seam.live
            yield* live === undefined ? Effect.void : live.cancel("still there")
            return yield* Fiber.join(running)
          })
        )
        assert.deepInclude(result.failure, { kind: "timeout", name: "timeout", used: 10 })
      })
    )
  }
})

describe("a child that is resumed with a token (20)", () => {
  it.effect("has no share of a budget that it has never asked for, and the one that it has", () =>
    Effect.gen(function* () {
      const script = { turn: [usage({ total: 10 }), text("done")], token: Effect.succeed("kept") }
      const { provider } = yield* ScriptedProvider.make(script, {
        name: "p",
        continued: () => [run(() => Effect.never)]
      })
      for (const maxTokens of [undefined, 400, 1000]) {
        const acme = yield* Budget.make({ name: "acme", maxTokens: 1500 })
        const reserved = yield* withSeam(
          [provider],
          (seam) =>
            Effect.gen(function* () {
              const first = yield* seam.start("p", { prompt: "all", parent: root, maxTokens })
              yield* first.result
              const token = yield* first.token!
              yield* first.dispose
              const again = yield* seam.resume(token, "go on", { parent: root })
              const { reserved } = yield* acme.spent
              yield* again.dispose
              return reserved
            }).pipe(Effect.scoped, Effect.provideService(Budget.Current, acme)),
          { maxTokens: 1000 }
        )
        assert.strictEqual(reserved, maxTokens === 400 ? 400 : 0)
        assert.deepStrictEqual(yield* acme.spent, { tokens: 10, reserved: 0, runs: 2 })
      }
    })
  )
})

describe("a child that uses tokens to become ready (20)", () => {
  it.effect("has used them by its first turn, and is charged for them once", () =>
    Effect.gen(function* () {
      const acme = yield* Budget.make({ name: "acme", maxTokens: 100 })
      const { provider } = yield* ScriptedProvider.make(
        { start: [usage({ total: 10 })], turn: [ScriptedProvider.nextTurn([text("a turn"), usage({ total: 15 })])] },
        { name: "p" }
      )
      const ends = yield* withSeam([provider], (seam) =>
        Effect.forEach([10, 11], (maxTokens) => seam.run("p", { prompt: "all", parent: root, maxTokens }))
      ).pipe(Effect.provideService(Budget.Current, acme))
      assert.deepStrictEqual(
        ends.map(({ failure, usage }) => [failure?.name, failure?.used, usage?.total]),
        [
          ["maxTokens", 10, 10],
          [undefined, undefined, 15]
        ]
      )
      assert.deepStrictEqual(yield* acme.spent, { tokens: 25, reserved: 0, runs: 2 })
    })
  )
})
