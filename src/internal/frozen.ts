/**
 * What crosses the seam as plain data, made nobody else's.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"

/** A frozen copy of plain data, all the way down. What is no plain data is kept as it is. */
export const frozen = <A>(value: A): A => {
  if (!Array.isArray(value) && !isPlain(value)) return value
  return Object.freeze(Array.isArray(value) ? value.map(frozen) : copyOf(value)) as A
}

const copyOf = (value: object): object => {
  const copied: Record<string, unknown> = { ...value }
  for (const key of Object.keys(copied)) {
    const each = copied[key]
    if (typeof each === "object") copied[key] = frozen(each)
  }
  return copied
}

const isPlain = (value: unknown): value is object => {
  if (!Predicate.isObject(value)) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
