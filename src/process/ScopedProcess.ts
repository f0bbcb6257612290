/**
 * One child process as a scoped resource.
 *
 * Providers that run children as processes open one here and speak to it over its standard input and output. It is
 * started with a scrubbed environment in a folder that can be entered, its standard error is always drained, and when
 * its scope closes it is taken down a ladder: the end of its input, a grace, SIGTERM to its process group, a grace,
 * SIGKILL, then the descendants that have left the group. When that returns nothing of it lives, and it returns in
 * bounded time. Should this process die without closing scopes, a guard does the same from outside.
 *
 * @since 0.1.0
 */
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type * as PlatformError from "effect/PlatformError"
import * as ChildProcess from "effect/process/ChildProcess"
import type { ChildProcessHandle, ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { describeUnknown } from "../internal/describe.ts"
import type { EnvironmentOptions } from "./internal/environment.ts"
import { childEnvironment, HostEnvironment } from "./internal/environment.ts"
import { guard } from "./internal/guard.ts"
import { Input } from "./internal/input.ts"
import type { Noted } from "./internal/processTable.ts"
import { descendants, killAll } from "./internal/processTable.ts"
import { redact, TextTail } from "./internal/textTail.ts"

/**
 * What to run, and how.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options extends EnvironmentOptions {
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** The working directory: absolute, and one that can be entered. */
  readonly cwd: string
  /** Names the process and all that it starts, in its environment. No other process may have this name. */
  readonly name: string
  /** How long each step of the ladder waits for the next. */
  readonly grace: Duration.Input
}

/**
 * How a process ended: its exit code, or the signal that ended it.
 *
 * @category models
 * @since 0.1.0
 */
export type Ended = { readonly code: number } | { readonly signal: string }

/**
 * A running process.
 *
 * @category models
 * @since 0.1.0
 */
export interface ScopedProcess {
  readonly pid: number
  /** Writes; waits as long as the process does not read. What is written after its end goes nowhere. */
  readonly write: (text: string) => Effect.Effect<void>
  /** Writes if that needs no waiting, and says whether it did. */
  readonly writeUnsafe: (text: string) => boolean
  /**
   * Hands over what the process writes, in order and one piece at a time, until it closes its output or has ended; also
   * while its scope closes. The process waits for whoever takes it.
   */
  readonly read: (
    onOutput: (bytes: Uint8Array) => Effect.Effect<void>,
    onEnd: Effect.Effect<void>
  ) => Effect.Effect<void>
  /** Waits until it is found to have closed its input before it was told to: what is written then goes nowhere. */
  readonly inputClosed: Effect.Effect<void>
  /** Waits for the end of the process. */
  readonly ended: Effect.Effect<Ended>
  /** The last that it wrote to its standard error: at most so many bytes, and 8 KiB, without its secrets. */
  readonly lastWords: (bytes?: number) => string
  /** Adds to those last words. */
  readonly note: (text: string) => void
  /** A text without the secrets that the process was given. */
  readonly redact: (text: string) => string
  /** Ends it before its scope does. Idempotent; returns when nothing of it lives. */
  readonly close: Effect.Effect<void>
}

/**
 * Why there is no process. `detail` says it in a line, without any value of the environment.
 *
 * @category errors
 * @since 0.1.0
 */
export class ProcessError extends Data.TaggedError("ProcessError")<{
  readonly kind: "command" | "cwd"
  readonly detail: string
}> {}

/**
 * The environment variable that has `Options.name` in the process and all that it starts.
 *
 * @category models
 * @since 0.1.0
 */
export const nameVariable = "EFFECT_SUBAGENT_RUN"

/** How long the last words may come after the end. */
const lastWordsGrace = Duration.millis(500)

const pollInterval = Duration.millis(50)

/** A folder has an entry for itself; whether that can be reached is whether the folder can be entered. */
const checkFolder = (cwd: string): Effect.Effect<void, ProcessError, FileSystem.FileSystem> =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => fs.stat(`${cwd}/.`)).pipe(
    Effect.asVoid,
    Effect.mapError(
      (error) =>
        new ProcessError({ kind: "cwd", detail: `The working directory ${cwd} can't be entered: ${reasonOf(error)}` })
    )
  )

const reasonOf = ({ reason }: PlatformError.PlatformError): string => {
  switch (reason._tag) {
    case "NotFound":
      return "there is no such file"
    case "PermissionDenied":
      return "permission is denied"
    default:
      return describeUnknown(reason)
  }
}

/** The spawner names the signal in its error's text only. */
const endOf = (error: PlatformError.PlatformError): Ended => ({
  signal: String(error.cause).replace(/^.*'(SIG[A-Z0-9]+)'.*$/, "$1")
})

/**
 * Starts a process in the current scope. Fails if its folder can't be entered or its command can't be run; then nothing
 * is left.
 *
 * @category constructors
 * @since 0.1.0
 */
