/**
 * A run of a child: accepts it, runs its turn, and gives the caller its handle. The first run of a child comes out of
 * its start; each later one resumes the same child.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { constVoid } from "effect/Function"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type { RunId } from "../Agent.ts"
import type { Approver } from "../Approvals.ts"
import { Approvals } from "../Approvals.ts"
import type { Budget } from "../Budget.ts"
import { Current } from "../Budget.ts"
import type { Capabilities } from "../Capabilities.ts"
import type { ContentBlock } from "../Content.ts"
import { ResumeToken } from "../ResumeToken.ts"
import type { SubagentError, SubagentErrorReason } from "../SubagentError.ts"
import {
  ChildBusy,
  fromReason,
  InvalidRequest,
  ParentSettled,
  RegistryClosed,
  RunReleased,
  RunSettled,
  UnsupportedCapability
} from "../SubagentError.ts"
import type { ChildOutcome, ChildSession, OutputSpec } from "../SubagentProvider.ts"
import type { CheckedRequest } from "../SubagentRequest.ts"
import type { SubagentFailure } from "../SubagentResult.ts"
import type { SubagentRun } from "../SubagentRun.ts"
import { describeUnknown } from "./describe.ts"
import { effectOf } from "./effectOf.ts"
import { enter } from "./entering.ts"
import { frozen } from "./frozen.ts"
import { makeId } from "./id.ts"
import { isTimed, Keeper, standing } from "./keeper.ts"
import type { Admission, Limiter } from "./limiter.ts"
import type { Place } from "./place.ts"
import { missingContent } from "./place.ts"
import { readPrompt } from "./readRequest.ts"
import type { Run, Runs, Session } from "./runs.ts"
import { callerCause } from "./runs.ts"
import { UpdateLog } from "./updateLog.ts"
import { errorOf, fault, judge } from "./verdict.ts"
import type { AllWaiting } from "./waiting.ts"
import { Waiting } from "./waiting.ts"
import type { Watchers } from "./watchers.ts"

/** What the runs of one registry share. */
export interface Registry {
  readonly runs: Runs
  readonly limiter: Limiter
  readonly watchers: Watchers
  /** The starts and resumes under way. */
  readonly waiting: AllWaiting
  readonly updateCapacity: number
  readonly isClosed: () => boolean
}

/** What the runs of a child share. */
export interface Child {
  readonly session: Session
  readonly own: ChildSession
  readonly provider: string
  /** Whether the provider can go on with a child of another process. */
  readonly isPortable: boolean
  readonly capabilities: Capabilities
  readonly checked: CheckedRequest
  readonly place: Place
  /** The child that has delegated to this one, if its parent is one. */
  readonly parent: Session | undefined
  readonly approver: Approver | undefined
  readonly output: OutputSpec | undefined
  /** What its first run was started with. */
  readonly budget: Budget | undefined
  readonly clock: Clock.Clock
  readonly registry: Registry
  /** Where what the child reports goes. */
  readonly reportTo: (log: UpdateLog) => void
}

/** What is a run's own. */
interface Activation {
  readonly runId: RunId
  readonly scope: Scope.Closeable
  readonly log: UpdateLog
  readonly owner: Run | undefined
  readonly approver: Approver | undefined
  readonly callerScope: Scope.Scope
  readonly forgetSignal: () => void
  /** Ends when the turn before this one has: a turn that was stopped may still be on its way out. */
  readonly quiet?: Effect.Effect<unknown> | undefined
  readonly turn: Effect.Effect<ChildOutcome, SubagentError>
  readonly admission: Admission | undefined
}

/**
 * Accepts a run at once; the effect gives it to the caller's scope, begins its turn and gives the handle. Nothing in it
 * waits, and it is not to be interrupted.
 */
