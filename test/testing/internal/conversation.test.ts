import { assert, describe, it } from "@effect/vitest"
import * as Prompt from "effect/ai/Prompt"
import * as Schema from "effect/Schema"
import { fault } from "../../../src/testing/internal/conversation.ts"

const system = (content: string): Prompt.MessageEncoded => ({ role: "system", content })
const user = (...texts: ReadonlyArray<string>): Prompt.MessageEncoded => ({
  role: "user",
  content: texts.map((text) => ({ type: "text", text }))
})
const call = (id: string, providerExecuted = false) => ({
  type: "tool-call" as const,
  id,
  name: "look",
  params: {},
  providerExecuted
})
const result = (id: string, name = "look", value: unknown = "a hill") => ({
  type: "tool-result" as const,
  id,
  name,
  isFailure: false,
  result: value
})
const assistant = (...content: ReadonlyArray<Prompt.AssistantMessagePartEncoded>): Prompt.MessageEncoded => ({
  role: "assistant",
  content
})
const tool = (...content: ReadonlyArray<Prompt.ToolMessagePartEncoded>): Prompt.MessageEncoded => ({
  role: "tool",
  content
})
const said = { type: "text" as const, text: "hm" }

const faultOf = (...messages: ReadonlyArray<Prompt.MessageEncoded>) => fault(Prompt.make(messages).content)

describe("what model APIs refuse", () => {
  const good: ReadonlyArray<[string, ReadonlyArray<Prompt.MessageEncoded>]> = [
    ["a question", [user("hi")]],
    ["system prompts first", [system("a"), system("b"), user("hi")]],
    ["two questions in a row", [user("hi"), user("hello?")]],
    ["results in any order", [user("hi"), assistant(call("1"), call("2")), tool(result("2"), result("1"))]],
    ["results in two messages", [user("hi"), assistant(call("1"), call("2")), tool(result("2")), tool(result("1"))]],
    [
      "an id used again once it is answered",
      [user("hi"), assistant(call("1")), tool(result("1")), assistant(call("1")), tool(result("1"))]
    ],
    [
      "what the provider executed, answered or not",
      [user("hi"), assistant(call("1", true), result("1"), call("2", true)), user("so?")]
    ],
    [
      "answers about approvals",
      [user("hi"), tool({ type: "tool-approval-response", approvalId: "1", approved: false })]
    ]
  ]
  for (const [name, messages] of good) {
    it(`is not ${name}`, () => assert.isUndefined(faultOf(...messages)))
  }

  const bad: ReadonlyArray<[string, ReadonlyArray<Prompt.MessageEncoded>]> = [
    ["messages: the last message must be the user's or tool results", []],
    ["messages: the last message must be the user's or tool results", [system("a")]],
    ["messages: the last message must be the user's or tool results", [user("hi"), assistant(said)]],
    ["messages: tool calls without a result: 1, 2", [user("hi"), assistant(call("1"), call("2"))]],
    ["messages.2: tool calls without a result: 2", [user("hi"), assistant(call("2")), user("so?")]],
    [
      "messages.3: tool calls without a result: 2",
      [user("hi"), assistant(call("1"), call("2")), tool(result("1")), assistant(said)]
    ],
    ["messages.1: a system message must come first", [user("hi"), system("a")]],
    ["messages.0: the system message is blank", [system(" "), user("hi")]],
    ["messages.0: the message has no content", [user()]],
    ["messages.1: the message has no content", [user("hi"), assistant()]],
    ["messages.2: the message has no content", [user("hi"), assistant(call("1")), tool()]],
    ["messages.0: a text part is blank", [user("hi", "\n")]],
    ["messages.0: the first message must be the user's", [assistant(said)]],
    ["messages.1: the first message must be the user's", [system("a"), assistant(said)]],
    ["messages.1: tool call id 1 is used twice", [user("hi"), assistant(call("1"), call("1"))]],
    ["messages.1: tool call id 1 is used twice", [user("hi"), assistant(call("1", true), call("1"))]],
    [
      "messages.1: tool result 1 answers no call that the provider executed",
      [user("hi"), assistant(call("1"), result("1"))]
    ],
    ["messages.1: tool result 1 answers no open call", [user("hi"), tool(result("1"))]],
    [
      "messages.2: tool result 1 answers no open call",
      [user("hi"), assistant(call("1")), tool(result("1"), result("1"))]
    ],
    [
      "messages.2: tool result 1 is named add, the call was look",
      [user("hi"), assistant(call("1")), tool(result("1", "add"))]
    ],
    ["messages.2: tool result 1 is not JSON", [user("hi"), assistant(call("1")), tool(result("1", "look", () => {}))]],
    ["messages.2: tool result 1 is not JSON", [user("hi"), assistant(call("1")), tool(result("1", "look", 1n))]]
  ]
  for (const [expected, messages] of bad) {
    it(`is: ${expected}`, () => assert.strictEqual(faultOf(...messages), expected))
  }

  const Sizes = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3 })))
  it.prop("is every conversation that lacks one of its results, and none that has them all", [Sizes], ([sizes]) => {
    const steps = sizes.map((size, step) => Array.from({ length: size }, (_, i) => `${step}-${i}`))
    const conversation = steps.map((ids) => [assistant(...ids.map((id) => call(id))), ids] as const)
    const whole = conversation.flatMap(([message, ids]) => [message, tool(...ids.map((id) => result(id)))])
    assert.isUndefined(faultOf(user("hi"), ...whole))
    for (const missing of steps.flat()) {
      const broken = conversation.flatMap(([message, ids]) => [
        message,
        ...ids.filter((id) => id !== missing).map((id) => tool(result(id)))
      ])
      assert.include(faultOf(user("hi"), ...broken), `tool calls without a result: ${missing}`)
    }
  })
})
