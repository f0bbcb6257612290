import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { Watch } from "../../src/internal/watch.ts"
import { Watchers } from "../../src/internal/watchers.ts"
import { quiesce } from "../utils/randomLives.ts"

/** Watchers, the sleeps they have begun, and watches that say when they were stopped. */
const world = Effect.gen(function* () {
  const clock = yield* Clock.clockWith(Effect.succeed)
  const fork = Effect.runForkWith(yield* Effect.context())
  const sleeps: Array<Fiber.Fiber<void>> = []
  const watchers = new Watchers(clock, (effect) => {
    const fiber = fork(effect)
    sleeps.push(fiber)
    return fiber
  })
  const stops: Array<string> = []
  const watch = (name: string, timeout: number): Watch => {
    const made: Watch = new Watch({
      clock,
      bounds: { timeout },
      asked: undefined,
      stop: () => {
        stops.push(`${name} ${clock.currentTimeMillisUnsafe()}`)
        watchers.remove(made)
      }
    })
    watchers.add(made)
    return made
  }
  const asleep = () => sleeps.filter((fiber) => fiber.pollUnsafe() === undefined).length
  return { watchers, watch, stops, sleeps, asleep }
})

/** So much time goes by, and all that comes of it. */
const pass = (millis: number) => Effect.andThen(TestClock.adjust(millis), quiesce)

describe("Watchers", () => {
  it.effect("end each run at its time, in whatever order they were added", () =>
    Effect.gen(function* () {
      const { asleep, stops, watch } = yield* world
      for (const timeout of [300, 100, 200, 400]) watch("a", timeout)
      yield* pass(250)
      watch("late", 50)
      yield* pass(1000)
      assert.deepStrictEqual(stops, ["a 100", "a 200", "a 300", "late 300", "a 400"])
      yield* pass(1000)
      assert.strictEqual(asleep(), 0)
    })
  )

  it.effect("sleep once, however many runs follow one another", () =>
    Effect.gen(function* () {
      const { asleep, sleeps, stops, watch, watchers } = yield* world
      for (let i = 0; i < 1000; i++) {
        watchers.remove(watch("a", 60_000))
        yield* quiesce
      }
      // the first one's, and the shorter one that waits for whoever comes next
      assert.strictEqual(sleeps.length, 2)
      assert.strictEqual(asleep(), 1)
      yield* pass(1000)
      assert.deepStrictEqual([asleep(), stops], [0, []])
    })
  )

  it.effect("end the next run at its time, too, when the sleep was kept for it", () =>
    Effect.gen(function* () {
      const { stops, watch, watchers } = yield* world
      watchers.remove(watch("gone", 60_000))
      yield* pass(500)
      watch("next", 60_000)
      yield* pass(59_999)
      assert.deepStrictEqual(stops, [])
      yield* pass(1)
      assert.deepStrictEqual(stops, ["next 60500"])
    })
  )

  it.effect("do not sleep for runs that all stand still, and go on when one does", () =>
    Effect.gen(function* () {
      const { asleep, stops, watch } = yield* world
      const one = watch("one", 100)
      const two = watch("two", 100)
      for (const each of [one, two]) each.pause("all")
      yield* pass(5000)
      assert.deepStrictEqual([asleep(), stops], [0, []])
      two.proceed("all")
      yield* pass(100)
      assert.deepStrictEqual(stops, ["two 5100"])
    })
  )

  it.effect("end all that are due at once, and what one of them ends with it only once", () =>
    Effect.gen(function* () {
      const { stops, watch, watchers } = yield* world
      const child = watch("child", 100)
      const clock = yield* Clock.clockWith(Effect.succeed)
      const parent: Watch = new Watch({
        clock,
        bounds: { timeout: 50 },
        asked: undefined,
        stop: () => {
          stops.push("parent")
          watchers.remove(child)
          watchers.remove(parent)
        }
      })
      watchers.add(parent)
      watch("other", 50)
      yield* pass(500)
      assert.deepStrictEqual(stops, ["parent", "other 50"])
    })
  )

  it.effect("end each run at its time, too, when the end of one was the beginning of another", () =>
    Effect.gen(function* () {
      const { asleep, stops, watch, watchers } = yield* world
      const clock = yield* Clock.clockWith(Effect.succeed)
      const first: Watch = new Watch({
        clock,
        bounds: { timeout: 10 },
        asked: undefined,
        stop: () => {
          watchers.remove(first)
          watch("next", 1000)
        }
      })
      watchers.add(first)
      watch("other", 20)
      yield* pass(10)
      assert.strictEqual(asleep(), 1)
      yield* pass(2000)
      assert.deepStrictEqual(stops, ["other 20", "next 1010"])
      assert.strictEqual(asleep(), 0)
    })
  )

  it.effect("end a run at once that was held up for longer than it had, as soon as it goes on", () =>
    Effect.gen(function* () {
      const base = yield* Clock.clockWith(Effect.succeed)
      let late = 0n
      // the time of a machine that has not come to its timers
      const clock = Object.assign(Object.create(base) as Clock.Clock, {
        monotonicTimeNanosUnsafe: () => base.monotonicTimeNanosUnsafe() + late
      })
      const stops: Array<string> = []
      const watchers = new Watchers(clock, Effect.runForkWith(yield* Effect.context()))
      const watch = new Watch({
        clock,
        bounds: { timeout: 100 },
        asked: undefined,
        stop: ({ name }) => {
          stops.push(name!)
          watchers.remove(watch)
        }
      })
      watchers.add(watch)
      late = 101_000_000n
      watch.pause("all")
      yield* pass(200)
      assert.deepStrictEqual(stops, [])
      watch.proceed("all")
      yield* quiesce
      assert.deepStrictEqual(stops, ["timeout"])
    })
  )

  it.effect("leave no sleep and end no run once they are closed", () =>
    Effect.gen(function* () {
      const { asleep, stops, watch, watchers } = yield* world
      const paused = watch("a", 100)
      paused.pause("all")
      watch("b", 100)
      watchers.close()
      yield* quiesce
      assert.strictEqual(asleep(), 0)
      yield* pass(1000)
      assert.deepStrictEqual(stops, [])
    })
  )
})
