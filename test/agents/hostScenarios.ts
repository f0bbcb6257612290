/** The scenarios in which the process that delegates is ended while its agent runs a command. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as assert from "node:assert/strict"
import { spawn, type ChildProcess } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import type { Bench, Scenario } from "./bench.ts"
import { call } from "./model/fakeModel.ts"
import { living, until } from "./world.ts"

interface Host {
  readonly process: ChildProcess
  readonly ended: Effect.Effect<void>
}

/** Starts a host whose agent runs a command that does not end. */
const hostAtWork = ({ agent, folder, model, options }: Bench): Effect.Effect<Host, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { prompt } = model.play(call(agent.shell("touch made && tail -f /dev/null")))
    const argument = JSON.stringify({ options: { ...options, permission: "allow" }, prompt })
    const host = path.join(import.meta.dirname, "host.ts")
    const started = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [...process.execArgv, host, argument], {
          // what it starts beside the agent is found by this folder, too
          cwd: folder,
          stdio: ["pipe", "ignore", "inherit"]
        })
      ),
      (started) => Effect.sync(() => started.kill("SIGKILL"))
    )
    yield* until(() => fs.existsSync(path.join(folder, "made")))
    return { process: started, ended: until(() => started.exitCode !== null || started.signalCode !== null) }
  })

/** SIGKILL gives it no chance to do anything: the agent, and what watches over it, have to notice. */
const hostKilled: Scenario["run"] = (bench) =>
  Effect.gen(function* () {
    const host = yield* hostAtWork(bench)
    host.process.kill("SIGKILL")
    yield* host.ended
    yield* until(() => living(bench.mark).length === 0).pipe(Effect.timeoutOption("20 seconds"))
    assert.deepEqual(living(bench.mark), [])
  })

/** SIGTERM is an interruption: nothing is left when the host itself is gone. */
const hostEnded: Scenario["run"] = (bench) =>
  Effect.gen(function* () {
    const host = yield* hostAtWork(bench)
    host.process.kill("SIGTERM")
    yield* host.ended
    assert.deepEqual(living(bench.mark), [])
  })

export const hostScenarios: ReadonlyArray<Scenario> = [
  { name: "host-ended", says: "the process that delegates is ended by SIGTERM: nothing outlives it", run: hostEnded },
  { name: "host-killed", says: "it is killed: nothing outlives it for long", run: hostKilled }
]
