/** A conversation of `effect/ai` as the messages of chat completions. What these have no place for is refused. */
import * as AiError from "effect/ai/AiError"
import type * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionContentPart,
  ChatCompletionMessageParam,
  ChatCompletionMessageToolCall,
  ChatCompletionToolMessageParam,
  ChatCompletionUserMessageParam
} from "openai/resources/chat/completions"
import type { ThoughtField } from "./parts.ts"

type Refusal = AiError.InvalidUserInputError

const refuse = (what: string): Result.Result<never, Refusal> =>
  Result.fail(new AiError.InvalidUserInputError({ description: `Chat completions have no place for ${what}` }))

export const messagesOf = ({
  content: messages
}: Prompt.Prompt): Result.Result<Array<ChatCompletionMessageParam>, Refusal> => {
  const lastPrompt = messages.findLastIndex(({ role }) => role === "user")
  return Result.map(Result.all(messages.map((message, i) => messageOf(message, i > lastPrompt))), (messages) =>
    messages.flat()
  )
}

const messageOf = (
  message: Prompt.Message,
  isAtWork: boolean
): Result.Result<ReadonlyArray<ChatCompletionMessageParam>, Refusal> => {
  switch (message.role) {
    case "system":
      return Result.succeed([{ role: "system", content: message.content }])
    case "user":
      return Result.map(userMessage(message), (message) => [message])
    case "assistant":
      return Result.map(assistantMessage(message, isAtWork), (message) => [message])
    case "tool":
      return Result.all(message.content.filter((part) => part.type === "tool-result").map(toolMessage))
  }
}

/** Texts go as one string: it is all that some servers read. */
const userMessage = ({ content }: Prompt.UserMessage): Result.Result<ChatCompletionUserMessageParam, Refusal> =>
  content.every((part) => part.type === "text")
    ? Result.succeed({ role: "user", content: content.map(({ text }) => text).join("\n\n") })
    : Result.map(Result.all(content.map(contentPart)), (content) => ({ role: "user", content }))

const contentPart = (part: Prompt.UserMessagePart): Result.Result<ChatCompletionContentPart, Refusal> => {
  if (part.type === "text") return Result.succeed({ type: "text", text: part.text })
  const { data, mediaType } = part
  if (mediaType.startsWith("image/")) {
    return Result.succeed({ type: "image_url", image_url: { url: addressOf(mediaType, data) } })
  }
  const format = audioFormats.get(mediaType)
  return format === undefined || data instanceof URL
    ? refuse(`a file of type ${mediaType}`)
    : Result.succeed({ type: "input_audio", input_audio: { format, data: base64Of(data) } })
}

const audioFormats = new Map([
  ["audio/wav", "wav"],
  ["audio/x-wav", "wav"],
  ["audio/mpeg", "mp3"],
  ["audio/mp3", "mp3"]
] as const) as ReadonlyMap<string, "wav" | "mp3">

const addressOf = (mediaType: string, data: string | Uint8Array | URL): string =>
  data instanceof URL ? data.href : `data:${mediaType};base64,${base64Of(data)}`

const base64Of = (data: string | Uint8Array): string => (typeof data === "string" ? data : Base64.encode(data))

/**
 * Thoughts are given back where they came from, and only while the agent is at work on its prompt: some servers need them
 * there to go on after a tool call, and none wants those of answers that were given.
 */
const assistantMessage = (
  { content }: Prompt.AssistantMessage,
  isAtWork: boolean
): Result.Result<ChatCompletionAssistantMessageParam, Refusal> => {
  let text = ""
  const calls: Array<ChatCompletionMessageToolCall> = []
  const thoughts: { [Field in ThoughtField]?: string } = {}
  for (const part of content) {
    switch (part.type) {
      case "text":
        text += part.text
        break
      case "reasoning": {
        const field = fieldOf(part)
        if (isAtWork && field !== undefined) thoughts[field] = (thoughts[field] ?? "") + part.text
        break
      }
      case "tool-call":
        if (part.providerExecuted) return refuse("tools that a server has executed itself")
        calls.push(toolCall(part))
        break
      case "tool-approval-request":
        break
      default:
        return refuse(`a ${part.type} of the assistant's`)
    }
  }
  return Result.succeed({
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    ...thoughts,
    ...(calls.length > 0 && { tool_calls: calls })
  })
}

const fieldOf = ({ options }: Prompt.ReasoningPart): ThoughtField | undefined => {
  const ours = options["openai"] as { readonly field?: ThoughtField } | null | undefined
  return ours?.field
}

/** Arguments that were no JSON can't go back as they came: servers read them, and would refuse the conversation. */
const toolCall = ({ id, name, params }: Prompt.ToolCallPart): ChatCompletionMessageToolCall => ({
  id,
  type: "function",
  function: { name, arguments: JSON.stringify(typeof params === "string" ? { malformed: params } : params) }
})

/** There is no mark of an error but the words. */
const toolMessage = ({
  id,
  isFailure,
  modelOutput,
  result
}: Prompt.ToolResultPart): Result.Result<ChatCompletionToolMessageParam, Refusal> => {
  const shown = modelOutput?.map((part) => (part.type === "text" ? part.text : undefined))
  if (shown?.includes(undefined)) return refuse("a file as the result of a tool")
  const text = shown?.join("\n") ?? (typeof result === "string" ? result : JSON.stringify(result))
  return Result.succeed({ role: "tool", tool_call_id: id, content: isFailure ? `Error: ${text}` : text })
}
