/**
 * What crosses the seam as plain data, made nobody else's.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"

/** A frozen copy of plain data, all the way down. What is no plain data is kept as it is. */
export const frozen = <A>(value: A): A => {
  if (!Array.isArray(value) && !isPlain(value)) return value
  const copied = Array.isArray(value)
    ? value.map(frozen)
    : Object.fromEntries(Object.entries(value).map(([key, each]) => [key, frozen(each)]))
  return Object.freeze(copied) as A
}

const isPlain = (value: unknown): value is object => {
  if (!Predicate.isObject(value)) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
