import { assert, describe, it } from "@effect/vitest"
import { SubagentError } from "effect-subagent"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import { messagesOf, seedOf } from "../../../src/agent/internal/seed.ts"

describe("a seed", () => {
  const conversation = Prompt.make([
    { role: "system", content: "be brief" },
    {
      role: "user",
      content: [
        { type: "text", text: "what is this?" },
        { type: "file", mediaType: "image/png", data: "AA==" },
        { type: "file", mediaType: "image/png", data: new Uint8Array([1, 2]) },
        { type: "file", mediaType: "image/png", data: new URL("https://example.com/a.png") }
      ]
    },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "hm", options: { vendor: { signature: "abc" } } },
        { type: "tool-call", id: "1", name: "look", params: { at: [1, null] }, providerExecuted: true },
        { type: "tool-result", id: "1", name: "look", isFailure: false, result: "fog", providerExecuted: true },
        { type: "tool-call", id: "2", name: "zoom", params: {}, providerExecuted: false }
      ]
    },
    {
      role: "tool",
      content: [{ type: "tool-result", id: "2", name: "zoom", isFailure: true, result: null, providerExecuted: false }]
    },
    { role: "assistant", content: "a hill" }
  ]).content

  it.effect("is JSON, and gives back all that was remembered", () =>
    Effect.gen(function* () {
      const seed = yield* seedOf("a", conversation)
      assert.deepStrictEqual(JSON.parse(JSON.stringify(seed)), seed)
      const messages = yield* messagesOf(seed)
      assert.deepStrictEqual(messages, conversation)
      assert.deepStrictEqual(yield* messagesOf(yield* seedOf("a", [])), [])
    })
  )

  it.effect("is a snapshot: what becomes of the conversation's own objects does not matter (17)", () =>
    Effect.gen(function* () {
      const result = { rows: [1] }
      const call = Prompt.make([
        { role: "user", content: "hi" },
        {
          role: "assistant",
          content: [{ type: "tool-call", id: "1", name: "t", params: {}, providerExecuted: false }]
        },
        {
          role: "tool",
          content: [{ type: "tool-result", id: "1", name: "t", isFailure: false, result, providerExecuted: false }]
        }
      ]).content
      const seed = yield* seedOf("a", call)
      result.rows.push(2)
      const part = (yield* messagesOf(seed)).at(-1)?.content[0]
      assert.deepStrictEqual(typeof part === "object" && "result" in part ? part.result : part, { rows: [1] })
    })
  )

  it.effect("can't be made of what is no JSON", () =>
    Effect.gen(function* () {
      const odd = [
        Prompt.makeMessage("assistant", {
          content: [Prompt.makePart("tool-call", { id: "1", name: "t", params: { n: 1n }, providerExecuted: false })]
        })
      ]
      const error = yield* Effect.flip(seedOf("a", odd))
      assert.deepStrictEqual(error, SubagentError.fromReason(new SubagentError.HistoryUnavailable({ agentId: "a" })))
    })
  )

  const call = (id: string) => ({ type: "tool-call", id, name: "t", params: {}, providerExecuted: false })
  const result = (id: string) => ({
    type: "tool-result",
    id,
    name: "t",
    isFailure: false,
    result: 1,
    providerExecuted: false
  })
  const foreign: ReadonlyArray<readonly [string, unknown]> = [
    ["nothing", null],
    ["an object", { content: [] }],
    ["a text", "hello"],
    ["a number as text", "1"],
    ["another runtime's", JSON.stringify([{ type: "message" }])],
    ["a role there is not", JSON.stringify({ content: [{ role: "boss", content: "go" }] })],
    ["a call without its result", JSON.stringify({ content: [{ role: "assistant", content: [call("1")] }] })],
    [
      "a call that is answered too late",
      JSON.stringify({
        content: [
          { role: "assistant", content: [call("1")] },
          { role: "user", content: "well?" },
          { role: "tool", content: [result("1")] }
        ]
      })
    ],
    ["a result without its call", JSON.stringify({ content: [{ role: "tool", content: [result("1")] }] })]
  ]
  for (const [name, seed] of foreign) {
    it.effect(`is no seed if it is ${name}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(messagesOf(seed as never))
        assert.strictEqual(
          error.message,
          "Invalid request: seed: Expected what completedTurns of this runtime has given"
        )
      })
    )
  }
})
