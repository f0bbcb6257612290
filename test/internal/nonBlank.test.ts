import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { issuesOf } from "../../src/internal/issues.ts"
import { NonBlank } from "../../src/internal/nonBlank.ts"

const decode = Schema.decodeUnknownResult(NonBlank)

describe("NonBlank", () => {
  it("takes text that says something, as it is", () => {
    for (const text of ["a", " a ", "\n.\n"]) assert.strictEqual(Result.getOrThrow(decode(text)), text)
  })

  it("refuses text that is white space only, and what is no text", () => {
    for (const text of ["", " ", "\t\n\u00a0"]) {
      const decoded = decode(text)
      assert.deepStrictEqual(Result.isFailure(decoded) && issuesOf(decoded.failure).map(String), [
        "Expected a string that is not blank"
      ])
    }
    for (const value of [undefined, null, 1, ["a"]]) assert.isTrue(Result.isFailure(decode(value)))
  })
})
