/** The examples for TypeScript without Effect print what they say they print, and are as short as they are meant to be. */
import { assert, describe, it } from "@effect/vitest"
import * as path from "node:path"
import { runExample } from "../docs/checks.ts"
import { exampleText, lineCount, regionOf } from "../utils/regions.ts"

const root = path.resolve(import.meta.dirname, "../..")

/** What the comments at the ends of lines say is printed there. */
const promised = (file: string): ReadonlyArray<string> =>
  [...exampleText(file).matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map(([, line = ""]) => line)

describe("the examples without Effect", () => {
  for (const file of ["promise.ts", "promise-runs.ts"]) {
    it(`print what they say: ${file}`, () => {
      const lines = runExample(root, `docs/examples/${file}`, []).trimEnd().split("\n")
      assert.deepStrictEqual(lines, promised(file))
      assert.isAbove(lines.length, 0)
    })
  }

  it("import nothing of `effect`", () => {
    for (const file of ["promise.ts", "promise-runs.ts", "http-provider.ts", "plain-tool-ai-sdk.ts"]) {
      assert.notMatch(exampleText(file), /from "effect(?:\/|")/, file)
    }
  })

  it("are short", () => {
    assert.isAtMost(lineCount(regionOf("promise.ts", "example")), 10)
    assert.isAtMost(lineCount(exampleText("http-provider.ts")), 60)
    assert.isAtMost(lineCount(regionOf("http-provider.ts", "provider")), 25)
  })
})
