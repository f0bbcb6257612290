/**
 * What a child, and a tree of them, may use up.
 *
 * The host's limits hold for every run; a request can only tighten what it inherits. They are checked in one place,
 * whichever way a run is asked for. A limit of a run that is reached ends it as `error`, with what it has said so far
 * and a `failure` that has the figures; a limit that a new run would break refuses its start with `LimitReached`.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { checkLimits } from "./internal/checkOptions.ts"
import { fromReason, type SubagentError } from "./SubagentError.ts"

/**
 * The limits of one run. Whatever is left out is as the parent's run, or the host, has it.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunLimits {
  /**
   * How long the provider may take to make the child ready, the wait for a place not counted. Past it the start fails
   * with `StartTimeout`.
   */
  readonly startTimeout?: Duration.Input | undefined
  /** How long the child may work, waits for an approval not counted: neither its own nor those of what it owns. */
  readonly timeout?: Duration.Input | undefined
  /** How long the child, and all it owns, may report nothing. Waits for an approval do not count. */
  readonly idleTimeout?: Duration.Input | undefined
  /** The most turns, which is model calls, of one run. Needs the capability `turns`. At least 1. */
  readonly maxTurns?: number | undefined
  /**
   * The most tokens that the run and everything below it may use together. A request that asks for it has them reserved:
   * what can't be reserved is refused, and what was not used comes back when the run settles. Needs the capability
   * `usage`. At least 1.
   */
  readonly maxTokens?: number | undefined
  /** The most runs that may ever be started below this one. 0 forbids any. */
  readonly maxRuns?: number | undefined
}

/**
 * How many runs may be at work at the same time. A run holds its place from its start until it settles, and shares it
 * with what it has started and waits for.
 *
 * @category models
 * @since 0.1.0
 */
export interface MaxConcurrent {
  /** In all. */
  readonly overall?: number | undefined
  /** Below one root. */
  readonly tree?: number | undefined
  /** Of one provider: of each, or by name. */
  readonly provider?: number | { readonly [name: string]: number } | undefined
}

/**
 * The limits of a host. Those of `RunLimits` hold for each run; `maxRuns` for each root.
 *
 * @category options
 * @since 0.1.0
 */
export interface LimitsOptions extends RunLimits {
  /**
   * The greatest depth a child may have. 0 forbids delegation.
   *
   * @default 3
   */
  readonly maxDepth: number
  readonly maxConcurrent?: MaxConcurrent | undefined
  /**
   * How many starts may wait for a place. 0 refuses instead.
   *
   * @default 10_000
   */
  readonly maxQueued: number
  /**
   * Whether a child that has used up its turns or tokens gets one more turn, without tools, to say what it has got.
   *
   * @default true
   */
  readonly wrapUp: boolean
}

/**
 * The limits in force. Set some of them with `layer`.
 *
 * @category references
 * @since 0.1.0
 */
export const Limits: Context.Reference<LimitsOptions> = Context.Reference<LimitsOptions>("effect-subagent/Limits", {
  defaultValue: () => ({ maxDepth: 3, maxQueued: 10_000, wrapUp: true })
})

/**
 * Sets some of the limits for the layers it is provided to. A key whose value is `undefined` is left as it is. Where it
 * is provided to another one, each key of that one replaces its own, `maxConcurrent` as a whole, be it tighter or looser;
 * of two that are merged side by side, only the last one counts. Fails with `InvalidRequest` for a misspelt key, and for
 * a figure that is none.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (limits: Partial<LimitsOptions>): Layer.Layer<never, SubagentError> =>
  Layer.effect(
    Limits,
    Effect.gen(function* () {
      const checked = yield* Effect.fromResult(Result.mapError(checkLimits(limits), fromReason))
      return { ...(yield* Limits), ...Object.fromEntries(Object.entries(checked).filter(([, v]) => v !== undefined)) }
    })
  )
