/**
 * An agent's process and the way to it.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type * as Path from "effect/Path"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Scope from "effect/Scope"
import type { Approver } from "../../../Approvals.ts"
import { bound } from "../../../internal/describe.ts"
import type { Ended, ScopedProcess } from "../../../process/ScopedProcess.ts"
import { open } from "../../../process/ScopedProcess.ts"
import type { SubagentError } from "../../../SubagentError.ts"
import { fromReason, StartFailed, StartTimeout } from "../../../SubagentError.ts"
import type { ChildOutcome, PlacedRequest } from "../../../SubagentProvider.ts"
import type { McpServer, Options } from "../../AcpProvider.ts"
import type { CallError, Connection, RpcError } from "./connection.ts"
import { make as makeConnection } from "./connection.ts"
import { reader, SessionNotification } from "./messages.ts"
import { handlerOf } from "./requests.ts"
import type { TimeLimit } from "./timeLimit.ts"
import { make as makeTimeLimit } from "./timeLimit.ts"
import { SessionUpdates } from "./updates.ts"

/** The provider's options with their defaults. */
export interface Settings extends Options {
  readonly args: ReadonlyArray<string>
  readonly permission: "ask" | "deny" | "allow"
  readonly mcpServers: ReadonlyArray<McpServer>
  readonly maxMessageBytes: number
  readonly timeouts: { readonly [K in "start" | "idle" | "cancel" | "close"]: Duration.Duration }
}

const readNotification = reader(SessionNotification)

/** What of a process's last words goes into a message. */
export const quotedBytes = 3072

/** How long the output of a process that has ended may still be read: something it has left may hold it open. */
const outputGrace = Duration.seconds(1)

/** How many updates are kept that come before the session's name is known. */
const maxEarlyUpdates = 1024

/** An agent that has been silent for so long has told the history of a session. */
const historyGap = Duration.millis(100)

/** How many such gaps are waited for at most. */
const maxHistoryGaps = 20

/** How one prompt ended, and the last message that came of it. */
export interface PromptEnd {
  readonly outcome: ChildOutcome
  readonly lastText: string
}

/** The agent's process and the way to it. */
export interface Peer {
  readonly settings: Settings
  readonly placed: PlacedRequest
  readonly cwd: string
  readonly process: ScopedProcess
  readonly connection: Connection
  readonly updates: SessionUpdates
  /** How long each call of the start may take. */
  readonly startLimit: TimeLimit
  /** Names the session: what came early is delivered, and what is for others is not. */
  readonly isFor: (sessionId: string) => void
  /** Waits until nothing has been heard for a moment, but not for long. */
  readonly quiet: Effect.Effect<void>
  /** Whether what comes before the session has a name here is nobody's: the history of one that has been before. */
  forgetsUpdates: boolean
  /** Counts the signs of life. */
  heard: number
  /** How many permissions are being decided on. */
  asking: number
  /** Done when the turn that runs is over or to be; none, if none runs. */
  stopping: Deferred.Deferred<void> | undefined
  /** Who is asked on behalf of the run whose turn runs. */
  approver: Approver | undefined
  /** Done when the last prompt has been answered. */
  answered: Deferred.Deferred<PromptEnd> | undefined
}

