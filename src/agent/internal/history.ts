/**
 * Between the blocks of this library and the messages of `effect/ai`.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import type { ContentBlock } from "../../Content.ts"

/** How the history of an agent begins: with its system prompt, if that says anything. */
export const systemMessages = (systemPrompt: string): ReadonlyArray<Prompt.Message> =>
  isBlankText(systemPrompt) ? [] : [Prompt.makeMessage("system", { content: systemPrompt })]

const isBlankText = (text: string): boolean => text.trim() === ""

/** The same conversation with another system prompt, or with its own if there is no other. */
export const withSystem = (
  messages: ReadonlyArray<Prompt.Message>,
  systemPrompt: string | undefined
): ReadonlyArray<Prompt.Message> =>
  systemPrompt === undefined
    ? messages
    : [...systemMessages(systemPrompt), ...messages.filter(({ role }) => role !== "system")]

/**
 * A prompt as the user's message, with what else there is to tell. Blank text is left out: model APIs refuse it.
 */
export const userMessage = (
  blocks: ReadonlyArray<ContentBlock>,
  ...others: ReadonlyArray<Prompt.TextPart>
): Prompt.UserMessage => {
  const content: Array<Prompt.UserMessagePart> = []
  for (const block of blocks) if (block.type !== "text" || !isBlankText(block.text)) content.push(toPart(block))
  content.push(...others)
  return Prompt.makeMessage("user", { content })
}

const textPart = (text: string): Prompt.TextPart => Prompt.makePart("text", { text })

const filePart = (mediaType: string, data: string, fileName?: string): Prompt.FilePart =>
  Prompt.makePart("file", { mediaType, data, ...(fileName === undefined ? undefined : { fileName }) })

const toPart = (block: ContentBlock): Prompt.UserMessagePart => {
  switch (block.type) {
    case "text":
      return textPart(block.text)
    case "image":
    case "audio":
      return filePart(block.mimeType, block.data)
    case "resource_link":
      return textPart(`${block.title ?? block.name}: ${block.uri}`)
    default:
      return resourcePart(block.resource)
  }
}

const resourcePart = (resource: (ContentBlock & { readonly type: "resource" })["resource"]): Prompt.UserMessagePart =>
  "text" in resource
    ? textPart(`${resource.uri}:\n${resource.text}`)
    : filePart(resource.mimeType ?? "application/octet-stream", resource.blob, resource.uri)

/** A file that the model made, as a block. `uri` names it where its kind of block needs a name. */
export const fileBlock = (mimeType: string, data: string, uri: string): ContentBlock =>
  mimeType.startsWith("image/")
    ? { type: "image", data, mimeType }
    : mimeType.startsWith("audio/")
      ? { type: "audio", data, mimeType }
      : { type: "resource", resource: { uri, mimeType, blob: data } }

/**
 * A reply as the assistant's message, or none if there is nothing in it that a model API would take back. It has no
 * blank text, and no results but those of tools that the model's provider has executed.
 */
export const assistantMessages = (parts: ReadonlyArray<Response.AnyPart>): ReadonlyArray<Prompt.Message> => {
  const said = Prompt.fromResponseParts(parts).content.find((message) => message.role === "assistant")
  if (said === undefined) return []
  const content = said.content.filter(isTaken)
  if (content.length === said.content.length) return [said]
  return content.length === 0 ? [] : [Prompt.makeMessage("assistant", { content })]
}

const isTaken = (part: Prompt.AssistantMessagePart): boolean =>
  part.type !== "tool-approval-request" && (part.type !== "text" || !isBlankText(part.text))

/** The results of a reply's tool calls, in one message, or none. */
export const toolMessages = (results: ReadonlyArray<Prompt.ToolResultPart>): ReadonlyArray<Prompt.Message> =>
  results.length === 0 ? [] : [Prompt.makeMessage("tool", { content: results })]

/** Whether every tool call has its one result before anybody speaks again, and no result is without its call. */
export const isBalanced = (messages: ReadonlyArray<Prompt.Message>): boolean => {
  const open = new Set<string>()
  for (const message of messages) {
    if (message.role === "tool") {
      if (!message.content.every((part) => part.type === "tool-result" && open.delete(part.id))) return false
      continue
    }
    if (open.size > 0) return false
    if (message.role !== "assistant") continue
    for (const part of message.content) {
      if (part.type === "tool-call" && !part.providerExecuted) open.add(part.id)
    }
  }
  return open.size === 0
}
