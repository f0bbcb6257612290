/** Makes a contestant and a measure of it, in this process. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Contestant, MakeContestant } from "./Contestant.ts"
import { type Gate, makeGate } from "./gate.ts"
import { type Measure, type MeasureName, measures, type Scale } from "./measures.ts"

/** Loaded one by one: what a contestant does not use is not in its memory. */
export const contestants = {
  plain: async () => (await import("./contestants/plain.ts")).makePlain,
  lifecycle: async () => (await import("./contestants/lifecycle.ts")).makeLifecycle,
  lean: async () => (await import("./contestants/lean.ts")).makeLean,
  seam: async () => (await import("./contestants/seam.ts")).makeOurs,
  limited: async () => (await import("./contestants/seam.ts")).makeLimited,
  scripted: async () => (await import("./contestants/scripted.ts")).makeScripted,
  agents: async () => (await import("./contestants/agents.ts")).makeAgents,
  limitedAgents: async () => (await import("./contestants/agents.ts")).makeLimitedAgents,
  acpRaw: async () => (await import("./contestants/acpRaw.ts")).makeAcpRaw,
  acpSdk: async () => (await import("./contestants/acpSdk.ts")).makeAcpSdk,
  acp: async () => (await import("./contestants/acp.ts")).makeAcp
} satisfies Record<string, () => Promise<MakeContestant>>
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
  const make = await contestants[name]()
  const contestant = await Effect.runPromise(Scope.provide(make(gate), scope))
  return {
    contestant,
    gate,
    measure: (measure, scale) => measures[measure](contestant, gate, scale),
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
