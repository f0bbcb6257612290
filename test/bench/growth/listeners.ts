/** Listeners of events: what a child costs that all of them hear of. */
import { Agent, Subagents } from "effect-subagent"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeLifecycleWith } from "../contestants/lifecycle.ts"
import { answering, childOf } from "../contestants/seam.ts"
import type { Scenario } from "../Contestant.ts"
import { type Gate, makeGate } from "../gate.ts"
import { check, costOf, runMany, type Scale, timed } from "../measures.ts"
import type { At, Growth } from "./Growth.ts"

const runs = 50

/** What a child costs, when it is seen to that all have heard of it. */
const measure = (child: Scenario, heard: () => number, gate: Gate, count: number, scale: Scale) =>
  Effect.promise(async () => {
    let events = heard()
    const batch = () => {
      events += runs * 2 * count
      return timed(async () => {
        await runMany("child", child, gate, runs)
        for (let i = 0; i < 10_000 && heard() < events; i++) await Effect.runPromise(Effect.yieldNow)
        check(heard() === events, () => `${count} listeners heard ${heard()} of ${events} events`)
      })
    }
    return ((await costOf(batch, scale)) * 1000) / runs
  })

const ours: At = Effect.fnUntraced(function* (count, scale) {
  const gate = makeGate()
  const seam = Context.get(yield* Layer.build(Subagents.layer), Subagents.Subagents)
  yield* seam.register(answering(gate))
  let heard = 0
  for (let i = 0; i < count; i++) {
    yield* seam.on(({ type }) =>
      Effect.sync(() => {
        if (type === "subagent/start" || type === "subagent/end") heard++
      })
    )
  }
  const parent = yield* Agent.root({ cwd: process.cwd() })
  return yield* measure(childOf(seam, "answering", parent), () => heard, gate, count, scale)
})

const lifecycle: At = Effect.fnUntraced(function* (count, scale) {
  const gate = makeGate()
  const { child, heard } = yield* makeLifecycleWith(count)(gate)
  return yield* measure(child!, heard!, gate, count, scale)
})

export const listeners: Growth = {
  title: "A child, by how many listen to the events",
  of: "listeners",
  unit: "µs",
  sizes: [1, 2, 5, 10, 20, 50],
  lines: { ours, lifecycle }
}
