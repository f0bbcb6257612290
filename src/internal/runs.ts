/**
 * The live table, and the life of a run in it: accepted, settled, released.
 *
 * Settling is one synchronous step that nobody can come between: the terminal cell, the end of the updates, the result
 * and the announcement, for a run and for all it owns, children first. A run is owned by the live run of its parent.
 * Releasing closes the run's scope, waits for it no longer than `releaseTimeout`, and never fails.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { Approver } from "../Approvals.ts"
import type { SubagentError } from "../SubagentError.ts"
import type { SubagentEvent } from "../SubagentEvent.ts"
import type { AbortCause, SubagentFailure, SubagentResult, SubagentUsage } from "../SubagentResult.ts"
import type { LiveRun } from "../SubagentRun.ts"
import { describeCause, describeUnknown } from "./describe.ts"
import type { Keeper } from "./keeper.ts"
import type { OutputFold } from "./outputFold.ts"
import type { KnownParent, Place } from "./place.ts"
import type { UpdateLog } from "./updateLog.ts"
import type { Verdict } from "./verdict.ts"
import { aborted, endOf, errorOf, fault, stopped, sumOf, withTree } from "./verdict.ts"

/** What the announcements of one run share. */
const announced = ({ lineage, provider }: { readonly lineage: Place["lineage"]; readonly provider: string }) => ({
  provider,
  id: lineage.id,
  runId: lineage.runId,
  parentId: lineage.parentId,
  ...(lineage.parentRunId !== undefined && { parentRunId: lineage.parentRunId }),
  ...(lineage.label !== undefined && { label: lineage.label })
})

/** One child. Each of its runs is a turn of it; the first one holds it, and takes it along when it is released. */
export interface Session {
  /** Everything the provider acquired, and the turns. */
  readonly scope: Scope.Closeable
  /** The first of its runs. */
  holder: Run | undefined
  /** The others, which have resumed it, as far as they have not been released. */
  resumed: Set<Run> | undefined
  /** The last of its runs, the only one that may be at work. */
  current: Run | undefined
  /** The last turn that has begun. It may still be on its way out when the next run is accepted, and that one waits. */
  work: { readonly run: Run; readonly fiber: Fiber.Fiber<unknown, unknown> } | undefined
}

/** One accepted run: what `place` needs to know of it as a parent, and its state. */
export interface Run extends KnownParent {
  readonly provider: string
  readonly session: Session
  readonly since: number
  readonly log: UpdateLog
  /** Who is asked on its behalf, and on behalf of what it starts. */
  readonly approver: Approver | undefined
  readonly owner: Run | undefined
  /** The session's, if the run holds it; otherwise one within, for its own turn. */
  readonly scope: Scope.Closeable
  readonly done: Deferred.Deferred<SubagentResult, SubagentError>
  /** Those it owns that have not been released. */
  readonly children: Set<Run>
  /** Calls off the starts on its behalf that are under way, and the resumes of its child. */
  readonly starts: Set<() => void>
  /** Holds it to its limits, if it has any. */
  keeper: Keeper | undefined
  /** What those below it have used that have settled. */
  below: SubagentUsage | undefined
  /** The terminal cell. */
  verdict: Verdict | undefined
  isAnnounced: boolean
  turn: Fiber.Fiber<SubagentResult, SubagentError> | undefined
  released: Deferred.Deferred<void> | undefined
  forgetSignal: () => void
}

