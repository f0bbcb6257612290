import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { checkProvider } from "../../src/internal/checkProvider.ts"
import { nothing, provider } from "../utils/seam.ts"

const problems = (value: unknown) => checkProvider(value).map(String)

describe("checkProvider", () => {
  it("lets a provider pass", () => {
    assert.deepStrictEqual(problems(provider()), [])
    assert.deepStrictEqual(problems(provider({ capabilities: { ...nothing, content: [] } })), [])
  })

  it("lets an instance of a class pass", () => {
    class Mine {
      readonly capabilities = nothing
      readonly inheritsContext = true
      get name() {
        return "mine"
      }
      start() {
        return Effect.never
      }
    }
    assert.deepStrictEqual(problems(new Mine()), [])
  })

  it("refuses what is no object", () => {
    for (const value of [undefined, null, "p", 1, [], () => provider()]) {
      assert.deepStrictEqual(problems(value), ["Expected a provider"])
    }
  })

  it("names every member that is missing or wrong", () => {
    assert.deepStrictEqual(problems({}), [
      "name: Expected a string that is not blank",
      "inheritsContext: Expected a boolean",
      "start: Expected a function",
      "capabilities: Expected an object"
    ])
    assert.deepStrictEqual(problems({ ...provider({ name: " \n" }), capabilities: {} }), [
      "name: Expected a string that is not blank",
      "capabilities.outputSchema: Expected a boolean",
      "capabilities.depthLimit: Expected a boolean",
      "capabilities.toolFilter: Expected a boolean"
    ])
  })

  it("takes a provider that can go on from a token, if that is a function", () => {
    assert.deepStrictEqual(problems({ ...provider(), resume: () => Effect.never }), [])
    assert.deepStrictEqual(problems({ ...provider(), resume: undefined }), [])
    assert.deepStrictEqual(problems({ ...provider(), resume: true }), ["resume: Expected a function"])
  })

  it("refuses kinds of content that there are not", () => {
    for (const content of ["image", ["video"], ["image", "text"], {}]) {
      assert.deepStrictEqual(problems({ ...provider(), capabilities: { ...nothing, content } }), [
        "capabilities.content: Expected an array of content kinds"
      ])
    }
  })

  it("refuses a provider that can't be read", () => {
    const throwing = Object.defineProperty({ ...provider() }, "capabilities", {
      get: () => {
        throw new Error("no")
      }
    })
    assert.deepStrictEqual(problems(throwing), ["Could not be read"])
  })
})
