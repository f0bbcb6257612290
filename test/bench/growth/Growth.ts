/** How a cost grows with a size: what is measured, of whom, and at which sizes. */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Scale } from "../measures.ts"

/** Measures at one size, in the unit of the growth. What it needs lives as long as the scope. */
export type At = (size: number, scale: Scale) => Effect.Effect<number, unknown, Scope.Scope>

export interface Growth {
  readonly title: string
  /** What grows. */
  readonly of: string
  readonly unit: string
  readonly sizes: ReadonlyArray<number>
  /** The curves, ours first. */
  readonly lines: { readonly [name: string]: At }
}
