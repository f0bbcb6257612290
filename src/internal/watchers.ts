/**
 * Watches the clocks of all runs of a registry, with one sleep: until the first of them may have run out. A fiber and a
 * timer a run would cost more than the run itself.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { Watch } from "./watch.ts"
import { monotonic } from "./watch.ts"

/** How long, in milliseconds, a sleep is kept for whoever comes next when nobody is watched any more. */
const linger = 1000

/** The watchers of one registry. */
export class Watchers {
  readonly clock: Clock.Clock
  private readonly fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  private readonly watches = new Set<Watch>()
  private sleep: Fiber.Fiber<void> | undefined = undefined
  private until = Number.POSITIVE_INFINITY

  constructor(clock: Clock.Clock, fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>) {
    this.clock = clock
    this.fork = fork
  }

  /** Watches a run, until it is removed. */
  add(watch: Watch): void {
    this.watches.add(watch)
    watch.onProceed = () => this.look(watch)
    this.look(watch)
  }

  remove(watch: Watch): void {
    this.watches.delete(watch)
    watch.onProceed = undefined
    if (this.watches.size === 0) this.wakeAt(monotonic(this.clock) + linger)
  }

  /** Watches nobody any more. */
  close(): void {
    this.watches.clear()
    this.sleep?.interruptUnsafe()
    this.until = Number.POSITIVE_INFINITY
  }

  private look(watch: Watch): void {
    const now = monotonic(this.clock)
    this.wakeAt(now + watch.left(now))
  }

  /** Sees to it that nobody sleeps longer than this. */
  private wakeAt(until: number): void {
    if (until >= this.until) return
    this.until = until
    this.sleep?.interruptUnsafe()
    this.sleep = this.fork(this.watching)
  }

  private readonly watching: Effect.Effect<void> = Effect.suspend(() => {
    const left = this.until - monotonic(this.clock)
    // whole milliseconds: a sleep for a rounding error's worth of time ends before time has moved
    return left <= 0 ? this.awake : Effect.flatMap(Effect.sleep(Duration.millis(Math.ceil(left))), () => this.awake)
  })

  private readonly awake: Effect.Effect<void> = Effect.suspend(() => {
    const now = monotonic(this.clock)
    // the end of a run may be the beginning of another: how long to sleep is told when all have been looked at
    this.until = Number.NEGATIVE_INFINITY
    for (const watch of this.watches) watch.check(now)
    let until = Number.POSITIVE_INFINITY
    for (const watch of this.watches) until = Math.min(until, now + watch.left(now))
    this.until = until
    return until === Number.POSITIVE_INFINITY ? Effect.void : this.watching
  })
}
