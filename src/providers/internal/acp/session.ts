/**
 * One agent process with one session in it, as a child of the seam.
 *
 * A start is a transaction: whatever goes wrong in it is a typed failure, and the run's scope takes down what there is.
 * A turn is one prompt, or a few if a structured value has to be corrected. Interrupting it tells the agent to cancel
 * and answers all that the agent has asked; it does not wait for the agent. That is seen to in the scope.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as FileSystem from "effect/FileSystem"
import type * as Path from "effect/Path"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { Approvals } from "../../../Approvals.ts"
import type { ContentBlock } from "../../../Content.ts"
import { text } from "../../../Content.ts"
import type { SubagentError } from "../../../SubagentError.ts"
import type { ChildOutcome, ChildSession, PlacedRequest } from "../../../SubagentProvider.ts"
import type { SubagentUsage } from "../../../SubagentResult.ts"
import { addUsage } from "../../../SubagentResult.ts"
import type { CallError } from "./connection.ts"
import type { Initialized, Session } from "./handshake.ts"
import {
  authenticate,
  checkContent,
  configure,
  folderOf,
  initialize,
  knownSession,
  methodOfResuming,
  newSession
} from "./handshake.ts"
import { checkAgent, keep, readKept } from "./keptSession.ts"
import { outcomeOfAnswer, outcomeOfError } from "./outcome.ts"
import type { Peer, PromptEnd, Settings } from "./peer.ts"
import { quotedBytes, reach } from "./peer.ts"
import type { StructuredOutput } from "./structured.ts"
import { maxRepairs, prepare } from "./structured.ts"

/** An agent that was told to cancel before it had taken in the prompt, or with too much to read, is told again. */
const cancelAgainAfter = Duration.millis(250)

/** Starts an agent and opens a session: a new one, or the one that a token has. */
export const openSession: (
  settings: Settings,
  placed: PlacedRequest,
  payload?: Schema.Json
) => Effect.Effect<ChildSession, SubagentError, ChildProcessSpawner | FileSystem.FileSystem | Path.Path | Scope.Scope> =
  Effect.fnUntraced(function* (settings, placed, payload) {
    const output = placed.output && (yield* prepare(placed.output))
    const cwd = yield* folderOf(settings, placed)
    const kept = payload === undefined ? undefined : yield* readKept(payload, cwd)
    const peer = yield* reach(settings, placed, cwd)
    const initialized = yield* initialize(peer)
    if (kept !== undefined) yield* checkAgent(kept, initialized)
    yield* authenticate(peer, initialized)
    const session = yield* kept === undefined
      ? newSession(peer, initialized)
      : knownSession(peer, initialized, kept.sessionId)
    peer.isFor(session.sessionId)
    yield* configure(peer, session, "mode", settings.mode)
    yield* configure(peer, session, "model", placed.agentOptions.model ?? settings.model)
    const scope = yield* Effect.scope
    yield* Effect.addFinalizer(() => wrapUp(peer, session, initialized))
    const turn = (prompt: ReadonlyArray<ContentBlock>) => turnOf(peer, session, output, scope, prompt)
    return {
      turn: turn(placed.prompt),
      resumeTurn: (prompt) => Effect.andThen(checkContent(peer, initialized, prompt), turn(prompt)),
      ...(methodOfResuming(initialized) !== undefined && {
        token: Effect.succeed(keep(session.sessionId, cwd, initialized))
      })
    }
  })

const turnOf = (
  peer: Peer,
  { sessionId }: Session,
  output: StructuredOutput | undefined,
  scope: Scope.Scope,
  prompt: ReadonlyArray<ContentBlock>
): Effect.Effect<ChildOutcome> =>
  Effect.gen(function* () {
    // a turn before this one may have been cancelled, and the agent not have ended it
    if (peer.answered !== undefined) yield* Deferred.await(peer.answered)
    let used: SubagentUsage | undefined
    const say = (blocks: ReadonlyArray<ContentBlock>) =>
      Effect.map(ask(peer, sessionId, blocks, scope), ({ lastText, outcome: { usage, ...outcome } }): PromptEnd => {
        // each answer tells of its own prompt
        if (usage !== undefined) {
          used = used === undefined ? usage : addUsage(used, usage)
          peer.placed.emit({ _tag: "Usage", usage: used })
        }
        return { outcome, lastText }
      })
    if (output === undefined) return (yield* say(prompt)).outcome
    let end = yield* say([...prompt, text(output.instruction)])
    let structured: Pick<ChildOutcome, "structured"> = {}
    for (let repairs = 0; end.outcome.stopReason === "completed"; repairs++) {
      const submission = yield* output.read(end.lastText)
      if ("value" in submission) structured = { structured: submission.value }
      if (submission._tag === "Valid" || repairs === maxRepairs) return { ...end.outcome, ...structured }
      end = yield* say([text(submission.correction)])
    }
    return end.outcome
  })

