/**
 * What an abort means to a caller whose run has not been accepted yet.
 *
 * @since 0.1.0
 */
import { constVoid } from "effect/Function"
import * as Predicate from "effect/Predicate"
import { onAbort } from "../../internal/abortSignal.ts"
import { describeUnknown } from "../../internal/describe.ts"
import { AbortedBeforeStart, fromReason, SubagentError } from "../../SubagentError.ts"
import type { AbortSignalLike } from "../../SubagentRequest.ts"
import type { PromiseRequest, PromiseResumeRequest } from "../PromiseRun.ts"

/** The signal of a request that may be anything: whether it is well formed is for the seam to say. */
export const signalOf = (request: PromiseRequest | PromiseResumeRequest): AbortSignalLike | undefined => {
  try {
    const { signal } = request
    return Predicate.isFunction(signal?.addEventListener) ? signal : undefined
  } catch {
    return undefined
  }
}

/** Waits for a promise, and fails if the signal is aborted before it resolves. */
export const untilAborted = (
  promise: Promise<unknown>,
  provider: string,
  signal: AbortSignalLike | undefined
): Promise<void> =>
  new Promise((resolve, reject) => {
    const fail = () => reject(fromReason(new AbortedBeforeStart({ provider: describeUnknown(provider) })))
    if (signal?.aborted === true) return fail()
    const forget = signal === undefined ? constVoid : onAbort(signal, fail)
    promise.then(() => resolve(), reject).finally(forget)
  })

/** What a start rejects with: the caller's own reason, if it is the caller who has aborted it. */
export const reasonOf = (thrown: unknown, signal: AbortSignalLike | undefined): unknown => {
  const isAbort = thrown instanceof SubagentError && thrown.reason._tag === "AbortedBeforeStart"
  const { reason } = (signal ?? {}) as { readonly reason?: unknown }
  return isAbort && reason !== undefined ? reason : thrown
}
