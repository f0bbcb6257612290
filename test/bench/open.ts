/** Makes a contestant and a measure of it, in this process. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Contestant, MakeContestant } from "./Contestant.ts"
import { makeAgents } from "./contestants/agents.ts"
import { makeLean } from "./contestants/lean.ts"
import { makeLifecycle } from "./contestants/lifecycle.ts"
import { makePlain } from "./contestants/plain.ts"
import { makeOurs } from "./contestants/seam.ts"
import { type Gate, makeGate } from "./gate.ts"
import { type Measure, type MeasureName, measures, type Scale } from "./measures.ts"

export const contestants = {
  plain: makePlain,
  lifecycle: makeLifecycle,
  lean: makeLean,
  seam: makeOurs,
  agents: makeAgents
} satisfies Record<string, MakeContestant>
export type ContestantName = keyof typeof contestants

export interface Opened {
  readonly contestant: Contestant
  readonly gate: Gate
  readonly measure: (name: MeasureName, scale: Scale) => Measure
  readonly close: () => Promise<void>
}

export const open = async (name: ContestantName): Promise<Opened> => {
  const gate = makeGate()
  const scope = Scope.makeUnsafe()
  const contestant = await Effect.runPromise(Scope.provide(contestants[name](gate), scope))
  return {
    contestant,
    gate,
    measure: (measure, scale) => measures[measure](contestant, gate, scale),
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
