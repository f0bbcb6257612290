import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import type { SubagentRequest, SubagentResult } from "effect-subagent"
import { Watch } from "../../src/internal/watch.ts"
import { Watchers } from "../../src/internal/watchers.ts"
import { quiesce } from "../utils/randomLives.ts"

/** A watch at work, from now on, and what it has stopped. */
const watching = (bounds: SubagentRequest.Bounds, asked?: SubagentRequest.Bounds) =>
  Effect.gen(function* () {
    const clock = yield* Clock.clockWith(Effect.succeed)
    const stops: Array<SubagentResult.SubagentFailure> = []
    const watch: Watch = new Watch({
      clock,
      bounds,
      asked,
      stop: (failure) => {
        stops.push(failure)
        // as the run that is stopped does
        watchers.remove(watch)
      }
    })
    const watchers = new Watchers(clock, Effect.runForkWith(yield* Effect.context()))
    watchers.add(watch)
    const names = () => stops.map(({ name }) => name)
    return { watch, watchers, stops, names }
  })

/** So much time goes by, and all that comes of it. */
const pass = (duration: Duration.Input) => Effect.andThen(TestClock.adjust(duration), quiesce)

/** The clock of the test, with some of it changed, and how many sleep by it. */
const changed = (
  change: (clock: Clock.Clock) => Partial<Omit<Clock.Clock, "sleep">> & {
    readonly sleep?: (duration: Duration.Duration) => Effect.Effect<void>
  }
) =>
  Effect.gen(function* () {
    const base = yield* Clock.clockWith(Effect.succeed)
    const sleepers = { now: 0, ever: 0 }
    const { sleep = (duration: Duration.Duration) => base.sleep(duration), ...others } = change(base)
    const clock: Clock.Clock = {
      currentTimeMillisUnsafe: () => base.currentTimeMillisUnsafe(),
      currentTimeMillis: base.currentTimeMillis,
      currentTimeNanosUnsafe: () => base.currentTimeNanosUnsafe(),
      currentTimeNanos: base.currentTimeNanos,
      monotonicTimeNanosUnsafe: () => base.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: base.monotonicTimeNanos,
      sleep: (duration) =>
        Effect.acquireUseRelease(
          Effect.sync(() => {
            sleepers.now++
            sleepers.ever++
          }),
          () => sleep(duration),
          () => Effect.sync(() => sleepers.now--)
        ),
      ...others
    }
    return { clock, sleepers }
  })

describe("Watch", () => {
  it.effect("ends a run exactly when its time is up, not a millisecond before", () =>
    Effect.gen(function* () {
      for (const name of ["timeout", "idleTimeout"] as const) {
        for (const limit of [1, 100, 60_000]) {
          const { names } = yield* watching({ [name]: limit })
          yield* pass(limit - 1)
          assert.deepStrictEqual(names(), [], `${name} ${limit}`)
          yield* pass(1)
          assert.deepStrictEqual(names(), [name], `${name} ${limit}`)
          yield* pass(limit * 3)
          assert.deepStrictEqual(names(), [name], `${name} ${limit}`)
        }
      }
    })
  )

  it.effect("tells which limit it was, and what was asked for where something tighter holds", () =>
    Effect.gen(function* () {
      const work = yield* watching({ timeout: 100 }, { timeout: 500 })
      const silence = yield* watching({ idleTimeout: 50 }, { timeout: 500, idleTimeout: 50 })
      const tighter = yield* watching({ timeout: 10 }, { timeout: 5 })
      yield* pass(100)
      assert.deepStrictEqual(work.stops, [
        {
          kind: "timeout",
          retryable: true,
          name: "timeout",
          limit: 100,
          used: 100,
          asked: 500,
          message: "The child was still at work after 100 ms; 500 asked for"
        }
      ])
      assert.deepStrictEqual(silence.stops, [
        {
          kind: "timeout",
          retryable: true,
          name: "idleTimeout",
          limit: 50,
          used: 50,
          message: "Nothing was heard of the child after 50 ms"
        }
      ])
      assert.notProperty(tighter.stops[0], "asked")
    })
  )

  it.effect("goes by the time since it was made, not since somebody looks", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.clockWith(Effect.succeed)
      const stops: Array<unknown> = []
      const watch = new Watch({ clock, bounds: { timeout: 50 }, asked: undefined, stop: (one) => stops.push(one) })
      const watchers = new Watchers(clock, Effect.runForkWith(yield* Effect.context()))
      yield* pass(30)
      watchers.add(watch)
      yield* pass(19)
      assert.strictEqual(stops.length, 0)
      yield* pass(1)
      assert.isAtLeast(stops.length, 1)
      watchers.close()
    })
  )

  it.effect("has two clocks, of which the first to run out ends the run, once", () =>
    Effect.gen(function* () {
      const idle = yield* watching({ timeout: 100, idleTimeout: 40 })
      const busy = yield* watching({ timeout: 100, idleTimeout: 40 })
      const both = yield* watching({ timeout: 40, idleTimeout: 40 })
      for (let i = 0; i < 4; i++) {
        yield* pass(30)
        busy.watch.heard()
      }
      assert.deepStrictEqual(idle.names(), ["idleTimeout"])
      assert.deepStrictEqual(busy.names(), ["timeout"])
      assert.deepStrictEqual(both.names(), ["timeout"])
    })
  )

  it.effect("watches nothing where nothing is limited", () =>
    Effect.gen(function* () {
      const { clock, sleepers } = yield* changed(() => ({}))
      const { names, watch } = yield* Effect.provideService(watching({ maxTurns: 1 }), Clock.Clock, clock)
      watch.heard()
      watch.pause("all")
      watch.proceed("all")
      yield* pass("365 days")
      assert.deepStrictEqual([names(), sleepers.ever], [[], 0])
    })
  )
})

