/** How long a run may take, and what does not count. Ids are those of faults reported of comparable systems. */
import { assert, describe, it } from "@effect/vitest"
import { Approvals, SubagentError } from "effect-subagent"
import { ScriptedProvider } from "effect-subagent/testing"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import {
  agentOf,
  type Event,
  inSeam,
  makeSignal,
  type Placed,
  reasonOf,
  root,
  type Seam,
  type SeamOptions
} from "./utils/seam.ts"

const { ask, hang, run, sleep, text } = ScriptedProvider

/** A seam with one provider that plays this, from below too: its children delegate through `known`. */
const playing = <A, E>(
  script: (placed: Placed, known: () => Seam) => ScriptedProvider.RunScript,
  body: (seam: Seam) => Effect.Effect<A, E, Scope.Scope>,
  options: SeamOptions = {}
) =>
  Effect.gen(function* () {
    let known: Seam | undefined
    const { provider } = yield* ScriptedProvider.make((placed) => script(placed, () => known!), { name: "p" })
    return yield* inSeam(
      [provider],
      (seam) => {
        known = seam
        return Effect.scoped(body(seam))
      },
      options
    )
  })

const start = (seam: Seam, fields: object = {}) => seam.start("p", { prompt: "go", parent: root, ...fields })

const endOf = (events: ReadonlyArray<Event>) =>
  events.flatMap((event) => {
    if (event.type !== "subagent/end") return []
    const { cause, failure, stopReason } = event
    return [{ stopReason, cause, failure }]
  })

const timedOut = (name: string, limit: number) => ({ kind: "timeout", name, limit, used: limit })

/** The figures of what a run has failed with. */
const figuresOf = (failure: object | undefined) => {
  const { message: _message, retryable: _retryable, ...figures } = { ...failure } as Record<string, unknown>
  return figures
}

/** Nobody else's clock: whether a run goes on as long as it may, and ends a millisecond later. */
const lasts = (seam: Seam, runId: string, millis: number) =>
  Effect.gen(function* () {
    const state = Effect.map(seam.live, (live) => live.find((each) => each.runId === runId)?.state)
    yield* TestClock.adjust(millis - 1)
    assert.strictEqual(yield* state, "running")
    yield* TestClock.adjust(1)
    assert.strictEqual(yield* state, "settled")
  })

describe("C5: whoever ends a run is told as it is, in the result and in the event (20)", () => {
  const rows: Readonly<Record<string, readonly [object, (abort: () => void) => Effect.Effect<unknown>]>> = {
    "a cancel": [{ stopReason: "aborted", cause: { _tag: "Caller", reason: "enough" } }, () => Effect.void],
    "a signal": [{ stopReason: "aborted", cause: { _tag: "Signal" } }, (abort) => Effect.sync(abort)],
    "an interruption": [{ stopReason: "aborted", cause: { _tag: "Interrupt" } }, () => Effect.void],
    "a time-out": [{ stopReason: "error", failure: timedOut("timeout", 60_000) }, () => TestClock.adjust("1 minute")],
    silence: [{ stopReason: "error", failure: timedOut("idleTimeout", 30_000) }, () => TestClock.adjust("30 seconds")]
  }
  for (const [who, [expected, stop]] of Object.entries(rows)) {
    it.effect(who, () =>
      Effect.gen(function* () {
        const { abort, signal } = makeSignal()
        const { events, value } = yield* playing(
          () => [text("so far"), hang],
          (seam) =>
            Effect.gen(function* () {
              const accepted = yield* Deferred.make<Effect.Success<ReturnType<typeof start>>>()
              const limits =
                who === "a time-out" ? { timeout: "1 minute" } : { timeout: "1 minute", idleTimeout: "30 seconds" }
              const owner = yield* Effect.forkChild(
                Effect.scoped(
                  Effect.gen(function* () {
                    yield* Deferred.succeed(accepted, yield* start(seam, { ...limits, signal }))
                    return yield* Effect.never
                  })
                )
              )
              const run = yield* Deferred.await(accepted)
              if (who === "a cancel") yield* run.cancel("enough")
              if (who === "an interruption") yield* Fiber.interrupt(owner)
              yield* stop(abort)
              const result = yield* run.result
              // what comes later changes nothing
              yield* run.cancel("late")
              abort()
              yield* TestClock.adjust("1 hour")
              assert.strictEqual(yield* run.result, result)
              return result
            })
        )
        const told = ({ cause, failure, stopReason }: typeof value | ReturnType<typeof endOf>[number]) => ({
          stopReason,
          ...(cause && { cause }),
          ...(failure && { failure: figuresOf(failure) })
        })
        assert.deepStrictEqual<object>(told(value), expected)
        assert.deepStrictEqual<object>(endOf(events).map(told), [expected])
        assert.deepStrictEqual(value.output, [{ type: "text", text: "so far" }])
      })
    )
  }
})

