import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import { format } from "effect/Formatter"
import * as Schema from "effect/Schema"
import { countFrom, durationFrom } from "../../src/internal/figures.ts"

const said = (schema: Schema.Codec<unknown>, given: unknown): string | undefined => {
  const result = Schema.decodeUnknownResult(schema)(given)
  return result._tag === "Success" ? undefined : result.failure.message
}

/** What is no count at all, whatever the least one is. */
const noCounts = [
  -1,
  -0,
  0.5,
  1.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  2 ** 53,
  Number.MAX_VALUE
]

/** What is of another type than a number. */
const noNumbers = ["1", "", 1n, true, null, undefined, {}, [1], () => 1, Symbol("1"), new Date(1), Object(1)]

describe("countFrom", () => {
  it("takes whole numbers from the least one up to what a program can count to", () => {
    for (const n of [0, 1, 2 ** 31, Number.MAX_SAFE_INTEGER]) assert.isUndefined(said(countFrom(0), n), format(n))
    for (const n of [1, 2, Number.MAX_SAFE_INTEGER]) assert.isUndefined(said(countFrom(1), n), format(n))
  })

  it("refuses what is less than the least one, by a message that has it", () => {
    for (const least of [0, 1, 7]) {
      assert.strictEqual(said(countFrom(least), least - 1), `Expected a whole number from ${least}`)
      assert.isUndefined(said(countFrom(least), least))
    }
  })

  it("refuses what is no count", () => {
    for (const least of [0, 1]) {
      for (const n of noCounts) {
        assert.strictEqual(said(countFrom(least), n), `Expected a whole number from ${least}`, format(n))
      }
      for (const n of noNumbers) assert.isDefined(said(countFrom(least), n), format(n))
    }
  })
})

describe("durationFrom", () => {
  it("takes every form in which a duration can be given", () => {
    const forms = [
      1,
      1.5,
      1_000_000n,
      [0, 1_000_000],
      [1, 0],
      "1 milli",
      "2 minutes",
      { seconds: 1 },
      Duration.millis(1)
    ]
    for (const form of [...forms, { hours: 1, minutes: undefined }, 2 ** 40, "365 days"]) {
      assert.isUndefined(said(durationFrom(1), form), format(form))
    }
  })

  it("takes none at all only where that makes sense", () => {
    for (const form of [0, -0, 0n, "0 seconds", Duration.zero, [0, 0], { seconds: 0 }]) {
      assert.isUndefined(said(durationFrom(0), form), format(form))
      assert.strictEqual(said(durationFrom(1), form), "Expected a finite duration of at least 1 ms", format(form))
    }
  })

  it("refuses what is less than the least one", () => {
    for (const form of [0.999, 999_999n, [0, 999_999], "999 micros", { microseconds: 999 }]) {
      assert.strictEqual(said(durationFrom(1), form), "Expected a finite duration of at least 1 ms", format(form))
    }
    for (const form of [-1, -1n, "-1 seconds", { seconds: -1 }, [-1, 0], Duration.millis(-1)]) {
      for (const least of [0, 1]) assert.isDefined(said(durationFrom(least), form), format(form))
    }
  })

  it("refuses what never ends", () => {
    const forms = [
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      "Infinity",
      "-Infinity",
      Duration.infinity,
      Duration.negativeInfinity,
      [Number.POSITIVE_INFINITY, 0],
      { seconds: Number.POSITIVE_INFINITY }
    ]
    for (const form of forms) {
      assert.strictEqual(said(durationFrom(0), form), "Expected a finite duration", format(form))
    }
  })

  it("takes what is no number for no duration, not for none", () => {
    for (const form of [Number.NaN, [Number.NaN, 0], [0, Number.NaN], { seconds: Number.NaN }]) {
      for (const least of [0, 1]) assert.isDefined(said(durationFrom(least), form), format(form))
    }
  })

  it("refuses a misspelt unit, and one that is no number", () => {
    const forms = [{ second: 1 }, { seconds: 1, minuts: 1 }, { seconds: "1" }, { seconds: null }, { seconds: true }, {}]
    for (const form of forms) assert.isDefined(said(durationFrom(0), form), format(form))
  })

  it("refuses what is of another type", () => {
    const forms = [
      null,
      undefined,
      true,
      "",
      "soon",
      "1",
      "1 fortnight",
      [1],
      [1, 2, 3],
      ["1", "2"],
      () => 1,
      Symbol("1")
    ]
    for (const form of [...forms, new Date(5), new Map(), Object(5)]) {
      assert.isDefined(said(durationFrom(0), form), format(form))
    }
  })

  it("refuses what can't be read", () => {
    const form = {
      get seconds(): number {
        throw new Error("no")
      }
    }
    assert.isDefined(said(durationFrom(0), form))
  })
})
