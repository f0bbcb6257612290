/**
 * Ends a child process when this one dies without a chance to do so: by SIGKILL, or by an exit that runs no finalizers.
 *
 * A shell waits for the end of its input, which comes when this process is gone, however it went. Then it does to the
 * child's process group what a release would have done. In a group of its own, it outlives what ends ours.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as ChildProcess from "effect/process/ChildProcess"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type * as Scope from "effect/Scope"

const script = [
  "read -r _",
  'sleep "$3"',
  'kill -TERM -- "-$1"',
  'sleep "$3"',
  'kill -KILL -- "-$1"',
  'for each in /proc/[0-9]*; do grep -qsaF -- "$2" "$each/environ" && kill -KILL "${each#/proc/}"; done'
].join("\n")

/** Watches over a process group until the scope closes. Where there is no shell, nobody does. */
export const guard = (options: {
  readonly pid: number
  readonly mark: string
  readonly grace: number
  readonly path: string | undefined
}): Effect.Effect<void, never, ChildProcessSpawner | Scope.Scope> =>
  ChildProcess.make("sh", ["-c", script, "guard", `${options.pid}`, options.mark, `${options.grace / 1000}`], {
    env: options.path === undefined ? {} : { PATH: options.path },
    stdout: "ignore",
    stderr: "ignore",
    // it has nothing to finish: SIGTERM would only end the shell's own child first
    killSignal: "SIGKILL"
  }).pipe(
    Effect.catch((error) => Effect.logDebug("No shell to watch over a child process", error)),
    Effect.asVoid
  )
