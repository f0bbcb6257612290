/**
 * One publisher, any number of subscribers, and nobody waits for anybody: each subscriber has a sliding queue of its
 * own, and one that is too slow loses its oldest items.
 *
 * @since 0.1.0
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"

/** The publisher's side. */
export interface FanOut<A> {
  readonly publish: (item: A) => void
  /** Ends every queue after the items it still has. */
  readonly end: () => void
  /** A queue that begins with `replay` and goes on until `end`; it leaves with the scope. */
  readonly subscribe: (replay: ReadonlyArray<A>) => Effect.Effect<Queue.Dequeue<A, Cause.Done>, never, Scope.Scope>
}

/** A fan-out whose queues hold up to `capacity` items each. */
export const make = <A>(capacity: number): FanOut<A> => {
  const queues = new Set<Queue.Queue<A, Cause.Done>>()
  let ended = false
  return {
    publish: (item) => {
      for (const queue of queues) Queue.offerUnsafe(queue, item)
    },
    end: () => {
      ended = true
      for (const queue of queues) Queue.endUnsafe(queue)
    },
    subscribe: (replay) =>
      Effect.acquireRelease(
        Effect.map(Queue.sliding<A, Cause.Done>(capacity), (queue) => {
          Queue.offerAllUnsafe(queue, replay)
          if (ended) Queue.endUnsafe(queue)
          queues.add(queue)
          return queue
        }),
        (queue) => {
          queues.delete(queue)
          return Queue.shutdown(queue)
        }
      )
  }
}
