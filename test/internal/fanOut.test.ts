import { assert, describe, it } from "@effect/vitest"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import * as FanOut from "../../src/internal/fanOut.ts"

const drain = <A>(queue: Queue.Dequeue<A, Cause.Done>) => Stream.runCollect(Stream.fromQueue(queue))

describe("fanOut", () => {
  it.effect("gives everybody everything from the time they came, after their replay", () =>
    Effect.gen(function* () {
      const fanOut = FanOut.make<number>(10)
      const first = yield* fanOut.subscribe([])
      fanOut.publish(1)
      const second = yield* fanOut.subscribe([0])
      fanOut.publish(2)
      fanOut.end()
      assert.deepStrictEqual(yield* drain(first), [1, 2])
      assert.deepStrictEqual(yield* drain(second), [0, 2])
    })
  )

  it.effect("lets a slow one lose its oldest, and nobody else (6)", () =>
    Effect.gen(function* () {
      const fanOut = FanOut.make<number>(2)
      const slow = yield* fanOut.subscribe([])
      const quick = yield* fanOut.subscribe([])
      const heard: Array<number> = []
      for (const item of [1, 2, 3, 4]) {
        fanOut.publish(item)
        heard.push(yield* Effect.orDie(Queue.take(quick)))
      }
      fanOut.end()
      assert.deepStrictEqual(heard, [1, 2, 3, 4])
      assert.deepStrictEqual(yield* drain(slow), [3, 4])
    })
  )

  it.effect("ends whoever comes after the end, with the replay", () =>
    Effect.gen(function* () {
      const fanOut = FanOut.make<number>(2)
      fanOut.end()
      assert.deepStrictEqual(yield* drain(yield* fanOut.subscribe([1, 2, 3])), [2, 3])
    })
  )

  it.effect("forgets whoever leaves, and wakes who still waits there", () =>
    Effect.gen(function* () {
      const fanOut = FanOut.make<number>(1)
      const fiber = yield* fanOut.subscribe([]).pipe(
        Effect.flatMap((queue) => Effect.forkDetach(Effect.exit(Queue.take(queue)), { startImmediately: true })),
        Effect.scoped
      )
      fanOut.publish(1)
      assert.strictEqual((yield* Fiber.join(fiber))._tag, "Failure")
    })
  )
})
