/** What happens while a survey works: the runs, and who reads which file. Progress is told on stderr. */
import type { SubagentEvent } from "effect-subagent"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { printable } from "./printable.ts"

/** A run, its place in the tree, and the files it read. */
export interface RunRecord extends Omit<SubagentEvent.StartEvent, "type"> {
  /** 1 for a child of the root agent. */
  readonly depth: number
  readonly reads: ReadonlyArray<string>
  /** How it ended, once it has. */
  readonly end?: Pick<SubagentEvent.EndEvent, "stopReason" | "cause" | "failure">
}

export class Journal {
  private readonly records = new Map<string, RunRecord>()
  private readonly reads = new Map<string, Array<string>>()

  /** The runs, in the order in which they started. */
  get runs(): ReadonlyArray<RunRecord> {
    return Array.from(this.records.values())
  }

  /** The files an agent has read. */
  readsOf(agentId: string): ReadonlyArray<string> {
    return this.reads.get(agentId) ?? []
  }

  noteRead(agentId: string, path: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const reads = this.reads.get(agentId)
      if (reads) reads.push(path)
      else this.reads.set(agentId, [path])
      return tell(`read     ${path}`)
    })
  }

  noteEvent(event: SubagentEvent.SubagentEvent): Effect.Effect<void> {
    switch (event.type) {
      case "subagent/start": {
        const { type: _, ...start } = event
        const depth = (this.records.get(start.parentRunId ?? "")?.depth ?? 0) + 1
        const reads: Array<string> = this.reads.get(start.id) ?? []
        this.reads.set(start.id, reads)
        this.records.set(start.runId, { ...start, depth, reads })
        return tell(`started  ${event.label} (${event.provider}, depth ${depth})`)
      }
      case "subagent/end": {
        const { cause, failure, label, runId, stopReason } = event
        const record = this.records.get(runId)
        const end = { stopReason, ...(cause && { cause }), ...(failure && { failure }) }
        if (record) this.records.set(runId, { ...record, end })
        return tell(`ended    ${label}: ${stopReason}${failure?.message === undefined ? "" : `, ${failure.message}`}`)
      }
      case "subagent/release-problem":
        return tell(`problem  ${event.runId}: ${event.detail}`)
      default:
        return Effect.void
    }
  }
}

/** A line of progress. Standard output is kept for the report. */
export const tell = (line: string): Effect.Effect<void> => Console.error(printable(line))
