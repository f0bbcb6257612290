/** What a part of a host's work may use up in all: what is reserved, what comes back, and what is refused. */
import { assert, describe, it } from "@effect/vitest"
import { Budget, SubagentError } from "effect-subagent"
import { ScriptedProvider } from "effect-subagent/testing"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { type Children, makeChildren, parentIn } from "./utils/limited.ts"
import { inSeam, makeSignal, reasonOf, root, type Seam, type SeamOptions, tagOf, withSeam } from "./utils/seam.ts"

const { LimitReached } = SubagentError

const within = <A, E>(
  body: (seam: Seam, children: Children) => Effect.Effect<A, E, Scope.Scope>,
  options: SeamOptions = {}
) =>
  Effect.flatMap(makeChildren(), (children) =>
    withSeam([children.provider], (seam) => Effect.scoped(body(seam, children)), options)
  )

const paidBy = (budget: Budget.Budget) => Effect.provideService(Budget.Current, budget)

describe("a budget (20)", () => {
  it.effect("is used, and reserved, at every link of its chain: overall, tenant, root, child", () =>
    within((seam, children) =>
      Effect.gen(function* () {
        const overall = yield* Budget.make({ name: "overall", maxTokens: 1000 })
        const tenant = yield* Budget.make({ name: "tenant", maxTokens: 500, parent: overall })
        const other = yield* Budget.make({ name: "other", maxTokens: 800, parent: overall })
        const spent = Effect.all([overall.spent, tenant.spent, other.spent])
        const { agent, run } = yield* parentIn(seam, children, { maxTokens: 200 }).pipe(paidBy(tenant))
        const one = { tokens: 0, reserved: 200, runs: 1 }
        assert.deepStrictEqual(yield* spent, [one, one, { tokens: 0, reserved: 0, runs: 0 }])

        // a child's share is within its parent's: further out it is reserved already
        const child = yield* parentIn(seam, children, { maxTokens: 150 }, agent)
        assert.deepStrictEqual((yield* spent)[1], { tokens: 0, reserved: 200, runs: 2 })
        const refused = yield* Effect.exit(seam.run("p", { prompt: "modest", parent: agent, maxTokens: 51 }))
        const limit = { name: "maxTokens", of: `run ${run.runId}`, limit: 200, used: 0, reserved: 150, asked: 51 }
        assert.deepStrictEqual(reasonOf(refused), new LimitReached(limit))

        // what a grandchild uses is used of all of them, and no longer reserved
        yield* seam.run("p", { prompt: "turns 3", parent: child.agent })
        const used = { tokens: 30, reserved: 170, runs: 3 }
        assert.deepStrictEqual((yield* spent).slice(0, 2), [used, used])
        yield* seam.run("p", { prompt: "turns 2", parent: root }).pipe(paidBy(other))
        assert.deepStrictEqual(yield* spent, [
          { tokens: 50, reserved: 170, runs: 4 },
          used,
          { tokens: 20, reserved: 0, runs: 1 }
        ])

        yield* run.cancel()
        assert.deepStrictEqual(yield* spent, [
          { tokens: 50, reserved: 0, runs: 4 },
          { tokens: 30, reserved: 0, runs: 3 },
          { tokens: 20, reserved: 0, runs: 1 }
        ])
      })
    )
  )

  it.effect("refuses what it, or one that it is part of, has not got, with the figures of that one", () =>
    within((seam, children) =>
      Effect.gen(function* () {
        const overall = yield* Budget.make({ name: "overall", maxTokens: 100, maxRuns: 4 })
        const tenant = yield* Budget.make({ name: "tenant", maxTokens: 90, parent: overall })
        const start = (maxTokens: number, budget: Budget.Budget) =>
          Effect.exit(parentIn(seam, children, { maxTokens }).pipe(paidBy(budget)))
        const limit = { name: "maxTokens", used: 0 }
        assert.deepStrictEqual(
          reasonOf(yield* start(91, tenant)),
          new LimitReached({ ...limit, of: 'budget "tenant"', limit: 90, asked: 91 })
        )
        assert.isTrue(Exit.isSuccess(yield* start(50, overall)))
        assert.deepStrictEqual(
          reasonOf(yield* start(51, tenant)),
          new LimitReached({ ...limit, of: 'budget "overall"', limit: 100, reserved: 50, asked: 51 })
        )
        // exactly what is left is not too much, and then there is nothing left for anybody
        assert.isTrue(Exit.isSuccess(yield* start(50, tenant)))
        const pooled = yield* Effect.exit(seam.run("p", { prompt: "modest", parent: root }).pipe(paidBy(overall)))
        assert.deepStrictEqual(
          reasonOf(pooled),
          new LimitReached({ ...limit, of: 'budget "overall"', limit: 100, reserved: 100 })
        )
        assert.strictEqual((yield* overall.spent).runs, 2)
      })
    )
  )

  it.effect("refuses a request for more than could be inherited by the figure that was asked for", () =>
    within((seam, children) =>
      Effect.gen(function* () {
        const { agent, run } = yield* parentIn(seam, children, { maxTokens: 50 })
        yield* seam.run("p", { prompt: "turns 1", parent: agent })
        const exit = yield* Effect.exit(seam.run("p", { prompt: "modest", parent: agent, maxTokens: 80 }))
        const limit = { name: "maxTokens", of: `run ${run.runId}`, limit: 50, used: 10, asked: 80 }
        assert.deepStrictEqual(reasonOf(exit), new LimitReached(limit))
      })
    )
  )

  it.effect("allows no run of 0 tokens, and none of 0 runs; of 1 it allows one", () =>
    within((seam) =>
      Effect.gen(function* () {
        for (const name of ["maxTokens", "maxRuns"] as const) {
          const none = yield* Budget.make({ name: "none", [name]: 0 })
          const refused = yield* Effect.exit(seam.run("p", { prompt: "modest", parent: root }).pipe(paidBy(none)))
          assert.deepStrictEqual(reasonOf(refused), new LimitReached({ name, of: 'budget "none"', limit: 0, used: 0 }))
          const one = yield* Budget.make({ name: "one", [name]: 1 })
          const run = (prompt: string) => Effect.exit(seam.run("p", { prompt, parent: root }).pipe(paidBy(one)))
          assert.isTrue(Exit.isSuccess(yield* run("tokens 1")))
          assert.deepStrictEqual(
            reasonOf(yield* run("modest")),
            new LimitReached({ name, of: 'budget "one"', limit: 1, used: 1 })
          )
        }
      })
    )
  )

  it.effect("is drawn on by all who have no share of their own, until it is used up, and stops each of them", () =>
    within((seam) =>
      Effect.gen(function* () {
        const pool = yield* Budget.make({ name: "pool", maxTokens: 50 })
        const run = (prompt: string) => seam.run("p", { prompt, parent: root }).pipe(paidBy(pool))
        assert.strictEqual((yield* run("turns 2")).stopReason, "completed")
        assert.deepStrictEqual(yield* pool.spent, { tokens: 20, reserved: 0, runs: 1 })
        const { failure } = yield* run("turns 9")
        assert.deepInclude(failure, { kind: "limit", name: "maxTokens", limit: 50, used: 50 })
        assert.include(failure?.message, 'budget "pool"')
        assert.strictEqual(tagOf(yield* Effect.exit(run("modest"))), "LimitReached")
        assert.deepStrictEqual(yield* pool.spent, { tokens: 50, reserved: 0, runs: 2 })
      })
    )
  )

  it.effect("keeps a share for whoever has reserved it: others are stopped before it", () =>
    within((seam, children) =>
      Effect.gen(function* () {
        const pool = yield* Budget.make({ name: "pool", maxTokens: 50 })
        const { run } = yield* parentIn(seam, children, { maxTokens: 30 }).pipe(paidBy(pool))
        const { failure } = yield* seam.run("p", { prompt: "turns 9", parent: root }).pipe(paidBy(pool))
        assert.deepInclude(failure, { kind: "limit", name: "maxTokens", limit: 50, used: 20 })
        assert.include(failure?.message, "30 reserved")
        // what was not used is there for the next
        yield* run.cancel()
        const after = yield* seam.run("p", { prompt: "turns 3", parent: root }).pipe(paidBy(pool))
        assert.strictEqual(after.stopReason, "completed")
      })
    )
  )

  it.effect("holds for what a run starts, whoever's context that is in, and once if it is named again", () =>
    within((seam, children) =>
      Effect.gen(function* () {
        const acme = yield* Budget.make({ name: "acme", maxRuns: 3 })
        const { agent } = yield* parentIn(seam, children).pipe(paidBy(acme))
        yield* seam.run("p", { prompt: "turns 1", parent: agent })
        yield* seam.run("p", { prompt: "turns 1", parent: agent }).pipe(paidBy(acme))
        assert.deepStrictEqual(yield* acme.spent, { tokens: 20, reserved: 0, runs: 3 })
        const refused = yield* Effect.exit(seam.run("p", { prompt: "modest", parent: agent }))
        assert.deepStrictEqual(
          reasonOf(refused),
          new LimitReached({ name: "maxRuns", of: 'budget "acme"', limit: 3, used: 3 })
        )
      })
    )
  )

  it.effect("of a child's own is used beside those that it is below", () =>
    within((seam, children) =>
      Effect.gen(function* () {
        const [acme, extra] = [yield* Budget.make({ name: "acme" }), yield* Budget.make({ name: "extra" })]
        const { agent } = yield* parentIn(seam, children).pipe(paidBy(acme))
        yield* seam.run("p", { prompt: "turns 2", parent: agent }).pipe(paidBy(extra))
        assert.deepStrictEqual(yield* extra.spent, { tokens: 20, reserved: 0, runs: 1 })
        assert.deepStrictEqual(yield* acme.spent, { tokens: 20, reserved: 0, runs: 2 })
      })
    )
  )

  it.effect("pays for each run of a child that is resumed, whoever resumes it", () =>
    within((seam) =>
      Effect.gen(function* () {
        const acme = yield* Budget.make({ name: "acme", maxTokens: 60 })
        const run = yield* seam.start("p", { prompt: "turns 2", parent: root, maxTokens: 30 }).pipe(paidBy(acme))
        yield* run.result
        const resume = Effect.scoped(Effect.flatMap(run.resume!("turns 2"), ({ result }) => result))
        yield* resume
        assert.deepStrictEqual(yield* acme.spent, { tokens: 40, reserved: 0, runs: 2 })
        const limit = { name: "maxTokens", of: 'budget "acme"', limit: 60, used: 40, asked: 30 }
        assert.deepStrictEqual(reasonOf(yield* Effect.exit(resume)), new LimitReached(limit))
        const other = yield* Budget.make({ name: "other", maxTokens: 60 })
        yield* resume.pipe(paidBy(other))
        assert.deepStrictEqual(yield* other.spent, { tokens: 20, reserved: 0, runs: 1 })
      })
    )
  )

  it.effect("that nobody has made is none, however much it looks like one", () =>
    within((seam) =>
      Effect.gen(function* () {
        const acme = yield* Budget.make({ name: "acme", maxTokens: 10 })
        for (const forged of [{ ...acme }, { ...acme, maxTokens: 1e9 }, { name: "acme" }, "acme", null]) {
          const run = seam.run("p", { prompt: "modest", parent: root }).pipe(paidBy(forged as Budget.Budget))
          const exit = yield* Effect.exit(run)
          assert.strictEqual(tagOf(exit), "InvalidRequest")
          assert.include((reasonOf(exit) as SubagentError.InvalidRequest).message, "budget")
          const child = yield* Effect.exit(Budget.make({ name: "child", parent: forged as Budget.Budget }))
          assert.strictEqual(tagOf(child), "InvalidRequest")
        }
        assert.deepStrictEqual(yield* acme.spent, { tokens: 0, reserved: 0, runs: 0 })
        assert.deepStrictEqual(yield* seam.live, [])
      })
    )
  )
})

