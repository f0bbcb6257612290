/**
 * A provider made of async functions.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { none } from "../Capabilities.ts"
import type { ContentBlock } from "../Content.ts"
import { toText } from "../Content.ts"
import { fromReason, StartFailed, SubagentError } from "../SubagentError.ts"
import type { ChildSession, PlacedRequest, PromiseOptions, SubagentProvider } from "../SubagentProvider.ts"
import { describeUnknown } from "./describe.ts"
import { promised, promisedTurn } from "./promised.ts"

/** The provider. */
export const promisedProvider = <Session>(options: PromiseOptions<Session>): SubagentProvider => ({
  name: options.name,
  capabilities: { ...none, ...options.capabilities },
  inheritsContext: options.inheritsContext ?? false,
  start: (placed) => start(options, placed)
})

const start = <Session>(
  options: PromiseOptions<Session>,
  placed: PlacedRequest
): Effect.Effect<ChildSession, SubagentError, Scope.Scope> => {
  const { close, name, open } = options
  // without `open` there is no session, and its type says so
  if (open === undefined) return Effect.succeed(sessionOf(options, placed, undefined as Session))
  let closeIt: Effect.Effect<void> = Effect.void
  const opening = promised((signal) =>
    Promise.resolve(open(placed, signal)).then((session) => {
      // noted at once: one that opens for a start that has been interrupted meanwhile is closed as well
      if (close !== undefined) closeIt = closing(close, session)
      return session
    })
  )
  return Effect.addFinalizer(() => closeIt).pipe(
    Effect.andThen(opening),
    Effect.mapBoth({
      onFailure: (thrown) =>
        thrown instanceof SubagentError
          ? thrown
          : fromReason(new StartFailed({ provider: name, detail: describeUnknown(thrown) })),
      onSuccess: (session) => sessionOf(options, placed, session)
    })
  )
}

const sessionOf = <Session>(
  options: PromiseOptions<Session>,
  placed: PlacedRequest,
  session: Session
): ChildSession => {
  const turn = (prompt: ReadonlyArray<ContentBlock>) =>
    promisedTurn({
      kind: "transport",
      agentOptions: placed.agentOptions,
      prompt: toText(prompt),
      lineage: placed.lineage,
      emit: placed.emit,
      run: (call) => options.run({ ...call, session, request: placed })
    })
  return { turn: turn(placed.prompt), ...(options.canResume === true && { resumeTurn: turn }) }
}

/** A session that can't be closed is the provider's fault, which the seam announces. */
const closing = <Session>(close: (session: Session) => unknown, session: Session): Effect.Effect<void> =>
  Effect.asVoid(Effect.orDie(promised(() => close(session))))
