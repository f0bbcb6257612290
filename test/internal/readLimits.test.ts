import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import { askedBefore, BoundsOf, boundsOf, limitFields, tightest } from "../../src/internal/readLimits.ts"
import { makeRandom } from "../utils/randomLives.ts"

const names = ["startTimeout", "timeout", "idleTimeout", "maxTurns", "maxTokens", "maxRuns"] as const

/** The names of the limits that are wrong. */
const wrong = (limits: object) => {
  const result = Schema.decodeUnknownResult(Schema.Struct(limitFields), { errors: "all" })(limits)
  return names.filter((name) => result._tag === "Failure" && result.failure.message.includes(`["${name}"]`))
}

describe("limitFields", () => {
  it("ask for durations that end, and for counts", () => {
    assert.deepStrictEqual(wrong({}), [])
    assert.deepStrictEqual(wrong(Object.fromEntries(names.map((name) => [name, undefined]))), [])
    assert.deepStrictEqual(wrong(Object.fromEntries(names.map((name) => [name, 1]))), [])
    assert.deepStrictEqual(wrong(Object.fromEntries(names.map((name) => [name, 0]))), names.slice(0, -1))
    for (const figure of [-1, Number.NaN, Number.POSITIVE_INFINITY, null, "many", {}]) {
      assert.deepStrictEqual(wrong(Object.fromEntries(names.map((name) => [name, figure]))), [...names])
    }
  })
})

describe("boundsOf", () => {
  it("has nothing where nothing is limited", () => {
    assert.isUndefined(boundsOf({}))
    assert.isUndefined(boundsOf({ timeout: undefined, maxRuns: undefined }))
  })

  it("has durations in milliseconds, and counts as they are", () => {
    const bounds = boundsOf({
      startTimeout: "30 seconds",
      timeout: Duration.minutes(2),
      idleTimeout: { seconds: 1, milliseconds: 5 },
      maxTurns: 1,
      maxTokens: Number.MAX_SAFE_INTEGER,
      maxRuns: 0
    })
    assert.deepStrictEqual(bounds, {
      startTimeout: 30_000,
      timeout: 120_000,
      idleTimeout: 1005,
      maxTurns: 1,
      maxTokens: Number.MAX_SAFE_INTEGER,
      maxRuns: 0
    })
    assert.isTrue(Object.isFrozen(bounds))
  })

  it("leaves out what is not limited, also where a single thing is", () => {
    for (const name of names) assert.deepStrictEqual(boundsOf({ timeout: undefined, [name]: 5 }), { [name]: 5 })
  })

  it("passes over what is no limit of a run", () => {
    const limits = { maxTurns: 2, maxDepth: 3, wrapUp: true }
    assert.deepStrictEqual(boundsOf(limits), { maxTurns: 2 })
  })
})

describe("tightest", () => {
  it("is the one that there is, or none", () => {
    assert.isUndefined(tightest(undefined, undefined))
    assert.deepStrictEqual(tightest({ maxTurns: 2 }, undefined), { maxTurns: 2 })
    assert.deepStrictEqual(tightest(undefined, { maxTurns: 2 }), { maxTurns: 2 })
  })

  it("is the tighter one of each kind, whoever has it: nobody loosens what is above", () => {
    for (const name of names) {
      for (const [above, asked] of [
        [1, 2],
        [2, 1],
        [2, 2],
        [0, 5]
      ] as const) {
        assert.deepStrictEqual(tightest({ [name]: above }, { [name]: asked }), { [name]: Math.min(above, asked) })
      }
    }
    assert.deepStrictEqual(tightest({ maxTurns: 5, timeout: 10 }, { maxTurns: 9, maxRuns: 0 }), {
      maxTurns: 5,
      timeout: 10,
      maxRuns: 0
    })
  })

  it("leaves both as they were", () => {
    const [above, asked] = [Object.freeze({ maxTurns: 5 }), Object.freeze({ maxTurns: 2, timeout: 1 })]
    const both = tightest(above, asked)
    assert.deepStrictEqual([above, asked], [{ maxTurns: 5 }, { maxTurns: 2, timeout: 1 }])
    assert.isTrue(Object.isFrozen(both))
  })

  it("is the same in whichever order limits come together", () => {
    const { below } = makeRandom(1)
    const some = () =>
      boundsOf(Object.fromEntries(names.flatMap((name) => (below(2) === 0 ? [] : [[name, 1 + below(9)]]))))
    for (let i = 0; i < 100; i++) {
      const [a, b, c] = [some(), some(), some()]
      const expected = tightest(tightest(a, b), c)
      assert.deepEqual(tightest(a, tightest(b, c)), expected)
      assert.deepEqual(tightest(tightest(c, a), b), expected)
      assert.deepEqual(tightest(expected, a), expected)
    }
  })
})

describe("askedBefore", () => {
  it("leaves out what holds anyway", () => {
    const above = { timeout: 5, maxTurns: 5, maxTokens: 5 }
    const before = { timeout: 4, maxTurns: 6, maxTokens: 5, maxRuns: 0 }
    assert.deepStrictEqual(askedBefore(above, before), { timeout: 4, maxTurns: 6, maxRuns: 0 })
    assert.deepStrictEqual(askedBefore(above, above), {})
  })

  it("is all of it where nothing holds, and nothing where nothing held", () => {
    assert.deepStrictEqual(askedBefore(undefined, { maxTurns: 5 }), { maxTurns: 5 })
    assert.isUndefined(askedBefore({ maxTurns: 5 }, undefined))
  })
})

describe("BoundsOf", () => {
  const isRight = Schema.is(BoundsOf)

  it("reads what boundsOf has made, after it was kept as text", () => {
    const bounds = boundsOf({
      startTimeout: 1,
      timeout: "1 hour",
      idleTimeout: 1.5,
      maxTurns: 1,
      maxTokens: 5,
      maxRuns: 0
    })
    assert.deepStrictEqual(Schema.decodeUnknownSync(BoundsOf)(JSON.parse(JSON.stringify(bounds))), bounds)
    assert.isTrue(isRight({}))
  })

  it("reads no figure that boundsOf does not make", () => {
    for (const name of names) {
      const none = [
        -1,
        Number.NaN,
        Number.POSITIVE_INFINITY,
        "1",
        null,
        undefined,
        ...(name === "maxRuns" ? [0.5] : [0])
      ]
      for (const figure of none) assert.isFalse(isRight({ [name]: figure }), `${name} ${String(figure)}`)
    }
  })
})
