/**
 * The way of a start, and of a resume, past the limits: to its place, and into the accounts.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { AbortedBeforeStart, fromReason, type SubagentError, type SubagentErrorReason } from "../SubagentError.ts"
import { standing } from "./keeper.ts"
import type { Admission } from "./limiter.ts"
import type { Run } from "./runs.ts"
import type { Waiting } from "./waiting.ts"

/** Who wants to go past the limits, and how it waits. */
export interface Entering {
  readonly admission: Admission
  readonly waiting: Waiting
  /** What calls it off, beside its signal and the registry. */
  readonly by: ReadonlyArray<Set<() => void> | undefined>
  /** The run that waits for it. */
  readonly owner: Run | undefined
  readonly restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** Why it can't go on after it has waited; nothing, if it can. */
  readonly refusal: () => SubagentErrorReason | undefined
  /** It has come to nothing. */
  readonly onRefused: () => void
}

/** Goes on when there is a place, with what it holds; or holds nothing. Not to be interrupted but where it waits. */
export const enter = <A>(
  { admission, by, onRefused, owner, refusal, restore, waiting }: Entering,
  go: () => Effect.Effect<A, SubagentError>
): Effect.Effect<A, SubagentError> => {
  const comeToNothing = (exit: Exit.Exit<never, SubagentError>): Effect.Effect<never, SubagentError> => {
    admission.leave()
    onRefused()
    return exit
  }
  const goOn = (): Effect.Effect<A, SubagentError> => {
    const reason = admission.enter()
    return reason === undefined ? go() : comeToNothing(Exit.fail(fromReason(reason)))
  }
  let granted: Deferred.Deferred<void> | undefined = undefined
  const full = admission.ask(() => void Deferred.doneUnsafe(granted!, Exit.void))
  if (full !== undefined) return comeToNothing(Exit.fail(fromReason(full)))
  if (admission.hasPlace) return goOn()
  granted = Deferred.makeUnsafe()
  // a child that waits here has nothing to say, and it is not its parent's fault
  const waited = standing(owner, "silence", restore(waiting.until(Deferred.await(granted), by)))
  return Effect.flatMap(Effect.exit(waited), (exit) => {
    waiting.isOver()
    if (Exit.isFailure(exit)) return comeToNothing(Exit.failCause(exit.cause))
    const { provider } = admission.asking
    const reason = refusal() ?? (admission.hasPlace ? undefined : new AbortedBeforeStart({ provider }))
    return reason === undefined ? goOn() : comeToNothing(Exit.fail(fromReason(reason)))
  })
}
