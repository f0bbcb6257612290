/**
 * The seam for TypeScript without Effect: promises, async iterables, `AbortSignal` and `await using`.
 *
 * `fromProviders` takes providers, `makeSubagents` a layer of a host that has one. Either holds one runtime: it is built
 * at once, and disposing of it releases every run. Before a run is accepted an abort rejects with the caller's own
 * `signal.reason`; after it, the result resolves `aborted`. Errors are those of the seam, with their class, `code` and
 * fields. Whatever a caller leaves unawaited, nothing ends up as an unhandled rejection.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constVoid } from "effect/Function"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Agent, AgentOptions } from "../Agent.ts"
import { root } from "../Agent.ts"
import type { Budget, Options as BudgetOptions, Spent } from "../Budget.ts"
import { make as makeBudget } from "../Budget.ts"
import type { ContentBlock } from "../Content.ts"
import { describeUnknown } from "../internal/describe.ts"
import type { LimitsOptions } from "../Limits.ts"
import { layer as layerLimits } from "../Limits.ts"
import type { ResumeToken } from "../ResumeToken.ts"
import { fromReason, RegistryClosed, type SubagentError } from "../SubagentError.ts"
import type { SubagentEvent } from "../SubagentEvent.ts"
import type { SubagentProvider } from "../SubagentProvider.ts"
import type { AbortSignalLike } from "../SubagentRequest.ts"
import type { SubagentResult } from "../SubagentResult.ts"
import type { LiveRun } from "../SubagentRun.ts"
import type { SubagentsOptions } from "../Subagents.ts"
import { layer as seamLayer, layerOptions, Subagents } from "../Subagents.ts"
import { fromStart, type PlainTool } from "../tool/PlainTool.ts"
import type { Options as ToolOptions } from "../tool/SubagentTool.ts"
import { reasonOf, signalOf, untilAborted } from "./internal/aborting.ts"
import { handled, valueOf } from "./internal/promiseRun.ts"
import { askingOf, checkAsking, resuming, starting } from "./internal/starting.ts"
import type {
  Approve,
  OutputSchema,
  PromiseRequest,
  PromiseResumeRequest,
  PromiseRun,
  Structured
} from "./PromiseRun.ts"

/**
 * Who is asked before a tool that needs an approval is executed, and what pays.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** The budget that a run, and everything below it, is held to: one that `budget` has made. By default none. */
  readonly budget?: Budget | undefined
  /**
   * By default nobody is, but for whom a host's layer names, and then no such tool is executed.
   */
  readonly approve?: Approve | undefined
  /**
   * How long an answer may take.
   *
   * @default "10 minutes"
   */
  readonly approvalTimeout?: Duration.Input | undefined
}

/**
 * A run in the live table.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromiseLiveRun extends Omit<LiveRun, "cancel"> {
  readonly cancel: (reason?: string) => Promise<void>
}

/**
 * A provider that is registered until this is disposed of.
 *
 * @category models
 * @since 0.1.0
 */
export interface Registration extends AsyncDisposable {
  readonly dispose: () => Promise<void>
}

