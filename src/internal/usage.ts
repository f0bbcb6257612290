/**
 * What a provider reports as usage, made a bill that can be added up.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import type { SubagentUsage } from "../SubagentResult.ts"

/** Whether it is a figure: anything else would spoil each sum that it goes into, if it could be added at all. */
export const isFigure = (n: unknown): n is number => Predicate.isNumber(n) && Number.isFinite(n) && n >= 0

/** A frozen copy of the figures in a report; nothing, if it has none. */
export const figuresIn = (report: object): SubagentUsage | undefined => {
  const figures = Object.entries(report).filter((entry) => isFigure(entry[1]))
  return figures.length === 0 ? undefined : Object.freeze(Object.fromEntries(figures))
}
