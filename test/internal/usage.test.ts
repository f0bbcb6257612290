import { assert, describe, it } from "@effect/vitest"
import { figuresIn, isFigure } from "../../src/internal/usage.ts"

const none = [
  -1,
  -0.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  "5",
  null,
  undefined,
  {},
  5n,
  true
]

describe("isFigure", () => {
  it("takes numbers that can be added up, and nothing that only looks like one", () => {
    for (const n of [0, 0.5, 7, 1e20]) assert.isTrue(isFigure(n), `${n}`)
    for (const each of none) assert.isFalse(isFigure(each))
  })
})

describe("figuresIn", () => {
  it("keeps the figures of a report, and nothing else of it, in a copy that nobody can change", () => {
    const report = { total: 7, input: 0, output: "5", reasoning: 5n }
    const figures = figuresIn(report)
    assert.deepStrictEqual(figures, { total: 7, input: 0 })
    assert.isTrue(Object.isFrozen(figures))
    report.total = 8
    assert.deepStrictEqual(figures, { total: 7, input: 0 })
  })

  it("is nothing where a report has none", () => {
    for (const each of none) assert.isUndefined(figuresIn({ total: each }))
    assert.isUndefined(figuresIn({}))
  })
})
