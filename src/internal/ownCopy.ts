/**
 * What a caller or a host gives, in whatever shape it keeps it.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"

/**
 * A copy of an object, and of what it inherits of these names: an instance of a class, or an object made from another
 * one, asks for no less than a plain one. Each field is read once, so that what is checked is what is used. What is no
 * object is given back.
 */
export const ownCopy = <A>(given: A, names: Iterable<string>): A => {
  if (!Predicate.isObject(given)) return given
  const copy: Record<string, unknown> = { ...given }
  for (const name of names) {
    if (name in given && !Object.hasOwn(copy, name)) copy[name] = given[name]
  }
  return copy as A
}
