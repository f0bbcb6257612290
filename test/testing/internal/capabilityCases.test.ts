import { assert, describe, it } from "@effect/vitest"
import { SubagentError } from "effect-subagent"
import { ScriptedProvider } from "effect-subagent/testing"
import { failures, mute, register, scripted } from "../../utils/conformance.ts"

// each is proven to fail for a provider that breaks it, and for no other, in ../ProviderConformance.test.ts
const closed = new SubagentError.RegistryClosed()

describe("the cases about what a request asks for", () => {
  it("say what they expected and what they got", async () => {
    const failed = await failures(scripted({}, [ScriptedProvider.stop("refusal")]), {
      prompts: { complete: "go", callTool: "go", submit: "go", submitInvalid: "go" }
    })
    const said = (item: number) => failed.filter((each) => each.item === item).map(({ error }) => error)
    assert.deepStrictEqual(said(12), [
      "Violation: Expected a tool call with a name among the updates",
      "Violation: Expected a filter with a name that no tool has to be refused, and it was accepted",
      "Violation: Expected a filter with a name that no tool has to be refused, and it was accepted"
    ])
    const [submitted, refused, words] = said(13)
    assert.include(submitted, "Violation: Expected a completed run, and it ended refusal: {")
    assert.include(refused, 'Violation: Expected the stop reason to be "error", and it is "refusal"')
    assert.include(words, 'Violation: Expected the stop reason to be "error", and it is "refusal"')
  })

  it("a tool call that has no name is none that a filter could deny", async () => {
    const nameless = ScriptedProvider.emit({ _tag: "ToolCall", id: "1", status: "completed" })
    const failed = await failures(scripted({}, [nameless]), { prompts: { complete: "go", callTool: "go" } })
    assert.include(
      failed.map(({ error }) => error),
      "Violation: Expected a tool call with a name among the updates"
    )
  })

  it("a filter that is refused for another reason fails item 12", async () => {
    const failed = await failures(scripted({}, { start: [ScriptedProvider.fail(closed)] }), {
      prompts: { complete: "go", callTool: "go" }
    })
    assert.include(
      failed.map(({ error }) => error),
      'Violation: Expected where the request is at fault to be ["toolFilter.deny.0"], and it is []'
    )
  })

  it("a provider without the capability is not asked", () => {
    const { tests } = register(scripted(), {
      prompts: { complete: "go", callTool: "go", submit: "go" },
      capabilities: { toolFilter: false, outputSchema: false },
      ...mute
    })
    const skipped = tests.filter(({ name, skipped }) => skipped && /^\(1[23]\)/.test(name)).map(({ name }) => name)
    assert.deepStrictEqual(skipped, [
      "(12) executes no tool that a filter denies [not run: needs toolFilter]",
      "(12) is not started with a filter that is to allow a tool there is not [not run: needs toolFilter]",
      "(12) is not started with a filter that is to deny a tool there is not [not run: needs toolFilter]",
      "(13) gives the value that its child submits, decoded once [not run: needs outputSchema]",
      "(13) gives no value that the schema refuses, and says that it was refused [not run: needs prompts.submitInvalid, outputSchema]",
      "(13) does not take words for a value [not run: needs outputSchema]"
    ])
  })
})
