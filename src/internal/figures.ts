/**
 * The figures that a host or a caller gives: counts and durations that really are some.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"

/** A whole number that a program can count to. */
export const countFrom = (least: number): Schema.Codec<number> =>
  Schema.Number.check(
    Schema.makeFilter(
      (n) => (Number.isSafeInteger(n) && n >= least && !Object.is(n, -0)) || `Expected a whole number from ${least}`
    )
  )

const units = ["weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"]

/** `Duration` takes NaN for zero, and reads objects without a look at keys that it does not know, or at types. */
const isPlain = (u: unknown): boolean => {
  if (!Predicate.isObjectOrArray(u) || Duration.isDuration(u)) return !Number.isNaN(u)
  if (Array.isArray(u)) return !u.some(Number.isNaN)
  const amounts = units.filter((unit) => unit in u).map((unit) => u[unit])
  const isNumeric = amounts.every(
    (amount) => amount === undefined || (Predicate.isNumber(amount) && !Number.isNaN(amount))
  )
  return amounts.length > 0 && isNumeric && Object.keys(u).every((key) => units.includes(key))
}

/** How long something may take, at least `least` milliseconds, in any form that `Duration` reads. */
export const durationFrom = (least: number): Schema.Codec<Duration.Input> =>
  Schema.declare(
    (u): u is Duration.Input =>
      Option.match(Duration.fromInput(u as Duration.Input), {
        onNone: () => false,
        onSome: (duration) => Duration.isFinite(duration) && Duration.toMillis(duration) >= least && isPlain(u)
      }),
    { expected: least > 0 ? `a finite duration of at least ${least} ms` : "a finite duration" }
  )
