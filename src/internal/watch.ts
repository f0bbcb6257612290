/**
 * The clocks of one run: how long it may work, and how long it may say nothing.
 *
 * They go by the monotonic time of the `Clock` service, so that setting a machine's clock ends no run and saves none.
 * Each stands still while there is a reason to: a child that waits for an answer does not work, and has nothing to say.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Bounds } from "../SubagentRequest.ts"
import type { SubagentFailure } from "../SubagentResult.ts"

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
  private readonly watched: Watched
  private readonly work: Stopwatch | undefined
  private readonly silence: Stopwatch | undefined
  private changed = Deferred.makeUnsafe<void>()

  /** Watches, until a clock has run out. */
  readonly watching: Effect.Effect<void> = Effect.suspend(() => {
    const now = this.now()
    const running = [this.work, this.silence].filter((clock) => clock?.isRunning === true) as Array<Stopwatch>
    const over = running.find((clock) => clock.elapsed(now) >= clock.limit)
    if (over !== undefined) return Effect.sync(() => this.watched.stop(this.failureOf(over)))
    const changed = Deferred.await(this.changed)
    // whole milliseconds: a sleep for a rounding error's worth of time ends before time has moved
    const left = Math.ceil(Math.min(...running.map((clock) => clock.limit - clock.elapsed(now))))
    const waiting = running.length === 0 ? changed : Effect.raceFirst(Effect.sleep(Duration.millis(left)), changed)
    return Effect.flatMap(waiting, () => this.watching)
  })

  constructor(watched: Watched) {
    const { idleTimeout, timeout } = watched.bounds
    this.watched = watched
    const now = this.now()
    this.work = timeout === undefined ? undefined : new Stopwatch("timeout", timeout, now)
    this.silence = idleTimeout === undefined ? undefined : new Stopwatch("idleTimeout", idleTimeout, now)
  }

  /** Something was heard. */
  heard(): void {
    this.silence?.restart(this.now())
  }

  /** Something has to be waited for that is not the child's: an answer, or, for silence alone, a place. */
  pause(what: "all" | "silence"): void {
    const now = this.now()
    this.silence?.pause(now)
    if (what === "all") this.work?.pause(now)
  }

  /** It is over. */
  proceed(what: "all" | "silence"): void {
    const now = this.now()
    this.silence?.proceed(now)
    if (what === "all") this.work?.proceed(now)
    const { changed } = this
    this.changed = Deferred.makeUnsafe()
    Deferred.doneUnsafe(changed, Exit.void)
  }

  private now(): number {
    return Number(this.watched.clock.monotonicTimeNanosUnsafe()) / 1e6
  }

  private failureOf({ limit, name }: Stopwatch): SubagentFailure {
    const asked = this.watched.asked?.[name]
    const isLooser = asked !== undefined && asked > limit
    const what = name === "timeout" ? "The child was still at work" : "Nothing was heard of the child"
    return {
      kind: "timeout",
      retryable: true,
      name,
      limit,
      used: limit,
      ...(isLooser && { asked }),
      message: `${what} after ${limit} ms${isLooser ? `; ${asked} asked for` : ""}`
    }
  }
}
