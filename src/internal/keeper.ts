/**
 * Holds one run to its limits: what it reports is charged and heard, what it wants to do next is counted, and what it
 * holds comes back when it settles.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { TurnRefused } from "../SubagentProvider.ts"
import type { SubagentFailure, SubagentUsage } from "../SubagentResult.ts"
import type { SubagentUpdate } from "../SubagentUpdate.ts"
import type { Admission } from "./limiter.ts"
import { Meter } from "./meter.ts"
import { Watch } from "./watch.ts"
import type { Watchers } from "./watchers.ts"

/** A run, and those that own it, as far as their limits are concerned. */
interface Kept {
  readonly owner: Kept | undefined
  readonly keeper: Keeper | undefined
}

/** What a keeper goes by. */
export interface Keeping {
  readonly run: Kept
  readonly admission: Admission
  readonly watchers: Watchers
  readonly wrapUp: boolean
  /** Ends the run. */
  readonly stop: (failure: SubagentFailure) => void
}

/** The keeper of one run. */
export class Keeper {
  readonly admission: Admission
  readonly watch: Watch | undefined
  private readonly run: Kept
  private readonly meter: Meter
  private readonly watchers: Watchers

  constructor({ admission, run, stop, watchers, wrapUp }: Keeping) {
    const { asked, capabilities, policy } = admission.asking
    const { idleTimeout, maxTurns, timeout } = policy.limits ?? {}
    this.run = run
    this.admission = admission
    this.watchers = watchers
    this.meter = new Meter({ chain: admission.chain, maxTurns, asked, asks: capabilities.turns === true, wrapUp, stop })
    this.watch =
      timeout === undefined && idleTimeout === undefined
        ? undefined
        : new Watch({ clock: watchers.clock, bounds: policy.limits!, asked, stop })
  }

  /** The limit that the run has reached, if it has. */
  get reached(): SubagentFailure | undefined {
    return this.meter.reached
  }

  /** Counts a turn, or says why there is none. */
  nextTurn(): TurnRefused | undefined {
    return this.meter.nextTurn()
  }

  /** The child has reported something: whoever waits for it hears that too. */
  heard(update: SubagentUpdate): void {
    if (update._tag === "Usage") this.meter.report(update.usage)
    for (let run: Kept | undefined = this.run; run !== undefined; run = run.owner) run.keeper?.watch?.heard()
  }

  /** What the child has used to become ready is charged, and the clocks are watched from now on. */
  begin(used: SubagentUsage | undefined): void {
    if (used !== undefined) this.meter.charge(used)
    if (this.watch !== undefined) this.watchers.add(this.watch)
  }

  /** The run is over, and has used this in all. */
  settle(usage: SubagentUsage | undefined): void {
    if (usage !== undefined) this.meter.charge(usage)
    if (this.watch !== undefined) this.watchers.remove(this.watch)
    this.admission.close()
  }

  /** Its place comes back, too. Whoever has waited for it goes on at once. */
  giveBack(): void {
    this.admission.settle()
  }
}

/** The clocks of a run and of those that own it. */
const watches = (from: Kept | undefined): ReadonlyArray<Watch> => {
  const found: Array<Watch> = []
  for (let run = from; run !== undefined; run = run.owner) {
    if (run.keeper?.watch !== undefined) found.push(run.keeper.watch)
  }
  return found
}

/** Whether a clock runs for a run, or for one of those that own it. */
export const isTimed = (run: Kept): boolean => run.keeper !== undefined && watches(run).length > 0

/** Lets those clocks stand still as long as something takes: all of them, or those for silence. */
export const standing = <A, E, R>(
  run: Kept | undefined,
  what: "all" | "silence",
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  // whoever is interrupted as soon as they stand still must not leave them so
  Effect.uninterruptibleMask((restore) => {
    const paused = watches(run)
    if (paused.length === 0) return restore(effect)
    for (const watch of paused) watch.pause(what)
    return Effect.onExit(restore(effect), () =>
      Effect.sync(() => {
        for (const watch of paused) watch.proceed(what)
      })
    )
  })