export const activate = (child: Child, activation: Activation): Effect.Effect<SubagentRun> => {
  const { clock, place, provider, session } = child
  const { limiter, runs, watchers } = child.registry
  const { admission, approver, log, owner, scope } = activation
  const run: Run = {
    lineage: place.lineage.runId === activation.runId ? place.lineage : lineageOf(place, activation),
    policy: place.policy,
    header: place.header,
    provider,
    session,
    asked: place.asked,
    since: clock.currentTimeMillisUnsafe(),
    approver,
    log,
    owner,
    scope,
    done: Deferred.makeUnsafe(),
    children: new Set(),
    starts: new Set(),
    keeper: undefined,
    below: undefined,
    verdict: undefined,
    isAnnounced: false,
    turn: undefined,
    released: undefined,
    forgetSignal: activation.forgetSignal
  }
  if (admission !== undefined) {
    const stop = (failure: SubagentFailure): void => runs.stop(run, failure)
    run.keeper = log.keeper = new Keeper({ run, admission, watchers, wrapUp: limiter.wrapUp, stop })
  }
  runs.accept(run)
  run.keeper?.begin(log.fold.usage)
  return begin(child, activation, run)
}

const begin = (
  child: Child,
  { approver, callerScope, log, quiet, scope, turn }: Activation,
  run: Run
): Effect.Effect<SubagentRun> => {
  const { output, provider, session } = child
  const { runs } = child.registry
  // a scope of its own inside the caller's, which leaves it when the run is disposed of early
  const handle = Scope.forkUnsafe(callerScope)
  const owning = Scope.addFinalizerExit(handle, (exit) =>
    runs.release(run, Exit.hasInterrupts(exit) ? { _tag: "Interrupt" } : { _tag: "Release" }, exit)
  )
  const work = Effect.flatMap(
    Effect.withFiber<ChildOutcome, SubagentError>((fiber) => {
      // a provider may have closed it itself
      if (scope.state._tag === "Closed") return Effect.interrupt
      session.work = { run, fiber }
      child.reportTo(log)
      return turn
    }),
    (outcome) => judge(provider, outcome, log.fold, output, run.keeper?.reached)
  )
  return Effect.andThen(
    owning,
    Effect.withFiber((fiber) => {
      if (run.verdict === undefined) {
        run.turn = fork(quiet === undefined ? work : Effect.andThen(quiet, work), fiber, {
          approver: askedBy(approver, run),
          scope
        })
        Fiber.runIn(run.turn, scope)
        run.turn.addObserver((exit) => runs.conclude(run, exit))
        // its first step may have ended the run before there was a fiber to interrupt
        if (run.verdict !== undefined) run.turn.interruptUnsafe()
      }
      return Effect.succeed(handleOf(child, run, quiet, handle))
    })
  )
}

const handleOf = (
  child: Child,
  run: Run,
  quiet: Effect.Effect<unknown> | undefined,
  scope: Scope.Closeable
): SubagentRun => {
  const { runs } = child.registry
  const { resumeTurn, sendMessage, token } = child.own
  return Object.freeze<SubagentRun>({
    id: run.lineage.id,
    runId: run.lineage.runId,
    provider: run.provider,
    header: run.header,
    result: Deferred.await(run.done),
    cancel: (reason) => Effect.sync(() => runs.abort(run, callerCause(reason))),
    dispose: Effect.suspend(() =>
      Effect.andThen(runs.release(run, { _tag: "Release" }, Exit.void), Scope.close(scope, Exit.void))
    ),
    updates: run.log.stream,
    ...(sendMessage && { sendMessage: (content) => send(child, run, quiet, sendMessage, content) }),
    ...(resumeTurn && { resume: (content) => resume(child, resumeTurn, content) }),
    ...(token && child.isPortable && { token: tokenOf(child, token) })
  })
}

/** Runs what a provider does, at once and in a fiber of its own: with this approver, and in the scope of its child. */
export const fork = <A, E>(
  effect: Effect.Effect<A, E, Scope.Scope>,
  parent: Fiber.Fiber<unknown, unknown>,
  { approver, scope }: { readonly approver: Approver | undefined; readonly scope: Scope.Scope }
): Fiber.Fiber<A, E> =>
  Effect.runForkWith(Context.add(Context.add(parent.context, Approvals, approver), Scope.Scope, scope))(effect)

