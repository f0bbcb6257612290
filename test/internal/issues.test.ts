import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { issueAt, issuesOf } from "../../src/internal/issues.ts"

const errorOf = (schema: Schema.Codec<unknown, unknown>, value: unknown) => {
  const decoded = Schema.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })(value)
  return Result.isFailure(decoded) ? decoded.failure : assert.fail("it decoded")
}

describe("issueAt", () => {
  it("has a path and a message, and reads as a line", () => {
    const issue = issueAt(["a", 0], "Bad")
    assert.deepStrictEqual([issue.path, issue.message, String(issue)], [["a", 0], "Bad", "a.0: Bad"])
    assert.strictEqual(String(issueAt([], "Bad")), "Bad")
  })
})

describe("issuesOf", () => {
  it("gives one issue per fault, under the path at which the value stood", () => {
    const schema = Schema.Struct({ a: Schema.Array(Schema.Struct({ b: Schema.Number })), c: Schema.String })
    const issues = issuesOf(errorOf(schema, { a: [{ b: 1 }, { b: "x" }], c: 1, d: 2 }), ["top"])
    assert.deepStrictEqual(
      issues.map(({ path }) => path).toSorted((a, b) => String(a).localeCompare(String(b))),
      [
        ["top", "a", 1, "b"],
        ["top", "c"],
        ["top", "d"]
      ]
    )
  })

  it("has paths that survive a wire, whatever the keys are", () => {
    const key = Symbol("key")
    const issues = issuesOf(errorOf(Schema.Struct({ [key]: Schema.Number }), { [key]: "x" }))
    assert.deepStrictEqual(issues[0]!.path, ["Symbol(key)"])
  })

  it("has an empty path for the value itself", () => {
    assert.deepStrictEqual(issuesOf(errorOf(Schema.String, 1))[0]!.path, [])
  })
})
