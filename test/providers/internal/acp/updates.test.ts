import { assert, describe, it } from "@effect/vitest"
import { SubagentUpdate } from "effect-subagent"
import { type SessionUpdate, SessionUpdates } from "../../../../src/providers/internal/acp/updates.ts"

const say = (text: string, messageId?: string | null): SessionUpdate => ({
  sessionUpdate: "agent_message_chunk",
  content: { type: "text", text },
  ...(messageId !== undefined && { messageId })
})
const think = (text: string): SessionUpdate => ({ ...say(text), sessionUpdate: "agent_thought_chunk" })
const tool = (toolCallId: string, fields: object = {}): SessionUpdate => ({
  sessionUpdate: "tool_call",
  toolCallId,
  title: "Look",
  ...fields
})
const change = (toolCallId: string, fields: object): SessionUpdate => ({
  sessionUpdate: "tool_call_update",
  toolCallId,
  ...fields
})

/** What comes of the updates of a turn, of its end too, unless it is still running. */
const fold = (updates: ReadonlyArray<SessionUpdate>, end: boolean | "runs" = true) => {
  const emitted: Array<SubagentUpdate.UnstampedUpdate> = []
  const session = new SessionUpdates((update) => emitted.push(update))
  session.begin()
  for (const update of updates) session.update(update)
  const lastText = end === "runs" ? undefined : session.end(end)
  return { session, emitted, lastText }
}

const outputOf = (updates: ReadonlyArray<SessionUpdate>) =>
  SubagentUpdate.pickOutput(fold(updates).emitted).map((block) => (block.type === "text" ? block.text : block.type))

const states = (emitted: ReadonlyArray<SubagentUpdate.UnstampedUpdate>) =>
  emitted.flatMap((update) => (update._tag === "ToolCall" ? [`${update.id} ${update.status}`] : []))

describe("the messages of a session", () => {
  it("(14) are told apart by their ids: the last one is the answer", () => {
    const updates = [say("pre", "a"), say("amble", "a"), say("ans", "b"), say("wer", "b")]
    assert.deepStrictEqual(outputOf(updates), ["answer"])
    assert.strictEqual(fold(updates).lastText, "answer")
  })

  it("(14) are told apart by the tool calls between them where they have no ids", () => {
    const updates = [
      say("I'll ", null),
      say("look."),
      tool("t"),
      change("t", { status: "completed" }),
      say("It's "),
      say("there.")
    ]
    assert.deepStrictEqual(outputOf(updates), ["It's there."])
  })

  it("(14) are told from a warning that comes before them if they have ids and it has none, and not without", () => {
    assert.deepStrictEqual(outputOf([say("No such model. "), say("ans", "a"), say("wer", "a")]), ["answer"])
    assert.deepStrictEqual(outputOf([say("No such model. "), say("ans"), say("wer")]), ["No such model. answer"])
  })

  it("are not torn apart by thoughts, nor by news of a tool call that is known", () => {
    const updates = [tool("t"), say("one "), think("hm"), change("t", { status: "completed" }), say("message")]
    assert.deepStrictEqual(outputOf(updates), ["one message"])
  })

  it("keep the id they began with", () => {
    assert.deepStrictEqual(
      fold([say("a", "m"), say("b"), tool("t", { status: "completed" }), say("c")]).emitted.flatMap((update) =>
        update._tag === "MessageStarted" || update._tag === "Content" ? [`${update._tag} ${update.messageId}`] : []
      ),
      ["MessageStarted m", "Content m", "Content m", "MessageStarted message-1", "Content message-1"]
    )
  })

  it("may have blocks of other kinds", () => {
    const image = { type: "image", data: "", mimeType: "image/png" }
    assert.deepStrictEqual(outputOf([{ sessionUpdate: "agent_message_chunk", content: image }]), ["image"])
  })

  it("[E false success] are no answer when they come while no turn runs", () => {
    const emitted: Array<SubagentUpdate.UnstampedUpdate> = []
    const session = new SessionUpdates((update) => emitted.push(update))
    session.update(say("Welcome!"))
    session.begin()
    session.end(true)
    session.update(say("Bye!"))
    assert.deepStrictEqual(
      emitted.map(({ _tag }) => _tag),
      ["Raw", "Raw"]
    )
    assert.deepStrictEqual(SubagentUpdate.pickOutput(emitted), [])
  })
})