/** Starts the process and listens to it. */
export const reach: (
  settings: Settings,
  placed: PlacedRequest,
  cwd: string
) => Effect.Effect<Peer, SubagentError, ChildProcessSpawner | FileSystem.FileSystem | Path.Path | Scope.Scope> =
  Effect.fnUntraced(function* (settings, placed, cwd) {
    const { args, command, env, passEnv, timeouts } = settings
    // closes after the process has been taken down: until then it may ask, and wait for the answer before it ends
    const answering = yield* Scope.fork(yield* Effect.scope)
    const process = yield* open({ command, args, cwd, env, passEnv, name: placed.runId, grace: timeouts.close }).pipe(
      Effect.mapError(({ detail }) => fromReason(new StartFailed({ provider: settings.name, detail })))
    )
    const updates = new SessionUpdates(placed.emit)
    const early: Array<typeof SessionNotification.Type> = []
    let sessionId: string | undefined

    const take = (notification: typeof SessionNotification.Type): void => {
      if (notification.sessionId === sessionId) updates.update(notification.update)
    }
    const connection: Connection = yield* makeConnection({
      write: process.write,
      writeUnsafe: process.writeUnsafe,
      maxLineBytes: settings.maxMessageBytes,
      onNoise: process.note,
      onNotification: (method, params) => {
        peer.heard++
        const notification = method === "session/update" ? readNotification(params) : undefined
        if (notification === undefined) return
        if (sessionId !== undefined) take(notification)
        else if (!peer.forgetsUpdates && early.length < maxEarlyUpdates) early.push(notification)
      },
      onRequest: (method, params) => {
        peer.heard++
        return handlerOf(desk, method, params)
      }
    }).pipe(Scope.provide(answering))
    const peer: Peer = {
      settings,
      placed,
      cwd,
      process,
      connection,
      updates,
      startLimit: yield* makeTimeLimit(timeouts.start),
      isFor: (id) => {
        sessionId = id
        for (const notification of early.splice(0)) take(notification)
      },
      quiet: Effect.suspend(() => {
        let heard = peer.heard
        return Effect.repeat(
          Effect.delay(
            Effect.sync(() => heard === (heard = peer.heard)),
            historyGap
          ),
          {
            until: (isQuiet) => isQuiet,
            times: maxHistoryGaps
          }
        )
      }),
      forgetsUpdates: false,
      heard: 0,
      asking: 0,
      stopping: undefined,
      approver: undefined,
      answered: undefined
    }
    const desk = {
      permission: settings.permission,
      fs: settings.fs,
      cwd,
      lineage: placed.lineage,
      emit: placed.emit,
      updates,
      sessionId: () => sessionId,
      stopping: () => peer.stopping,
      approver: () => peer.approver,
      asking: (change: 1 | -1) => {
        peer.asking += change
      }
    }
    const lose = Effect.map(process.ended, (end) => connection.lose(describeEnd(end)))
    // a process that ends closes these first
    const closed = (what: string) =>
      Effect.andThen(
        Effect.timeoutOption(lose, outputGrace),
        Effect.sync(() => connection.lose(`The agent has closed its ${what}`))
      )
    yield* process.read(connection.receive, closed("output"))
    yield* Effect.forkScoped(Effect.andThen(process.inputClosed, closed("input")))
    yield* Effect.forkScoped(process.ended.pipe(Effect.andThen(Effect.sleep(outputGrace)), Effect.andThen(lose)))
    return peer
  })

const describeEnd = (end: Ended): string =>
  "code" in end ? `The agent has ended with exit code ${end.code}` : `The agent was ended by ${end.signal}`

/** What went wrong, without secrets, and with the agent's last words. */
export const withLastWords = ({ process }: Peer, problem: string): string => {
  const words = process.lastWords(quotedBytes)
  return bound(process.redact(problem)) + (words === "" ? "" : `\n${words}`)
}

/** The failure of a start. */
export const refusal = (peer: Peer, problem: string): SubagentError =>
  fromReason(new StartFailed({ provider: peer.settings.name, detail: withLastWords(peer, problem) }))

/** Makes a call of the start: bounded, and over at once if the agent ends. */
export const call = (peer: Peer, method: string, params: object): Effect.Effect<unknown, SubagentError | RpcError> =>
  Effect.suspend(() => {
    const answer = Deferred.makeUnsafe<unknown, CallError | SubagentError>()
    const sent = peer.connection.call(method, params, (answered) => Deferred.doneUnsafe(answer, answered))
    return Effect.andThen(
      // an agent that does not read may be late, too
      Effect.forkChild(sent, { startImmediately: true }),
      peer.startLimit(answer, () => fromReason(tooLate(peer, method)))
    ).pipe(
      Effect.catchTag("Lost", ({ message }) => Effect.fail(refusal(peer, `${message} before it answered ${method}`)))
    )
  })

const tooLate = ({ process, settings }: Peer, step: string): StartTimeout => {
  const detail = process.lastWords(quotedBytes)
  const timeout = Duration.toMillis(settings.timeouts.start)
  return new StartTimeout({ provider: settings.name, timeout, step, ...(detail !== "" && { detail }) })
}
