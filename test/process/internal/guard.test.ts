import { assert, describe, it } from "@effect/vitest"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as PlatformError from "effect/PlatformError"
import { spawn } from "node:child_process"
import * as path from "node:path"
import { guard } from "../../../src/process/internal/guard.ts"
import { marked } from "../../fixtures/acp/harness.ts"

const hostFile = path.join(import.meta.dirname, "../../fixtures/process/host.ts")

/** Ignores the end of its input and SIGTERM, and has a daemon. */
const stubborn = "trap '' TERM; (setsid sleep 1000 >/dev/null 2>&1 &); echo ready; while :; do sleep 0.05; done"

/** Runs a host of three such processes, ends the host in this way when all is there, and waits until nothing is left. */
const endHost = (end: "throw" | NodeJS.Signals, name: string) =>
  Effect.gen(function* () {
    const exited = yield* Effect.callback<unknown>((resume) => {
      const host = spawn(process.execPath, ["--conditions=effect-subagent-source", hostFile, end, name, stubborn], {
        stdio: ["pipe", "pipe", "ignore"]
      })
      let said = ""
      host.stdout.on("data", (text: Buffer) => {
        said += text.toString()
        if (said !== "ready\nready\nready\n") return
        if (end === "throw") host.stdin.write("now\n")
        else host.kill(end)
      })
      host.once("exit", (code, signal) => resume(Effect.succeed(signal ?? code)))
    })
    yield* Effect.repeat(
      Effect.delay(
        Effect.sync(() => [name, `2_${name}`, `3_${name}`].flatMap((each) => marked(each)).length),
        "50 millis"
      ),
      { until: (left) => left === 0 }
    )
    return exited
  })

describe("a guard", () => {
  it.live("[I5] ends what a host has left that was killed", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* endHost("SIGKILL", "run_guard_kill"), "SIGKILL")
    })
  )

  it.live("[I5] ends what a host has left that died of an uncaught error", () =>
    Effect.gen(function* () {
      assert.notStrictEqual(yield* endHost("throw", "run_guard_throw"), 0)
    })
  )

  it.live("[I5] is not needed by a host that ends by SIGTERM and runs its finalizers", () =>
    Effect.gen(function* () {
      assert.notStrictEqual(yield* endHost("SIGTERM", "run_guard_term"), 0)
    })
  )

  it.live("is gone with its scope", () =>
    Effect.gen(function* () {
      const spawner = yield* ChildProcessSpawner
      let pid = 0
      const noting = ChildProcessSpawner.of({
        ...spawner,
        spawn: (command) => Effect.tap(spawner.spawn(command), (handle) => Effect.sync(() => (pid = handle.pid)))
      })
      yield* guard({ pid: 1 << 30, mark: "NOBODY=1", grace: 100, path: process.env["PATH"] }).pipe(
        Effect.scoped,
        Effect.provideService(ChildProcessSpawner, noting)
      )
      assert.isAbove(pid, 0)
      assert.throws(() => process.kill(pid, 0))
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("is missed, and no more than that, where there is no shell", () =>
    Effect.gen(function* () {
      const spawner = yield* ChildProcessSpawner
      const error = PlatformError.systemError({ _tag: "NotFound", module: "ChildProcess", method: "spawn" })
      yield* guard({ pid: 1, mark: "NOBODY=1", grace: 100, path: undefined }).pipe(
        Effect.scoped,
        Effect.provideService(
          ChildProcessSpawner,
          ChildProcessSpawner.of({ ...spawner, spawn: () => Effect.fail(error) })
        )
      )
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
