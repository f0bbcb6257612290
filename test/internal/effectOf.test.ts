import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { effectOf } from "../../src/internal/effectOf.ts"

describe("what a function of a host's gave, where an effect is due", () => {
  it.effect("is the effect, if it is one", () =>
    Effect.gen(function* () {
      const effect = Effect.succeed(1)
      assert.strictEqual(effectOf(effect), effect)
      assert.strictEqual(yield* effectOf(effect), 1)
    })
  )

  it.effect("is else a defect, and the rejection of a promise is handled", () =>
    Effect.gen(function* () {
      const rejections: Array<unknown> = []
      const listener = (reason: unknown) => rejections.push(reason)
      process.on("unhandledRejection", listener)
      for (const given of [undefined, 1, () => {}, Promise.resolve(1), Promise.reject(new Error("no"))]) {
        const defect = yield* Effect.flip(
          Effect.catchDefect(effectOf<never, never, never>(given as never), Effect.fail)
        )
        assert.strictEqual(defect, "it gave something that is not an effect")
      }
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      process.off("unhandledRejection", listener)
      assert.deepStrictEqual(rejections, [])
    })
  )
})
