/** The survey as users run it: a process of its own. */
import * as Effect from "effect/Effect"
import { type ChildProcess, spawn } from "node:child_process"
import * as path from "node:path"

export const root = path.resolve(import.meta.dirname, "../..")

export interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly stdout: string
  readonly stderr: string
}

export interface Options {
  /** Sees the process each time it has written. */
  readonly watch?: (process: ChildProcess, written: { readonly stderr: string }) => void
  /** Where the user is. */
  readonly cwd?: string
  readonly env?: { readonly [name: string]: string }
}

/** Runs the command as `npm start` does, with no model but the one in `env`. It does not outlive its test. */
export const start = (
  args: ReadonlyArray<string>,
  { cwd = root, env = {}, watch = () => {} }: Options = {}
): Effect.Effect<Ended> =>
  Effect.callback((resume) => {
    const script = ["--conditions=effect-subagent-source", path.join(root, "docs/examples/survey.ts"), ...args]
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith("OPENAI_"))
    const child = spawn(process.execPath, script, {
      cwd: root,
      env: { ...Object.fromEntries(own), INIT_CWD: cwd, ...env },
      stdio: ["ignore", "pipe", "pipe"]
    })
    const written = { stdout: "", stderr: "" }
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (text: string) => {
        written[name] += text
        watch(child, written)
      })
    }
    child.on("close", (code, signal) => resume(Effect.succeed({ code, signal, ...written })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })
