/** The physical limit of a scoped run on Effect: a scope, a deferred and a fiber, and nothing else. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import { type MakeContestant, streamChunk } from "../Contestant.ts"
import { childAnswer, hostLoop } from "../gate.ts"

export const makePlain: MakeContestant = (gate) =>
  Effect.sync(() => {
    const start = Effect.fnUntraced(function* (prompt: string) {
      const scope = yield* Scope.make()
      const result = yield* Deferred.make<string>()
      const turn = Effect.map(gate.pass, () => childAnswer(prompt))
      yield* Effect.forkIn(Deferred.into(turn, result), scope, { startImmediately: true })
      return { result: Deferred.await(result), release: Scope.close(scope, Exit.void) }
    })
    const providers = new Map([["plain", start]])
    const child = Effect.fnUntraced(function* (prompt: string) {
      const run = yield* providers.get("plain")!(prompt)
      return yield* Effect.ensuring(run.result, run.release)
    })
    return {
      child,
      delegation: (prompt) =>
        hostLoop(gate, prompt, (toolArguments) => child((JSON.parse(toolArguments) as { prompt: string }).prompt)),
      signalled: (prompt, signal) => Effect.runPromise(child(prompt), { signal }),
      // a bare queue, whose reader takes whatever has arrived
      stream: (items) =>
        Effect.scoped(
          Effect.gen(function* () {
            const queue = yield* Queue.unbounded<{ readonly text: string }>()
            yield* Effect.forkScoped(
              Effect.gen(function* () {
                for (let i = 0; i < items; i++) {
                  yield* Queue.offer(queue, { text: "x" })
                  if (i % streamChunk === streamChunk - 1) yield* Effect.yieldNow
                }
              })
            )
            let seen = 0
            while (seen < items) seen += (yield* Queue.takeAll(queue)).length
            return seen
          })
        )
    }
  })
