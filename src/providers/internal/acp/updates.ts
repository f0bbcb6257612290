/**
 * From what an agent sends about its session to the updates of a run.
 *
 * A message is what comes under one id, or, from an agent that gives none, what comes between two tool calls. Text that
 * comes while no turn runs (a greeting, a warning) is passed on raw, so that it is never taken for an answer. A tool
 * call is one thing, whichever message tells of it first, and its status only moves forward.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import type { ContentBlock } from "../../../Content.ts"
import { isBlank, toText } from "../../../Content.ts"
import { OutputFold } from "../../../internal/outputFold.ts"
import type { ToolCall, UnstampedUpdate } from "../../../SubagentUpdate.ts"
import { ContentChunk, items, Plan, readBlock, reader, ToolCallUpdate } from "./messages.ts"

const readChunk = reader(ContentChunk)
const readPlan = reader(Plan)
const readToolCall = reader(ToolCallUpdate)

/** What an update is, is in its `sessionUpdate`. */
export type SessionUpdate = { readonly [key: string]: unknown }

type Status = ToolCall["status"]

const statuses: { readonly [status: string]: Status } = {
  pending: "pending",
  in_progress: "running",
  completed: "completed",
  failed: "failed"
}

const ranks: { readonly [S in Status]: number } = { pending: 0, running: 1, completed: 2, failed: 2 }

interface Call {
  status: Status
  name: string
  input: unknown
  /** How much had been said when this call was last heard of. */
  saidBefore: number
  isDenied: boolean
}

/** What is known of a tool call. */
export interface KnownCall {
  readonly id: string
  readonly name: string
  readonly input: unknown
}

/** Folds the updates of one session. */
export class SessionUpdates {
  private readonly emitTo: (update: UnstampedUpdate) => void
  private readonly calls = new Map<string, Call>()
  private readonly open = new Set<string>()
  /** Of the turn that runs, if one does. */
  private turn: OutputFold | undefined = undefined
  private messageId: string | undefined = undefined
  private isMessageOver = true
  private messages = 0
  /** Counts the pieces of text. */
  private said = 0
  private isMuted = false
  /** What a tool call of the turn was last denied by, if one was. */
  denial: string | undefined = undefined

  constructor(emit: (update: UnstampedUpdate) => void) {
    this.emitTo = emit
  }

  begin(): void {
    this.turn = new OutputFold()
    this.isMessageOver = true
    this.open.clear()
    this.denial = undefined
  }

  /** Nobody waits for the turn that runs any more: nothing of it is reported until it is over. */
  abandon(): void {
    this.isMuted = true
  }

  /**
   * The turn is over. Calls that never got an end get one here: those that were denied, those that the agent has spoken
   * after, and all of them if the turn has not ended well. What is left is a turn that has ended within a tool call.
   * Gives the text of the last message.
   */
  end(hasEndedWell: boolean): string {
    const text = toText(this.turn!.output())
    for (const id of this.open) {
      const call = this.calls.get(id)!
      if (!hasEndedWell || call.isDenied || call.saidBefore < this.said) this.move(id, call, "failed")
    }
    this.turn = undefined
    this.isMuted = false
    return text
  }

  update(update: SessionUpdate): void {
    const kind = update["sessionUpdate"]
    if (!this.known(update))
      this.emit({ _tag: "Raw", kind: Predicate.isString(kind) ? kind : "unknown", value: update })
  }

  /** Takes in what a permission request tells of its tool call. */
  asked(update: typeof ToolCallUpdate.Type): KnownCall {
    this.toolCall(update)
    const id = update.toolCallId
    const { input, name } = this.calls.get(id)!
    return { id, name, input: update.rawInput ?? input }
  }

  denied(id: string, outcome: string): void {
    this.calls.get(id)!.isDenied = true
    this.denial = outcome
  }

  private emit(update: UnstampedUpdate): void {
    if (this.isMuted) return
    this.turn?.add(update)
    this.emitTo(update)
  }

  private known(update: SessionUpdate): boolean {
    switch (update["sessionUpdate"]) {
      case "agent_message_chunk":
      case "agent_thought_chunk": {
        const chunk = readChunk(update)
        const block = chunk && readBlock(chunk.content)
        if (block === undefined || this.turn === undefined) return false
        if (update["sessionUpdate"] === "agent_message_chunk") this.say(block, chunk?.messageId)
        else this.emit({ _tag: "Thought", text: toText([block]) })
        return true
      }
      case "tool_call":
      case "tool_call_update": {
        const call = readToolCall(update)
        if (call !== undefined) this.toolCall(call)
        return call !== undefined
      }
      case "plan": {
        const entries = items(readPlan(update)?.entries).map(({ content, priority, status }) => ({
          content,
          ...(priority !== undefined && { priority }),
          ...(status !== undefined && { status })
        }))
        this.emit({ _tag: "Plan", entries })
        return true
      }
      default:
        return false
    }
  }

  private say(block: ContentBlock, id: string | undefined): void {
    const messageId = id ?? (this.isMessageOver ? `message-${++this.messages}` : this.messageId!)
    if (messageId !== this.messageId) this.emit({ _tag: "MessageStarted", messageId })
    this.messageId = messageId
    this.isMessageOver = false
    if (!isBlank([block])) this.said++
    this.emit({ _tag: "Content", messageId, block })
  }

  private toolCall(update: typeof ToolCallUpdate.Type): void {
    const { content, name = update.title, rawInput, rawOutput = content, toolCallId: id } = update
    let call = this.calls.get(id)
    if (call === undefined) {
      this.isMessageOver = true
      call = { status: "pending", name: "tool", input: undefined, saidBefore: 0, isDenied: false }
      this.calls.set(id, call)
    }
    call.name = name ?? call.name
    call.input = rawInput ?? call.input
    call.saidBefore = this.said
    this.move(id, call, statuses[update.status ?? ""] ?? call.status, {
      ...(name !== undefined && { name }),
      ...(rawInput !== undefined && { input: rawInput }),
      ...(rawOutput !== undefined && { output: rawOutput })
    })
  }

  private move(id: string, call: Call, status: Status, news: Partial<ToolCall> = {}): void {
    if (ranks[status] > ranks[call.status]) call.status = status
    if (ranks[call.status] === 2) {
      this.open.delete(id)
      // a session may have many calls, and each a file in its input
      call.input = undefined
    } else {
      this.open.add(id)
    }
    this.emit({ _tag: "ToolCall", id, status: call.status, ...news })
  }
}
