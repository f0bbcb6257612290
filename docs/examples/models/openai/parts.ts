/** A whole answer as the parts that `effect/ai` knows, and what whole and streamed answers have in common. */
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import type { Completion, Figures, Said } from "./wire.ts"

export const partsOf = ({ choices: [choice], id, model, usage }: Completion): Array<Response.PartEncoded> => {
  const { content, refusal, tool_calls } = choice.message
  const thought = thoughtOf(choice.message)
  const texts = [content, refusal].filter((text) => typeof text === "string" && text !== "") as ReadonlyArray<string>
  const calls = (tool_calls ?? []).map((call) =>
    toolCallPart(call.id, call.function?.name, argumentsOf(call.function?.arguments))
  )
  return [
    metadataPart(id, model),
    ...(thought === undefined ? [] : [{ type: "reasoning" as const, text: thought.text, metadata: thought.metadata }]),
    ...texts.map((text) => ({ type: "text" as const, text })),
    ...calls,
    finishPart(refusal ? "content_filter" : choice.finish_reason, calls.length > 0, usage)
  ]
}

/** A thought, and where it was found: a server that wants it back wants it there. */
export interface Thought {
  readonly text: string
  readonly metadata: { readonly openai: { field: ThoughtField } }
}

export type ThoughtField = "reasoning_content" | "reasoning"

export const thoughtOf = (said: Said): Thought | undefined => {
  for (const field of ["reasoning_content", "reasoning"] as const) {
    const text = said[field]
    if (typeof text === "string" && text !== "") return { text, metadata: { openai: { field } } }
  }
  return undefined
}

export const metadataPart = (
  id: string | null | undefined,
  modelId: string | null | undefined
): Response.ResponseMetadataPartEncoded => ({
  type: "response-metadata",
  ...(id ? { id } : undefined),
  ...(modelId ? { modelId } : undefined)
})

/** Arguments are a text, but some servers give the object that the text would stand for. */
export const argumentsOf = (given: unknown): string =>
  typeof given === "string" ? given : given === undefined || given === null ? "" : JSON.stringify(given)

/** A call whose arguments are no JSON has them as the text that they are: whoever runs the tool tells the model. */
export const toolCallPart = (
  id: string | null | undefined,
  name: string | null | undefined,
  text: string
): Response.ToolCallPartEncoded => ({
  type: "tool-call",
  id: id || `call-${crypto.randomUUID()}`,
  name: name ?? "",
  params: paramsOf(text)
})

const paramsOf = (text: string): unknown => {
  if (text.trim() === "") return {}
  try {
    return Tool.unsafeSecureJsonParse(text)
  } catch {
    return text
  }
}

export const finishPart = (
  reason: string | null | undefined,
  hasCalls: boolean,
  usage: Figures | null | undefined
): Response.FinishPartEncoded => ({ type: "finish", reason: reasonOf(reason, hasCalls), usage: usageOf(usage ?? {}) })

const reasonOf = (reason: string | null | undefined, hasCalls: boolean): Response.FinishReason => {
  switch (reason) {
    case "stop":
      return hasCalls ? "tool-calls" : "stop"
    case "tool_calls":
    case "function_call":
      return "tool-calls"
    case "length":
      return "length"
    case "content_filter":
      return "content-filter"
    default:
      return reason ? "other" : "unknown"
  }
}

const usageOf = (figures: Figures): (typeof Response.Usage)["Encoded"] => {
  const input = figures.prompt_tokens ?? undefined
  const output = figures.completion_tokens ?? undefined
  const cacheRead = figures.prompt_tokens_details?.cached_tokens ?? figures.prompt_cache_hit_tokens ?? undefined
  const reasoning = figures.completion_tokens_details?.reasoning_tokens ?? undefined
  return {
    inputTokens: { total: input, cacheRead, uncached: minus(input, cacheRead), cacheWrite: undefined },
    outputTokens: { total: output, reasoning, text: minus(output, reasoning) }
  }
}

const minus = (total: number | undefined, part: number | undefined): number | undefined =>
  total === undefined || part === undefined || part > total ? undefined : total - part
