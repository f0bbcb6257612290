/**
 * Who is asked before a tool that needs approval is executed.
 *
 * One host service for the whole tree of agents. It is read when a run is accepted, from the starter's context, and
 * children inherit it. By default there is nobody, and then every ask is answered `no-approver` at once: nothing is
 * parked, and no answer is ever attributed to somebody who was not asked.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { describeCause } from "./internal/describe.ts"
import { effectOf } from "./internal/effectOf.ts"
import type { Lineage } from "./SubagentProvider.ts"

/**
 * What is asked: one tool call of one run. Interruption of the answering fiber withdraws the question.
 *
 * @category models
 * @since 0.1.0
 */
export interface ApprovalRequest {
  readonly toolCallId: string
  readonly toolName: string
  /** The arguments as the model gave them, decoded. */
  readonly input: unknown
  /** The asking run. Absent for an agent that is no child. */
  readonly lineage?: Lineage
}

/**
 * What an approver says.
 *
 * @category models
 * @since 0.1.0
 */
export type ApprovalDecision = "approved" | "denied"

/**
 * What came of asking. Only `approved` executes the tool.
 *
 * @category models
 * @since 0.1.0
 */
export type ApprovalOutcome = ApprovalDecision | "no-approver" | "approver-failed" | "timed-out"

/**
 * The host's approver: it may take as long as `timeout` lets it. A failure or a defect denies as `approver-failed`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Approver {
  readonly decide: (request: ApprovalRequest) => Effect.Effect<ApprovalDecision, unknown>
  /**
   * How long an answer may take.
   *
   * @default "10 minutes"
   */
  readonly timeout?: Duration.Input | undefined
}

/**
 * The approver in force, by default nobody.
 *
 * @category references
 * @since 0.1.0
 */
export const Approvals: Context.Reference<Approver | undefined> = Context.Reference<Approver | undefined>(
  "effect-subagent/Approvals",
  { defaultValue: () => undefined }
)

/**
 * Asks the approver in force. Never fails, and ends within the approver's timeout.
 *
 * @category combinators
 * @since 0.1.0
 */
export const ask = (request: ApprovalRequest): Effect.Effect<ApprovalOutcome> =>
  Effect.flatMap(Effect.service(Approvals), (approver) =>
    approver === undefined ? Effect.succeed("no-approver") : askOf(approver, request)
  )

const askOf = (approver: Approver, request: ApprovalRequest): Effect.Effect<ApprovalOutcome> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      // detached: an approver that can't be interrupted must not keep whoever asks past its timeout
      const deciding = yield* Effect.forkDetach(
        Effect.suspend(() => effectOf(approver.decide(request))),
        { startImmediately: true }
      )
      const decided = yield* restore(
        Effect.suspend(() => Effect.timeoutOption(Fiber.await(deciding), approver.timeout ?? Duration.minutes(10)))
      ).pipe(
        Effect.catchDefect((defect) => Effect.succeed(Option.some(Exit.die(defect)))),
        Effect.onExit(() => Effect.sync(() => deciding.interruptUnsafe()))
      )
      if (Option.isNone(decided)) return "timed-out"
      const exit = decided.value
      if (Exit.isSuccess(exit) && (exit.value === "approved" || exit.value === "denied")) return exit.value
      const why = Exit.isSuccess(exit) ? "it decided neither way" : describeCause(exit.cause)
      yield* Effect.logWarning(`An approver failed; the tool call is denied: ${why}`)
      return "approver-failed"
    })
  )
