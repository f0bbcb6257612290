/** Who is measured: ours, and the floors that ours is compared with. All of them do the same work. */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Gate } from "./gate.ts"

/** Takes a prompt, gives the answer. */
export type Scenario = (prompt: string) => Effect.Effect<string, unknown>

export interface Contestant {
  /** One child, directly: start, one model call, result, release. */
  readonly child?: Scenario
  /** A parent whose model calls the tool, a child that answers, and the parent's answer. */
  readonly delegation?: Scenario
  /** A child that is stopped by a signal. */
  readonly signalled?: (prompt: string, signal: AbortSignal) => Promise<unknown>
  /** A child that reports so many items to one subscriber. Gives how many it saw. */
  readonly stream?: (items: number) => Effect.Effect<number, unknown>
  /** A turn of an agent in a process, on a session of its own, that brings so many updates. Gives how many it saw. */
  readonly turn?: (updates: number) => Promise<number>
  /** The same with a consumer that is slow. Gives how many have come, whether or not it saw them all. */
  readonly slowTurn?: (updates: number) => Promise<number>
  /** How many events of lives the one listener has heard. */
  readonly heard?: () => number
}

/** A contestant lives as long as the scope. */
export type MakeContestant = (gate: Gate) => Effect.Effect<Contestant, unknown, Scope.Scope>

/** A producer gives way after so many items, as one that reads from a network does. */
export const streamChunk = 100