describe("a child that says nothing any more (20)", () => {
  it.effect(
    "D2: ends when it has been silent for its idleTimeout, whatever it has said before, with that as its output",
    () =>
      playing(
        () => [...Array.from({ length: 5 }, (_, n) => [sleep("9 seconds"), text(`chunk ${n}`)]).flat(), hang],
        (seam) =>
          Effect.gen(function* () {
            const run = yield* start(seam, { idleTimeout: "10 seconds" })
            yield* TestClock.adjust("45 seconds")
            yield* lasts(seam, run.runId, 10_000)
            const { failure, output, stopReason } = yield* run.result
            assert.strictEqual(stopReason, "error")
            assert.deepStrictEqual(figuresOf(failure), timedOut("idleTimeout", 10_000))
            assert.deepStrictEqual(output, [{ type: "text", text: "chunk 4" }])
          })
      )
  )

  it.effect("D2: is each run's own matter, also one that has never said anything", () =>
    playing(
      () => [hang],
      (seam) =>
        Effect.gen(function* () {
          const short = yield* start(seam, { idleTimeout: "1 second" })
          const long = yield* start(seam, { idleTimeout: "1 minute" })
          const without = yield* start(seam)
          yield* lasts(seam, short.runId, 1000)
          yield* lasts(seam, long.runId, 59_000)
          assert.deepStrictEqual((yield* short.result).output, [])
          yield* TestClock.adjust("1 day")
          assert.strictEqual((yield* seam.live).find(({ runId }) => runId === without.runId)?.state, "running")
        })
    )
  )

  it.effect("is not who waits for a child at work, nor for what is at work below that", () =>
    playing(
      (placed, known) =>
        placed.lineage.depth === 3
          ? Array.from({ length: 10 }, () => [sleep("9 seconds"), text("still at it")]).flat()
          : [run(() => known().run("p", { prompt: "go", parent: agentOf(placed) })), text("done")],
      (seam) =>
        Effect.gen(function* () {
          const run = yield* start(seam, { idleTimeout: "10 seconds" })
          yield* TestClock.adjust("90 seconds")
          assert.strictEqual((yield* run.result).stopReason, "completed")
        })
    )
  )

  it.effect("is not who waits for a place for its child, though its time goes on", () =>
    playing(
      (placed, known) =>
        placed.label === "parent"
          ? [run(() => known().run("p", { prompt: "go", parent: agentOf(placed) })), text("done")]
          : [hang],
      (seam) =>
        Effect.gen(function* () {
          // the child is started at the parent's side, in a place of its own
          yield* start(seam, { label: "stranger" })
          const parent = yield* seam.start("q", {
            prompt: "go",
            parent: root,
            label: "parent",
            idleTimeout: "1 second"
          })
          yield* TestClock.adjust("1 hour")
          assert.strictEqual((yield* seam.live).at(-1)?.runId, parent.runId)
          assert.strictEqual((yield* seam.live).at(-1)?.state, "running")
          const timed = yield* seam.start("q", { prompt: "go", parent: root, label: "parent", timeout: "1 second" })
          yield* lasts(seam, timed.runId, 1000)
        }).pipe((body) =>
          Effect.flatMap(seam.get("p"), (provider) => Effect.andThen(seam.register({ ...provider, name: "q" }), body))
        ),
      { maxConcurrent: { provider: { p: 1 } } }
    )
  )
})

