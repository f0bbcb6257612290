/**
 * A start, or a resume, that has to wait: for a place, for its provider. Whoever ends what it waits on behalf of calls it
 * off, and whoever closes the registry waits until what it had begun is gone.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/** Those that wait: how each is called off, and when it is over. */
export type AllWaiting = Map<() => void, Deferred.Deferred<void>>

/** One that may have to wait. */
export class Waiting {
  readonly callOff: () => void
  private isCalledOff = false
  /** Made for the first wait. */
  private calledOff: Deferred.Deferred<undefined> | undefined = undefined
  private readonly all: AllWaiting
  private over: Deferred.Deferred<void> | undefined = undefined

  constructor(all: AllWaiting) {
    this.all = all
    this.callOff = () => {
      this.isCalledOff = true
      if (this.calledOff !== undefined) Deferred.doneUnsafe(this.calledOff, Exit.succeed(undefined))
    }
  }

  /** Waits for something, and gives nothing if it is called off before, by one of these or by the registry. */
  until<A>(effect: Effect.Effect<A>, by: ReadonlyArray<Set<() => void> | undefined>): Effect.Effect<A | undefined> {
    return Effect.suspend(() => {
      if (this.over === undefined) {
        this.over = Deferred.makeUnsafe()
        this.all.set(this.callOff, this.over)
      }
      for (const callOffs of by) callOffs?.add(this.callOff)
      this.calledOff ??= Deferred.makeUnsafe()
      if (this.isCalledOff) this.callOff()
      return Effect.raceFirst(effect, Deferred.await(this.calledOff))
    }).pipe(
      Effect.onExit(() =>
        Effect.sync(() => {
          for (const callOffs of by) callOffs?.delete(this.callOff)
        })
      )
    )
  }

  /** Nothing is under way any more. */
  isOver(): void {
    if (this.over === undefined) return
    this.all.delete(this.callOff)
    Deferred.doneUnsafe(this.over, Exit.void)
    this.over = undefined
  }
}
