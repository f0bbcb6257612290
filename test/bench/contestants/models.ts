/** The stand-in as an `effect/ai` model: a child's, a parent's, or one for both. */
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { childAnswer, type Gate, parentAnswer, parentSystem } from "../gate.ts"

type Parts = Array<Response.PartEncoded>

const finish = (reason: "stop" | "tool-calls"): Response.FinishPartEncoded => ({
  type: "finish",
  reason,
  usage: {
    inputTokens: { uncached: undefined, total: 10, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 5, text: undefined, reasoning: undefined }
  },
  response: undefined
})

const lastUserText = (prompt: Prompt.Prompt): string => {
  const message = prompt.content.findLast((message) => message.role === "user")
  return message === undefined ? "" : message.content.map((part) => (part.type === "text" ? part.text : "")).join("")
}

const sayText = (text: string): Parts => [{ type: "text", text }, finish("stop")]

const childReply = ({ prompt }: LanguageModel.ProviderOptions): Parts => sayText(childAnswer(lastUserText(prompt)))

const parentReply = ({ prompt }: LanguageModel.ProviderOptions): Parts => {
  const last = prompt.content.at(-1)!
  if (last.role === "tool") {
    const [part] = last.content
    return sayText(parentAnswer(part?.type === "tool-result" ? String(part.result) : "nothing"))
  }
  const params = { description: "a task", prompt: lastUserText(prompt) }
  return [{ type: "tool-call", id: "call_1", name: "subagent", params }, finish("tool-calls")]
}

const make = (gate: Gate, reply: (options: LanguageModel.ProviderOptions) => Parts) =>
  LanguageModel.make({
    generateText: (options) => Effect.map(gate.pass, () => reply(options)),
    streamText: () => Stream.empty
  })

export const makeChildModel = (gate: Gate) => make(gate, childReply)
export const makeParentModel = (gate: Gate) => make(gate, parentReply)

/** It tells a parent from a child by the system prompt. */
export const makeSharedModel = (gate: Gate) =>
  make(gate, (options) => {
    const [first] = options.prompt.content
    return first?.role === "system" && first.content === parentSystem ? parentReply(options) : childReply(options)
  })
