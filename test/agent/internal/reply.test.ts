import { assert, describe, it } from "@effect/vitest"
import type { SubagentResult, SubagentUpdate } from "effect-subagent"
import * as Response from "effect/ai/Response"
import { ReplyFold } from "../../../src/agent/internal/reply.ts"

const folded = (...parts: ReadonlyArray<Response.AnyPart>) => {
  const updates: Array<SubagentUpdate.UnstampedUpdate> = []
  const spent: Array<SubagentResult.SubagentUsage> = []
  let ids = 0
  const fold = new ReplyFold(
    (update) => updates.push(update),
    (usage) => spent.push(usage),
    () => `id ${++ids}`
  )
  return { reply: fold.add(parts).end(), spent, updates }
}

const { makePart } = Response

describe("a reply", () => {
  it("without a finish has no known end and no usage", () => {
    assert.deepStrictEqual(folded(), {
      reply: { messages: [], calls: [], finishReason: "unknown", error: undefined },
      spent: [],
      updates: []
    })
  })

  it("is one message, however much it says", () => {
    const { updates } = folded(
      makePart("text", { text: "here is" }),
      makePart("file", { mediaType: "application/pdf", data: new Uint8Array([1]) }),
      makePart("text", { text: "." })
    )
    assert.deepStrictEqual(updates, [
      { _tag: "MessageStarted", messageId: "id 1" },
      { _tag: "Content", messageId: "id 1", block: { type: "text", text: "here is" } },
      {
        _tag: "Content",
        messageId: "id 1",
        block: { type: "resource", resource: { uri: "cid:id 2", mimeType: "application/pdf", blob: "AQ==" } }
      },
      { _tag: "Content", messageId: "id 1", block: { type: "text", text: "." } }
    ])
  })

  it("does not report what is empty", () => {
    const { updates } = folded(
      makePart("text", { text: "" }),
      makePart("reasoning", { text: "" }),
      makePart("text-start", { id: "1" }),
      makePart("text-delta", { id: "1", delta: "" }),
      makePart("reasoning-delta", { id: "2", delta: "" })
    )
    assert.deepStrictEqual(updates, [])
  })

  it("remembers text and reasoning that came bit by bit as one", () => {
    const { reply, updates } = folded(
      makePart("reasoning-start", { id: "1" }),
      makePart("reasoning-delta", { id: "1", delta: "h" }),
      makePart("reasoning-delta", { id: "1", delta: "m" }),
      makePart("reasoning-end", { id: "1" }),
      makePart("text-start", { id: "2" }),
      makePart("text-delta", { id: "2", delta: "o" }),
      makePart("text-delta", { id: "2", delta: "h" }),
      makePart("text-end", { id: "2" })
    )
    assert.deepStrictEqual(
      updates.map((update) => update._tag),
      ["Thought", "Thought", "MessageStarted", "Content", "Content"]
    )
    const content = reply.messages[0]?.content
    assert.deepStrictEqual(
      Array.isArray(content) && content.map((part) => ("text" in part ? [part.type, part.text] : [])),
      [
        ["reasoning", "hm"],
        ["text", "oh"]
      ]
    )
  })

  it("passes on what its provider reports to be wrong, even if that is nothing", () => {
    assert.deepStrictEqual(folded(makePart("error", { error: undefined })).reply.error, { value: undefined })
  })

  it("ignores the result of a call that nobody made", () => {
    const result = makePart("tool-result", {
      id: "1",
      name: "look",
      isFailure: false,
      result: "a hill",
      encodedResult: "a hill",
      providerExecuted: true,
      preliminary: false
    })
    assert.deepStrictEqual(folded(result).updates, [])
  })

  it("that will not come reports every tool call it has announced as failed, if that had no result", () => {
    const updates: Array<SubagentUpdate.UnstampedUpdate> = []
    const call = (id: string, providerExecuted: boolean) =>
      makePart("tool-call", { id, name: "look", params: {}, providerExecuted })
    const result = makePart("tool-result", {
      id: "2",
      name: "look",
      isFailure: false,
      result: "a hill",
      encodedResult: "a hill",
      providerExecuted: true,
      preliminary: false
    })
    const fold = new ReplyFold(
      (update) => updates.push(update),
      () => {},
      () => "id"
    )
    fold.add([call("1", false), call("2", true), call("3", true), result]).abandon()
    assert.deepStrictEqual(
      updates.flatMap((update) => (update._tag === "ToolCall" ? [[update.id, update.status]] : [])),
      [
        ["1", "pending"],
        ["2", "running"],
        ["3", "running"],
        ["2", "completed"],
        ["3", "failed"],
        ["1", "failed"]
      ]
    )
  })
})
