import { assert, describe, it } from "@effect/vitest"
import { listed, unknownNames } from "../../../src/agent/internal/toolNames.ts"

describe("the names in a tool filter", () => {
  const there = ["add", "look up"]

  it("may be those of tools", () => {
    assert.deepStrictEqual(unknownNames(undefined, there), [])
    assert.deepStrictEqual(unknownNames({ allow: [] }, there), [])
    assert.deepStrictEqual(unknownNames({ allow: ["add"], deny: ["look up"] }, there), [])
  })

  it("are refused with their path and the names there are if no tool has them", () => {
    const issues = unknownNames({ allow: ["add", "ad"], deny: ["lookup", "constructor"] }, there)
    assert.deepStrictEqual(issues.map(String), [
      'toolFilter.allow.1: There is no tool "ad"; the tools there are: "add", "look up"',
      'toolFilter.deny.0: There is no tool "lookup"; the tools there are: "add", "look up"',
      'toolFilter.deny.1: There is no tool "constructor"; the tools there are: "add", "look up"'
    ])
  })

  it("are read as a list", () => {
    assert.strictEqual(listed([]), "none")
    assert.strictEqual(listed(there), '"add", "look up"')
  })
})
