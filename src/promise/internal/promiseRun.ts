/**
 * From effects to promises: what a promise rejects with, and a run as its caller sees it without Effect.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constVoid } from "effect/Function"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { fromReason, RegistryClosed, type SubagentError } from "../../SubagentError.ts"
import type { SubagentRun } from "../../SubagentRun.ts"
import type { PromiseRun } from "../PromiseRun.ts"

/** A promise that may be left alone: whoever awaits it is told of its rejection, and nobody else. */
export const handled = <A>(promise: Promise<A>): Promise<A> => {
  promise.catch(constVoid)
  return promise
}

/** The value of an exit, or a throw of what it failed with. Only the end of the seam interrupts what a caller waits for. */
export const valueOf = <A>(exit: Exit.Exit<A, unknown>): A => {
  if (Exit.isSuccess(exit)) return exit.value
  throw Cause.hasInterruptsOnly(exit.cause) ? fromReason(new RegistryClosed()) : Cause.squash(exit.cause)
}

/** A start in a scope of its own: the run belongs to whoever has it, and to the seam. */
export const promiseRun = (
  start: Effect.Effect<SubagentRun, SubagentError, Scope.Scope>
): Effect.Effect<PromiseRun, SubagentError> =>
  Effect.gen(function* () {
    const run = yield* Scope.provide(start, Scope.makeUnsafe())
    const context = yield* Effect.context()
    const runPromise = <A, E>(effect: Effect.Effect<A, E>): Promise<A> =>
      handled(Effect.runPromiseExitWith(context)(effect).then(valueOf))
    let disposing: Promise<void> | undefined
    const dispose = () => (disposing ??= runPromise(run.dispose))
    const { resume, sendMessage, token } = run
    return Object.freeze<PromiseRun>({
      id: run.id,
      runId: run.runId,
      provider: run.provider,
      header: run.header,
      result: runPromise(run.result),
      updates: Stream.toAsyncIterableWith(run.updates, context),
      cancel: (reason) => runPromise(run.cancel(reason)),
      dispose,
      [Symbol.asyncDispose]: dispose,
      // presence is the capability
      ...(sendMessage && { sendMessage: (content) => runPromise(sendMessage(content)) }),
      ...(resume && { resume: (content) => runPromise(promiseRun(resume(content))) }),
      ...(token && { token: () => runPromise(token) })
    })
  })