describe("a start that never comes about (20)", () => {
  it.effect("D12: fails with what it has waited for, leaves nothing behind, and there were no events of it", () =>
    Effect.gen(function* () {
      const { provider, runs } = yield* ScriptedProvider.make({ start: [sleep("1 second"), hang] }, { name: "p" })
      const { events } = yield* inSeam([provider], (seam) =>
        Effect.gen(function* () {
          const starting = yield* Effect.forkChild(Effect.scoped(start(seam, { startTimeout: "5 seconds" })), {
            startImmediately: true
          })
          yield* TestClock.adjust(4999)
          assert.isUndefined(starting.pollUnsafe())
          yield* TestClock.adjust(1)
          const exit = yield* Fiber.await(starting)
          assert.deepStrictEqual(reasonOf(exit), new SubagentError.StartTimeout({ provider: "p", timeout: 5000 }))
          const [{ moments }] = (yield* runs) as [ScriptedProvider.ScriptedRun]
          assert.deepStrictEqual(moments, ["start-begun", "start-interrupted", "release-begun", "release-ended"])
          assert.deepStrictEqual(yield* seam.live, [])
        })
      )
      assert.deepStrictEqual(
        events.filter(({ type }) => type.startsWith("subagent/start") || type.startsWith("subagent/end")),
        []
      )
    })
  )

  it.effect("does not count the wait for a place, nor what the child does when it is there", () =>
    playing(
      ({ label }) =>
        label === "first"
          ? [sleep("1 hour"), text("done")]
          : { start: [sleep("4 seconds")], turn: [sleep("1 hour"), text("done")] },
      (seam) =>
        Effect.gen(function* () {
          yield* start(seam, { label: "first" })
          const second = yield* Effect.forkChild(
            Effect.scoped(Effect.flatMap(start(seam, { startTimeout: "5 seconds" }), ({ result }) => result)),
            { startImmediately: true }
          )
          yield* TestClock.adjust("1 hour")
          yield* TestClock.adjust("4 seconds")
          yield* TestClock.adjust("1 hour")
          assert.strictEqual((yield* Fiber.join(second)).stopReason, "completed")
        }),
      { maxConcurrent: { overall: 1 } }
    )
  )
})

