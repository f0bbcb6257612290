/** A streamed answer as the parts that `effect/ai` knows. Tool calls are given whole, at the end. */
import type * as Response from "effect/ai/Response"
import * as Result from "effect/Result"
import type { Thought } from "./parts.ts"
import { argumentsOf, finishPart, metadataPart, thoughtOf, toolCallPart } from "./parts.ts"
import type { Chunk, Said } from "./wire.ts"

type Parts = ReadonlyArray<Response.StreamPartEncoded>

interface Call {
  readonly index: number | undefined
  readonly id: string | undefined
  readonly name: string | undefined
  text: string
}

type Delta = NonNullable<Said["tool_calls"]>[number]

/** Folds the chunks of one answer. */
export class Streamed {
  private hasBegun = false
  /** The text or the thought that is being said. */
  private open: { readonly type: "text" | "reasoning"; readonly id: string } | undefined
  private blocks = 0
  private readonly calls: Array<Call> = []
  private isRefused = false
  private reason: string | undefined
  private usage: Chunk["usage"]

  add({ choices, id, model, usage }: Chunk): Parts {
    const parts: Array<Response.StreamPartEncoded> = []
    if (!this.hasBegun) parts.push(metadataPart(id, model))
    this.hasBegun = true
    this.usage = usage ?? this.usage
    for (const { delta, finish_reason } of choices ?? []) {
      this.reason = finish_reason || this.reason
      if (delta) parts.push(...this.say(delta))
    }
    return parts
  }

  /** What is left to say at the end of the stream. A stream without a reason to finish was cut off: fails with that. */
  end(): Result.Result<Parts, string> {
    if (this.reason === undefined) return Result.fail("The stream ended before the answer was finished")
    return Result.succeed([
      ...this.close(),
      ...this.calls.map(({ id, name, text }) => toolCallPart(id, name, text)),
      finishPart(this.isRefused ? "content_filter" : this.reason, this.calls.length > 0, this.usage)
    ])
  }

  private say(delta: Said): Parts {
    const parts: Array<Response.StreamPartEncoded> = []
    const thought = thoughtOf(delta)
    if (thought) parts.push(...this.speak("reasoning", thought.text, thought))
    if (delta.content) parts.push(...this.speak("text", delta.content))
    if (delta.refusal) {
      this.isRefused = true
      parts.push(...this.speak("text", delta.refusal))
    }
    for (const call of delta.tool_calls ?? []) this.call(call)
    return parts
  }

  private speak(type: "text" | "reasoning", delta: string, thought?: Thought): Parts {
    if (this.open?.type === type) return [{ type: `${type}-delta`, id: this.open.id, delta }]
    const closed = this.close()
    const id = String(this.blocks++)
    this.open = { type, id }
    const metadata = thought && { metadata: thought.metadata }
    return [...closed, { type: `${type}-start`, id, ...metadata }, { type: `${type}-delta`, id, delta }]
  }

  private close(): Parts {
    if (this.open === undefined) return []
    const { id, type } = this.open
    this.open = undefined
    return [{ type: `${type}-end`, id }]
  }

  /**
   * A call goes on under its number. Some servers leave the number out, and some give the same one to every call: there a
   * call that has a name and another id than the last one is a new one.
   */
  private call({ function: called, id, index }: Delta): void {
    const text = argumentsOf(called?.arguments)
    const known = this.calls.findLast((call) => index == null || call.index === index)
    const isNew = known === undefined || (Boolean(called?.name) && (id ? id !== known.id : index == null))
    if (isNew)
      this.calls.push({ index: index ?? undefined, id: id ?? undefined, name: called?.name ?? undefined, text })
    else known.text += text
  }
}