/**
 * The seam.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromiseSubagents extends AsyncDisposable {
  /**
   * Starts a run. Options given here stand in for those of the whole. Dispose of the run (`await using` does), or it
   * stays until all of this is disposed of.
   */
  readonly start: <O extends OutputSchema = never>(
    name: string,
    request: PromiseRequest<O>,
    options?: Options
  ) => Promise<PromiseRun<Structured<O>>>
  /** Starts a run, waits for its result and releases it. */
  readonly run: <O extends OutputSchema = never>(
    name: string,
    request: PromiseRequest<O>,
    options?: Options
  ) => Promise<SubagentResult<Structured<O>>>
  /** Goes on with a child of an earlier process, from the token of one of its runs. Like a start. */
  readonly resume: <O extends OutputSchema = never>(
    token: ResumeToken,
    content: string | ReadonlyArray<ContentBlock>,
    request: PromiseResumeRequest<O>,
    options?: Options
  ) => Promise<PromiseRun<Structured<O>>>
  /** An agent that nobody delegated to: the `parent` of a host that has no agents of its own. */
  readonly root: (options?: { readonly cwd?: string; readonly options?: AgentOptions }) => Agent
  /** A tool through which a model delegates, in whatever loop it runs. Throws `SubagentError` for options that are none. */
  readonly tool: (options: ToolOptions) => PlainTool
  /** The names of the providers there are, in order of registration. */
  readonly list: () => Promise<ReadonlyArray<string>>
  /** The provider of a name. */
  readonly get: (name: string) => Promise<SubagentProvider>
  /** Adds a provider. */
  readonly register: (provider: SubagentProvider) => Promise<Registration>
  /** Makes a budget of which nothing has been used. Throws `SubagentError` for a figure that is none. */
  readonly budget: (options: BudgetOptions) => Budget
  /** What has been used of a budget by now. */
  readonly spent: (budget: Budget) => Spent
  /**
   * Cancels the live run of this id, its own or its agent's. Resolves to whether there is one, settled or not. Idempotent.
   */
  readonly cancel: (id: string, reason?: string) => Promise<boolean>
  /** The accepted runs that have not been released. */
  readonly live: () => Promise<ReadonlyArray<PromiseLiveRun>>
  /** What happens from the first step of an iteration on. Ends when all of this is disposed of. */
  readonly events: AsyncIterable<SubagentEvent>
  /**
   * Calls a listener with what happens from now on, one event at a time, and returns what stops it. A listener that
   * throws, rejects or never ends hurts nobody.
   */
  readonly on: (listener: (event: SubagentEvent) => unknown) => () => void
  /** Releases every run, and whatever else was built. Idempotent. Results that somebody holds stay readable. */
  readonly dispose: () => Promise<void>
}