const lineageOf = ({ lineage }: Place, { owner, runId }: Pick<Activation, "owner" | "runId">): Place["lineage"] =>
  Object.freeze({ ...lineage, runId, ...(owner && { parentRunId: owner.lineage.runId }) })

/** A refusal. */
export const refuse = (reason: SubagentErrorReason): Effect.Effect<never, SubagentError> =>
  Effect.fail(fromReason(reason))

/** Content for a child that exists: what a start would refuse is refused here, too. */
const readContent = (
  { capabilities, provider }: Child,
  content: unknown
): Result.Result<ReadonlyArray<ContentBlock>, SubagentErrorReason> => {
  const blocks = readPrompt(content, ["content"])
  if (Result.isFailure(blocks)) return Result.fail(new InvalidRequest({ issues: blocks.failure }))
  const missing = missingContent(blocks.success, capabilities)
  return missing.length === 0
    ? Result.succeed(Object.freeze(blocks.success))
    : Result.fail(new UnsupportedCapability({ provider, capability: missing[0]!, missing }))
}

const send = (
  child: Child,
  run: Run,
  quiet: Effect.Effect<unknown> | undefined,
  sendMessage: NonNullable<ChildSession["sendMessage"]>,
  content: string | ReadonlyArray<ContentBlock>
): ReturnType<NonNullable<SubagentRun["sendMessage"]>> =>
  Effect.withFiber((fiber) => {
    const tooLate = refuse(new RunSettled({ runId: run.lineage.runId }))
    if (run.verdict !== undefined) return tooLate
    const blocks = readContent(child, content)
    if (Result.isFailure(blocks)) return refuse(blocks.failure)
    const messageId = `message_${makeId(fiber.getRef(Random.Random))}`
    run.log.offer(messageId)
    return Effect.andThen(quiet ?? Effect.void, () =>
      sendMessage(Object.freeze({ messageId, content: blocks.success }))
    ).pipe(
      Effect.tap(() => Effect.sync(() => run.log.owe(messageId))),
      // nobody waits for a child that has ended before it took the message in
      Effect.raceFirst(Effect.andThen(Effect.exit(Deferred.await(run.done)), tooLate)),
      Effect.catchCause((cause) => {
        const error = errorOf(child.provider, cause)
        // the child knows that it is too late, but not by which of its runs it was asked
        return error.reason._tag === "RunSettled" ? tooLate : Effect.fail(error)
      }),
      Effect.onError(() => Effect.sync(() => run.log.forget(messageId))),
      Effect.as(Object.freeze({ messageId, state: "queued" as const }))
    )
  })

const resume = (
  child: Child,
  resumeTurn: NonNullable<ChildSession["resumeTurn"]>,
  content: string | ReadonlyArray<ContentBlock>
): ReturnType<NonNullable<SubagentRun["resume"]>> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.withFiber((fiber) => {
      const callerScope = Context.getUnsafe(fiber.context, Scope.Scope)
      const runId = `run_${makeId(fiber.getRef(Random.Random))}` as RunId
      const { parent, registry, session } = child
      const owner = parent?.current
      const blocks = Result.flatMap(canGoOn(child, owner), () => readContent(child, content))
      if (Result.isFailure(blocks)) return refuse(blocks.failure)
      const admitted = registry.limiter.admit({
        provider: child.provider,
        capabilities: child.capabilities,
        lineage: lineageOf(child.place, { owner, runId }),
        policy: child.place.policy,
        owner: owner?.keeper?.admission,
        asked: child.place.asked,
        budget: fiber.getRef(Current) ?? child.budget
      })
      if (Result.isFailure(admitted)) return refuse(admitted.failure)
      const admission = admitted.success
      // from here to the acceptance nobody comes between
      const go = () =>
        activate(child, {
          runId,
          scope: Scope.forkUnsafe(session.scope),
          log: new UpdateLog(runId, child.clock, registry.updateCapacity),
          owner,
          approver: fiber.getRef(Approvals) ?? owner?.approver ?? child.approver,
          callerScope,
          forgetSignal: constVoid,
          quiet: session.work && Fiber.await(session.work.fiber),
          turn: Effect.suspend(() => resumeTurn(blocks.success)),
          admission
        })
      if (admission === undefined) return go()
      return enter(
        {
          admission,
          waiting: new Waiting(registry.waiting),
          by: [owner?.starts, session.holder!.starts],
          owner,
          restore,
          refusal: () => Option.getOrUndefined(Result.getFailure(canGoOn(child, owner))),
          onRefused: constVoid
        },
        go
      )
    })
  )

