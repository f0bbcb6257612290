/** What the fake models of the AI SDK answer. */
import type { MockLanguageModelV4 } from "ai/test"

type Reply = Awaited<ReturnType<MockLanguageModelV4["doGenerate"]>>

const usage: Reply["usage"] = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined }
}

export const says = (text: string): Reply => ({
  content: [{ type: "text", text }],
  finishReason: { unified: "stop", raw: "stop" },
  usage,
  warnings: []
})

export const calls = (toolName: string, input: object): Reply => ({
  content: [{ type: "tool-call", toolCallId: "1", toolName, input: JSON.stringify(input) }],
  finishReason: { unified: "tool-calls", raw: "tool_calls" },
  usage,
  warnings: []
})
