/**
 * What real model APIs refuse in a conversation.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"

/** The first thing wrong with a conversation, or nothing. */
export const fault = (messages: ReadonlyArray<Prompt.Message>): string | undefined => {
  /** Tool calls that wait for their result, by id, with the name of the tool. */
  const open = new Map<string, string>()
  let previous: Prompt.Message["role"] | undefined
  for (const [index, message] of messages.entries()) {
    const problem =
      message.role === "system"
        ? systemFault(message, previous)
        : message.role === "tool"
          ? toolFault(message, open)
          : (unanswered(open) ?? speakerFault(message, previous, open))
    if (problem !== undefined) return `messages.${index}: ${problem}`
    previous = message.role
  }
  const problem =
    unanswered(open) ??
    (previous === "user" || previous === "tool" ? undefined : "the last message must be the user's or tool results")
  return problem === undefined ? undefined : `messages: ${problem}`
}

const unanswered = (open: ReadonlyMap<string, string>): string | undefined =>
  open.size === 0 ? undefined : `tool calls without a result: ${[...open.keys()].join(", ")}`

const systemFault = (message: Prompt.SystemMessage, previous: Prompt.Message["role"] | undefined) =>
  previous !== undefined && previous !== "system"
    ? "a system message must come first"
    : isBlank(message.content)
      ? "the system message is blank"
      : undefined

const speakerFault = (
  message: Prompt.UserMessage | Prompt.AssistantMessage,
  previous: Prompt.Message["role"] | undefined,
  open: Map<string, string>
): string | undefined => {
  if (message.content.length === 0) return "the message has no content"
  if (message.content.some((part) => part.type === "text" && isBlank(part.text))) return "a text part is blank"
  if (message.role === "user") return undefined
  if (previous === undefined || previous === "system") return "the first message must be the user's"
  const executed = new Set<string>()
  for (const part of message.content) {
    if (part.type === "tool-call") {
      if (open.has(part.id) || executed.has(part.id)) return `tool call id ${part.id} is used twice`
      if (part.providerExecuted) executed.add(part.id)
      else open.set(part.id, part.name)
    }
    if (part.type === "tool-result" && !executed.has(part.id)) {
      return `tool result ${part.id} answers no call that the provider executed`
    }
  }
  return undefined
}

const toolFault = (message: Prompt.ToolMessage, open: Map<string, string>): string | undefined => {
  if (message.content.length === 0) return "the message has no content"
  for (const part of message.content) {
    if (part.type !== "tool-result") continue
    const name = open.get(part.id)
    if (name === undefined) return `tool result ${part.id} answers no open call`
    if (name !== part.name) return `tool result ${part.id} is named ${part.name}, the call was ${name}`
    if (!isJson(part.result)) return `tool result ${part.id} is not JSON`
    open.delete(part.id)
  }
  return undefined
}

const isJson = (value: unknown): boolean =>
  Result.getOrUndefined(Result.try(() => JSON.stringify(value) as string | undefined)) !== undefined

const isBlank = (text: string): boolean => text.trim() === ""
