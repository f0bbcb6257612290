/**
 * What is left of a scenario, as the process table shows it. Each scenario has a mark: it is in the environment of the agent, and in the name of
 * the folder that it works in. A process that has it in its environment, its command line or its working directory is one of that scenario's,
 * whoever its parent is.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"

export interface Living {
  readonly pid: number
  readonly command: string
}

const read = (file: string): string => {
  try {
    return fs.readFileSync(file, "utf8")
  } catch {
    // gone, or not ours to look at
    return ""
  }
}

const folderOf = (pid: string): string => {
  try {
    return fs.readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return ""
  }
}

/** The processes that carry one of these marks, without this one and without the dead whom nobody has buried. */
export const living = (...marks: ReadonlyArray<string>): ReadonlyArray<Living> =>
  fs.readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return []
    const command = read(`/proc/${name}/cmdline`).replaceAll("\0", " ").trim()
    const traces = [read(`/proc/${name}/environ`), command, folderOf(name)]
    const isMarked = marks.some((mark) => traces.some((trace) => trace.includes(mark)))
    const isDead = !/^\d+ \([\s\S]*\) [^ZX]/.test(read(`/proc/${name}/stat`))
    return isMarked && !isDead ? [{ pid: Number(name), command: command.slice(0, 120) }] : []
  })

/** The process of that run which this process has started itself. */
export const leader = (runId: string): number | undefined =>
  living(`EFFECT_SUBAGENT_RUN=${runId}\0`).find(({ pid }) =>
    read(`/proc/${pid}/stat`)
      .replace(/^[\s\S]*\) \S /, "")
      .startsWith(`${process.pid} `)
  )?.pid

/** Ends whatever is left, so that one scenario's fault is not the next one's. */
export const killAll = (left: ReadonlyArray<Living>): void => {
  for (const { pid } of left) {
    try {
      process.kill(pid, "SIGKILL")
    } catch {
      // gone by itself
    }
  }
}

/** Waits until something holds, looking now and then. Never gives up: a scenario has a timeout. */
export const until = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.andThen(Effect.sleep("50 millis"), until(holds))))
