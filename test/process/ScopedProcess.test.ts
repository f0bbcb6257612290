import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as PlatformError from "effect/PlatformError"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { HostEnvironment } from "../../src/process/internal/environment.ts"
import { open, type Options, type ScopedProcess } from "../../src/process/ScopedProcess.ts"
import { isAlive, marked } from "../fixtures/acp/harness.ts"

const shell = (script: string, options: Partial<Options> = {}) =>
  open({ command: "sh", args: ["-c", script], cwd: os.tmpdir(), name: "run_test", grace: "300 millis", ...options })

/** All that it writes, until it has written this. */
const readUntil = (opened: ScopedProcess, wanted: string) =>
  Effect.gen(function* () {
    const done = yield* Deferred.make<string>()
    let text = ""
    yield* opened.read(
      (bytes) =>
        Effect.suspend(() => {
          text += new TextDecoder().decode(bytes)
          return text.includes(wanted) ? Deferred.succeed(done, text) : Effect.void
        }),
      Effect.suspend(() => Deferred.succeed(done, text))
    )
    return yield* Deferred.await(done)
  })

const live = (name: string, test: () => Effect.Effect<void, unknown, NodeServices.NodeServices>) =>
  it.live(name, () => Effect.provide(test(), NodeServices.layer))

/** Opens it, waits for what it says, closes its scope, and gives what it said and how long the closing took. */
const closing = (script: string, name: string) =>
  Effect.gen(function* () {
    let began = 0
    const { pid, said } = yield* Effect.gen(function* () {
      const opened = yield* shell(script, { name })
      const said = (yield* readUntil(opened, "\n")).trim()
      began = yield* Clock.currentTimeMillis
      return { pid: opened.pid, said }
    }).pipe(Effect.scoped)
    assert.isFalse(isAlive(pid), "the process itself")
    assert.deepStrictEqual(marked(name), [], "what it has started")
    return { said, took: (yield* Clock.currentTimeMillis) - began }
  })

describe("a scoped process", () => {
  live("is written to and read from", () =>
    Effect.gen(function* () {
      const opened = yield* shell("cat")
      yield* opened.write("one\n")
      assert.isTrue(opened.writeUnsafe("two\n"))
      assert.strictEqual(yield* readUntil(opened, "two\n"), "one\ntwo\n")
    }).pipe(Effect.scoped)
  )

  live("makes its writer wait while it does not read", () =>
    Effect.gen(function* () {
      const opened = yield* shell("read -r _; cat > /dev/null")
      const text = "x".repeat(1_000_000)
      const writing = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 100 }), () => opened.write(text), { discard: true })
      )
      yield* Effect.repeat(
        Effect.sync(() => opened.writeUnsafe("")),
        { until: (isWritten) => !isWritten }
      )
      assert.isUndefined(writing.pollUnsafe())
      yield* Fiber.interrupt(writing)
    }).pipe(Effect.scoped)
  )

  live("is in its folder, with its own environment and not the host's secrets", () =>
    Effect.gen(function* () {
      const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "scoped-process-")))
      const opened = yield* shell("pwd; env; echo .", { cwd: folder, env: { OWN_KEY: "own" }, name: "run_env" }).pipe(
        Effect.provideService(HostEnvironment, { PATH: process.env["PATH"], PLAIN: "plain", API_KEY: "secret" })
      )
      const said = (yield* readUntil(opened, ".\n")).trim().split("\n")
      assert.strictEqual(said[0], folder)
      const variables = said.filter((line) => /^(?:OWN_KEY|PLAIN|API_KEY|EFFECT_SUBAGENT_RUN)=/.test(line))
      assert.deepStrictEqual(variables.toSorted(), ["EFFECT_SUBAGENT_RUN=run_env", "OWN_KEY=own", "PLAIN=plain"])
    }).pipe(Effect.scoped)
  )

  live("keeps its last words, without its secrets, and does not block on what nobody reads", () =>
    Effect.gen(function* () {
      const script =
        'i=0; while [ $i -lt 3000 ]; do echo "line $i of a flood that nobody reads" >&2; i=$((i+1)); done; echo "$A_KEY" >&2; exit 3'
      const opened = yield* shell(script, { env: { A_KEY: "hunter2" } })
      assert.deepStrictEqual(yield* opened.ended, { code: 3 })
      opened.note("a note")
      assert.isTrue(opened.lastWords().endsWith("nobody reads\n[redacted]\na note"))
      assert.strictEqual(opened.lastWords(6), "a note")
      assert.strictEqual(opened.redact("hunter2!"), "[redacted]!")
    }).pipe(Effect.scoped)
  )

  live("says by which signal it was ended", () =>
    Effect.gen(function* () {
      const opened = yield* shell("kill -KILL $$")
      assert.deepStrictEqual(yield* opened.ended, { signal: "SIGKILL" })
    }).pipe(Effect.scoped)
  )

  live("says that its output has ended", () =>
    Effect.gen(function* () {
      const opened = yield* shell("echo last; exec >&-; cat")
      assert.strictEqual(yield* readUntil(opened, "nothing more"), "last\n")
      yield* opened.write("it lives\n")
    }).pipe(Effect.scoped)
  )

  for (const [problem, options, detail] of [
    [
      "a command that does not exist",
      { command: "no-such-command-anywhere" },
      "no-such-command-anywhere can't be run: there is no such file"
    ],
    ["a command that may not be run", { command: "/dev/null" }, "/dev/null can't be run: permission is denied"],
    [
      "a folder that does not exist",
      { cwd: "/no/such/folder" },
      "The working directory /no/such/folder can't be entered: there is no such file"
    ]
  ] as const) {
    live(`is refused ${problem}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Effect.scoped(shell("cat", options)))
        assert.strictEqual(error.detail, detail)
      })
    )
  }

  live("is refused a folder that is a file", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Effect.scoped(shell("cat", { cwd: import.meta.filename })))
      assert.include(error.detail, `${import.meta.filename} can't be entered: `)
      assert.strictEqual(error.kind, "cwd")
    })
  )

  live("is refused a folder that is there and can't be entered", () =>
    Effect.gen(function* () {
      const denied = PlatformError.systemError({ _tag: "PermissionDenied", module: "FileSystem", method: "stat" })
      const error = yield* Effect.flip(Effect.scoped(shell("cat"))).pipe(
        Effect.updateService(FileSystem.FileSystem, (fs) => ({
          ...fs,
          // the folder itself can be looked at
          stat: (path: string) => (path.endsWith("/.") ? Effect.fail(denied) : fs.stat(path))
        }))
      )
      assert.strictEqual(error.detail, `The working directory ${os.tmpdir()} can't be entered: permission is denied`)
    })
  )
})

