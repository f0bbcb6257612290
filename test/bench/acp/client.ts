/** A client of the stub agent: what all three have in common. */
import * as Effect from "effect/Effect"
import { type ChildProcessByStdio, spawn } from "node:child_process"
import * as path from "node:path"
import type { Readable, Writable } from "node:stream"

/** The command of the stub agent. */
export const stub = {
  command: process.execPath,
  args: ["--disable-warning=ExperimentalWarning", path.join(import.meta.dirname, "stub.ts")]
}

/** The agent's process, for as long as the scope lives. */
export const startStub = Effect.acquireRelease(
  Effect.sync((): ChildProcessByStdio<Writable, Readable, null> =>
    spawn(stub.command, stub.args, { stdio: ["pipe", "pipe", "inherit"] })
  ),
  (child) =>
    Effect.callback<void>((resume) => {
      child.once("exit", () => resume(Effect.void))
      child.stdin.end()
    })
)

/** A consumer that takes its time: it gives way to everything else before it has an update. */
export const slowly = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
