import { assert, describe, it } from "@effect/vitest"
import { jsonCopy } from "../../../src/agent/internal/jsonCopy.ts"

describe("a value as JSON has it", () => {
  it("is equal and shared with nobody", () => {
    const value = { a: [1, "b", null], at: new Date(0) }
    const copy = jsonCopy(value) as typeof value
    assert.deepStrictEqual<unknown>(copy, { a: [1, "b", null], at: "1970-01-01T00:00:00.000Z" })
    assert.notStrictEqual(copy.a, value.a)
    assert.strictEqual(jsonCopy("as it is"), "as it is")
  })

  it("is nothing if JSON can't write it", () => {
    const circular: { self?: unknown } = {}
    circular.self = circular
    for (const value of [circular, 1n, undefined, () => 1, Symbol("x")]) assert.isUndefined(jsonCopy(value))
  })
})
