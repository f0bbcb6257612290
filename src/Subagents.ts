/**
 * The seam: named providers and the runs they accept.
 *
 * Callers delegate with `start` and `run`; providers contribute with `add` and `addEffect`. What a caller asks for is
 * checked against the provider's capabilities before a run exists. A run belongs to the scope it was started in, and
 * everything it owns goes with it. Closing a contribution's scope removes the name only: accepted runs live on.
 * Releasing the layer releases every run.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { AgentId, RunId } from "./Agent.ts"
import { Current } from "./Budget.ts"
import type { Capabilities } from "./Capabilities.ts"
import type { ContentBlock } from "./Content.ts"
import type { Registry } from "./internal/activate.ts"
import { checkOptions } from "./internal/checkOptions.ts"
import { checkProvider } from "./internal/checkProvider.ts"
import { describeCause, describeUnknown } from "./internal/describe.ts"
import { effectOf } from "./internal/effectOf.ts"
import * as FanOut from "./internal/fanOut.ts"
import * as Limiter from "./internal/limiter.ts"
import { place } from "./internal/place.ts"
import { readRequest } from "./internal/readRequest.ts"
import { readResume, readToken } from "./internal/readResume.ts"
import * as Runs from "./internal/runs.ts"
import { startRun } from "./internal/startRun.ts"
import type { AllWaiting } from "./internal/waiting.ts"
import { Watchers } from "./internal/watchers.ts"
import { Limits } from "./Limits.ts"
import type { ResumeToken } from "./ResumeToken.ts"
import type { SubagentErrorReason } from "./SubagentError.ts"
import {
  ChildBusy,
  DuplicateProvider,
  fromReason,
  InvalidProvider,
  InvalidRequest,
  ProviderNotFound,
  RegistryClosed,
  type SubagentError,
  UnsupportedCapability
} from "./SubagentError.ts"
import type { SubagentEvent } from "./SubagentEvent.ts"
import type { SubagentProvider } from "./SubagentProvider.ts"
import type { SchemaSpec, Structured, SubagentResumeRequest, SubagentStartRequest } from "./SubagentRequest.ts"
import type { SubagentResult } from "./SubagentResult.ts"
import type { LiveRun, SubagentRun } from "./SubagentRun.ts"

/**
 * The service that callers delegate through.
 *
 * @category services
 * @since 0.1.0
 */
export class Subagents extends Context.Service<
  Subagents,
  {
    /** Adds a provider until the scope closes. Layers do it with `add`. */
    readonly register: (provider: SubagentProvider) => Effect.Effect<void, SubagentError, Scope.Scope>
    /** The provider of a name, the very value that was registered. */
    readonly get: (name: string) => Effect.Effect<SubagentProvider, SubagentError>
    /** The names there are, in order of registration. */
    readonly list: Effect.Effect<ReadonlyArray<string>>
    /**
     * Starts a run. It belongs to the scope once this succeeds; until then nothing exists, and failure, interruption
     * or an aborted signal leave nothing behind.
     */
    readonly start: <S extends SchemaSpec = never>(
      name: string,
      request: SubagentStartRequest<S>
    ) => Effect.Effect<SubagentRun<Structured<S>>, SubagentError, Scope.Scope>
    /**
     * Goes on with a child of an earlier process, or of another registry, from the token of one of its runs. Like a
     * start: the parent must be the agent that delegated, its limits and the token's hold both, and the run belongs to
     * the scope. Fails with `ForeignToken` for another parent, and with `ChildBusy` as long as the child is live here.
     */
    readonly resume: <S extends SchemaSpec = never>(
      token: ResumeToken,
      content: string | ReadonlyArray<ContentBlock>,
      request: SubagentResumeRequest<S>
    ) => Effect.Effect<SubagentRun<Structured<S>>, SubagentError, Scope.Scope>
    /** Starts a run, waits for its result and releases it. */
    readonly run: <S extends SchemaSpec = never>(
      name: string,
      request: SubagentStartRequest<S>
    ) => Effect.Effect<SubagentResult<Structured<S>>, SubagentError>
    /** What happens from now on. A subscriber that is too slow misses the oldest events. */
    readonly events: Stream.Stream<SubagentEvent>
    /**
     * Calls a listener with what happens from now on, one event at a time, until the scope closes. A listener that
     * fails, dies or hangs hurts nobody: it is logged as a warning, and it alone falls behind.
     */
    readonly on: <R>(
      listener: (event: SubagentEvent) => Effect.Effect<unknown, unknown, R>
    ) => Effect.Effect<void, never, R | Scope.Scope>
    /**
     * Cancels the live run of this id, its own or its agent's, as `run.cancel` does. Says whether there is one, settled or
     * not. Idempotent.
     */
    readonly cancel: (id: string, reason?: string) => Effect.Effect<boolean>
    /** The accepted runs that have not been released. */
    readonly live: Effect.Effect<ReadonlyArray<LiveRun>>
  }