describe("heard", () => {
  it.effect("begins the silence anew, and only that", () =>
    Effect.gen(function* () {
      const { names, watch } = yield* watching({ idleTimeout: 100 })
      for (let i = 0; i < 5; i++) {
        yield* pass(99)
        watch.heard()
      }
      yield* pass(99)
      assert.deepStrictEqual(names(), [])
      yield* pass(1)
      assert.deepStrictEqual(names(), ["idleTimeout"])
    })
  )

  it.effect("begins it anew also where it stands still: then it runs in full afterwards", () =>
    Effect.gen(function* () {
      const { names, watch } = yield* watching({ idleTimeout: 100 })
      yield* pass(80)
      watch.pause("all")
      yield* pass(500)
      watch.heard()
      yield* pass(500)
      watch.proceed("all")
      yield* pass(99)
      assert.deepStrictEqual(names(), [])
      yield* pass(1)
      assert.deepStrictEqual(names(), ["idleTimeout"])
    })
  )
})

describe("pause and proceed", () => {
  it.effect("let both clocks stand still, and go on from where they stood", () =>
    Effect.gen(function* () {
      for (const name of ["timeout", "idleTimeout"] as const) {
        const { names, watch } = yield* watching({ [name]: 100 })
        yield* pass(60)
        for (const wait of [0, 1, 1000, 100_000]) {
          watch.pause("all")
          yield* pass(wait)
          watch.proceed("all")
          yield* pass(5)
        }
        yield* pass(19)
        assert.deepStrictEqual(names(), [], name)
        yield* pass(1)
        assert.deepStrictEqual(names(), [name])
      }
    })
  )

  it.effect("let the silence alone stand still", () =>
    Effect.gen(function* () {
      const { names, watch } = yield* watching({ timeout: 1000, idleTimeout: 100 })
      watch.pause("silence")
      yield* pass(999)
      assert.deepStrictEqual(names(), [])
      yield* pass(1)
      assert.deepStrictEqual(names(), ["timeout"])
      const other = yield* watching({ timeout: 1000, idleTimeout: 100 })
      other.watch.pause("silence")
      yield* pass(500)
      other.watch.proceed("silence")
      yield* pass(99)
      assert.deepStrictEqual(other.names(), [])
      yield* pass(1)
      assert.deepStrictEqual(other.names(), ["idleTimeout"])
    })
  )

  it.effect("count: one inside of another, the clock goes on with the last one", () =>
    Effect.gen(function* () {
      const { names, watch } = yield* watching({ timeout: 100 })
      yield* pass(50)
      watch.pause("all")
      yield* pass(70)
      watch.pause("all")
      yield* pass(70)
      watch.proceed("all")
      yield* pass(70)
      assert.deepStrictEqual(names(), [])
      watch.proceed("all")
      yield* pass(49)
      assert.deepStrictEqual(names(), [])
      yield* pass(1)
      assert.deepStrictEqual(names(), ["timeout"])
    })
  )

  it.effect("overlap: each clock goes on when no reason for it is left", () =>
    Effect.gen(function* () {
      const { names, watch } = yield* watching({ timeout: 1000, idleTimeout: 100 })
      watch.pause("all")
      yield* pass(200)
      watch.pause("silence")
      yield* pass(200)
      watch.proceed("all")
      yield* pass(900)
      assert.deepStrictEqual(names(), [])
      watch.proceed("silence")
      yield* pass(99)
      assert.deepStrictEqual(names(), [])
      yield* pass(1)
      // 1,000 of work, and 100 of silence: the work is named
      assert.deepStrictEqual(names(), ["timeout"])
    })
  )

  it.effect("hold up a clock that is just running out, until it goes on", () =>
    Effect.gen(function* () {
      const { clock } = yield* changed((base) => ({
        sleep: (duration) => base.sleep(Duration.sum(duration, Duration.millis(50)))
      }))
      const { names, watch } = yield* Effect.provideService(watching({ timeout: 100 }), Clock.Clock, clock)
      // its time is up, but the timer that says so is late
      yield* pass(120)
      watch.pause("all")
      yield* pass(1000)
      assert.deepStrictEqual(names(), [])
      watch.proceed("all")
      yield* quiesce
      assert.deepStrictEqual(names(), ["timeout"])
    })
  )

  it.effect("sleep by no clock that stands still", () =>
    Effect.gen(function* () {
      const { clock, sleepers } = yield* changed(() => ({}))
      const { watch } = yield* Effect.provideService(watching({ timeout: 100, idleTimeout: 10 }), Clock.Clock, clock)
      watch.pause("all")
      yield* pass(1000)
      assert.deepStrictEqual(sleepers, { now: 0, ever: 1 })
      watch.proceed("all")
      yield* quiesce
      assert.deepStrictEqual(sleepers, { now: 1, ever: 2 })
    })
  )
})