/** The table's side of the seam. */
export interface Runs {
  readonly all: () => Iterable<Run>
  /** The live run of an agent, by the agent's id or its session's. */
  readonly of: (agentId: string, sessionId: string) => Run | undefined
  /** The run of an id of its own, or the last one of an agent's. */
  readonly known: (id: string) => Run | undefined
  readonly accept: (run: Run) => void
  /** Settles a run with the end of its own turn, unless it has settled already. */
  readonly conclude: (run: Run, exit: Exit.Exit<SubagentResult, SubagentError>) => void
  /** Settles a run and all it owns as aborted, as far as they have not settled, and interrupts their turns. */
  readonly abort: (run: Run, cause: AbortCause) => void
  /** Settles a run as failed, unless it has settled already, and all it owns as aborted. */
  readonly stop: (run: Run, failure: SubagentFailure) => void
  /** Stops what is left of a run and returns when it is quiet, or after the timeout. Idempotent, never fails. */
  readonly release: (run: Run, cause: AbortCause, exit: Exit.Exit<unknown, unknown>) => Effect.Effect<void>
  /** Waits for a clean-up, no longer than the timeout; what went wrong is announced and logged. */
  readonly cleanUp: (
    run: Pick<Run, "provider" | "lineage">,
    work: Effect.Effect<unknown>,
    whatLives: () => string
  ) => Effect.Effect<void>
}

