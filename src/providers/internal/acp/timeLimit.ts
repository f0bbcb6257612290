/**
 * A limit of time on waiting that is nearly always over long before it.
 *
 * One fiber watches over all who wait under one limit, and sleeps until the first of them could be late: so a wait that
 * is over in time costs no timer and no fiber of its own.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** Waits for it, as long as the limit at most; fails with what `late` gives if that is over. */
export type TimeLimit = <A, E>(awaited: Deferred.Deferred<A, E>, late: () => E) => Effect.Effect<A, E>

/** A limit for as long as the current scope is open. */
export const make = (limit: Duration.Duration): Effect.Effect<TimeLimit, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope): TimeLimit => {
    const limitMillis = Duration.toMillis(limit)
    // the oldest first
    const waits = new Set<{ readonly until: number; readonly isLate: () => void }>()
    let isWatched = false
    const watch = Effect.gen(function* () {
      for (const wait of waits) {
        for (let left; (left = wait.until - (yield* now)) > 0 && waits.has(wait);) yield* Effect.sleep(left)
        if (waits.has(wait)) wait.isLate()
      }
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          isWatched = false
        })
      ),
      Effect.forkIn(scope)
    )
    return (awaited, late) =>
      Effect.flatMap(now, (now) => {
        const wait = {
          until: now + limitMillis,
          isLate: () => Deferred.doneUnsafe(awaited, Effect.failSync(late))
        }
        waits.add(wait)
        const over = Effect.ensuring(
          Deferred.await(awaited),
          Effect.sync(() => waits.delete(wait))
        )
        if (isWatched) return over
        isWatched = true
        return Effect.andThen(watch, over)
      })
  })

/** In milliseconds, and by a clock that nobody sets. */
const now = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)
