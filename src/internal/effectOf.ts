/**
 * What a function of a host's gave, where an effect is due.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"

/**
 * The effect, or a defect that says that it is none. A promise is heard out, so that its rejection is handled: the
 * compiler refuses an async function here, plain JavaScript does not.
 */
export const effectOf = <A, E, R>(given: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  if (Effect.isEffect(given)) return given
  if (Predicate.isPromiseLike(given)) (given as PromiseLike<unknown>).then(undefined, () => {})
  return Effect.die("it gave something that is not an effect")
}
