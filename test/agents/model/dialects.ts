/** The ways in which agents speak to a model: what they ask, and how an answer is written, as a stream of events. */
import type { ToolCall } from "../agents.ts"

/** One server-sent event. */
export interface Frame {
  readonly event?: string
  readonly data: object | "[DONE]"
}

type Frames = ReadonlyArray<Frame>

/** Writes one answer: first what begins it, then its parts, then what ends it. */
export interface Writer {
  readonly begin: () => Frames
  readonly text: (piece: string) => Frames
  readonly call: (call: ToolCall) => Frames
  readonly end: () => Frames
}

export interface Dialect {
  /** The path of a request that is asked for an answer. */
  readonly route: RegExp
  readonly writer: () => Writer
  /** A text as an answer that is no stream. */
  readonly whole: (text: string) => object
}

let ids = 0
const id = (kind: string): string => `${kind}_${++ids}`

/** What every call is said to have used. */
const used = { input: 100, output: 10, total: 110 }

const chat: Dialect = {
  route: /\/chat\/completions$/,
  whole: (content) => ({
    id: id("chat"),
    object: "chat.completion",
    created: 0,
    model: "fake",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens: used.input, completion_tokens: used.output, total_tokens: used.total }
  }),
  writer: () => {
    const common = { id: id("chat"), object: "chat.completion.chunk", created: 0, model: "fake" }
    const choose = (delta: object, finish: string | null = null): Frames => [
      { data: { ...common, choices: [{ index: 0, delta, finish_reason: finish }] } }
    ]
    let calls = 0
    return {
      begin: () => choose({ role: "assistant", content: "" }),
      text: (content) => choose({ content }),
      call: ({ input, name }) =>
        choose({
          tool_calls: [
            { index: calls++, id: id("call"), type: "function", function: { name, arguments: JSON.stringify(input) } }
          ]
        }),
      end: () => [
        ...choose({}, calls > 0 ? "tool_calls" : "stop"),
        {
          data: {
            ...common,
            choices: [],
            usage: { prompt_tokens: used.input, completion_tokens: used.output, total_tokens: used.total }
          }
        },
        { data: "[DONE]" }
      ]
    }
  }
}

const responses: Dialect = {
  route: /\/responses$/,
  whole: (text) => ({
    id: id("response"),
    object: "response",
    status: "completed",
    output: [{ type: "message", id: id("message"), role: "assistant", content: [{ type: "output_text", text }] }]
  }),
  writer: () => {
    const response = { id: id("response"), object: "response", created_at: 0, model: "fake" }
    const output: Array<object> = []
    let sequence = 0
    let message: { readonly id: string; text: string } | undefined
    const event = (type: string, fields: object): Frame => ({
      event: type,
      data: { type, sequence_number: sequence++, ...fields }
    })
    const endMessage = (): Frames => {
      if (message === undefined) return []
      const content = [{ type: "output_text", text: message.text, annotations: [] }]
      const item = { type: "message", id: message.id, role: "assistant", status: "completed", content }
      message = undefined
      return [event("response.output_item.done", { output_index: output.push(item) - 1, item })]
    }
    return {
      begin: () => [event("response.created", { response: { ...response, status: "in_progress", output } })],
      text: (delta) => {
        const frames: Array<Frame> = []
        if (message === undefined) {
          message = { id: id("message"), text: "" }
          const item = { type: "message", id: message.id, role: "assistant", status: "in_progress", content: [] }
          frames.push(event("response.output_item.added", { output_index: output.length, item }))
        }
        message.text += delta
        const place = { item_id: message.id, output_index: output.length, content_index: 0 }
        return [...frames, event("response.output_text.delta", { ...place, delta })]
      },
      call: ({ input, name }) => {
        const ended = endMessage()
        const call = { type: "function_call", id: id("function"), call_id: id("call"), name }
        const item = { ...call, status: "completed", arguments: JSON.stringify(input) }
        const at = { output_index: output.push(item) - 1 }
        return [
          ...ended,
          event("response.output_item.added", { ...at, item: { ...item, status: "in_progress", arguments: "" } }),
          event("response.output_item.done", { ...at, item })
        ]
      },
      end: () => {
        const ended = endMessage()
        const usage = {
          input_tokens: used.input,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: used.output,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: used.total
        }
        const whole = { ...response, status: "completed", output, usage }
        return [...ended, event("response.completed", { response: whole })]
      }
    }
  }
}

const geminiAnswer = (parts: ReadonlyArray<object>, finishReason?: string): object => ({
  candidates: [{ index: 0, content: { role: "model", parts }, ...(finishReason !== undefined && { finishReason }) }],
  modelVersion: "fake",
  usageMetadata: { promptTokenCount: used.input, candidatesTokenCount: used.output, totalTokenCount: used.total }
})

const gemini: Dialect = {
  route: /\/models\/[^/:]+:(?:streamG|g)enerateContent$/,
  whole: (text) => geminiAnswer([{ text }], "STOP"),
  writer: () => ({
    begin: () => [],
    text: (text) => [{ data: geminiAnswer([{ text }]) }],
    call: ({ input, name }) => [{ data: geminiAnswer([{ functionCall: { id: id("call"), name, args: input } }]) }],
    end: () => [{ data: geminiAnswer([{ text: "" }], "STOP") }]
  })
}

export const dialects: ReadonlyArray<Dialect> = [chat, responses, gemini]

type Json = { readonly [key: string]: unknown }

const list = (value: unknown): ReadonlyArray<Json> => (Array.isArray(value) ? (value as ReadonlyArray<Json>) : [])

/** The names of the tools that a request offers, however they are nested. */
export const toolsOf = (body: Json): ReadonlyArray<string> =>
  list(body["tools"]).flatMap((tool) => {
    const { function: described, functionDeclarations } = tool
    const nested = list(functionDeclarations).concat(described === undefined ? [] : (described as Json))
    return [tool, ...nested].flatMap(({ name }) => (typeof name === "string" ? name : [])).concat(toolsOf(tool))
  })