>()("effect-subagent/Subagents") {}

/**
 * How the seam works.
 *
 * @category options
 * @since 0.1.0
 */
export interface SubagentsOptions {
  /**
   * How long a release waits for a child to be quiet. Then it returns, and `subagent/release-problem` says what lives.
   *
   * @default "10 seconds"
   */
  readonly releaseTimeout: Duration.Input
  /**
   * How many of a run's updates are kept for late subscribers and for slow ones.
   *
   * @default 1024
   */
  readonly updateCapacity: number
  /**
   * How many events are kept for a slow subscriber.
   *
   * @default 1024
   */
  readonly eventCapacity: number
}

/**
 * The options in force. Set some of them with `layerOptions`.
 *
 * @category references
 * @since 0.1.0
 */
export const Options: Context.Reference<SubagentsOptions> = Context.Reference<SubagentsOptions>(
  "effect-subagent/Subagents/Options",
  { defaultValue: () => ({ releaseTimeout: "10 seconds", updateCapacity: 1024, eventCapacity: 1024 }) }
)

/**
 * The service.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: Effect.Effect<Subagents["Service"], never, Scope.Scope> = Effect.gen(function* () {
  const options = yield* Options
  const limiter = Limiter.make(yield* Limits)
  // capabilities are read once: a provider does not change while it is registered
  const providers = new Map<string, Pick<SubagentProvider, "capabilities"> & { readonly provider: SubagentProvider }>()
  const events = FanOut.make<SubagentEvent>(options.eventCapacity)
  const announce = (event: SubagentEvent): void => events.publish(Object.freeze(event))
  const runs = Runs.make({ releaseTimeout: options.releaseTimeout, announce })
  /** The children that are being resumed with a token and have no run yet. */
  const resuming = new Map<AgentId, RunId>()
  const waiting: AllWaiting = new Map()
  const watchers = new Watchers(yield* Clock.Clock, Effect.runForkWith(yield* Effect.context()))
  let isClosed = false
  const registry: Registry = {
    runs,
    limiter,
    watchers,
    waiting,
    updateCapacity: options.updateCapacity,
    isClosed: () => isClosed
  }

  yield* Effect.addFinalizer((exit) =>
    Effect.suspend(() => {
      isClosed = true
      const over = Array.from(waiting.values(), (over) => Deferred.await(over))
      for (const callOff of waiting.keys()) callOff()
      const released = Array.from(runs.all(), (run) => runs.release(run, { _tag: "Release" }, exit))
      return Effect.all([...over, ...released], { concurrency: "unbounded", discard: true })
    }).pipe(
      Effect.andThen(
        Effect.sync(() => {
          watchers.close()
          events.end()
        })
      )
    )
  )

  const find = (name: string) =>
    Result.fromNullishOr(
      providers.get(name),
      () => new ProviderNotFound({ name: describeUnknown(name), available: Array.from(providers.keys()) })
    )

  const register = (provider: SubagentProvider) =>
    Effect.acquireRelease(
      Effect.suspend(() => {
        const issues = checkProvider(provider)
        if (isClosed) return Effect.fail(fromReason(new RegistryClosed()))
        if (issues.length > 0) return Effect.fail(fromReason(new InvalidProvider({ issues })))
        const { capabilities, name } = provider
        if (providers.has(name)) return Effect.fail(fromReason(new DuplicateProvider({ name })))
        providers.set(name, { provider, capabilities })
        announce({ type: "subagent/provider-added", provider: name })
        return Effect.succeed(name)
      }),
      (name) =>
        Effect.sync(() => {
          providers.delete(name)
          announce({ type: "subagent/provider-removed", provider: name })
        })
    ).pipe(Effect.asVoid)

  const start = (name: string, request: SubagentStartRequest) =>
    ask(name, (capabilities) => readRequest(request, capabilities))

  const resume = (
    given: ResumeToken,
    content: string | ReadonlyArray<ContentBlock>,
    request: SubagentResumeRequest
  ): Effect.Effect<SubagentRun, SubagentError, Scope.Scope> =>
    Effect.suspend(() => {
      const token = readToken(given)
      return Result.isFailure(token)
        ? Effect.fail(fromReason(new InvalidRequest({ issues: token.failure })))
        : ask(
            token.success.provider,
            (capabilities) => readResume(token.success, content, request, capabilities),
            token.success
          )
    })

  /** Asks a provider for a new child, or for the one of a token. */
  const ask = (
    name: string,
    readBy: (capabilities: Capabilities) => ReturnType<typeof readRequest>,
    token?: ResumeToken
  ): Effect.Effect<SubagentRun, SubagentError, Scope.Scope> =>
    Effect.withFiber((fiber) => {
      const refuse = (reason: SubagentErrorReason) => Effect.fail(fromReason(reason))
      if (isClosed) return refuse(new RegistryClosed())
      const found = find(name)
      if (Result.isFailure(found)) return refuse(found.failure)
      const { capabilities, provider } = found.success
      const read = readBy(capabilities)
      if (Result.isFailure(read)) return refuse(new InvalidRequest({ issues: read.failure }))
      if (token !== undefined && provider.resume === undefined) {
        return refuse(new UnsupportedCapability({ provider: name, capability: "resume", missing: ["resume"] }))
      }
      const parent = read.success.parent
      const owner = runs.of(parent.id, parent.header.id)
      const placed = place({
        provider: name,
        capabilities,
        read: read.success,
        parent: owner,
        maxDepth: limiter.maxDepth,
        limits: limiter.bounds,
        random: fiber.getRef(Random.Random),
        ...(token && { token })
      })
      if (Result.isFailure(placed)) return refuse(placed.failure)
      const { asked, lineage, policy } = placed.success
      const budget = fiber.getRef(Current)
      const holds = owner?.keeper?.admission
      const admitted = limiter.admit({ provider: name, capabilities, lineage, policy, owner: holds, asked, budget })
      if (Result.isFailure(admitted)) return refuse(admitted.failure)
      const starting = startRun({
        name,
        provider,
        ...(token && { token }),
        capabilities,
        read: read.success,
        place: placed.success,
        owner,
        admission: admitted.success,
        budget,
        clock: fiber.getRef(Clock.Clock),
        registry
      })
      return token === undefined ? starting : alone(token, lineage.runId, starting)
    })

  /** Goes on with a child in one place only, from the moment at which it is asked for. */
  const alone = <A, R>(
    { header, id }: ResumeToken,
    runId: RunId,
    starting: Effect.Effect<A, SubagentError, R>
  ): Effect.Effect<A, SubagentError, R> =>
    Effect.suspend(() => {
      const busy = runs.of(id, header.id)?.lineage.runId ?? resuming.get(id)
      if (busy !== undefined) return Effect.fail(fromReason(new ChildBusy({ id, runId: busy })))
      resuming.set(id, runId)
      return starting
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          if (resuming.get(id) === runId) resuming.delete(id)
        })
      )
    )

  return Subagents.of({
    register,
    get: (name) =>
      Effect.suspend(() =>
        Effect.fromResult(Result.mapBoth(find(name), { onFailure: fromReason, onSuccess: ({ provider }) => provider }))
      ),
    list: Effect.sync(() => Array.from(providers.keys())),
    // the request's schema types the result: `startRun` decodes with that very schema
    start: start as Subagents["Service"]["start"],
    resume: resume as Subagents["Service"]["resume"],
    run: ((name, request) =>
      Effect.scoped(Effect.flatMap(start(name, request), (run) => run.result))) as Subagents["Service"]["run"],
    events: Stream.unwrap(Effect.map(events.subscribe([]), Stream.fromQueue)),
    on: (listener) =>
      Effect.flatMap(events.subscribe([]), (queue) =>
        Queue.take(queue).pipe(
          Effect.flatMap((event) =>
            Effect.suspend(() => effectOf(listener(event))).pipe(
              Effect.catchCause((cause) =>
                Effect.logWarning(`A listener of subagent events failed: ${describeCause(cause)}`)
              )
            )
          ),
          Effect.forever,
          Effect.ignore,
          Effect.forkScoped({ startImmediately: true }),
          Effect.asVoid
        )
      ),
    cancel: (id, reason) =>
      Effect.sync(() => {
        const run = runs.known(id)
        if (run !== undefined) runs.abort(run, Runs.callerCause(reason))
        return run !== undefined
      }),
    live: Effect.sync(() =>
      Array.from(runs.all(), (run) =>
        Runs.liveRun(run, (reason) => Effect.sync(() => runs.abort(run, Runs.callerCause(reason))))
      )
    )
  })
})

/**
 * The service, as a layer. It needs nothing, and releasing it releases every run.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Subagents> = Layer.effect(Subagents, make)

/**
 * Sets some of the options for the layers it is provided to.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerOptions = (options: Partial<SubagentsOptions>): Layer.Layer<never, SubagentError> =>
  Layer.effect(
    Options,
    Effect.gen(function* () {
      const checked = yield* Effect.fromResult(Result.mapError(checkOptions(options), fromReason))
      return { ...(yield* Options), ...checked }
    })
  )

/**
 * Contributes a provider for as long as the layer lives.
 *
 * @category layers
 * @since 0.1.0
 */
export const add = (provider: SubagentProvider): Layer.Layer<never, SubagentError, Subagents> =>
  addEffect(Effect.succeed(provider))

/**
 * Contributes a provider that takes an effect to make.
 *
 * @category layers
 * @since 0.1.0
 */
export const addEffect = <E, R>(
  provider: Effect.Effect<SubagentProvider, E, R>
): Layer.Layer<never, E | SubagentError, Subagents | Exclude<R, Scope.Scope>> =>
  Layer.effectDiscard(
    Effect.flatMap(provider, (made) => Effect.flatMap(Effect.service(Subagents), (service) => service.register(made)))
  )
