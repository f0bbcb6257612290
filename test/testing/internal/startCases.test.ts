import { assert, describe, it } from "@effect/vitest"
import { Capabilities, Content, Subagents } from "effect-subagent"
import { ScriptedProvider } from "effect-subagent/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { failures, mute, register, scripted } from "../../utils/conformance.ts"

// each is proven to fail for a provider that breaks it, and for no other, in ../ProviderConformance.test.ts
describe("the cases about starts", () => {
  it("a provider that declares less than it is meant to fails item 3 and no other", async () => {
    const layer = scripted({ capabilities: { toolFilter: false, content: [] } })
    for (const capability of ["toolFilter", "content"]) {
      const failed = await failures(layer, { prompts: { complete: "go" }, capabilities: { [capability]: true } })
      assert.deepStrictEqual(
        failed.map(({ error, item }) => [item, error]),
        [[3, `Violation: Expected the declaration of ${capability} to be true, and it is false`]]
      )
    }
  })

  it("a provider that declares nothing passes, and what it can't do is not run", async () => {
    const { none } = Capabilities
    const layer = Subagents.addEffect(
      Effect.map(ScriptedProvider.make(), ({ provider }) => ({ ...provider, capabilities: none }))
    ).pipe(Layer.provideMerge(Subagents.layer))
    const options = { prompts: { complete: "go" }, capabilities: { ...none, usage: undefined, content: false } }
    assert.deepStrictEqual(await failures(layer, options), [])
    const { tests } = register(layer, { ...options, ...mute })
    assert.include(
      tests.filter(({ skipped }) => skipped).map(({ name }) => name),
      "(11) is not started deeper than the request allows [not run: needs depthLimit]"
    )
  })

  it("needs a layer over the seam that everybody shares", async () => {
    const layer = ScriptedProvider.layer([ScriptedProvider.hang]).pipe(
      Layer.provideMerge(Layer.effect(Subagents.Subagents, Subagents.make))
    )
    const { tests } = register(layer, { prompts: { complete: "go", hang: "hang" }, ...mute })
    const second = tests.find(({ name }) => name.startsWith("(2)"))
    const error = await second?.run().then(() => undefined, String)
    assert.strictEqual(error, "Violation: Expected a layer over `Subagents.layer` itself")
  })

  it("a start that should fail, and doesn't, fails item 4 and no other", async () => {
    const failed = await failures(scripted(), { prompts: { complete: "go", failStart: "go" } })
    assert.deepStrictEqual(
      failed.map(({ error, item }) => [item, error]),
      [[4, "Violation: Expected the prompt that can't be started to be refused, and it was accepted"]]
    )
  })

  it("a start that dies, rather than fails, fails item 4 and no other", async () => {
    const layer = scripted({}, ({ prompt }) => ({
      start: Content.toText(prompt) === "die" ? [ScriptedProvider.die(new Error("boom"))] : []
    }))
    const [first, ...others] = await failures(layer, { prompts: { complete: "go", failStart: "die" } })
    assert.strictEqual(first?.item, 4)
    assert.include(first?.error, "Violation: Expected a reason of the provider's own, and it is ")
    assert.deepStrictEqual(others, [])
  })
})
