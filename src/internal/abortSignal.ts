/**
 * The one bridge from `AbortSignal` to the seam. Nobody else touches a signal.
 *
 * However many runs share a signal, it carries one listener: N listeners on one signal cost quadratic time to add and
 * remove. The listener goes with the last of them, and when the signal fires.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import type { AbortSignalLike } from "../SubagentRequest.ts"

interface Hub {
  readonly callbacks: Set<() => void>
  readonly dispatch: () => void
}

const hubs = new WeakMap<AbortSignalLike, Hub>()

const makeHub = (signal: AbortSignalLike): Hub => {
  const hub: Hub = {
    callbacks: new Set(),
    dispatch: () => {
      const callbacks = Array.from(hub.callbacks)
      retire(signal, hub)
      for (const callback of callbacks) callback()
    }
  }
  signal.addEventListener("abort", hub.dispatch)
  hubs.set(signal, hub)
  return hub
}

const retire = (signal: AbortSignalLike, hub: Hub): void => {
  hub.callbacks.clear()
  hubs.delete(signal)
  // a signal that can't let go must not keep a run from settling: its listener finds nobody to call
  Result.try(() => signal.removeEventListener("abort", hub.dispatch))
}

/** Whether a signal has been aborted. One that can't be read counts as aborted: it could stop nothing any more. */
export const isAborted = (signal: AbortSignalLike): boolean =>
  Result.getOrElse(
    Result.try(() => signal.aborted),
    () => true
  )

/**
 * Calls back once if the signal is aborted from now on. The caller checks `isAborted` first: a signal that has
 * been aborted never fires. Returns what takes the callback back; that is idempotent.
 */
export const onAbort = (signal: AbortSignalLike, callback: () => void): (() => void) => {
  const hub = hubs.get(signal) ?? makeHub(signal)
  const entry = () => callback()
  hub.callbacks.add(entry)
  return () => {
    if (hub.callbacks.delete(entry) && hub.callbacks.size === 0) retire(signal, hub)
  }
}
