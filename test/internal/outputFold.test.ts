import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import type { Content, SubagentUpdate } from "effect-subagent"
import { OutputFold } from "../../src/internal/outputFold.ts"

type Update = SubagentUpdate.UnstampedUpdate
type Block = Content.ContentBlock

const started = (messageId: string): Update => ({ _tag: "MessageStarted", messageId })
const content = (text: string, messageId?: string): Update => ({
  _tag: "Content",
  block: { type: "text", text },
  ...(messageId !== undefined && { messageId })
})
const image: Block = { type: "image", data: "aGk=", mimeType: "image/png" }
const call = (id: string, status: SubagentUpdate.ToolCall["status"]): Update => ({ _tag: "ToolCall", id, status })

const foldOf = (...updates: ReadonlyArray<Update>): OutputFold => {
  const fold = new OutputFold()
  for (const update of updates) fold.add(update)
  return fold
}
const textOf = (...updates: ReadonlyArray<Update>) =>
  foldOf(...updates)
    .output()
    .map((block) => (block.type === "text" ? block.text : block.type))

/** The picker as one would say it, without any care for memory. */
const naive = (updates: ReadonlyArray<Update>): ReadonlyArray<Block> => {
  const messages: Array<{ readonly id: string | undefined; readonly blocks: Array<Block> }> = [
    { id: undefined, blocks: [] }
  ]
  for (const update of updates) {
    if (update._tag !== "Content" && update._tag !== "MessageStarted") continue
    let message = messages.find(({ id }) => id === update.messageId)
    if (message === undefined) messages.push((message = { id: update.messageId, blocks: [] }))
    if (update._tag === "MessageStarted") continue
    const last = message.blocks.at(-1)
    const mergeable = (block: Block | undefined) => block?.type === "text" && block.annotations === undefined
    if (mergeable(last) && mergeable(update.block)) {
      const text = (last as Content.TextBlock).text + (update.block as Content.TextBlock).text
      message.blocks[message.blocks.length - 1] = { type: "text", text }
    } else {
      message.blocks.push(update.block)
    }
  }
  const says = ({ blocks }: { readonly blocks: ReadonlyArray<Block> }) =>
    blocks.some((block) => block.type !== "text" || block.text.trim() !== "")
  return messages.findLast(says)?.blocks ?? []
}