describe("the other updates of a session", () => {
  it("are thoughts and plans", () => {
    const entries = [{ content: "a", priority: "high", status: "pending" }, { content: "b" }, { status: "no content" }]
    assert.deepStrictEqual(fold([think("hm"), { sessionUpdate: "plan", entries }]).emitted, [
      { _tag: "Thought", text: "hm" },
      { _tag: "Plan", entries: [{ content: "a", priority: "high", status: "pending" }, { content: "b" }] }
    ])
  })

  it("go through raw if they are not known or not what they should be", () => {
    const odd: ReadonlyArray<SessionUpdate> = [
      { sessionUpdate: "usage_update", used: 1, size: 2 },
      { sessionUpdate: "brand_new", anything: 1 },
      { sessionUpdate: "agent_message_chunk", content: { type: "video" } },
      { sessionUpdate: "agent_message_chunk" },
      { sessionUpdate: "tool_call" },
      { sessionUpdate: "user_message_chunk", content: { type: "text", text: "the prompt" } },
      {},
      { sessionUpdate: { toString: 0, valueOf: 0 } }
    ]
    assert.deepStrictEqual(
      fold(odd).emitted,
      odd.map((value) => {
        const kind = typeof value["sessionUpdate"] === "string" ? value["sessionUpdate"] : "unknown"
        return { _tag: "Raw" as const, kind, value }
      })
    )
  })

  it("survive a plan without entries", () => {
    assert.deepStrictEqual(fold([{ sessionUpdate: "plan", entries: null }]).emitted, [{ _tag: "Plan", entries: [] }])
  })
})

describe("the tool calls of a session", () => {
  it("are merged by id, whatever comes first", () => {
    assert.deepStrictEqual(
      fold([
        change("t", { status: "in_progress", rawInput: { a: 1 } }),
        tool("t", { name: "look", status: "pending", title: "Look around" }),
        change("t", { content: [{ type: "content" }] }),
        change("t", { status: "completed", rawOutput: "seen" })
      ]).emitted,
      [
        { _tag: "ToolCall", id: "t", status: "running", input: { a: 1 } },
        { _tag: "ToolCall", id: "t", status: "running", name: "look" },
        { _tag: "ToolCall", id: "t", status: "running", output: [{ type: "content" }] },
        { _tag: "ToolCall", id: "t", status: "completed", output: "seen" }
      ]
    )
  })

  it("only move forward", () => {
    const moves = ["in_progress", "pending", "completed", "in_progress", "failed", "new state"]
    assert.deepStrictEqual(states(fold([tool("t"), ...moves.map((status) => change("t", { status }))]).emitted), [
      "t pending",
      "t running",
      "t running",
      "t completed",
      "t completed",
      "t completed",
      "t completed"
    ])
  })

  it("do not keep what they were given once they have ended, however many there are", () => {
    const { session } = fold([tool("t"), change("t", { rawInput: { text: "long" } })])
    session.update(change("t", { status: "completed" }))
    assert.deepStrictEqual(session.asked({ toolCallId: "t" }).input, undefined)
    assert.deepStrictEqual(session.asked({ toolCallId: "t", rawInput: 1 }).input, 1)
  })

  it("[F4] stay open if the turn ends within them", () => {
    assert.deepStrictEqual(states(fold([say("a"), tool("t")]).emitted), ["t pending"])
    assert.deepStrictEqual(states(fold([say("a"), tool("t"), say(" \n")]).emitted), ["t pending"])
  })

  it("are ended if the agent has gone on without saying how they ended", () => {
    assert.deepStrictEqual(states(fold([tool("t"), say("so it is")]).emitted), ["t pending", "t failed"])
  })

  it("are ended if the turn has not ended well", () => {
    assert.deepStrictEqual(states(fold([tool("t")], false).emitted), ["t pending", "t failed"])
  })

  it("are ended if they were denied", () => {
    const { emitted, session } = fold([], "runs")
    assert.deepStrictEqual(session.asked({ toolCallId: "t", title: "Write", rawInput: 1 }), {
      id: "t",
      name: "Write",
      input: 1
    })
    assert.deepStrictEqual(session.asked({ toolCallId: "t" }), { id: "t", name: "Write", input: 1 })
    assert.deepStrictEqual(session.asked({ toolCallId: "u" }), { id: "u", name: "tool", input: undefined })
    session.denied("t", "no-approver")
    session.end(true)
    assert.deepStrictEqual(states(emitted), ["t pending", "t pending", "u pending", "t failed"])
  })
})
