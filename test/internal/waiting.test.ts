import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { AllWaiting } from "../../src/internal/waiting.ts"
import { Waiting } from "../../src/internal/waiting.ts"
import { quiesce } from "../utils/randomLives.ts"

/** One that waits for a gate, for a run and for another. */
const makeWaiting = () => {
  const all: AllWaiting = new Map()
  const by = [new Set<() => void>(), undefined, new Set<() => void>()]
  const waiting = new Waiting(all)
  const gate = Deferred.makeUnsafe<string>()
  let stopped = 0
  const until = waiting.until(
    Effect.onInterrupt(Deferred.await(gate), () => Effect.sync(() => stopped++)),
    by
  )
  return {
    all,
    waiting,
    until,
    open: () => void Deferred.doneUnsafe(gate, Exit.succeed("here")),
    /** Who can call it off, and how often what it waits for was stopped. */
    state: () => ({ listed: all.size, by: by.map((set) => set?.size ?? 0), stopped })
  }
}

describe("Waiting", () => {
  it.effect("gives what it has waited for, and can be called off no longer by what it waited on behalf of", () =>
    Effect.gen(function* () {
      const { open, state, until } = makeWaiting()
      const fiber = yield* Effect.forkChild(until, { startImmediately: true })
      assert.deepStrictEqual(state(), { listed: 1, by: [1, 0, 1], stopped: 0 })
      open()
      assert.strictEqual(yield* Fiber.join(fiber), "here")
      // the registry still waits until what has begun is over
      assert.deepStrictEqual(state(), { listed: 1, by: [0, 0, 0], stopped: 0 })
    })
  )

  it.effect("gives nothing when one of these calls it off, or the registry, and stops what it waits for", () =>
    Effect.gen(function* () {
      for (const i of [0, 2, "registry"] as const) {
        const by = [new Set<() => void>(), undefined, new Set<() => void>()]
        const all: AllWaiting = new Map()
        const waiting = new Waiting(all)
        let stopped = false
        const fiber = yield* Effect.forkChild(
          waiting.until(
            Effect.onInterrupt(Effect.never, () => Effect.sync(() => (stopped = true))),
            by
          ),
          { startImmediately: true }
        )
        for (const callOff of i === "registry" ? all.keys() : by[i]!) callOff()
        assert.isUndefined(yield* Fiber.join(fiber))
        assert.isTrue(stopped)
        assert.deepStrictEqual(
          by.map((set) => set?.size ?? 0),
          [0, 0, 0]
        )
      }
    })
  )

  it.effect("does not even begin to wait once it has been called off", () =>
    Effect.gen(function* () {
      const { state, until, waiting } = makeWaiting()
      waiting.callOff()
      waiting.callOff()
      for (const again of [1, 2]) {
        assert.isUndefined(yield* until)
        assert.deepStrictEqual(state(), { listed: 1, by: [0, 0, 0], stopped: again })
      }
    })
  )

  it.effect("is one however often it waits, and the registry hears when it is over", () =>
    Effect.gen(function* () {
      const { all, open, state, until, waiting } = makeWaiting()
      open()
      yield* until
      const [over] = all.values()
      yield* until
      assert.deepStrictEqual(Array.from(all.values()), [over])
      const hearing = yield* Effect.forkChild(Deferred.await(over!), { startImmediately: true })
      yield* quiesce
      assert.isUndefined(hearing.pollUnsafe())
      waiting.isOver()
      yield* Fiber.join(hearing)
      assert.strictEqual(state().listed, 0)
      waiting.isOver()
      assert.strictEqual(state().listed, 0)
    })
  )

  it("is over without having waited", () => {
    const { state, waiting } = makeWaiting()
    waiting.isOver()
    assert.strictEqual(state().listed, 0)
  })

  it.effect("can be interrupted, and is forgotten by what it waited on behalf of", () =>
    Effect.gen(function* () {
      const { state, until } = makeWaiting()
      const fiber = yield* Effect.forkChild(until, { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(state(), { listed: 1, by: [0, 0, 0], stopped: 1 })
    })
  )
})
