/**
 * A language model that needs no network: it follows `rules.ts` over what its tools really return.
 *
 * As with any model, what it says next follows from the conversation alone, so `layer` can be replaced by the layer of
 * a real one: it is told the same in `systemPrompt`.
 */
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { Answered } from "./rules.ts"
import { next } from "./rules.ts"
import { understand } from "./tasks.ts"

export const layer: Layer.Layer<LanguageModel.LanguageModel> = Layer.effect(
  LanguageModel.LanguageModel,
  LanguageModel.make({
    generateText: ({ prompt }) => Effect.sync(() => reply(prompt, (text) => [{ type: "text", text }])),
    streamText: ({ prompt }) =>
      Stream.suspend(() =>
        Stream.fromIterable(
          reply(prompt, (text) => [
            { type: "text-start", id: "answer" },
            { type: "text-delta", id: "answer", delta: text },
            { type: "text-end", id: "answer" }
          ])
        )
      )
  })
)

/** The reply to a conversation. Text has one form as a whole and another one in a stream. */
const reply = <Text>(
  prompt: Prompt.Prompt,
  write: (text: string) => ReadonlyArray<Text>
): Array<Text | Response.ToolCallPartEncoded | Response.FinishPartEncoded> => {
  const { answered, callCount, task } = hear(prompt)
  const reply = next({ task, answered: (tool) => answered.get(tool) ?? [] })
  if ("say" in reply) return [...write(reply.say), finish("stop")]
  const calls = "calls" in reply ? reply.calls : [{ tool: "submit_result", params: reply.result }]
  return [
    ...calls.map(({ params, tool }, i) => ({
      type: "tool-call" as const,
      id: `call-${callCount + i}`,
      name: tool,
      params
    })),
    finish("tool-calls")
  ]
}

/** A conversation as the rules see it: its last user message is the task, what follows are the tool calls of that task. */
const hear = ({ content: messages }: Prompt.Prompt) => {
  const start = messages.findLastIndex(({ role }) => role === "user")
  const user = messages[start]
  // what follows the task is how to submit its result
  const told = user?.role === "user" ? user.content.find((part) => part.type === "text") : undefined
  const calls = new Map<string, Prompt.ToolCallPart>()
  const answered = new Map<string, Array<Answered>>()
  for (const message of messages.slice(start + 1)) {
    if (message.role !== "assistant" && message.role !== "tool") continue
    for (const part of message.content) {
      if (part.type === "tool-call") calls.set(part.id, part)
      if (part.type !== "tool-result") continue
      const { id, isFailure, name, result } = part
      // the rules gave the arguments of every call themselves
      const params = calls.get(id)?.params as Answered["params"]
      const ofTool = answered.get(name) ?? []
      ofTool.push({ params, isFailure, result })
      answered.set(name, ofTool)
    }
  }
  return { task: understand(told?.text ?? ""), answered, callCount: calls.size }
}

const finish = (reason: Response.FinishReason): Response.FinishPartEncoded => ({
  type: "finish",
  reason,
  usage: { inputTokens: {}, outputTokens: {} }
})
