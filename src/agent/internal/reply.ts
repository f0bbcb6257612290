/**
 * What a model call gave: folds its parts, whole or streamed, into updates and into what the loop goes on with.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Base64 from "effect/encoding/Base64"
import type { ContentBlock } from "../../Content.ts"
import { text } from "../../Content.ts"
import type { SubagentUsage } from "../../SubagentResult.ts"
import type { UnstampedUpdate } from "../../SubagentUpdate.ts"
import { assistantMessages, fileBlock } from "./history.ts"
import { usageOf, usageOfError } from "./outcome.ts"

/** A tool call that is the loop's to execute. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly params: unknown
}

/** A whole reply. */
export interface Reply {
  /** What to remember of it: one message of the assistant's, or none. */
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly calls: ReadonlyArray<ToolCall>
  readonly finishReason: Response.FinishReason
  /** What the model's provider reported amid the stream instead of failing, in a box. */
  readonly error: { readonly value: unknown } | undefined
}

/** Folds the parts of one reply, in the order in which they come. */
export class ReplyFold {
  private readonly parts: Array<Response.AnyPart> = []
  private readonly calls: Array<ToolCall> = []
  /** Made for the first call, for most replies have none; so are those below. */
  private callIds: Set<string> | undefined
  /** The calls that the model's provider executes and has not answered yet. */
  private executing: Set<string> | undefined
  private messageId: string | undefined
  private finishReason: Response.FinishReason = "unknown"
  private error: Reply["error"]
  private readonly emit: (update: UnstampedUpdate) => void
  private readonly spend: (usage: SubagentUsage) => void
  private readonly freshId: () => string

  /** `spend` hears of the figures of this reply as soon as there are any; later ones stand for those before. */
  constructor(emit: (update: UnstampedUpdate) => void, spend: (usage: SubagentUsage) => void, freshId: () => string) {
    this.emit = emit
    this.spend = spend
    this.freshId = freshId
  }

  add(parts: ReadonlyArray<Response.AnyPart>): this {
    for (const part of parts) this.addPart(part)
    return this
  }

  /** The reply, once all its parts have come. */
  end(): Reply {
    this.executing?.forEach((id) => this.emit({ _tag: "ToolCall", id, status: "completed" }))
    return {
      messages: assistantMessages(this.parts),
      calls: this.calls,
      finishReason: this.finishReason,
      error: this.error
    }
  }

  /** There will be no reply: no tool call that it has announced stays open. */
  abandon(): void {
    const output = "The model call broke off"
    for (const id of [...(this.executing ?? []), ...this.calls.map((call) => call.id)]) {
      this.emit({ _tag: "ToolCall", id, status: "failed", output })
    }
  }

  private addPart(part: Response.AnyPart): void {
    switch (part.type) {
      case "text":
        if (part.text !== "") this.say(text(part.text))
        break
      case "text-delta":
        if (part.delta !== "") this.say(text(part.delta))
        break
      case "file":
        this.say(fileBlock(part.mediaType, Base64.encode(part.data), `cid:${this.freshId()}`))
        break
      case "reasoning":
        if (part.text !== "") this.emit({ _tag: "Thought", text: part.text })
        break
      case "reasoning-delta":
        if (part.delta !== "") this.emit({ _tag: "Thought", text: part.delta })
        break
      case "tool-call":
        this.parts.push(this.call(part))
        return
      case "tool-result":
        this.result(part)
        break
      case "finish":
        this.finishReason = part.reason
        this.spend(usageOf(part.usage))
        break
      case "error":
        this.error = { value: part.error }
        this.spend(usageOfError(part.error))
        break
    }
    this.parts.push(part)
  }

  private say(block: ContentBlock): void {
    if (this.messageId === undefined) {
      this.messageId = this.freshId()
      this.emit({ _tag: "MessageStarted", messageId: this.messageId })
    }
    this.emit({ _tag: "Content", messageId: this.messageId, block })
  }

  /** Some models use an id twice in one reply; model APIs refuse to take that back. */
  private call(part: Response.ToolCallPart<string, unknown>): Response.ToolCallPart<string, unknown> {
    const call = this.callIds?.has(part.id) ? { ...part, id: this.freshId() } : part
    const { id, name, params } = call
    this.callIds = (this.callIds ?? new Set()).add(id)
    this.emit({ _tag: "ToolCall", id, name, status: part.providerExecuted ? "running" : "pending", input: params })
    if (part.providerExecuted) this.executing = (this.executing ?? new Set()).add(id)
    else this.calls.push({ id, name, params })
    return call
  }

  private result(part: Response.ToolResultPart<string, unknown, unknown>): void {
    if (part.preliminary || !this.executing?.delete(part.id)) return
    const status = part.isFailure ? "failed" : "completed"
    this.emit({ _tag: "ToolCall", id: part.id, status, output: part.encodedResult })
  }
}