describe("a scoped process that has closed its input", () => {
  live("is known by what is written to it, and nobody waits for it to read", () =>
    Effect.gen(function* () {
      const opened = yield* shell("exec 0<&-; echo closed; sleep 1000")
      yield* readUntil(opened, "closed\n")
      yield* opened.write("nobody")
      yield* opened.inputClosed
      yield* Effect.repeat(opened.write("reads this"), { times: 1000 })
      assert.isFalse(opened.writeUnsafe("nor this"))
      assert.isTrue(isAlive(opened.pid))
    }).pipe(Effect.scoped)
  )

  live("is read on when whoever takes its output dies of it", () =>
    Effect.gen(function* () {
      const opened = yield* shell("echo out; sleep 1000")
      const over = yield* Deferred.make<void>()
      yield* opened.read(() => Effect.die("unexpected"), Deferred.succeed(over, undefined))
      yield* Deferred.await(over)
    }).pipe(Effect.scoped)
  )
})

describe("the end of a scoped process", () => {
  live("is quick if it ends with its input, and it is read until then", () =>
    Effect.gen(function* () {
      let text = ""
      const { pid } = yield* Effect.gen(function* () {
        const opened = yield* shell("cat; head -c 200000 /dev/zero >&2; head -c 200000 /dev/zero; echo done", {
          grace: "5 seconds"
        })
        yield* opened.read((bytes) => Effect.sync(() => (text += new TextDecoder().decode(bytes))), Effect.void)
        return opened
      }).pipe(Effect.scoped)
      assert.isFalse(isAlive(pid))
      assert.isTrue(text.endsWith("done\n"))
    })
  )

  live("comes by SIGTERM if it ignores the end of its input", () =>
    Effect.gen(function* () {
      const { took } = yield* closing("echo ready; while :; do sleep 0.05; done", "run_eof")
      assert.isAtLeast(took, 300)
    })
  )

  live("comes by SIGKILL if it ignores SIGTERM, too", () =>
    Effect.gen(function* () {
      const { took } = yield* closing("trap '' TERM; echo ready; while :; do sleep 0.05; done", "run_term")
      assert.isAtLeast(took, 600)
      assert.isAtMost(took, 10_000)
    })
  )

  for (const [whom, script] of [
    ["its children", "sleep 1000 >/dev/null 2>&1 & echo $!; cat"],
    ["a child in a session of its own", "setsid sleep 1000 >/dev/null 2>&1 & echo $!; cat"],
    ["a daemon that nobody's child is any more", "setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'; cat"],
    ["a daemon that ignores SIGTERM", "setsid sh -c 'trap \"\" TERM; sleep 1000 >/dev/null 2>&1 & echo $!'; cat"]
  ] as const) {
    live(`is the end of ${whom}`, () =>
      Effect.gen(function* () {
        const { said } = yield* closing(script, "run_family")
        assert.isFalse(isAlive(Number(said)))
      })
    )
  }

  live("is the end of what it has left when it ended by itself", () =>
    Effect.gen(function* () {
      const { said } = yield* closing("setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'; exit 0", "run_left")
      assert.isFalse(isAlive(Number(said)))
    })
  )

  live("can come before that of its scope, once, whoever asks", () =>
    Effect.gen(function* () {
      const opened = yield* shell("cat")
      yield* Effect.all([opened.close, opened.close], { concurrency: "unbounded" })
      assert.isFalse(isAlive(opened.pid))
      assert.deepStrictEqual(yield* opened.ended, { code: 0 })
      yield* opened.close
      assert.isFalse(opened.writeUnsafe("too late"))
    }).pipe(Effect.scoped)
  )

  live("comes also when its opener is interrupted", () =>
    Effect.gen(function* () {
      const opened = yield* Deferred.make<number>()
      const owner = yield* shell("cat").pipe(
        Effect.flatMap(({ pid }) => Deferred.succeed(opened, pid)),
        Effect.andThen(Effect.never),
        Effect.scoped,
        Effect.forkChild
      )
      const pid = yield* Deferred.await(opened)
      assert.isTrue(Exit.hasInterrupts(yield* Effect.andThen(Fiber.interrupt(owner), Fiber.await(owner))))
      assert.isFalse(isAlive(pid))
    })
  )
})
