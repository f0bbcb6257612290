import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Content } from "effect-subagent"

const blocks: ReadonlyArray<Content.ContentBlock> = [
  {
    type: "text",
    text: "a",
    annotations: { audience: ["user", "assistant"], priority: 1, lastModified: "2026-01-01" }
  },
  { type: "image", data: "aGk=", mimeType: "image/png", uri: "file:a" },
  { type: "audio", data: "aGk=", mimeType: "audio/wav", _meta: { any: { thing: 1 } } },
  { type: "resource_link", uri: "file:a", name: "a", title: "A", description: "d", mimeType: "text/plain", size: 3 },
  { type: "resource", resource: { uri: "file:a", mimeType: "text/plain", text: "t" } },
  { type: "resource", resource: { uri: "file:a", blob: "aGk=" } }
]

describe("the schema of a block", () => {
  const decode = Schema.decodeUnknownResult(Content.ContentBlock, { onExcessProperty: "error" })

  it("takes every kind in the shape that MCP and ACP share, through a wire and back", () => {
    for (const block of blocks) {
      const wire: unknown = JSON.parse(JSON.stringify(Schema.encodeSync(Content.ContentBlock)(block)))
      assert.deepStrictEqual(Result.getOrThrow(decode(wire)), block)
    }
  })

  it("refuses other shapes", () => {
    const wrong = [
      { type: "text" },
      { type: "text", text: 1 },
      { type: "text", text: "a", annotations: { audience: ["model"] } },
      { type: "text", text: "a", annotations: { priority: Number.NaN } },
      { type: "image", data: "aGk=" },
      { type: "resource_link", uri: "file:a" },
      { type: "resource_link", uri: "file:a", name: "a", size: Number.POSITIVE_INFINITY },
      { type: "resource", resource: { uri: "file:a" } },
      { type: "video", data: "aGk=", mimeType: "video/mp4" },
      "text",
      null
    ]
    for (const block of wrong) assert.isTrue(Result.isFailure(decode(block)), JSON.stringify(block))
  })
})

describe("text and toText", () => {
  it("make a block of a text, and a text of blocks", () => {
    assert.deepStrictEqual(Content.text("a"), { type: "text", text: "a" })
    assert.strictEqual(Content.toText([Content.text("a\n"), blocks[1]!, Content.text(" b")]), "a\n b")
    assert.strictEqual(Content.toText([]), "")
  })
})

describe("isBlank", () => {
  it("is so for nothing and for white space only", () => {
    for (const blank of [[], [Content.text("")], [Content.text(" \n"), Content.text("\t")]]) {
      assert.isTrue(Content.isBlank(blank))
    }
    for (const block of blocks) assert.isFalse(Content.isBlank([Content.text(" "), block]))
  })
})
