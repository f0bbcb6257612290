import { assert, describe, it } from "@effect/vitest"
import { Content, Subagents } from "effect-subagent"
import { ProviderConformance, ScriptedProvider } from "effect-subagent/testing"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { keepsAll, prompts, world } from "../../fixtures/brokenProviders.ts"
import { wrap } from "../../fixtures/wrapperProvider.ts"
import { failures, itemsOf, mute, scripted } from "../../utils/conformance.ts"

/** A seam with one provider, whose runs are runs of another provider on another seam. */
const wrapper = Layer.effectContext(
  Effect.gen(function* () {
    // it outlives the wrapper's registration, as the wrapper's runs do
    const inner = yield* Layer.buildWithScope(Layer.fresh(keepsAll), yield* Scope.make())
    const { get } = Context.get(inner, Subagents.Subagents)
    const outer = yield* Subagents.Subagents
    yield* outer.register(wrap(Context.get(inner, Subagents.Subagents), yield* get("scripted")))
    return inner.pipe(Context.add(Subagents.Subagents, outer))
  })
).pipe(Layer.provideMerge(Subagents.layer))

// a cancel, a message or a resumption that is meant for a wrapped child reaches it [A7]
ProviderConformance.suite("a wrapper round scripted [A7]", wrapper, { describe, it, prompts, world, ...mute })

// each is proven to fail for a provider that breaks it, and for no other, in ../ProviderConformance.test.ts
describe("the cases about messages and resumed runs", () => {
  it("hold a provider to what its prompts say of its children", async () => {
    const failed = await failures(scripted(), { prompts: { complete: "a", hang: "a", steer: "a", resume: "a" } })
    const said = new Set(failed.flatMap(({ error, item }) => (item > 14 && item < 17 ? [error] : [])))
    assert.deepStrictEqual(Array.from(said), [
      "Violation: Expected a child that takes messages, as prompts.steer says",
      "Violation: Expected a child that can be resumed, as prompts.resume says"
    ])
  })

  it("say what they expected and what they got", async () => {
    const { receive, stop, text } = ScriptedProvider
    const layer = scripted({}, ({ prompt }) => ({
      takesMessages: true,
      turn: Content.toText(prompt) === "steer" ? [receive()] : [text("the answer")],
      resumed: [stop("refusal")]
    }))
    const failed = await failures(layer, { prompts: { complete: "go", steer: "steer", resume: "go" } })
    assert.includeMembers(itemsOf(failed), [15, 16])
    const said = Object.fromEntries(failed.map(({ error, item }) => [item, error]))
    assert.include(said[15], "Violation: Expected a completed run, and it ended error: {")
    assert.include(said[16], "Violation: Expected a completed run, and it ended refusal: {")
  })
})