/** Whether a child can be resumed. */
const canGoOn = (child: Child, owner: Run | undefined): Result.Result<void, SubagentErrorReason> => {
  const { id, parentId } = child.place.lineage
  const { current } = child.session
  const gone = goneOf(child)
  if (gone !== undefined) return Result.fail(gone)
  if (child.registry.isClosed()) return Result.fail(new RegistryClosed())
  if (current!.verdict === undefined) return Result.fail(new ChildBusy({ id, runId: current!.lineage.runId }))
  return owner?.verdict === undefined
    ? Result.void
    : Result.fail(new ParentSettled({ parentId, parentRunId: owner.lineage.runId }))
}

/** Why there is no child any more; nothing, if there is one: it is gone with the first of its runs. */
const goneOf = ({ session: { holder } }: Child): RunReleased | undefined =>
  holder!.released === undefined ? undefined : new RunReleased({ runId: holder!.lineage.runId })

const decodeToken = Schema.decodeUnknownResult(ResumeToken)

/** What there is to be kept of a child at the moment. */
const tokenOf = (
  child: Child,
  payload: NonNullable<ChildSession["token"]>
): Effect.Effect<ResumeToken, SubagentError> =>
  Effect.suspend(() => {
    const { checked, place, provider } = child
    const gone = goneOf(child)
    if (gone !== undefined) return refuse(gone)
    return Effect.matchCauseEffect(payload, {
      onFailure: (cause) => Effect.fail(errorOf(provider, cause)),
      onSuccess: (payload) => {
        // what is no JSON may be anything, also something that can't be looked through
        const token = Result.try(() =>
          Result.getOrThrow(
            decodeToken({
              version: 1,
              provider,
              id: place.lineage.id,
              header: place.header,
              policy: place.policy,
              agentOptions: checked.agentOptions,
              ...(checked.label !== undefined && { label: checked.label }),
              payload
            })
          )
        )
        return Result.isSuccess(token)
          ? Effect.succeed(frozen(token.success))
          : Effect.fail(fault(provider, `its child can't be kept: ${describeUnknown(token.failure)}`))
      }
    })
  })

/**
 * A provider asks as the run it was started for; whoever decides is to know which run of the child it is now. As long as
 * it is asked, no clock runs for those who wait.
 */
const askedBy = (approver: Approver | undefined, run: Run): Approver | undefined => {
  const { lineage, session } = run
  const isClocked = isTimed(run)
  if (approver === undefined || (session.holder === run && !isClocked)) return approver
  const decide: Approver["decide"] = (request) =>
    approver.decide(request.lineage?.id === lineage.id ? { ...request, lineage } : request)
  return {
    // what is no effect would end the fiber that asks there and then, and the clocks would never go on
    decide: isClocked
      ? (request) => standing(run, "all", promptly(Effect.suspend(() => effectOf(decide(request)))))
      : decide,
    timeout: approver.timeout
  }
}

/** Ends at once when it is interrupted, whether or not what it waits for does. */
const promptly = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.forkDetach(effect, { startImmediately: true }), (fiber) =>
      Effect.onInterrupt(restore(Fiber.join(fiber)), () => Effect.sync(() => fiber.interruptUnsafe()))
    )
  )
