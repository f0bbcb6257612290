/**
 * The updates of one run: stamped, folded, kept for late subscribers, handed to the present ones.
 *
 * What a provider emits is copied and frozen here, so that nobody downstream can change what another sees; only what a
 * tool was given or gave, and raw values, stay what they are, as they may be anything. What is no update, and what comes
 * after the end, is counted and goes nowhere.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { RunId } from "../Agent.ts"
import { ContentBlock } from "../Content.ts"
import type { TurnRefused } from "../SubagentProvider.ts"
import type { SubagentUpdate, ToolCall, UnstampedUpdate } from "../SubagentUpdate.ts"
import * as FanOut from "./fanOut.ts"
import { frozen } from "./frozen.ts"
import { OutputFold } from "./outputFold.ts"
import { figuresIn } from "./usage.ts"

/** Who hears what a run reports, and is asked before each of its turns. */
interface Keeper {
  readonly heard: (update: SubagentUpdate) => void
  readonly nextTurn: () => TurnRefused | undefined
}

/** Where a run's updates go. */
export class UpdateLog {
  readonly fold = new OutputFold()
  /** Emitted after the end, and dropped. */
  late = 0
  /** Emitted, but not an update, and dropped. */
  malformed = 0
  /** Who holds the run to its limits, if it has any. */
  keeper: Keeper | undefined = undefined
  private readonly runId: RunId
  private readonly clock: Pick<Clock.Clock, "currentTimeMillisUnsafe">
  private readonly capacity: number
  /** The messages that the child is being given. It may have read one before it has said that it takes it in. */
  private offered: Set<string> | undefined = undefined
  /** The messages that were taken in and have not been consumed. */
  private inbox: Set<string> | undefined = undefined
  private seq = 0
  private ended = false
  private replay: Array<SubagentUpdate> = []
  private subscribers: FanOut.FanOut<SubagentUpdate> | undefined = undefined

  constructor(runId: RunId, clock: Pick<Clock.Clock, "currentTimeMillisUnsafe">, capacity: number) {
    this.runId = runId
    this.clock = clock
    this.capacity = capacity
  }

  add(update: UnstampedUpdate): void {
    if (this.ended) {
      this.late++
      return
    }
    const copied = Result.try(() => copy(update))
    if (Result.isFailure(copied) || copied.success === undefined) {
      this.malformed++
      return
    }
    const stamped: SubagentUpdate = Object.freeze({
      ...copied.success,
      runId: this.runId,
      seq: this.seq++,
      at: this.clock.currentTimeMillisUnsafe()
    })
    this.fold.add(stamped)
    if (stamped._tag === "Receipt") {
      this.offered?.delete(stamped.messageId)
      this.inbox?.delete(stamped.messageId)
    }
    this.replay.push(stamped)
    if (this.replay.length >= this.capacity * 2) this.replay = this.replay.slice(-this.capacity)
    this.subscribers?.publish(stamped)
    this.keeper?.heard(stamped)
  }

  /** A message is being given to the child. */
  offer(messageId: string): void {
    this.offered = (this.offered ?? new Set()).add(messageId)
  }

  /** It was taken in: until it is consumed it is owed a receipt. */
  owe(messageId: string): void {
    if (this.offered?.delete(messageId)) this.inbox = (this.inbox ?? new Set()).add(messageId)
  }

  /** It was not taken in. */
  forget(messageId: string): void {
    this.offered?.delete(messageId)
  }

  end(): void {
    for (const messageId of this.inbox ?? []) this.add({ _tag: "Receipt", messageId, state: "expired" })
    this.ended = true
    this.subscribers?.end()
  }

  /** What is kept, then what comes, until the end. */
  get stream(): Stream.Stream<SubagentUpdate> {
    return Stream.unwrap(
      Effect.suspend(() => {
        this.subscribers ??= FanOut.make(this.capacity)
        if (this.ended) this.subscribers.end()
        return Effect.map(this.subscribers.subscribe(this.replay.slice(-this.capacity)), Stream.fromQueue)
      })
    )
  }
}

/** A copy of an update that is well formed as far as anything here relies on it. */
const copy = (update: UnstampedUpdate): UnstampedUpdate | undefined => {
  if (!Predicate.isObject(update)) return undefined
  switch (update._tag) {
    case "MessageStarted":
      return Predicate.isString(update.messageId) ? { ...update } : undefined
    case "Content":
      return (update.messageId === undefined || Predicate.isString(update.messageId)) && isBlock(update.block)
        ? { ...update, block: frozen(update.block) }
        : undefined
    case "Thought":
      return Predicate.isString(update.text) ? { ...update } : undefined
    case "ToolCall":
      return Predicate.isString(update.id) && toolStates.has(update.status) ? detached(update) : undefined
    case "Usage": {
      const usage = Predicate.isObject(update.usage) ? figuresIn(update.usage) : undefined
      return usage && { ...update, usage }
    }
    case "Plan":
      return areEntries(update.entries) ? { ...update, entries: frozen(update.entries) } : undefined
    case "Receipt":
      return Predicate.isString(update.messageId) && receiptStates.has(update.state) ? { ...update } : undefined
    case "Permission":
    case "Raw":
      return { ...update }
    default:
      return undefined
  }
}

/** A tool call whose data is nobody else's: neither the tool nor its caller sees what a subscriber does with it. */
const detached = (call: ToolCall): ToolCall => ({
  ...call,
  ...("input" in call && { input: snapshot(call.input) }),
  ...("output" in call && { output: snapshot(call.output) })
})

/** What refers to itself can't be copied, and is no data of a tool's. */
const snapshot = (value: unknown): unknown => Result.getOrUndefined(Result.try(() => frozen(value)))

const toolStates = new Set(["pending", "running", "completed", "failed"])

const receiptStates = new Set(["consumed", "expired"])

const areEntries = (entries: unknown): boolean => Array.isArray(entries) && entries.every(Predicate.isObject)

const isContentBlock = Schema.is(ContentBlock)

/** Text, which is nearly all there is, is told by hand. */
const isBlock = (block: unknown): boolean =>
  Predicate.isObject(block) && (block["type"] === "text" ? Predicate.isString(block["text"]) : isContentBlock(block))