describe("the clocks of a run stand still (20)", () => {
  /** An approver that decides when it is told to. */
  const deciding = () => {
    const asked = Deferred.makeUnsafe<void>()
    const decided = Deferred.makeUnsafe<"approved">()
    const approver: Approvals.Approver = {
      decide: () => Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(decided)),
      timeout: "1 day"
    }
    return { approver, asked: Deferred.await(asked), decide: Deferred.succeed(decided, "approved") }
  }
  const work = [text("at work"), sleep("4 seconds"), ask({ name: "erase" }), hang]
  const both = { timeout: "10 seconds", idleTimeout: "9 seconds" } as const

  it.effect("while it waits for an approval, and go on from where they were", () =>
    Effect.gen(function* () {
      const { approver, decide } = deciding()
      yield* playing(
        () => work,
        (seam) =>
          Effect.gen(function* () {
            const run = yield* start(seam, both)
            yield* TestClock.adjust("4 seconds")
            yield* TestClock.adjust("1 hour")
            yield* decide
            yield* lasts(seam, run.runId, 6000)
            assert.deepStrictEqual(figuresOf((yield* run.result).failure), timedOut("timeout", 10_000))
          })
      ).pipe(Effect.provideService(Approvals.Approvals, approver))
    })
  )

  it.effect("while a grandchild waits for one, those of all above it", () =>
    Effect.gen(function* () {
      const { approver, decide } = deciding()
      const { events } = yield* playing(
        (placed, known) =>
          placed.lineage.depth === 3
            ? work
            : [run(() => known().run("p", { prompt: "go", parent: agentOf(placed) })), text("done")],
        (seam) =>
          Effect.gen(function* () {
            const run = yield* start(seam, both)
            yield* TestClock.adjust("4 seconds")
            yield* TestClock.adjust("1 hour")
            assert.deepStrictEqual(
              (yield* seam.live).map(({ state }) => state),
              ["running", "running", "running"]
            )
            yield* decide
            yield* lasts(seam, run.runId, 6000)
          })
      ).pipe(Effect.provideService(Approvals.Approvals, approver))
      assert.strictEqual(endOf(events).length, 3)
    })
  )

  it.effect("but those of its siblings go on", () =>
    Effect.gen(function* () {
      const { approver } = deciding()
      yield* playing(
        ({ label }) => (label === "asks" ? work : [hang]),
        (seam) =>
          Effect.gen(function* () {
            const asks = yield* start(seam, { ...both, label: "asks" })
            yield* TestClock.adjust("4 seconds")
            const sibling = yield* start(seam, { ...both, label: "sibling" })
            yield* lasts(seam, sibling.runId, 9000)
            assert.strictEqual((yield* seam.live).find(({ runId }) => runId === asks.runId)?.state, "running")
          })
      ).pipe(Effect.provideService(Approvals.Approvals, approver))
    })
  )

  it.effect("as long as two questions are open, and go on with the answer to the last of them", () =>
    Effect.gen(function* () {
      const answers = new Map([1, 2].map((id) => [`call-${id}`, Deferred.makeUnsafe<"approved">()]))
      const approver: Approvals.Approver = {
        decide: ({ toolCallId }) => Deferred.await(answers.get(toolCallId)!),
        timeout: "1 day"
      }
      yield* playing(
        () => [
          text("at work"),
          (play) =>
            Effect.all(
              [1, 2].map((id) => ask({ name: "erase", id: `call-${id}` })(play)),
              { concurrency: 2 }
            ),
          hang
        ],
        (seam) =>
          Effect.gen(function* () {
            const run = yield* start(seam, { timeout: "10 seconds" })
            yield* TestClock.adjust("1 hour")
            yield* Deferred.succeed(answers.get("call-2")!, "approved")
            yield* TestClock.adjust("1 hour")
            yield* Deferred.succeed(answers.get("call-1")!, "approved")
            yield* lasts(seam, run.runId, 10_000)
          })
      ).pipe(Effect.provideService(Approvals.Approvals, approver))
    })
  )

  it.effect("no longer than the approver may take, though it can't be interrupted", () =>
    Effect.gen(function* () {
      const approver: Approvals.Approver = { decide: () => Effect.uninterruptible(Effect.never), timeout: "1 minute" }
      yield* playing(
        () => work,
        (seam) =>
          Effect.gen(function* () {
            const run = yield* start(seam, both)
            yield* TestClock.adjust("4 seconds")
            yield* TestClock.adjust("1 minute")
            yield* lasts(seam, run.runId, 6000)
            // one that is cancelled as it waits is not kept by it either
            const other = yield* start(seam, both)
            yield* TestClock.adjust("4 seconds")
            yield* other.cancel()
            yield* other.dispose
            assert.strictEqual((yield* other.result).stopReason, "aborted")
          })
      ).pipe(Effect.provideService(Approvals.Approvals, approver))
    })
  )

  it.effect("not at all for a wall clock that is set: they go by the monotonic one", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      let offset = 0
      const jumping: Clock.Clock = Object.assign(Object.create(clock) as Clock.Clock, {
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + offset,
        currentTimeMillis: Effect.sync(() => clock.currentTimeMillisUnsafe() + offset),
        currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe() + BigInt(offset) * 1_000_000n,
        currentTimeNanos: Effect.sync(() => clock.currentTimeNanosUnsafe() + BigInt(offset) * 1_000_000n)
      })
      for (const jump of [86_400_000, -86_400_000]) {
        yield* playing(
          () => [text("so far"), hang],
          (seam) =>
            Effect.gen(function* () {
              offset = 0
              const timed = yield* start(seam, { timeout: "10 seconds" })
              const idle = yield* start(seam, { idleTimeout: "10 seconds" })
              yield* TestClock.adjust("5 seconds")
              offset = jump
              const late = yield* start(seam, { timeout: "10 seconds" })
              yield* TestClock.adjust(4999)
              const states = Effect.map(seam.live, (live) => live.map(({ state }) => state))
              assert.deepStrictEqual(yield* states, ["running", "running", "running"])
              yield* TestClock.adjust(1)
              assert.deepStrictEqual(yield* states, ["settled", "settled", "running"])
              yield* lasts(seam, late.runId, 5000)
              yield* Effect.all([timed.result, idle.result])
            })
        ).pipe(Effect.provideService(Clock.Clock, jumping))
      }
    })
  )
})

describe("a run that has ended in time (20)", () => {
  it.effect("is not ended once more, and keeps no clock running", () =>
    playing(
      () => [sleep(9999), text("done")],
      (seam) =>
        Effect.gen(function* () {
          const run = yield* start(seam, { timeout: "10 seconds", idleTimeout: "10 seconds" })
          yield* TestClock.adjust("10 seconds")
          assert.strictEqual((yield* run.result).stopReason, "completed")
          yield* TestClock.adjust("1 hour")
          assert.strictEqual((yield* run.result).stopReason, "completed")
        })
    )
  )
})
