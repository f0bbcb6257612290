/**
 * Plays the script of one child: its start, its turns, its release, and the messages that it is sent meanwhile.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import type { SubagentError } from "../../SubagentError.ts"
import { fromReason, RunSettled } from "../../SubagentError.ts"
import type { ChildMessage, ChildOutcome, ChildSession, PlacedRequest } from "../../SubagentProvider.ts"
import type { Moment, Phases, Play, Step } from "../ScriptedProvider.ts"

/** What there is to play, and where it is noted. */
export interface Scripted {
  readonly placed: PlacedRequest
  readonly phases: Phases
  readonly moments: Array<Moment>
  /** What is submitted if a schema is asked for and no step submits anything. */
  readonly structured: unknown
  /** What a turn without steps does. */
  readonly idle: ReadonlyArray<Step>
}

/** One turn: what its steps work with, and how far it has come. */
interface Turn {
  readonly play: Play
  readonly inbox: Queue.Queue<ChildMessage>
  takesMessages: boolean
  readonly outcome: () => ChildOutcome
}

const makeTurn = ({ placed, structured }: Scripted): Effect.Effect<Turn> =>
  Effect.map(Queue.unbounded<ChildMessage>(), (inbox) => {
    const outcome: { -readonly [K in keyof ChildOutcome]: ChildOutcome[K] } = { stopReason: "completed" }
    if (placed.output !== undefined && structured !== undefined) outcome.structured = structured
    let ended: { readonly outcome: unknown } | undefined
    const isOver = () => ended !== undefined
    const play: Play = {
      placed,
      receive: Effect.tap(Queue.take(inbox), ({ messageId }) =>
        Effect.sync(() => placed.emit({ _tag: "Receipt", messageId, state: "consumed" }))
      ),
      submit: (structured) => {
        outcome.structured = structured
      },
      end: (outcome) => {
        ended = { outcome }
      },
      playAll: (steps) => playing(play, steps, isOver)
    }
    return {
      play,
      inbox,
      takesMessages: false,
      // whatever the script ends with: what is no outcome is for the seam to find out
      outcome: () => (ended === undefined ? { ...outcome } : ended.outcome) as ChildOutcome
    }
  })

const playing = Effect.fnUntraced(function* (play: Play, steps: ReadonlyArray<Step>, isOver: () => boolean) {
  for (const step of steps) {
    if (isOver()) return
    yield* step(play)
  }
})

/** A finalizer may not fail; the one of a provider that breaks its contract does. */
const finalizer = ({ play }: Turn, steps: ReadonlyArray<Step>): Effect.Effect<void> =>
  Effect.scoped(Effect.forEach(steps, (step) => step(play), { discard: true })) as Effect.Effect<void>

/** Starts the child that the script describes. */
export const startSession = Effect.fnUntraced(function* (scripted: Scripted) {
  const { moments, phases, placed } = scripted
  const { id, release = [], resumed, start = [], takesMessages = false, token, turn = [], turnFinalizer = [] } = phases
  const scope = yield* Effect.scope
  const first = yield* makeTurn(scripted)
  let current = first

  const playTurn = (turn: Turn, steps: ReadonlyArray<Step>): Effect.Effect<ChildOutcome, SubagentError> =>
    Effect.suspend(() => {
      current = turn
      turn.takesMessages = true
      return turn.play.playAll(steps.length === 0 ? scripted.idle : steps)
    }).pipe(
      Effect.map(turn.outcome),
      // in the same step as the decision to end
      Effect.onExit(() => Effect.sync(() => (turn.takesMessages = false))),
      Effect.ensuring(finalizer(turn, turnFinalizer)),
      (played) => watched(moments, "turn", played),
      Scope.provide(scope)
    )

  yield* Effect.addFinalizer(() => watched(moments, "release", finalizer(first, release)))
  yield* watched(moments, "start", first.play.playAll(start))
  const session: ChildSession = {
    ...(id !== undefined && { id }),
    turn: playTurn(first, turn),
    ...(token && { token }),
    ...(takesMessages && {
      sendMessage: (message) =>
        Effect.suspend(() =>
          current.takesMessages
            ? Effect.asVoid(Queue.offer(current.inbox, message))
            : Effect.fail(fromReason(new RunSettled({ runId: placed.runId })))
        )
    }),
    ...(resumed && {
      resumeTurn: (prompt) =>
        Effect.flatMap(makeTurn(scripted), (turn) =>
          playTurn(turn, typeof resumed === "function" ? resumed(prompt) : resumed)
        )
    })
  }
  return session
})

const watched = <A, E, R>(
  moments: Array<Moment>,
  what: "start" | "turn" | "release",
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    moments.push(`${what}-begun`)
    return effect
  }).pipe(
    Effect.onExit((exit) =>
      Effect.sync(() => {
        const how = Exit.isSuccess(exit) ? "ended" : Exit.hasInterrupts(exit) ? "interrupted" : "failed"
        moments.push(`${what}-${how}`)
      })
    )
  )
