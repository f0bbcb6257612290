/**
 * The one picker of a run's output, and what else follows from its updates.
 *
 * Output is the content of the last message that says anything, else what was streamed outside any message, else
 * nothing. Only what may still become output is kept, so a long run costs no more than its last message, and
 * the ids of those before it.
 *
 * @since 0.1.0
 */
import type { ContentBlock } from "../Content.ts"
import { isBlank } from "../Content.ts"
import type { SubagentUsage } from "../SubagentResult.ts"
import type { UnstampedUpdate } from "../SubagentUpdate.ts"

interface Message {
  blocks: Array<ContentBlock>
  isBlank: boolean
}

/** Folds updates, one at a time. */
export class OutputFold {
  /** Those that may still become the output, in the order in which they began. */
  private readonly messages = new Map<string, Message>()
  /** Those that a later message has superseded. */
  private superseded: Set<string> | undefined = undefined
  /** What was streamed outside any message, as long as no message says anything. */
  private streamed: Message | undefined = undefined
  private hasSpoken = false
  private openCalls: Set<string> | undefined = undefined
  usage: SubagentUsage | undefined = undefined

  add(update: UnstampedUpdate): void {
    switch (update._tag) {
      case "MessageStarted": {
        this.message(update.messageId)
        return
      }
      case "Content": {
        if (update.messageId === undefined) {
          if (!this.hasSpoken) append((this.streamed ??= empty()), update.block)
        } else {
          this.addContent(update.messageId, update.block)
        }
        return
      }
      case "ToolCall": {
        if (update.status === "pending" || update.status === "running") (this.openCalls ??= new Set()).add(update.id)
        else this.openCalls?.delete(update.id)
        return
      }
      case "Usage": {
        this.usage = update.usage
        return
      }
    }
  }

  /** The output so far: a fresh, frozen list. */
  output(): ReadonlyArray<ContentBlock> {
    let picked = this.streamed
    for (const message of this.messages.values()) {
      if (!message.isBlank) picked = message
    }
    return Object.freeze(
      picked === undefined || picked.isBlank ? [] : picked.blocks.map((block) => Object.freeze(block))
    )
  }

  /** Whether a tool call was begun and not answered. */
  get isUnbalanced(): boolean {
    return this.openCalls !== undefined && this.openCalls.size > 0
  }

  private message(id: string): Message | undefined {
    if (this.superseded?.has(id)) return undefined
    const known = this.messages.get(id)
    if (known !== undefined) return known
    const begun = empty()
    this.messages.set(id, begun)
    return begun
  }

  private addContent(id: string, block: ContentBlock): void {
    const message = this.message(id)
    if (message === undefined) return
    const wasBlank = message.isBlank
    append(message, block)
    if (wasBlank && !message.isBlank) this.supersede(id)
  }

  /** Lets go of the messages before one that says something: none of them can be the output any more. */
  private supersede(id: string): void {
    this.hasSpoken = true
    this.streamed = undefined
    for (const earlier of this.messages.keys()) {
      if (earlier === id) return
      this.messages.delete(earlier)
      ;(this.superseded ??= new Set()).add(earlier)
    }
  }
}

const empty = (): Message => ({ blocks: [], isBlank: true })

const append = (message: Message, block: ContentBlock): void => {
  message.isBlank = message.isBlank && isBlank([block])
  const last = message.blocks.at(-1)
  if (last !== undefined && isPlainText(last) && isPlainText(block)) {
    message.blocks[message.blocks.length - 1] = { type: "text", text: last.text + block.text }
  } else {
    message.blocks.push({ ...block })
  }
}

const isPlainText = (block: ContentBlock): block is ContentBlock & { readonly type: "text" } =>
  block.type === "text" && block.annotations === undefined && block._meta === undefined