describe("the output (14)", () => {
  it("is the content of the last message that says anything", () => {
    assert.deepStrictEqual(textOf(content("first", "a"), content("last", "b")), ["last"])
    assert.deepStrictEqual(textOf(content("first", "a"), started("b"), content(" \n", "b")), ["first"])
  })

  it("is not erased by an empty message that has usage only at the end", () => {
    assert.deepStrictEqual(textOf(content("answer", "a"), started("b"), { _tag: "Usage", usage: { total: 3 } }), [
      "answer"
    ])
  })

  it("is else what was streamed outside any message, else nothing", () => {
    assert.deepStrictEqual(textOf(content("a"), content("b"), started("m")), ["ab"])
    assert.deepStrictEqual(textOf(content("streamed"), content("said", "m"), content("more")), ["said"])
    assert.deepStrictEqual(textOf(content(" ")), [])
    assert.deepStrictEqual(textOf(), [])
  })

  it("goes by the order in which messages began, also if they are interleaved", () => {
    assert.deepStrictEqual(textOf(started("a"), started("b"), content("b1", "b"), content("a1", "a")), ["b1"])
    assert.deepStrictEqual(textOf(started("a"), content("b1", "b"), content("a1", "a"), content("b2", "b")), ["b1b2"])
  })

  it("does not come back to a message that another has superseded", () => {
    assert.deepStrictEqual(textOf(content("a1", "a"), content("b1", "b"), content("a2", "a"), started("a")), ["b1"])
  })

  it("merges text that goes on, and nothing else", () => {
    const annotated: Update = {
      _tag: "Content",
      messageId: "m",
      block: { type: "text", text: "!", annotations: { priority: 1 } }
    }
    const picture: Update = { _tag: "Content", messageId: "m", block: image }
    assert.deepStrictEqual(
      foldOf(content("a", "m"), content("b", "m"), annotated, content("c", "m"), picture, picture).output(),
      [{ type: "text", text: "ab" }, annotated.block, { type: "text", text: "c" }, image, image]
    )
  })

  it("has no thoughts, plans, tool results or anything else in it", () => {
    assert.deepStrictEqual(
      textOf(
        { _tag: "Thought", text: "hm" },
        { _tag: "Plan", entries: [{ content: "do" }] },
        { _tag: "ToolCall", id: "t", status: "completed", output: "out" },
        { _tag: "Raw", kind: "k", value: "v" },
        { _tag: "Permission", toolCallId: "t" },
        { _tag: "Receipt", messageId: "r", state: "consumed" }
      ),
      []
    )
  })

  it("is frozen, and stays what it was when the child goes on", () => {
    const fold = foldOf(content("a", "m"))
    const output = fold.output()
    fold.add(content("b", "m"))
    assert.deepStrictEqual(output, [{ type: "text", text: "a" }])
    assert.isTrue(Object.isFrozen(output) && Object.isFrozen(output[0]))
    assert.deepStrictEqual(fold.output(), [{ type: "text", text: "ab" }])
  })

  const Id = Schema.Literals(["a", "b", "c"])
  const Piece = Schema.Union([
    Schema.Struct({ type: Schema.Literal("text"), text: Schema.Literals(["", " ", "x", "yz\n"]) }),
    Schema.Struct({
      type: Schema.Literal("text"),
      text: Schema.Literals([" ", "x"]),
      annotations: Schema.Struct({ priority: Schema.Literal(1) })
    }),
    Schema.Struct({
      type: Schema.Literal("image"),
      data: Schema.Literal("aGk="),
      mimeType: Schema.Literal("image/png")
    })
  ])
  const Any = Schema.Union([
    Schema.Struct({ _tag: Schema.Literal("MessageStarted"), messageId: Id }),
    Schema.Struct({ _tag: Schema.Literal("Content"), messageId: Schema.optionalKey(Id), block: Piece }),
    Schema.Struct({ _tag: Schema.Literal("Content"), messageId: Id, block: Piece }),
    Schema.Struct({ _tag: Schema.Literal("Thought"), text: Schema.Literal("t") })
  ])

  it.prop(
    "is what the plain definition says, for any sequence of updates",
    [Schema.Array(Any).check(Schema.isMaxLength(25))],
    ([updates]) => {
      const fold = new OutputFold()
      updates.forEach((update, i) => {
        fold.add(update)
        assert.deepStrictEqual(fold.output(), naive(updates.slice(0, i + 1)))
      })
    },
    { arbitrary: { runs: 500 } }
  )
})

describe("the balance of tool calls (14)", () => {
  it("is off while a call is unanswered", () => {
    for (const status of ["pending", "running"] as const) {
      assert.isTrue(foldOf(call("t", status)).isUnbalanced)
      for (const end of ["completed", "failed"] as const) {
        assert.isFalse(foldOf(call("t", status), call("t", end)).isUnbalanced)
      }
    }
  })

  it("is counted by the call's id", () => {
    assert.isTrue(foldOf(call("t", "running"), call("u", "running"), call("u", "completed")).isUnbalanced)
    assert.isFalse(foldOf(call("t", "pending"), call("t", "running"), call("t", "failed")).isUnbalanced)
    assert.isFalse(foldOf(call("t", "completed")).isUnbalanced)
  })
})

describe("usage", () => {
  it("is what was reported last: each report is for the whole run", () => {
    assert.isUndefined(foldOf().usage)
    const usage = foldOf({ _tag: "Usage", usage: { input: 1, total: 1 } }, { _tag: "Usage", usage: { total: 5 } }).usage
    assert.deepStrictEqual(usage, { total: 5 })
  })
})
