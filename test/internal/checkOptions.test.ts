import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import { checkOptions } from "../../src/internal/checkOptions.ts"

const problems = (options: object) => checkOptions(options).map(String)

describe("checkOptions", () => {
  it("lets good options pass, and none at all", () => {
    assert.deepStrictEqual(problems({}), [])
    assert.deepStrictEqual(
      problems({ maxDepth: 0, releaseTimeout: Duration.seconds(1), updateCapacity: 1, eventCapacity: 5 }),
      []
    )
    for (const releaseTimeout of ["2 seconds", 0, 250]) assert.deepStrictEqual(problems({ releaseTimeout }), [])
  })

  it("names each option that is wrong", () => {
    assert.deepStrictEqual(problems({ maxDepth: -1, releaseTimeout: "soon", updateCapacity: 0, eventCapacity: 1.5 }), [
      "maxDepth: Expected a whole number from 0",
      "releaseTimeout: Expected a finite duration",
      "updateCapacity: Expected a whole number from 1",
      "eventCapacity: Expected a whole number from 1"
    ])
  })

  it("takes no number that is none, and no bound that is none", () => {
    for (const maxDepth of [Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, "2", null, undefined]) {
      assert.strictEqual(problems({ maxDepth }).length, 1, String(maxDepth))
    }
    for (const releaseTimeout of [Number.POSITIVE_INFINITY, Duration.infinity, undefined, null, ""]) {
      assert.deepStrictEqual(problems({ releaseTimeout }), ["releaseTimeout: Expected a finite duration"])
    }
  })

  it("refuses a misspelt option, also one that every object seems to have", () => {
    assert.deepStrictEqual(problems({ maxdepth: 1, toString: 1 }), [
      "maxdepth: Expected no excess property",
      "toString: Expected no excess property"
    ])
  })
})
