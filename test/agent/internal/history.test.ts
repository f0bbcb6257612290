import { assert, describe, it } from "@effect/vitest"
import type { Content } from "effect-subagent"
import * as Prompt from "effect/ai/Prompt"
import * as Response from "effect/ai/Response"
import {
  assistantMessages,
  fileBlock,
  systemMessages,
  toolMessages,
  userMessage
} from "../../../src/agent/internal/history.ts"

const text = (value: string) => Prompt.makePart("text", { text: value })

describe("a history", () => {
  it("begins with the system prompt, if that says anything", () => {
    assert.deepStrictEqual(systemMessages("be brief"), [Prompt.makeMessage("system", { content: "be brief" })])
    assert.deepStrictEqual(systemMessages(" \n"), [])
  })

  const blocks: ReadonlyArray<[string, Content.ContentBlock, Prompt.UserMessagePart]> = [
    ["text as text", { type: "text", text: "hi" }, text("hi")],
    [
      "an image as a file",
      { type: "image", data: "AA==", mimeType: "image/png", uri: "file:///a.png" },
      Prompt.makePart("file", { mediaType: "image/png", data: "AA==" })
    ],
    [
      "audio as a file",
      { type: "audio", data: "AA==", mimeType: "audio/wav" },
      Prompt.makePart("file", { mediaType: "audio/wav", data: "AA==" })
    ],
    [
      "a link as its name and address",
      { type: "resource_link", uri: "file:///a.txt", name: "a.txt" },
      text("a.txt: file:///a.txt")
    ],
    [
      "a link with a title as that and its address",
      { type: "resource_link", uri: "file:///a.txt", name: "a.txt", title: "Notes" },
      text("Notes: file:///a.txt")
    ],
    [
      "a text resource as text under its address",
      { type: "resource", resource: { uri: "file:///a.txt", text: "hi" } },
      text("file:///a.txt:\nhi")
    ],
    [
      "a binary resource as a file",
      { type: "resource", resource: { uri: "file:///a.pdf", mimeType: "application/pdf", blob: "AA==" } },
      Prompt.makePart("file", { mediaType: "application/pdf", data: "AA==", fileName: "file:///a.pdf" })
    ],
    [
      "a binary resource of no known kind as bytes",
      { type: "resource", resource: { uri: "file:///a", blob: "AA==" } },
      Prompt.makePart("file", { mediaType: "application/octet-stream", data: "AA==", fileName: "file:///a" })
    ]
  ]
  for (const [name, block, part] of blocks) {
    it(`takes ${name}`, () => assert.deepStrictEqual(userMessage([block]).content, [part]))
  }

  it("leaves out blank text of a prompt", () => {
    const { content } = userMessage([
      { type: "text", text: "a" },
      { type: "text", text: " " },
      { type: "text", text: "b" }
    ])
    assert.deepStrictEqual(content, [text("a"), text("b")])
  })

  it("takes of a reply what a model takes back", () => {
    const parts = [
      Response.makePart("text", { text: " " }),
      Response.makePart("reasoning", { text: "" }),
      Response.makePart("tool-call", { id: "1", name: "look", params: {}, providerExecuted: false }),
      Response.makePart("tool-approval-request", { approvalId: "a", toolCallId: "1" }),
      Response.makePart("tool-result", {
        id: "1",
        name: "look",
        isFailure: false,
        result: "a hill",
        encodedResult: "a hill",
        providerExecuted: false,
        preliminary: false
      })
    ]
    assert.deepStrictEqual(assistantMessages(parts), [
      Prompt.makeMessage("assistant", {
        content: [
          Prompt.makePart("reasoning", { text: "" }),
          Prompt.makePart("tool-call", { id: "1", name: "look", params: {}, providerExecuted: false })
        ]
      })
    ])
    assert.deepStrictEqual(assistantMessages(parts.slice(0, 1)), [])
    assert.deepStrictEqual(assistantMessages([]), [])
  })

  it("takes the results of a reply together", () => {
    const result = { name: "look", isFailure: false, result: "a hill", providerExecuted: false }
    const results = ["1", "2"].map((id) => Prompt.makePart("tool-result", { id, ...result }))
    assert.deepStrictEqual(toolMessages(results), [Prompt.makeMessage("tool", { content: results })])
    assert.deepStrictEqual(toolMessages([]), [])
  })
})

describe("a file that the model made", () => {
  it("is a block of its kind", () => {
    assert.deepStrictEqual(fileBlock("image/png", "AA==", "cid:1"), {
      type: "image",
      data: "AA==",
      mimeType: "image/png"
    })
    assert.deepStrictEqual(fileBlock("audio/wav", "AA==", "cid:1"), {
      type: "audio",
      data: "AA==",
      mimeType: "audio/wav"
    })
    assert.deepStrictEqual(fileBlock("application/pdf", "AA==", "cid:1"), {
      type: "resource",
      resource: { uri: "cid:1", mimeType: "application/pdf", blob: "AA==" }
    })
  })
})
