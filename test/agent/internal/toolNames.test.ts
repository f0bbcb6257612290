import { assert, describe, it } from "@effect/vitest"
import { AgentRuntime } from "effect-subagent/agent"
import { listed, unknownTools } from "../../../src/agent/internal/toolNames.ts"
import { filtered } from "../harness.ts"

describe("the names in a tool filter (12)", () => {
  const there = ["add", "look up"]
  const spec: AgentRuntime.AgentSpec = {
    agent: { id: "a", session: { header: { id: "s" } } },
    options: {},
    policy: AgentRuntime.openPolicy,
    emit: () => {}
  }
  const asked = (toolFilter: { readonly allow?: Array<string>; readonly deny?: Array<string> }) =>
    unknownTools({ ...spec, request: { agentOptions: {}, toolFilter } }, there).map(String)

  it("may be those of tools", () => {
    assert.deepStrictEqual(asked({ allow: [] }), [])
    assert.deepStrictEqual(asked({ allow: ["add"], deny: ["look up"] }), [])
  })

  it("are refused with their path and the names there are if no tool has them", () => {
    assert.deepStrictEqual(asked({ allow: ["add", "ad"], deny: ["lookup", "constructor"] }), [
      'toolFilter.allow.1: There is no tool "ad"; the tools there are: "add", "look up"',
      'toolFilter.deny.0: There is no tool "lookup"; the tools there are: "add", "look up"',
      'toolFilter.deny.1: There is no tool "constructor"; the tools there are: "add", "look up"'
    ])
  })

  it("are not looked at again in a filter that is inherited, which may be about other tools", () => {
    const request = { agentOptions: {} }
    assert.deepStrictEqual(unknownTools({ ...spec, policy: filtered({ deny: ["gone"] }), request }, there), [])
  })

  it("are all looked at if nobody delegated", () => {
    const issues = unknownTools({ ...spec, policy: filtered({ deny: ["add"] }, { deny: ["gone"] }) }, there)
    assert.deepStrictEqual(issues.map(String), [
      'policy.toolFilters.1.deny.0: There is no tool "gone"; the tools there are: "add", "look up"'
    ])
  })

  it("are read as a list", () => {
    assert.strictEqual(listed([]), "none")
    assert.strictEqual(listed(there), '"add", "look up"')
  })
})