/** An empty table. */
export const make = (options: {
  readonly releaseTimeout: Duration.Input
  readonly announce: (event: SubagentEvent) => void
}): Runs => {
  const runs = new Set<Run>()
  const ids = new Map<string, Run>()
  const agents = new Map<string, Run>()
  const sessions = new Map<string, Run>()

  const accept = (run: Run): void => {
    runs.add(run)
    ids.set(run.lineage.runId, run)
    agents.set(run.lineage.id, run)
    sessions.set(run.header.id, run)
    run.owner?.children.add(run)
    if (run.session.holder === undefined) run.session.holder = run
    else (run.session.resumed ??= new Set()).add(run)
    run.session.current = run
    options.announce({ type: "subagent/start", ...announced(run) })
  }

  const forget = (run: Run): void => {
    runs.delete(run)
    if (ids.get(run.lineage.runId) === run) ids.delete(run.lineage.runId)
    run.owner?.children.delete(run)
    run.session.resumed?.delete(run)
  }

  /** As long as a child is not quiet, it is known as what it is: what it still starts is not a root's. */
  const forgetAgent = (run: Run): void => {
    if (!holdsSession(run)) return
    if (agents.get(run.lineage.id)?.session === run.session) agents.delete(run.lineage.id)
    if (sessions.get(run.header.id)?.session === run.session) sessions.delete(run.header.id)
  }

  const fix = (run: Run, verdict: Verdict): void => {
    run.verdict = withTree(verdict, run.below)
    run.forgetSignal()
    run.log.end()
    const usage = usageOf(run)
    if (usage !== undefined) {
      for (let above = run.owner; above !== undefined; above = above.owner) above.below = sumOf(above.below, usage)
    }
    run.keeper?.settle(usage)
  }

  /** An end is announced after the ends of what the run owns, which may still be at work when its own turn is over. */
  const announceEnd = (run: Run): void => {
    if (run.verdict === undefined || run.isAnnounced) return
    for (const child of run.children) if (!child.isAnnounced) return
    run.isAnnounced = true
    options.announce({ type: "subagent/end", ...announced(run), ...endOf(run.verdict), ...usagesOf(run) })
    if (run.owner !== undefined) announceEnd(run.owner)
  }

  const conclude: Runs["conclude"] = (run, exit) => {
    if (run.verdict !== undefined) return
    fix(run, Exit.isSuccess(exit) ? exit : failed(run, turnError(run.provider, exit.cause)))
    announceEnd(run)
    run.keeper?.giveBack()
    Deferred.doneUnsafe(run.done, run.verdict!)
    for (const callOff of run.starts) callOff()
  }

  const abort: Runs["abort"] = (run, cause) => {
    if (run.verdict === undefined || run.children.size > 0) halt(run, (fold) => aborted(fold, cause))
  }

  const stop: Runs["stop"] = (run, failure) => {
    if (run.verdict === undefined) halt(run, (fold) => stopped(fold, failure))
  }

  const halt = (top: Run, verdictOf: (fold: OutputFold) => SubagentResult): void => {
    // Every verdict is fixed before anyone is woken: a parent that hears of its child's end must not go on from there,
    // and neither must a start of its that has waited for the child's place.
    const halted: Array<Run> = []
    const visit = (run: Run, verdictOf: (fold: OutputFold) => SubagentResult): void => {
      const cause: AbortCause = { _tag: "Parent", runId: run.lineage.runId }
      for (const child of run.children) visit(child, (fold) => aborted(fold, cause))
      if (run.verdict !== undefined) return
      fix(run, Exit.succeed(verdictOf(run.log.fold)))
      halted.push(run)
    }
    visit(top, verdictOf)
    for (const run of halted) announceEnd(run)
    for (const run of halted.toReversed()) run.turn?.interruptUnsafe()
    for (const run of halted) run.keeper?.giveBack()
    for (const run of halted) Deferred.doneUnsafe(run.done, run.verdict!)
    for (const run of halted) for (const callOff of run.starts) callOff()
  }

  const cleanUp: Runs["cleanUp"] = Effect.fnUntraced(function* (run, work, whatLives) {
    // detached, so that whoever waits can stop waiting; started at once, so that the usual case costs no timer
    const working = yield* Effect.forkDetach(work, { startImmediately: true })
    const exit =
      working.pollUnsafe() ??
      Option.getOrUndefined(yield* Effect.timeoutOption(Fiber.await(working), options.releaseTimeout))
    if (exit !== undefined && Exit.isSuccess(exit)) return
    const problem = exit === undefined ? "timed-out" : "failed"
    const detail = exit === undefined ? whatLives() : describeCause(exit.cause)
    const { id, runId } = run.lineage
    options.announce({ type: "subagent/release-problem", provider: run.provider, id, runId, problem, detail })
    yield* Effect.logWarning(`The release of run ${runId} of provider "${run.provider}" ${problem}: ${detail}`)
  })

  const release: Runs["release"] = (run, cause, exit) =>
    Effect.suspend(() => {
      if (run.released !== undefined) return Deferred.await(run.released)
      const released = (run.released = Deferred.makeUnsafe<void>())
      abort(run, cause)
      for (const callOff of run.starts) callOff()
      // the runs that have resumed the child end with it, and are told so before anything of the child is gone
      for (const resumed of resumedFrom(run)) abort(resumed, { _tag: "Release" })
      const isQuiet = (): Effect.Effect<void> => {
        forget(run)
        Deferred.doneUnsafe(released, Exit.void)
        return reportDropped(run)
      }
      if (hasNothingLeft(run)) {
        Scope.closeUnsafe(run.scope, exit)
        forgetAgent(run)
        return isQuiet()
      }
      return Effect.ensuring(
        cleanUp(
          run,
          Effect.ensuring(
            quiet(run, exit),
            Effect.sync(() => forgetAgent(run))
          ),
          () => whatLivesOf(run)
        ),
        Effect.suspend(isQuiet)
      )
    }).pipe(Effect.uninterruptible)

  /** Closes a run's scope, and releases what it owns beside, and the runs that have resumed the child it holds. */
  const quiet = (run: Run, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> => {
    const { work } = run.session
    // what a session has acquired is closed when its last turn has ended, not under it
    const closing =
      holdsSession(run) && work !== undefined && work.run !== run
        ? Effect.andThen(Fiber.await(work.fiber), Scope.close(run.scope, exit))
        : Scope.close(run.scope, exit)
    const resumed = resumedFrom(run)
    if (run.children.size === 0 && resumed.length === 0) return closing
    return Effect.all(
      // the scope last: one that fails to close at once must not keep the others from being released
      [
        ...Array.from(run.children, (child) => release(child, { _tag: "Parent", runId: run.lineage.runId }, exit)),
        ...resumed.map((each) => release(each, { _tag: "Release" }, exit)),
        closing
      ],
      { concurrency: "unbounded", discard: true }
    )
  }

  return {
    all: () => runs,
    known: (id) => ids.get(id) ?? agents.get(id),
    of: (agentId, sessionId) => agents.get(agentId) ?? sessions.get(sessionId),
    accept,
    conclude,
    abort,
    stop,
    release,
    cleanUp
  }
}

/** Whether a child lives as long as this run of it. */
const holdsSession = (run: Run): boolean => run.session.holder === run

/** Whether a run can be released at once: its child has acquired nothing, has ended, and has left nobody behind. */
const hasNothingLeft = (run: Run): boolean => {
  const { work } = run.session
  return (
    run.scope.state._tag === "Empty" &&
    run.children.size === 0 &&
    resumedFrom(run).length === 0 &&
    (work === undefined || work.run === run)
  )
}

/** The runs that have resumed the child a run holds, as far as they have not been released. */
const resumedFrom = (run: Run): ReadonlyArray<Run> => {
  const { resumed } = run.session
  return resumed === undefined || !holdsSession(run) ? nobody : Array.from(resumed)
}

const nobody: ReadonlyArray<Run> = []

/** The end of a turn that has failed. One that was refused a further turn ends with that, whatever it has made of it. */
const failed = ({ keeper, log }: Run, error: SubagentError): Verdict =>
  keeper?.reached === undefined ? Exit.fail(error) : Exit.succeed(stopped(log.fold, keeper.reached, error.message))

const turnError = (provider: string, cause: Cause.Cause<SubagentError>): SubagentError =>
  Cause.hasInterruptsOnly(cause) ? fault(provider, "its turn interrupted itself") : errorOf(provider, cause)

const whatLivesOf = (run: Run): string => {
  const { work } = run.session
  const isAtWork = work !== undefined && (work.run === run || holdsSession(run)) && !work.fiber.pollUnsafe()
  return isAtWork ? "its turn has not ended" : "a finalizer of its session has not ended"
}

const reportDropped = ({ lineage, log }: Run): Effect.Effect<void> =>
  log.late + log.malformed === 0
    ? Effect.void
    : Effect.logDebug(
        `Run ${lineage.runId} dropped ${log.late} updates that came after its end and ${log.malformed} that were none`
      )

/** The cause of a cancellation by the caller. */
export const callerCause = (reason: string | undefined): AbortCause =>
  reason === undefined ? { _tag: "Caller" } : { _tag: "Caller", reason: describeUnknown(reason) }

/** A run as the live table shows it. */
export const liveRun = (run: Run, cancel: LiveRun["cancel"]): LiveRun => {
  return Object.freeze({
    id: run.lineage.id,
    runId: run.lineage.runId,
    provider: run.provider,
    ...(run.lineage.label !== undefined && { label: run.lineage.label }),
    lineage: run.lineage,
    header: run.header,
    state: run.released !== undefined ? "releasing" : run.verdict !== undefined ? "settled" : "running",
    since: run.since,
    ...usagesOf(run),
    cancel
  })
}

/** What a run has used itself: what its verdict says, else what it has reported. */
const usageOf = ({ log, verdict }: Run): SubagentUsage | undefined =>
  (verdict !== undefined && Exit.isSuccess(verdict) ? verdict.value.usage : undefined) ?? log.fold.usage

/** What a run, and it and everything below it, have used by now. */
const usagesOf = (run: Run): Pick<SubagentResult, "usage" | "treeUsage"> => {
  const usage = usageOf(run)
  let treeUsage = sumOf(usage, run.below)
  const visit = (above: Run): void => {
    for (const child of above.children) {
      if (child.verdict === undefined) treeUsage = sumOf(treeUsage, usageOf(child))
      visit(child)
    }
  }
  visit(run)
  return { ...(usage && { usage }), ...(treeUsage && { treeUsage }) }
}
