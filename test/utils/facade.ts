/** The seam as an Effect service that reaches everything through the Promise facade, to hold the facade against the contract. */
import { Approvals, type SubagentError, type SubagentRequest, type SubagentRun, Subagents } from "effect-subagent"
import type { PromiseRun, PromiseSubagents } from "effect-subagent/promise"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"

const attempt = <A>(call: () => Promise<A>): Effect.Effect<A, SubagentError.SubagentError> =>
  // all that is thrown here is an error of the seam's
  Effect.tryPromise({ try: call, catch: (thrown) => thrown as SubagentError.SubagentError })

/** A signal that is aborted with either of two, and has no reason of its own. */
const either = (one: AbortSignal, other: SubagentRequest.AbortSignalLike | undefined) =>
  ({
    get aborted() {
      return one.aborted || other?.aborted === true
    },
    addEventListener: (type, listener) => {
      one.addEventListener(type, listener)
      other?.addEventListener(type, listener)
    },
    removeEventListener: (type, listener) => {
      one.removeEventListener(type, listener)
      other?.removeEventListener(type, listener)
    }
  }) satisfies SubagentRequest.AbortSignalLike

/** Starts through the facade: an interruption is an abort, as it would be for a caller who knows no other way. */
const accepted = (
  facade: PromiseSubagents.PromiseSubagents,
  name: string,
  request: SubagentRequest.SubagentStartRequest
): Effect.Effect<PromiseRun.PromiseRun, SubagentError.SubagentError> =>
  Effect.flatMap(Approvals.Approvals, (approver) =>
    Effect.callback((resume) => {
      const controller = new AbortController()
      const starting = facade.start(
        name,
        { ...request, signal: either(controller.signal, request.signal) },
        approver && { approve: (asked, signal) => Effect.runPromise(approver.decide(asked), { signal }) }
      )
      starting.then(
        (run) => resume(Effect.succeed(run)),
        (error: SubagentError.SubagentError) => resume(Effect.fail(error))
      )
      return Effect.promise(() => {
        controller.abort()
        return starting.then(
          (run) => run.dispose(),
          () => {}
        )
      })
    })
  )

const owned = (accept: Effect.Effect<PromiseRun.PromiseRun, SubagentError.SubagentError>) =>
  Effect.acquireRelease(accept, ({ dispose }) => Effect.promise(dispose), { interruptible: true }).pipe(
    Effect.map(runOf)
  )

const runOf = (run: PromiseRun.PromiseRun): SubagentRun.SubagentRun => {
  const { resume, sendMessage, token } = run
  return {
    id: run.id,
    runId: run.runId,
    provider: run.provider,
    header: run.header,
    result: attempt(() => run.result),
    cancel: (reason) => Effect.promise(() => run.cancel(reason)),
    dispose: Effect.promise(run.dispose),
    updates: Stream.orDie(Stream.fromAsyncIterable(run.updates, identity)),
    ...(sendMessage && { sendMessage: (content) => attempt(() => sendMessage(content)) }),
    ...(resume && { resume: (content) => owned(attempt(() => resume(content))) }),
    ...(token && { token: attempt(token) })
  }
}

/** The service, over a facade of its own. */
export const layer = (make: () => PromiseSubagents.PromiseSubagents): Layer.Layer<Subagents.Subagents> =>
  Layer.effect(
    Subagents.Subagents,
    Effect.gen(function* () {
      const facade = yield* Effect.acquireRelease(Effect.sync(make), ({ dispose }) => Effect.promise(dispose))
      const start = (name: string, request: SubagentRequest.SubagentStartRequest) =>
        owned(accepted(facade, name, request))
      return Subagents.Subagents.of({
        register: (provider) =>
          Effect.acquireRelease(
            attempt(() => facade.register(provider)),
            ({ dispose }) => Effect.promise(dispose)
          ).pipe(Effect.asVoid),
        get: (name) => attempt(() => facade.get(name)),
        list: Effect.promise(facade.list),
        start: start as Subagents.Subagents["Service"]["start"],
        resume: ((token, content, request: SubagentRequest.SubagentResumeRequest) =>
          owned(attempt(() => facade.resume(token, content, request)))) as Subagents.Subagents["Service"]["resume"],
        run: (name, request) => attempt(() => facade.run(name, request)),
        cancel: (id, reason) => attempt(() => facade.cancel(id, reason)).pipe(Effect.orDie),
        events: Stream.orDie(Stream.fromAsyncIterable(facade.events, identity)),
        on: (listener) =>
          Effect.flatMap(Effect.context<Effect.Services<ReturnType<typeof listener>>>(), (context) =>
            Effect.acquireRelease(
              Effect.sync(() => facade.on((event) => Effect.runPromiseWith(context)(listener(event)))),
              (stop) => Effect.sync(stop)
            )
          ).pipe(Effect.asVoid),
        live: Effect.map(Effect.promise(facade.live), (runs) =>
          runs.map((run) => ({ ...run, cancel: (reason?: string) => Effect.promise(() => run.cancel(reason)) }))
        )
      })
    })
  )
