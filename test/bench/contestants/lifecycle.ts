/**
 * Plain, and what a service of this kind can't leave out: a scope below the parent's, an id, a table of what is live, two
 * events to one subscriber, and tool arguments that are decoded.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as PubSub from "effect/PubSub"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { type MakeContestant, streamChunk } from "../Contestant.ts"
import { childAnswer, hostLoop } from "../gate.ts"

const decodeArguments = Schema.decodeUnknownEffect(
  Schema.fromJsonString(Schema.Struct({ description: Schema.String, prompt: Schema.String }))
)

type Event =
  | { readonly type: "started"; readonly id: string }
  | { readonly type: "ended"; readonly id: string; readonly exit: Exit.Exit<unknown, unknown> }
  | { readonly type: "item"; readonly id: string; readonly text: string }

export const makeLifecycle: MakeContestant = (gate) => makeLifecycleWith(1)(gate)

/** The same with so many subscribers. */
export const makeLifecycleWith = (subscribers: number): MakeContestant =>
  Effect.fnUntraced(function* (gate) {
    const parent = yield* Effect.scope
    const events = yield* PubSub.unbounded<Event>()
    const seen = { lives: 0, items: 0 }
    for (let i = 0; i < subscribers; i++) {
      const subscription = yield* PubSub.subscribe(events)
      yield* Effect.forkScoped(
        Effect.gen(function* () {
          for (;;) {
            for (const { type } of yield* PubSub.takeAll(subscription)) {
              seen[type === "item" ? "items" : "lives"]++
            }
          }
        })
      )
    }
    const live = new Map<string, unknown>()
    let last = 0
    const start = Effect.fnUntraced(function* (prompt: string) {
      const id = `run_${++last}`
      const scope = yield* Scope.fork(parent)
      const result = yield* Deferred.make<string>()
      yield* PubSub.publish(events, { type: "started", id })
      yield* Scope.addFinalizerExit(scope, (exit) => {
        live.delete(id)
        return PubSub.publish(events, { type: "ended", id, exit })
      })
      const turn = Effect.map(gate.pass, () => childAnswer(prompt))
      yield* Effect.forkIn(Deferred.into(turn, result), scope, { startImmediately: true })
      const run = {
        id,
        result: Deferred.await(result),
        release: (exit: Exit.Exit<unknown, unknown>) => Scope.close(scope, exit)
      }
      live.set(id, run)
      return run
    })
    const providers = new Map([["lifecycle", start]])
    const child = Effect.fnUntraced(function* (prompt: string) {
      const run = yield* providers.get("lifecycle")!(prompt)
      return yield* Effect.onExit(run.result, run.release)
    })
    return {
      child,
      delegation: (prompt) =>
        hostLoop(gate, prompt, (toolArguments) =>
          Effect.flatMap(decodeArguments(toolArguments), ({ prompt }) => child(prompt))
        ),
      signalled: (prompt, signal) => Effect.runPromise(child(prompt), { signal }),
      stream: (count) =>
        Effect.gen(function* () {
          const before = seen.items
          for (let i = 0; i < count; i++) {
            yield* PubSub.publish(events, { type: "item", id: "run", text: "x" })
            if (i % streamChunk === streamChunk - 1) yield* Effect.yieldNow
          }
          while (seen.items - before < count) yield* Effect.yieldNow
          return seen.items - before
        }),
      heard: () => seen.lives
    }
  })
