/**
 * From a placed request to an accepted run: asks the provider, and publishes the run or leaves nothing behind.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { constVoid } from "effect/Function"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type { AgentId } from "../Agent.ts"
import { Approvals } from "../Approvals.ts"
import type { Budget } from "../Budget.ts"
import type { Capabilities } from "../Capabilities.ts"
import type { ResumeToken } from "../ResumeToken.ts"
import type { SubagentError, SubagentErrorReason } from "../SubagentError.ts"
import {
  AbortedBeforeStart,
  ChildBusy,
  fromReason,
  InvalidRequest,
  ParentSettled,
  RegistryClosed,
  StartTimeout
} from "../SubagentError.ts"
import type { ChildSession, OutputSpec, PlacedRequest, SubagentProvider, TurnRefused } from "../SubagentProvider.ts"
import type { SchemaSpec } from "../SubagentRequest.ts"
import type { SubagentRun } from "../SubagentRun.ts"
import type { UnstampedUpdate } from "../SubagentUpdate.ts"
import { isAborted, onAbort } from "./abortSignal.ts"
import { looser } from "./account.ts"
import type { Registry } from "./activate.ts"
import { activate, fork, refuse } from "./activate.ts"
import { describeUnknown } from "./describe.ts"
import { effectOf } from "./effectOf.ts"
import { enter } from "./entering.ts"
import { issueAt, issuesOf } from "./issues.ts"
import type { Admission } from "./limiter.ts"
import type { Place } from "./place.ts"
import type { ReadRequest } from "./readRequest.ts"
import type { Run, Session } from "./runs.ts"
import { UpdateLog } from "./updateLog.ts"
import { errorOf, fault } from "./verdict.ts"
import { Waiting } from "./waiting.ts"

/** All that a start needs to know. */
export interface Start {
  /** The name it was registered under. */
  readonly name: string
  readonly provider: SubagentProvider
  /** The child to go on with, if it is not a new one. */
  readonly token?: ResumeToken
  readonly capabilities: Capabilities
  readonly read: ReadRequest
  readonly place: Place
  readonly owner: Run | undefined
  /** What it is admitted to, if anything is limited. */
  readonly admission: Admission | undefined
  readonly budget: Budget | undefined
  readonly clock: Clock.Clock
  readonly registry: Registry
}

const outputSpecs = new WeakMap<SchemaSpec, OutputSpec>()

/**
 * What a child submits is JSON, so a schema is decoded from its JSON form: a date from a string, a map from pairs.
 * Compiled once per schema.
 */
const outputSpec = (schema: SchemaSpec): OutputSpec => {
  const known = outputSpecs.get(schema)
  if (known !== undefined) return known
  const decode = Schema.decodeUnknownEffect(Schema.toCodecJson(schema), { errors: "all" })
  const spec = Object.freeze<OutputSpec>({
    schema,
    decode: (encoded) => Effect.mapError(decode(encoded), (error) => issuesOf(error))
  })
  outputSpecs.set(schema, spec)
  return spec
}

/** What of a provider's answer makes a session, each field read once; nothing, if it is none. */
const readSession = (answer: unknown): ChildSession | undefined =>
  Result.getOrUndefined(
    Result.try(() => {
      const { id, resumeTurn, sendMessage, token, turn } = answer as ChildSession
      const isWhole =
        Effect.isEffect(turn) &&
        isMethod(resumeTurn) &&
        isMethod(sendMessage) &&
        (token === undefined || Effect.isEffect(token))
      return isWhole
        ? {
            turn,
            ...(id !== undefined && { id }),
            ...(resumeTurn && { resumeTurn }),
            ...(sendMessage && { sendMessage }),
            ...(token && { token })
          }
        : undefined
    })
  )

const isMethod = (method: unknown): boolean => method === undefined || Predicate.isFunction(method)

/** Why a start that had to wait can't go on; nothing, if it can. */
const tooLate = ({ name, owner, read, registry }: Start): SubagentErrorReason | undefined => {
  if (read.signal !== undefined && isAborted(read.signal)) return new AbortedBeforeStart({ provider: name })
  if (owner?.verdict !== undefined) {
    return new ParentSettled({ parentId: read.parent.id, parentRunId: owner.lineage.runId })
  }
  return registry.isClosed() ? new RegistryClosed() : undefined
}

/** Why a start came to nothing, now that it could be accepted; nothing, if it can. */
const refusalOf = (
  start: Start,
  started: Exit.Exit<ChildSession, SubagentError> | undefined,
  session: ChildSession | undefined
): SubagentError | undefined => {
  const { name, registry, token } = start
  const late = tooLate(start)
  if (late !== undefined) return fromReason(late)
  // a signal that fires and does not say that it is aborted
  if (started === undefined) return fromReason(new AbortedBeforeStart({ provider: name }))
  if (Exit.isFailure(started)) {
    return Cause.hasInterruptsOnly(started.cause)
      ? fault(name, "its start interrupted itself")
      : errorOf(name, started.cause)
  }
  const known = token && registry.runs.of(token.id, token.header.id)
  if (known !== undefined) return fromReason(new ChildBusy({ id: known.lineage.id, runId: known.lineage.runId }))
  return session === undefined ? fault(name, "its start gave something that is not a session") : undefined
}

/** The name a child has on its own side, if it is one, and nobody else's. */
const ownId = ({ id }: ChildSession, { place, read, registry, token }: Start): AgentId | undefined =>
  token === undefined &&
  Predicate.isString(id) &&
  id.trim() !== "" &&
  ![read.parent.id, read.parent.header.id, place.lineage.rootId].includes(id) &&
  registry.runs.known(id) === undefined &&
  registry.runs.of(id, id) === undefined
    ? (id as AgentId)
    : undefined