/**
 * The seam of a host that has a layer. It is built at once; if that fails, everything here rejects with the error. Throws
 * `SubagentError` for options that are none.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeSubagents = <R, E>(layer: Layer.Layer<Subagents | R, E>, options: Options = {}): PromiseSubagents => {
  const checked = checkAsking(options)
  if (Result.isFailure(checked)) throw checked.failure
  const runtime = ManagedRuntime.make(layer)
  const built = handled(runtime.runPromiseExit(Effect.context<Subagents>()).then(valueOf))
  let services: Context.Context<Subagents> | undefined
  built.then((context) => (services = context), constVoid)
  let disposing: Promise<void> | undefined

  // not run by the runtime, whose end interrupts what it runs: that end is one of the things to hear of
  const withSeam = <A, E>(body: (subagents: Subagents["Service"]) => Effect.Effect<A, E>): Effect.Effect<A, unknown> =>
    Effect.suspend(() =>
      // at once if possible, so that a listener hears of a start that follows
      services === undefined
        ? Effect.tryPromise({ try: () => built, catch: (thrown) => thrown })
        : Effect.succeed(services)
    ).pipe(Effect.flatMap((context) => Effect.provideContext(body(Context.get(context, Subagents)), context)))
  const use = <A, E>(body: (subagents: Subagents["Service"]) => Effect.Effect<A, E>): Promise<A> =>
    handled(Effect.runPromiseExit(withSeam(body)).then(valueOf))

  /** Rejects with an error of the seam's own, whatever the reason of the signal. */
  const accept = async (
    name: string,
    signal: AbortSignalLike | undefined,
    starting: Effect.Effect<PromiseRun, SubagentError, Subagents>
  ): Promise<PromiseRun> => {
    // nobody has to wait for a layer on behalf of a caller who has gone
    if (services === undefined) await untilAborted(built, name, signal)
    if (disposing !== undefined) throw fromReason(new RegistryClosed())
    return valueOf(await runtime.runPromiseExit(starting))
  }
  const orReason = (accepting: Promise<PromiseRun>, signal: AbortSignalLike | undefined): Promise<PromiseRun> =>
    accepting.catch((thrown) => {
      throw reasonOf(thrown, signal)
    })
  const startRun = (name: string, request: PromiseRequest, asking?: Options): Promise<PromiseRun> =>
    accept(name, signalOf(request), starting(name, request, askingOf(options, asking)))
  const start = (name: string, request: PromiseRequest, asking?: Options): Promise<PromiseRun> =>
    orReason(startRun(name, request, asking), signalOf(request))
  const resume = async (
    token: ResumeToken,
    content: string | ReadonlyArray<ContentBlock>,
    request: PromiseResumeRequest,
    asking?: Options
  ): Promise<PromiseRun> => {
    const signal = signalOf(request)
    const name = describeUnknown(token?.provider)
    return orReason(accept(name, signal, resuming(token, content, request, askingOf(options, asking))), signal)
  }
  const run = async (name: string, request: PromiseRequest, asking?: Options): Promise<SubagentResult> => {
    const run = await start(name, request, asking)
    try {
      return await run.result
    } finally {
      await run.dispose()
    }
  }
  const dispose = () => (disposing ??= handled(runtime.dispose()))

  return Object.freeze<PromiseSubagents>({
    // the request's schema types the result: the seam decodes with that very schema
    start: ((name, request, asking) => handled(start(name, request, asking))) as PromiseSubagents["start"],
    run: ((name, request, asking) => handled(run(name, request, asking))) as PromiseSubagents["run"],
    resume: ((token, content, request, asking) =>
      handled(resume(token, content, request, asking))) as PromiseSubagents["resume"],
    root: (options) => Effect.runSync(root(options)),
    budget: (options) => Effect.runSync(makeBudget(options)),
    spent: ({ spent }) => Effect.runSync(spent),
    cancel: (id, reason) => use(({ cancel }) => cancel(id, reason)),
    tool: (options) => fromStart(options, startRun),
    list: () => use(({ list }) => list),
    get: (name) => use(({ get }) => get(name)),
    register: (provider) => use((subagents) => registration(subagents, provider)),
    live: () => use(({ live }) => Effect.map(live, (runs) => runs.map(liveRun))),
    events: Stream.toAsyncIterable(Stream.unwrap(withSeam(({ events }) => Effect.succeed(events)))),
    on: (listener) => {
      const scope = Scope.makeUnsafe()
      const call = (event: SubagentEvent) =>
        Effect.tryPromise({ try: async () => listener(event), catch: (thrown) => thrown })
      void use((subagents) => Scope.provide(subagents.on(call), scope))
      return () => void Effect.runPromise(Scope.close(scope, Exit.void))
    },
    dispose,
    [Symbol.asyncDispose]: dispose
  })
}

const registration = (
  subagents: Subagents["Service"],
  provider: SubagentProvider
): Effect.Effect<Registration, SubagentError> =>
  Effect.suspend(() => {
    const scope = Scope.makeUnsafe()
    const dispose = () => Effect.runPromise(Scope.close(scope, Exit.void))
    return Effect.as(
      Scope.provide(subagents.register(provider), scope),
      Object.freeze<Registration>({ dispose, [Symbol.asyncDispose]: dispose })
    )
  })

const liveRun = ({ cancel, ...run }: LiveRun): PromiseLiveRun =>
  Object.freeze({ ...run, cancel: (reason?: string) => Effect.runPromise(cancel(reason)) })

/**
 * The seam with these providers, in this order.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromProviders = (
  providers: ReadonlyArray<SubagentProvider>,
  options: Options & Partial<SubagentsOptions> & { readonly limits?: Partial<LimitsOptions> | undefined } = {}
): PromiseSubagents => {
  const { approvalTimeout, approve, budget, limits = {}, ...seam } = options
  const registered = Layer.effectDiscard(
    Effect.flatMap(Effect.service(Subagents), ({ register }) => Effect.forEach(providers, register, { discard: true }))
  )
  const layer = registered.pipe(
    Layer.provideMerge(seamLayer),
    Layer.provide(layerOptions(seam)),
    Layer.provide(layerLimits(limits))
  )
  return makeSubagents(layer, { approvalTimeout, approve, budget })
}
