import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as PlatformError from "effect/PlatformError"
import type { ChildProcess as NodeProcess } from "node:child_process"
import { spawn } from "node:child_process"
import { descendants, killAll } from "../../../src/process/internal/processTable.ts"
import { isAlive } from "../../fixtures/acp/harness.ts"

/** Runs a shell script that says so when it is ready, and kills what is left of it at the end. */
const shell = (script: string, env: NodeJS.ProcessEnv = {}) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly pid: number; readonly said: string; readonly child: NodeProcess }>((resume) => {
      const child = spawn("sh", ["-c", script], { detached: true, env: { PATH: process.env["PATH"], ...env } })
      child.stdout.once("data", (said: Buffer) =>
        resume(Effect.succeed({ pid: child.pid!, said: said.toString().trim(), child }))
      )
    }),
    ({ pid, said }) =>
      Effect.sync(() => {
        for (const each of [-pid, ...said.split(" ").map(Number)]) {
          try {
            process.kill(each, "SIGKILL")
          } catch {
            // it has ended
          }
        }
      })
  )

const sleeper = "sleep 1000 >/dev/null 2>&1 </dev/null"
const pids = (found: ReadonlyArray<{ readonly pid: number }>) => found.map(({ pid }) => pid).toSorted((a, b) => a - b)
const noProc = (fs: FileSystem.FileSystem): FileSystem.FileSystem => ({
  ...fs,
  readDirectory: () =>
    Effect.fail(PlatformError.systemError({ _tag: "NotFound", module: "FileSystem", method: "readDirectory" }))
})

describe("the process table", () => {
  it.live("knows children and their children, whatever group they are in", () =>
    Effect.gen(function* () {
      const { pid, said } = yield* shell(`setsid sh -c '${sleeper} & echo $$ $!; wait' & wait`)
      const found = yield* descendants({ pid, mark: "NOBODY=1", noted: [] })
      assert.deepStrictEqual(pids(found), said.split(" ").map(Number))
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("knows by their mark those that have left their parents", () =>
    Effect.gen(function* () {
      const { pid, said } = yield* shell(`(setsid sh -c '${sleeper} & echo $!'); ${sleeper}`, { MARK: "mine" })
      const found = yield* descendants({ pid, mark: "MARK=mine", noted: [] })
      assert.include(pids(found), Number(said))
      assert.deepStrictEqual(yield* descendants({ pid: 1 << 30, mark: "MARK=others", noted: [] }), [])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("knows those that were noted before, if they still are what they were", () =>
    Effect.gen(function* () {
      const { pid, said } = yield* shell(`(${sleeper} & echo $!); ${sleeper}`)
      const orphan = Number(said)
      const [noted] = yield* descendants({ pid: 1 << 30, mark: "NOBODY=1", noted: [] })
      assert.isUndefined(noted)
      const found = (yield* descendants({ pid: 1, mark: "NOBODY=1", noted: [] })).filter(({ pid }) => pid === orphan)
      assert.deepStrictEqual(yield* descendants({ pid: 1 << 30, mark: "NOBODY=1", noted: found }), found)
      const other = found.map((each) => ({ ...each, startedAt: "another time" }))
      assert.deepStrictEqual(yield* descendants({ pid: 1 << 30, mark: "NOBODY=1", noted: other }), [])
      assert.isAbove(pid, 0)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("does not count the dead", () =>
    Effect.gen(function* () {
      const { pid } = yield* shell("sh -c 'echo $$'; true & exec sleep 1000")
      const found = yield* Effect.repeat(descendants({ pid, mark: "NOBODY=1", noted: [] }), {
        until: (found) => found.length === 0
      })
      assert.deepStrictEqual(found, [])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("is asked of ps where there is no /proc", () =>
    Effect.gen(function* () {
      const { pid, said } = yield* shell(`setsid sh -c '${sleeper} & echo $$ $!; wait' & wait`)
      const found = yield* descendants({ pid, mark: "NOBODY=1", noted: [] })
      assert.deepStrictEqual(pids(found), said.split(" ").map(Number))
      const again = yield* descendants({ pid: 1 << 30, mark: "NOBODY=1", noted: found })
      assert.deepStrictEqual(pids(again), pids(found))
    }).pipe(Effect.updateService(FileSystem.FileSystem, noProc), Effect.provide(NodeServices.layer))
  )

  it.live("is empty where there is neither", () =>
    Effect.gen(function* () {
      const path = process.env["PATH"]
      process.env["PATH"] = "/nowhere"
      const found = yield* descendants({ pid: process.pid, mark: "NOBODY=1", noted: [] }).pipe(
        Effect.ensuring(Effect.sync(() => (process.env["PATH"] = path)))
      )
      assert.deepStrictEqual(found, [])
    }).pipe(Effect.updateService(FileSystem.FileSystem, noProc), Effect.provide(NodeServices.layer))
  )

  it.live("has no more of those that were killed", () =>
    Effect.gen(function* () {
      const { said } = yield* shell(`setsid sh -c '${sleeper} & echo $!; trap "" TERM; wait' & wait`)
      const pid = Number(said)
      assert.isTrue(isAlive(pid))
      yield* killAll([
        { pid, startedAt: "" },
        { pid: 1 << 30, startedAt: "" }
      ])
      yield* Effect.repeat(
        Effect.sync(() => isAlive(pid)),
        { until: (alive) => !alive }
      )
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