describe("the time it goes by", () => {
  it.effect("is not that of a wall clock, which may be set forwards and backwards", () =>
    Effect.gen(function* () {
      let jump = 0
      const { clock } = yield* changed((base) => ({
        currentTimeMillisUnsafe: () => base.currentTimeMillisUnsafe() + jump,
        currentTimeMillis: Effect.sync(() => base.currentTimeMillisUnsafe() + jump),
        currentTimeNanosUnsafe: () => base.currentTimeNanosUnsafe() + BigInt(jump) * 1_000_000n,
        currentTimeNanos: Effect.sync(() => base.currentTimeNanosUnsafe() + BigInt(jump) * 1_000_000n)
      }))
      for (const by of [3_600_000, -3_600_000, 50, -50]) {
        const { names, watch } = yield* Effect.provideService(
          watching({ timeout: 100, idleTimeout: 70 }),
          Clock.Clock,
          clock
        )
        yield* pass(40)
        jump += by
        watch.heard()
        watch.pause("all")
        jump += by
        yield* pass(10)
        watch.proceed("all")
        jump += by
        yield* pass(59)
        assert.deepStrictEqual(names(), [], String(by))
        yield* pass(1)
        assert.deepStrictEqual(names(), ["timeout"], String(by))
      }
    })
  )

  it.effect("is looked at again when a timer was early", () =>
    Effect.gen(function* () {
      const early = yield* changed((base) => ({ sleep: (duration) => base.sleep(Duration.times(duration, 0.5)) }))
      const { names } = yield* Effect.provideService(watching({ timeout: 1000 }), Clock.Clock, early.clock)
      for (let i = 0; i < 999; i++) yield* TestClock.adjust(1)
      assert.deepStrictEqual(names(), [])
      yield* pass(1)
      assert.deepStrictEqual(names(), ["timeout"])
      assert.isBelow(early.sleepers.ever, 20)
    })
  )

  it.effect("may be in parts of a millisecond, of which a last one is slept in full", () =>
    Effect.gen(function* () {
      const { clock, sleepers } = yield* changed(() => ({}))
      yield* pass("100 micros")
      // 1.2 - 0.1 is less than 1.1, where numbers are what they are
      const { names } = yield* Effect.provideService(watching({ timeout: 1.1 }), Clock.Clock, clock)
      yield* pass("1 milli")
      assert.deepStrictEqual(names(), [])
      yield* pass("2 millis")
      assert.deepStrictEqual(names(), ["timeout"])
      assert.isAtMost(sleepers.ever, 3)
    })
  )

  it.effect("may be longer than a timer can take", () =>
    Effect.gen(function* () {
      for (const limit of [2 ** 31 - 1, 2 ** 31, 2 ** 32 + 1, 2 ** 40]) {
        const { names } = yield* watching({ timeout: limit })
        yield* pass(limit - 1)
        assert.deepStrictEqual(names(), [], String(limit))
        yield* pass(1)
        assert.deepStrictEqual(names(), ["timeout"], String(limit))
      }
    })
  )

  it.live("may be longer than a timer can take, by the clock of the machine", () =>
    Effect.gen(function* () {
      const { names } = yield* watching({ timeout: 2 ** 31 + 1000, idleTimeout: 2 ** 40 })
      // a timer of Node's that is too long fires after 1 ms, and so before one of 5 that was set after it
      yield* Effect.sleep(5)
      yield* quiesce
      assert.deepStrictEqual(names(), [])
    })
  )
})