/** Where a child's reports go: to the log of one of its runs. Made apart, as it keeps nothing of a start that is over. */
const reporter = (first: UpdateLog) => {
  let log = first
  return {
    emit: (update: UnstampedUpdate): void => log.add(update),
    nextTurn: (): TurnRefused | undefined => log.keeper?.nextTurn(),
    reportTo: (next: UpdateLog): void => {
      log = next
    }
  }
}

const startTimeout = ({ name, place }: Start, timeout: number): SubagentError =>
  fromReason(new StartTimeout({ provider: name, timeout, ...looser(place.asked?.startTimeout, timeout) }))

/** Starts a run in the caller's scope. */
export const startRun = (start: Start): Effect.Effect<SubagentRun, SubagentError, Scope.Scope> =>
  Effect.uninterruptibleMask((restore) => Effect.withFiber((fiber) => accept(start, fiber, restore)))

const accept = (
  start: Start,
  fiber: Fiber.Fiber<unknown, unknown>,
  restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
): Effect.Effect<SubagentRun, SubagentError> => {
  const { admission, budget, capabilities, clock, name, owner, place, provider, read, registry, token } = start
  const { runs } = registry
  const { signal } = read
  if (signal !== undefined && isAborted(signal)) return refuse(new AbortedBeforeStart({ provider: name }))
  const callerScope = Context.getUnsafe(fiber.context, Scope.Scope)
  const approver = fiber.getRef(Approvals) ?? owner?.approver
  const session: Session = {
    scope: Scope.makeUnsafe(),
    holder: undefined,
    resumed: undefined,
    current: undefined,
    work: undefined
  }
  const output = read.outputSchema === undefined ? undefined : outputSpec(read.outputSchema)
  const { runId } = place.lineage
  const first = new UpdateLog(runId, clock, registry.updateCapacity)
  const { emit, nextTurn, reportTo } = reporter(first)
  const placed: PlacedRequest = Object.freeze({
    ...read.checked,
    runId,
    header: place.header,
    lineage: place.lineage,
    policy: place.policy,
    parentOptions: read.parent.options,
    ...(output && { output }),
    emit,
    nextTurn
  })

  const waiting = new Waiting(registry.waiting)
  const listening = Result.try(() =>
    signal === undefined
      ? constVoid
      : onAbort(signal, () => {
          if (session.holder === undefined) waiting.callOff()
          else runs.abort(session.holder, { _tag: "Signal" })
        })
  )
  if (Result.isFailure(listening)) {
    const message = `Could not be listened to: ${describeUnknown(listening.failure)}`
    return refuse(new InvalidRequest({ issues: [issueAt(["signal"], message)] }))
  }
  const forgetSignal = listening.success

  /** Publishes the run, or leaves nothing behind, now that the provider has answered or nobody waits for it. */
  const answered = (
    starting: Fiber.Fiber<ChildSession, SubagentError>,
    waited: Exit.Exit<Exit.Exit<ChildSession, SubagentError> | undefined>
  ): Effect.Effect<SubagentRun, SubagentError> => {
    const started = Exit.isSuccess(waited) ? waited.value : undefined
    const own = started !== undefined && Exit.isSuccess(started) ? readSession(started.value) : undefined
    const refusal = Exit.isSuccess(waited) ? refusalOf(start, started, own) : undefined
    if (own === undefined || Exit.isFailure(waited) || refusal !== undefined) {
      forgetSignal()
      const exit = refusal === undefined ? (waited as Exit.Exit<never>) : Exit.fail(refusal)
      const cleaning = Effect.andThen(Fiber.interrupt(starting), Scope.close(session.scope, exit))
      return Effect.andThen(
        runs.cleanUp({ provider: name, lineage: place.lineage }, cleaning, () => "its start has not ended"),
        Effect.suspend(() => {
          admission?.leave()
          waiting.isOver()
          return exit
        })
      )
    }
    const id = ownId(own, start)
    // from the check of what could refuse it to the acceptance nobody comes between
    const accepting = activate(
      {
        session,
        own,
        provider: name,
        isPortable: provider.resume !== undefined,
        capabilities,
        checked: read.checked,
        place: id === undefined ? place : { ...place, lineage: Object.freeze({ ...place.lineage, id }) },
        parent: owner?.session,
        approver,
        output,
        budget,
        clock,
        registry,
        reportTo
      },
      { runId, scope: session.scope, log: first, owner, approver, callerScope, forgetSignal, turn: own.turn, admission }
    )
    waiting.isOver()
    return accepting
  }

  const by = [owner?.starts]
  /** Asks the provider, and waits for its answer no longer than it may take. */
  const ask = (): Effect.Effect<SubagentRun, SubagentError> => {
    const starting = fork(
      Effect.suspend(() =>
        effectOf(token === undefined ? provider.start(placed) : provider.resume!(placed, token.payload))
      ),
      fiber,
      { approver, scope: session.scope }
    )
    const ended = starting.pollUnsafe()
    if (ended !== undefined) return answered(starting, Exit.succeed(ended))
    const timeout = place.policy.limits?.startTimeout
    const answer =
      timeout === undefined
        ? Fiber.await(starting)
        : Effect.raceFirst(
            Fiber.await(starting),
            Effect.as(Effect.sleep(timeout), Exit.fail(startTimeout(start, timeout)))
          )
    return Effect.flatMap(Effect.exit(restore(waiting.until(answer, by))), (waited) => answered(starting, waited))
  }
  if (admission === undefined) return ask()
  return enter({ admission, waiting, by, owner, restore, refusal: () => tooLate(start), onRefused: forgetSignal }, ask)
}
