/**
 * What a child process has started, as the system's process table shows it.
 *
 * A descendant that has left its process group is reached by nobody's signal to the group. It is found here: by its
 * parents, as long as those live, and by the mark in its environment, which it inherits however often it was detached.
 * Where there is no `/proc`, `ps` tells about parents; where there is neither, nothing is found.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"

/** One process. A process id may be given anew; together with the start it names one process for good. */
export interface Noted {
  readonly pid: number
  readonly startedAt: string
}

interface Row extends Noted {
  readonly parent: number
  readonly isDead: boolean
  /** When it was started, if that can be compared with others. */
  readonly start: number
}

type Needs = FileSystem.FileSystem | ChildProcessSpawner

/** `pid (name) state parent …`, with the start as the 22nd field; a name may contain anything. */
const parseStat = (pid: number, stat: string): Row => {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const [state, parent] = fields
  const startedAt = String(fields[19])
  return { pid, parent: Number(parent), isDead: /[ZX]/.test(String(state)), startedAt, start: Number(startedAt) }
}

const rowsOfProc = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
  const fs = yield* FileSystem.FileSystem
  const rows = yield* Effect.forEach(
    names.filter((name) => /^\d+$/.test(name)),
    (name) =>
      fs.readFileString(`/proc/${name}/stat`).pipe(
        Effect.map((stat) => parseStat(Number(name), stat)),
        // gone by now
        Effect.catch(() => Effect.undefined)
      ),
    { concurrency: 16 }
  )
  return rows.filter((row) => row !== undefined)
})

/** `pid parent state start`, the start being the rest of the line. */
const rowsOfPs = ChildProcess.make("ps", ["-A", "-o", "pid=", "-o", "ppid=", "-o", "stat=", "-o", "lstart="], {
  env: { LC_ALL: "C" },
  extendEnv: true
}).pipe(
  (command) => Effect.flatMap(ChildProcessSpawner, (spawner) => spawner.string(command)),
  Effect.map((text) =>
    Array.from(text.matchAll(/^\s*(\d+)\s+(\d+)\s+(\S+)\s+(\S.*)$/gm), ([, pid, parent, state, startedAt]): Row => ({
      pid: Number(pid),
      parent: Number(parent),
      isDead: state!.includes("Z"),
      startedAt: startedAt!,
      start: 0
    }))
  ),
  Effect.catch((error) => Effect.as(Effect.logDebug("The process table can't be read", error), []))
)

const rows: Effect.Effect<ReadonlyArray<Row>, never, Needs> = Effect.flatMap(FileSystem.FileSystem, (fs) =>
  fs.readDirectory("/proc").pipe(
    Effect.flatMap(rowsOfProc),
    Effect.catch(() => Effect.succeed<ReadonlyArray<Row>>([])),
    Effect.flatMap((found) => (found.length > 0 ? Effect.succeed(found) : rowsOfPs))
  )
)

const isMarked = (pid: number, mark: string): Effect.Effect<boolean, never, FileSystem.FileSystem> =>
  Effect.flatMap(FileSystem.FileSystem, (fs) =>
    fs.readFileString(`/proc/${pid}/environ`).pipe(
      Effect.map((environment) => environment.split("\0").includes(mark)),
      Effect.catch(() => Effect.succeed(false))
    )
  )

/**
 * The living descendants of a process, without itself: of all that lives, those that are marked, those that were
 * noted before and are still what they were, and what any of these has started.
 */
export const descendants = Effect.fnUntraced(function* (options: {
  readonly pid: number
  readonly mark: string
  readonly noted: ReadonlyArray<Noted>
}) {
  const table = yield* rows
  const leader = table.find(({ pid }) => pid === options.pid)
  const noted = new Map(options.noted.map(({ pid, startedAt }) => [pid, startedAt]))
  const found = new Map<number, Row>()
  const add = (row: Row): void => {
    if (found.has(row.pid) || row.isDead) return
    found.set(row.pid, row)
    for (const child of table) if (child.parent === row.pid) add(child)
  }
  for (const row of table) {
    if (row.parent === options.pid || noted.get(row.pid) === row.startedAt) add(row)
  }
  const others = table.filter(
    ({ isDead, pid, start }) => !isDead && !found.has(pid) && pid !== options.pid && start >= (leader?.start ?? 0)
  )
  const marked = yield* Effect.filter(others, ({ pid }) => isMarked(pid, options.mark), { concurrency: 16 })
  for (const row of marked) add(row)
  return Array.from(found.values(), ({ pid, startedAt }): Noted => ({ pid, startedAt }))
})

/** Kills processes for good. Those that are gone by then don't matter. */
export const killAll = (processes: ReadonlyArray<Noted>): Effect.Effect<void, never, ChildProcessSpawner> =>
  Effect.flatMap(ChildProcessSpawner, (spawner) =>
    Effect.ignore(
      spawner.exitCode(
        ChildProcess.make("sh", ["-c", 'kill -KILL "$@"', "sh", ...processes.map(({ pid }) => String(pid))])
      )
    )
  )
