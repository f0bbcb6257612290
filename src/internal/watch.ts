/**
 * The clocks of one run: how long it may work, and how long it may say nothing.
 *
 * They go by the monotonic time of the `Clock` service, so that setting a machine's clock ends no run and saves none.
 * Each stands still while there is a reason to: a child that waits for an answer does not work, and has nothing to say.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import type { Bounds } from "../SubagentRequest.ts"
import type { SubagentFailure } from "../SubagentResult.ts"
import { looser } from "./account.ts"

/** A clock that can stand still. Times are in milliseconds. */
class Stopwatch {
  readonly name: "timeout" | "idleTimeout"
  readonly limit: number
  private spent = 0
  private since: number
  private pauses = 0

  constructor(name: Stopwatch["name"], limit: number, now: number) {
    this.name = name
    this.limit = limit
    this.since = now
  }

  get isRunning(): boolean {
    return this.pauses === 0
  }

  elapsed(now: number): number {
    return this.isRunning ? this.spent + now - this.since : this.spent
  }

  pause(now: number): void {
    this.spent = this.elapsed(now)
    this.pauses++
  }

  proceed(now: number): void {
    this.pauses--
    this.since = now
  }

  restart(now: number): void {
    this.spent = 0
    this.since = now
  }
}

/** What a watch goes by. */
export interface Watched {
  readonly clock: Clock.Clock
  readonly bounds: Bounds
  readonly asked: Bounds | undefined
  /** Ends the run. */
  readonly stop: (failure: SubagentFailure) => void
}

/** The clocks of one run. They run from when it is made. */
export class Watch {
  /** Called when a clock goes on that stood still: it may run out before any other. */
  onProceed: (() => void) | undefined = undefined
  private readonly watched: Watched
  private readonly work: Stopwatch | undefined
  private readonly silence: Stopwatch | undefined

  constructor(watched: Watched) {
    const { idleTimeout, timeout } = watched.bounds
    this.watched = watched
    const now = monotonic(watched.clock)
    this.work = timeout === undefined ? undefined : new Stopwatch("timeout", timeout, now)
    this.silence = idleTimeout === undefined ? undefined : new Stopwatch("idleTimeout", idleTimeout, now)
  }

  /** How long until the first of the clocks has run out, if nothing happens: for ever, if none is running. */
  left(now: number): number {
    return Math.min(leftOf(this.work, now), leftOf(this.silence, now))
  }

  /** Ends the run if a clock has run out. */
  check(now: number): void {
    const over = [this.work, this.silence].find((clock) => leftOf(clock, now) <= 0)
    if (over !== undefined) this.watched.stop(this.failureOf(over))
  }

  /** Something was heard. */
  heard(): void {
    this.silence?.restart(monotonic(this.watched.clock))
  }

  /** Something has to be waited for that is not the child's: an answer, or, for silence alone, a place. */
  pause(what: "all" | "silence"): void {
    const now = monotonic(this.watched.clock)
    this.silence?.pause(now)
    if (what === "all") this.work?.pause(now)
  }

  /** It is over. */
  proceed(what: "all" | "silence"): void {
    const now = monotonic(this.watched.clock)
    this.silence?.proceed(now)
    if (what === "all") this.work?.proceed(now)
    this.onProceed?.()
  }

  private failureOf({ limit, name }: Stopwatch): SubagentFailure {
    const beside = looser(this.watched.asked?.[name], limit)
    const note = beside.asked === undefined ? "" : `; ${beside.asked} asked for`
    const what = name === "timeout" ? "The child was still at work" : "Nothing was heard of the child"
    return {
      kind: "timeout",
      retryable: true,
      name,
      limit,
      used: limit,
      ...beside,
      message: `${what} after ${limit} ms${note}`
    }
  }
}

const leftOf = (clock: Stopwatch | undefined, now: number): number =>
  clock?.isRunning === true ? clock.limit - clock.elapsed(now) : Number.POSITIVE_INFINITY

/** Milliseconds that nobody sets. */
export const monotonic = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
