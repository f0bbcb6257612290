import { assert, describe, it } from "@effect/vitest"
import { ScriptedProvider } from "effect-subagent/testing"
import { keepsAll, prompts } from "../../fixtures/brokenProviders.ts"
import { failures, scripted } from "../../utils/conformance.ts"

// each is proven to fail for a provider that breaks it, and for no other, in ../ProviderConformance.test.ts
describe("the cases about runs", () => {
  it("a provider that keeps its promises passes without anybody looking at its own side", async () => {
    assert.deepStrictEqual(await failures(keepsAll, { prompts, cwd: "/a folder" }), [])
  })

  it("says what it expected and what it got", async () => {
    const failed = await failures(scripted({}, [ScriptedProvider.stop("max-tokens")]), { prompts: { complete: "go" } })
    const said = Object.fromEntries(failed.map(({ error, item }) => [item, error]))
    assert.strictEqual(said[1], 'Violation: Expected the stop reason to be "completed", and it is "max-tokens"')
    assert.include(said[14], "Violation: Expected a completed run, and it ended max-tokens: {")
  })
})
