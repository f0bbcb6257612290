import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { makeId } from "../../src/internal/id.ts"

describe("makeId", () => {
  it.effect("gives 32 hexadecimal digits that a seed decides (18)", () =>
    Effect.gen(function* () {
      const two = Random.Random.pipe(Effect.map((random) => [makeId(random), makeId(random)] as const))
      const [a, b] = yield* Random.withSeed(two, "seed")
      assert.match(a, /[0-9a-f]{32}$/)
      assert.notStrictEqual(a, b)
      assert.deepStrictEqual(yield* Random.withSeed(two, "seed"), [a, b])
      assert.notDeepEqual(yield* Random.withSeed(two, "other"), [a, b])
    })
  )

  it("keeps its length at both ends of the range", () => {
    const at = (value: number) => makeId({ nextDoubleUnsafe: () => value } as Random.Random)
    assert.strictEqual(at(0), "0".repeat(32))
    assert.strictEqual(at(1 - 2 ** -53), "f".repeat(32))
  })

  it("has the bits of each draw in their order", () => {
    const words = [0x0123_4567, 0x89ab_cdef, 0x00ff_0a00, 0x8000_0001]
    const random = { nextDoubleUnsafe: () => (words.shift()! + 0.5) / 2 ** 32 } as Random.Random
    assert.strictEqual(makeId(random), "0123456789abcdef00ff0a0080000001")
  })
})