/** Prompts the session. Interruption cancels. */
const ask = (
  peer: Peer,
  sessionId: string,
  blocks: ReadonlyArray<ContentBlock>,
  scope: Scope.Scope
): Effect.Effect<PromptEnd> =>
  Effect.flatMap(Approvals, (approver) => {
    const { connection, settings, updates } = peer
    const answered = Deferred.makeUnsafe<PromptEnd>()
    const stopping = Deferred.makeUnsafe<void>()
    const stop = (): void => {
      Deferred.doneUnsafe(stopping, Exit.void)
      peer.stopping = undefined
    }
    peer.approver = approver
    peer.answered = answered
    peer.stopping = stopping
    updates.begin()
    const cancel = Effect.suspend(() => {
      updates.abandon()
      stop()
      connection.notifyUnsafe("session/cancel", { sessionId })
      return Effect.forkIn(seeToEnd(peer, sessionId, answered), scope)
    })
    const { idle } = settings.timeouts
    const giveUp = Effect.as(cancel, { outcome: outcomeOfSilence(idle), lastText: "" })
    return connection
      .call("session/prompt", { sessionId, prompt: blocks }, (exit) => {
        const outcome = Exit.match(exit, {
          onSuccess: (answer) => outcomeOfAnswer(answer, updates.denial),
          onFailure: (cause) => outcomeOfFailure(peer, cause)
        })
        // what the agent still asks is part of how its turn ended, so it is looked at before it is withdrawn
        const lastText = updates.end(outcome.stopReason === "completed")
        stop()
        Deferred.doneUnsafe(answered, Exit.succeed({ outcome, lastText }))
      })
      .pipe(
        Effect.andThen(Effect.raceFirst(Deferred.await(answered), Effect.andThen(silence(peer), giveUp))),
        Effect.onInterrupt(() => cancel)
      )
  })

/** Waits until nothing has been heard of the agent for as long as it may be silent, or longer. */
const silence = (peer: Peer): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let heard = -1; heard !== peer.heard || peer.asking > 0;) {
      heard = peer.heard
      yield* Effect.sleep(peer.settings.timeouts.idle)
    }
  })

const outcomeOfFailure = ({ process }: Peer, cause: Cause.Cause<CallError>): ChildOutcome => {
  // a call fails in no other way
  const error = Cause.squash(cause) as CallError
  if (error._tag === "Lost") {
    const diagnostic = process.lastWords(quotedBytes)
    const failure = { kind: "transport", retryable: true, message: error.message }
    return { stopReason: "error", failure, ...(diagnostic !== "" && { diagnostic }) }
  }
  const { failure, ...outcome } = outcomeOfError(error)
  return { ...outcome, failure: { ...failure, message: process.redact(failure.message) } }
}

const outcomeOfSilence = (idle: Duration.Duration): ChildOutcome => ({
  stopReason: "error",
  failure: {
    kind: "timeout",
    retryable: true,
    name: "idle",
    limit: Duration.toMillis(idle),
    message: `Nothing was heard of the agent for ${Duration.format(idle)}`
  }
})

/** Waits for the end of a turn that was cancelled. An agent that never ends it has had its chance. */
const seeToEnd = (
  { connection, process, settings }: Peer,
  sessionId: string,
  answered: Deferred.Deferred<PromptEnd>
): Effect.Effect<unknown> =>
  Deferred.await(answered).pipe(
    Effect.timeout(cancelAgainAfter),
    Effect.catch(() =>
      connection
        .notify("session/cancel", { sessionId })
        .pipe(Effect.andThen(Deferred.await(answered)), Effect.timeout(settings.timeouts.cancel))
    ),
    Effect.catch(() => process.close)
  )

/** Before the process is taken down: lets the agent end its turn and its session by itself, as long as that is quick. */
const wrapUp = (
  { answered, connection, settings }: Peer,
  { sessionId }: Session,
  { agentCapabilities }: Initialized
): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (answered !== undefined) yield* Deferred.await(answered)
    if (agentCapabilities?.sessionCapabilities?.close !== undefined) {
      yield* Effect.ignore(connection.request("session/close", { sessionId }))
    }
  }).pipe(Effect.timeoutOption(settings.timeouts.close), Effect.asVoid)