export const open: (
  options: Options
) => Effect.Effect<ScopedProcess, ProcessError, ChildProcessSpawner | FileSystem.FileSystem | Scope.Scope> =
  Effect.fnUntraced(function* (options: Options) {
    yield* checkFolder(options.cwd)
    const services = yield* Effect.context<ChildProcessSpawner | FileSystem.FileSystem>()
    const mark = `${nameVariable}=${options.name}`
    const host = yield* HostEnvironment
    const { secrets, variables } = childEnvironment(host, options)
    const grace = Duration.fromInputUnsafe(options.grace)
    const input = new Input()
    const tail = new TextTail(secrets)

    const handle = yield* ChildProcess.make(options.command, options.args, {
      cwd: options.cwd,
      env: { ...variables, [nameVariable]: options.name },
      // for what the ladder leaves, which should be nothing
      forceKillAfter: "200 millis"
    }).pipe(
      Effect.mapError(
        (error) => new ProcessError({ kind: "command", detail: `${options.command} can't be run: ${reasonOf(error)}` })
      )
    )
    yield* guard({ pid: handle.pid, mark, grace: Duration.toMillis(grace), path: host?.["PATH"] })

    // closes after the process has been taken down: what it still writes has to go somewhere until then
    const reading = yield* Scope.fork(yield* Effect.scope)
    const draining = yield* Stream.runForEach(handle.stderr, (chunk) => Effect.sync(() => tail.add(chunk))).pipe(
      Effect.ignore,
      Effect.forkIn(reading)
    )
    const inputClosed = Deferred.makeUnsafe<void>()
    yield* Stream.run(input.stream, handle.stdin).pipe(
      Effect.catch(() => Deferred.succeed(inputClosed, undefined)),
      Effect.forkIn(reading)
    )
    const exited = Effect.match(handle.exitCode, {
      onSuccess: (code): Ended => ({ code }),
      onFailure: endOf
    })
    const close = yield* once(Effect.provideContext(takeDown({ handle, input, exited, mark, grace }), services))
    yield* Effect.addFinalizer(() => close)

    const encoder = new TextEncoder()
    return {
      pid: handle.pid,
      write: (text) => input.write(text),
      writeUnsafe: (text) => input.writeUnsafe(text),
      read: (onOutput, onEnd) =>
        Stream.runForEach(handle.stdout, onOutput).pipe(
          Effect.ignoreCause,
          Effect.andThen(onEnd),
          Effect.forkIn(reading),
          Effect.asVoid
        ),
      inputClosed: Deferred.await(inputClosed),
      ended: Effect.tap(exited, () => Effect.timeoutOption(Fiber.await(draining), lastWordsGrace)),
      lastWords: (bytes) => tail.text(bytes),
      redact: (text) => redact(text, secrets),
      note: (text) => tail.add(encoder.encode(`${text}\n`)),
      close
    }
  })

/** Runs an effect for whoever comes first; the others wait for it. */
const once = (effect: Effect.Effect<void>): Effect.Effect<Effect.Effect<void>> =>
  Effect.sync(() => {
    let done: Deferred.Deferred<void> | undefined
    return Effect.suspend(() => {
      if (done !== undefined) return Deferred.await(done)
      const mine = (done = Deferred.makeUnsafe<void>())
      return Effect.onExit(effect, () => Deferred.done(mine, Exit.void))
    }).pipe(Effect.uninterruptible)
  })

/** The ladder. Each step is bounded, and none is taken for what is gone. */
const takeDown = Effect.fnUntraced(function* (options: {
  readonly handle: ChildProcessHandle
  readonly input: Input
  readonly exited: Effect.Effect<Ended>
  readonly mark: string
  readonly grace: Duration.Duration
}) {
  const { exited, grace, handle, input, mark } = options
  const pid = handle.pid
  // its children lose their parent, and can't be told from others by it, when it ends
  const before = yield* descendants({ pid, mark, noted: [] })
  input.end()
  yield* Effect.timeoutOption(exited, grace)
  const noted = yield* descendants({ pid, mark, noted: before })
  const isQuiet = Effect.zipWith(
    Effect.option(handle.isRunning),
    descendants({ pid, mark, noted }),
    (isRunning, living) => Option.contains(isRunning, false) && living.length === 0
  )
  const quiet = Effect.repeat(Effect.delay(isQuiet, pollInterval), { until: (isQuiet) => isQuiet })
  if (!(yield* isQuiet)) {
    // the spawner also waits for the dead whom nobody has buried yet
    yield* Effect.raceFirst(Effect.ignore(handle.kill({ killSignal: "SIGTERM", forceKillAfter: grace })), quiet)
    yield* sweep({ pid, mark, noted })
  }
  yield* Effect.ignore(handle.unref)
})

/** Kills what has left the group, until nothing is found, a few times at most: a process may be starting another. */
const sweep = Effect.fnUntraced(function* (options: {
  readonly pid: number
  readonly mark: string
  readonly noted: ReadonlyArray<Noted>
}) {
  for (let round = 0; round < 10; round++) {
    const left = yield* descendants(options)
    if (left.length === 0) return
    yield* killAll(left)
    yield* Effect.sleep(pollInterval)
  }
})
