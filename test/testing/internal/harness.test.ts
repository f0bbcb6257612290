import { assert, describe, it } from "@effect/vitest"
import { Subagents } from "effect-subagent"
import { ScriptedProvider } from "effect-subagent/testing"
import * as Layer from "effect/Layer"
import { failures } from "../../utils/conformance.ts"

describe("the harness of the conformance suite", () => {
  it("needs to know which of several providers is meant, and that there is one", async () => {
    const two = Layer.mergeAll(
      ScriptedProvider.layer([ScriptedProvider.hang], { name: "one" }),
      Layer.fresh(ScriptedProvider.layer([], { name: "two" }))
    ).pipe(Layer.provideMerge(Subagents.layer))
    const only = { complete: "go" }
    assert.deepStrictEqual(await failures(two, { prompts: only, provider: "two" }), [])
    const message = "Violation: Expected one provider in the layer, or options.provider to name one of: "
    const [unclear] = await failures(two, { prompts: only })
    assert.strictEqual(unclear?.error, `${message}one, two`)
    const [none] = await failures(Subagents.layer, { prompts: only })
    assert.strictEqual(none?.error, message)
  })
})
