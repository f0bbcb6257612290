/**
 * The figures that a host or a caller gives: counts and durations that really are some.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/** A whole number that a program can count to. */
export const countFrom = (least: number): Schema.Codec<number> =>
  Schema.Number.check(
    Schema.makeFilter(
      (n) => (Number.isSafeInteger(n) && n >= least && !Object.is(n, -0)) || `Expected a whole number from ${least}`
    )
  )

/** How long something may take, at least `least` milliseconds, in any form that `Duration` reads. */
export const durationFrom = (least: number): Schema.Codec<Duration.Input> =>
  Schema.declare(
    (u): u is Duration.Input =>
      Option.match(Duration.fromInput(u as Duration.Input), {
        onNone: () => false,
        onSome: (duration) => Duration.isFinite(duration) && Duration.toMillis(duration) >= least
      }),
    { expected: least > 0 ? "a finite duration that is not zero" : "a finite duration" }
  )