describe("what a run has not used comes back (20)", () => {
  const { die, end, fail, hang, interrupt, run: step, text, usage } = ScriptedProvider
  const failed = new SubagentError.StartFailed({ provider: "p", detail: "no room" })
  const never = (phases: ScriptedProvider.Phases) => ({ phases, runs: 0, tokens: 0 })
  const after = (...steps: ReadonlyArray<ScriptedProvider.Step>) => ({
    phases: { turn: [usage({ total: 10 }), text("so far"), ...steps] },
    runs: 1,
    tokens: 10
  })
  const ways: Readonly<Record<string, { phases: ScriptedProvider.Phases; runs: number; tokens: number }>> = {
    "has completed": after(),
    "has failed": after(end({ stopReason: "error", failure: { kind: "model", retryable: false } })),
    "was a fault": after(die("bug")),
    "interrupted itself": after(interrupt),
    "is no outcome": after(end(3)),
    "has used more than it had": { ...after(usage({ total: 150 })), tokens: 150 },
    "has used less than it had reported": {
      ...after(end({ stopReason: "completed", usage: { total: 4 } })),
      tokens: 4
    },
    "was cancelled": after(hang),
    "was interrupted": after(hang),
    "was aborted by its signal": after(hang),
    "has run out of time": after(hang),
    "ended with its parent": after(hang),
    "ended with the layer": after(hang),
    "could not start": never({ start: [fail(failed)] }),
    "died as it started": never({ start: [die("bug")] }),
    "was interrupted as it started": never({ start: [hang] }),
    "was aborted as it started": never({ start: [hang] }),
    "took too long to start": never({ start: [hang] }),
    "was to start as the layer ended": never({ start: [hang] }),
    "did not clean up after its start": never({ start: [fail(failed)], release: [die("bug")] }),
    "was to start as its parent ended": never({ start: [hang] })
  }
  for (const [how, { phases, runs, tokens }] of Object.entries(ways)) {
    it.effect(`when it ${how}`, () =>
      Effect.gen(function* () {
        const overall = yield* Budget.make({ name: "overall", maxTokens: 200 })
        const acme = yield* Budget.make({ name: "acme", maxTokens: 100, parent: overall })
        const { abort, signal } = makeSignal()
        const reserved: Array<number> = []
        const look = step(() => Effect.map(acme.spent, (spent) => reserved.push(spent.reserved)))
        const start = [look, ...(phases.start ?? [])]
        const { provider } = yield* ScriptedProvider.make({ ...phases, start }, { name: "p" })
        const children = yield* makeChildren()
        const above = { ...children.provider, name: "above" }
        const needsParent = how.includes("parent")
        const { value: running } = yield* inSeam([provider, above], (seam) =>
          Effect.gen(function* () {
            const parent = needsParent ? yield* seam.start("above", { prompt: "hold", parent: root }) : undefined
            const request = { prompt: "go", parent: parent === undefined ? root : children.agent() }
            const limits = { maxTokens: 100, timeout: "1 minute", startTimeout: "1 minute" } as const
            const running = yield* Effect.forkChild(
              seam.run("p", { ...request, ...limits, signal }).pipe(paidBy(acme)),
              { startImmediately: true }
            )
            if (how.includes("cancel")) yield* seam.cancel((yield* seam.live)[0]!.runId)
            if (how.includes("was interrupted")) yield* Fiber.interrupt(running)
            if (how.includes("aborted")) yield* Effect.sync(abort)
            if (how.includes("parent")) yield* parent!.cancel()
            if (how.includes("time") || how.includes("too long")) yield* TestClock.adjust("1 minute")
            if (!how.includes("layer")) yield* Fiber.await(running)
            return running
          }).pipe(Effect.scoped)
        )
        yield* Fiber.await(running)
        assert.deepStrictEqual(reserved, [100])
        const spent = { tokens, reserved: 0, runs }
        assert.deepStrictEqual([yield* acme.spent, yield* overall.spent], [spent, spent])
      })
    )
  }

  it.effect("when it was refused, or called off in the queue", () =>
    Effect.gen(function* () {
      const acme = yield* Budget.make({ name: "acme", maxTokens: 100 })
      yield* within(
        (seam, children) =>
          Effect.gen(function* () {
            yield* parentIn(seam, children)
            const { abort, signal } = makeSignal()
            const asking = { prompt: "modest", parent: root, maxTokens: 100 }
            const queued = yield* Effect.forkChild(seam.run("p", { ...asking, signal }).pipe(paidBy(acme)), {
              startImmediately: true
            })
            const full = yield* Effect.exit(seam.run("p", asking).pipe(paidBy(acme)))
            assert.strictEqual(tagOf(full), "LimitReached")
            // who waits holds nothing
            assert.deepStrictEqual(yield* acme.spent, { tokens: 0, reserved: 0, runs: 0 })
            abort()
            assert.strictEqual(tagOf(yield* Fiber.await(queued)), "AbortedBeforeStart")
            assert.deepStrictEqual(yield* acme.spent, { tokens: 0, reserved: 0, runs: 0 })
          }),
        { maxConcurrent: { overall: 1 }, maxQueued: 1 }
      )
    })
  )

  it.effect("before whoever has waited for a place goes on: all that a cancelled family had is there for it", () =>
    Effect.gen(function* () {
      const acme = yield* Budget.make({ name: "acme", maxTokens: 100 })
      yield* within(
        (seam, children) =>
          Effect.gen(function* () {
            const above = yield* parentIn(seam, children)
            // the first place that comes back
            yield* parentIn(seam, children, {}, above.agent)
            const below = yield* parentIn(seam, children, {}, above.agent)
            const asking = { prompt: "turns 6", parent: root, maxTokens: 60 }
            const waiting = yield* Effect.forkChild(seam.run("p", asking).pipe(paidBy(acme)), {
              startImmediately: true
            })
            // in the place of its parent, past the one that waits
            yield* parentIn(seam, children, { maxTokens: 60 }, below.agent).pipe(paidBy(acme))
            assert.strictEqual((yield* acme.spent).reserved, 60)
            yield* above.run.cancel()
            assert.strictEqual((yield* Fiber.join(waiting)).stopReason, "completed")
          }),
        { maxConcurrent: { overall: 3 } }
      )
    })
  )

  it.effect("and is looked at again when a place is there: who waited is refused what has gone meanwhile", () =>
    Effect.gen(function* () {
      const acme = yield* Budget.make({ name: "acme", maxTokens: 100 })
      yield* within(
        (seam, children) =>
          Effect.gen(function* () {
            const { run } = yield* parentIn(seam, children)
            const asking = { prompt: "turns 6", parent: root, maxTokens: 100 }
            const [first, second] = yield* Effect.forEach([1, 2], () =>
              Effect.forkChild(seam.run("p", asking).pipe(paidBy(acme)), { startImmediately: true })
            )
            yield* run.cancel()
            assert.strictEqual((yield* Fiber.join(first!)).stopReason, "completed")
            const limit = { name: "maxTokens", of: 'budget "acme"', limit: 100, used: 60, asked: 100 }
            assert.deepStrictEqual(reasonOf(yield* Fiber.await(second!)), new LimitReached(limit))
            // it gave its place back
            assert.strictEqual((yield* seam.run("p", { prompt: "modest", parent: root })).stopReason, "completed")
          }),
        { maxConcurrent: { overall: 1 } }
      )
    })
  )
})
