import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { make } from "../../../../src/providers/internal/acp/timeLimit.ts"

/** Counts the sleeps that are begun. */
const counting = Effect.map(Clock.Clock, (clock) => {
  let sleeps = 0
  const counted: Clock.Clock = Object.assign(Object.create(clock) as Clock.Clock, {
    sleep: (duration: Duration.Duration) => Effect.suspend(() => (sleeps++, clock.sleep(duration)))
  })
  return { clock: counted, sleeps: () => sleeps }
})

const wait = (within: Effect.Success<ReturnType<typeof make>>) => {
  const awaited = Deferred.makeUnsafe<string, string>()
  return Effect.map(
    Effect.forkChild(
      within(awaited, () => "late"),
      { startImmediately: true }
    ),
    (fiber) => ({ awaited, fiber })
  )
}

describe("a limit of time", () => {
  it.effect("fails each wait when its own time is over, and none before", () =>
    Effect.gen(function* () {
      const within = yield* make(Duration.seconds(10))
      const first = yield* wait(within)
      yield* TestClock.adjust("4 seconds")
      const second = yield* wait(within)
      yield* TestClock.adjust("5999 millis")
      assert.isUndefined(first.fiber.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(first.fiber.pollUnsafe(), Exit.fail("late"))
      yield* TestClock.adjust("3999 millis")
      assert.isUndefined(second.fiber.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(second.fiber.pollUnsafe(), Exit.fail("late"))
      const third = yield* wait(within)
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(third.fiber.pollUnsafe(), Exit.fail("late"))
    })
  )

  it.effect("leaves what is over in time alone, and sleeps once for all of it", () =>
    Effect.gen(function* () {
      const { clock, sleeps } = yield* counting
      yield* Effect.gen(function* () {
        const within = yield* make(Duration.seconds(10))
        for (let i = 0; i < 100; i++) {
          const { awaited, fiber } = yield* wait(within)
          yield* Effect.yieldNow
          yield* i % 2 === 0 ? Deferred.succeed(awaited, "in time") : Deferred.fail(awaited, "failed")
          assert.deepStrictEqual(yield* Fiber.await(fiber), i % 2 === 0 ? Exit.succeed("in time") : Exit.fail("failed"))
        }
        assert.strictEqual(sleeps(), 1)
        const last = yield* wait(within)
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(last.fiber.pollUnsafe(), Exit.fail("late"))
      }).pipe(Effect.provideService(Clock.Clock, clock))
    })
  )

  it.effect("is not kept by a wait that was interrupted", () =>
    Effect.gen(function* () {
      const within = yield* make(Duration.seconds(10))
      const gone = yield* wait(within)
      yield* TestClock.adjust("5 seconds")
      const stays = yield* wait(within)
      yield* Fiber.interrupt(gone.fiber)
      yield* TestClock.adjust("5 seconds")
      assert.isFalse(Deferred.isDoneUnsafe(gone.awaited))
      assert.isUndefined(stays.fiber.pollUnsafe())
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(stays.fiber.pollUnsafe(), Exit.fail("late"))
    })
  )

  it.effect("may be endless", () =>
    Effect.gen(function* () {
      const { awaited, fiber } = yield* wait(yield* make(Duration.infinity))
      yield* TestClock.adjust("1000 days")
      assert.isUndefined(fiber.pollUnsafe())
      yield* Deferred.succeed(awaited, "after all")
      assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.succeed("after all"))
    })
  )

  it.effect("watches over nothing once its scope is closed", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { fiber } = yield* wait(yield* Scope.provide(make(Duration.seconds(10)), scope))
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("10 seconds")
      assert.isUndefined(fiber.pollUnsafe())
    })
  )
})
