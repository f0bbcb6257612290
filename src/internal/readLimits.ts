/**
 * The limits of one run: how they are asked for, and what follows from them and from those above.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import type { RunLimits } from "../Limits.ts"
import type { Bounds } from "../SubagentRequest.ts"
import { countFrom, durationFrom } from "./figures.ts"

const positive: Schema.Codec<number> = Schema.Finite.check(Schema.makeFilter((n) => n > 0 || "Expected more than 0"))

/** The fields that a request, a tool's options and a host's limits have in common. */
export const limitFields = {
  startTimeout: Schema.optional(durationFrom(1)),
  timeout: Schema.optional(durationFrom(1)),
  idleTimeout: Schema.optional(durationFrom(1)),
  maxTurns: Schema.optional(countFrom(1)),
  maxTokens: Schema.optional(countFrom(1)),
  maxRuns: Schema.optional(countFrom(0))
}

/** Limits as figures, where they were kept. */
export const BoundsOf: Schema.Codec<Bounds> = Schema.Struct({
  startTimeout: Schema.optionalKey(positive),
  timeout: Schema.optionalKey(positive),
  idleTimeout: Schema.optionalKey(positive),
  maxTurns: Schema.optionalKey(countFrom(1)),
  maxTokens: Schema.optionalKey(countFrom(1)),
  maxRuns: Schema.optionalKey(countFrom(0))
})

const durations = ["startTimeout", "timeout", "idleTimeout"] as const

const counts = ["maxTurns", "maxTokens", "maxRuns"] as const

/** Limits as figures, durations in milliseconds; nothing, if there are none. */
export const boundsOf = (limits: RunLimits): Bounds | undefined => {
  const bounds: { -readonly [K in keyof Bounds]: Bounds[K] } = {}
  let some = false
  for (const name of durations) {
    const limit = limits[name]
    if (limit === undefined) continue
    bounds[name] = Duration.toMillis(limit)
    some = true
  }
  for (const name of counts) {
    const limit = limits[name]
    if (limit === undefined) continue
    bounds[name] = limit
    some = true
  }
  return some ? Object.freeze(bounds) : undefined
}

/** Of the limits that held for a child before, those that it was asked with. What holds anyway nobody need have asked for. */
export const askedBefore = (above: Bounds | undefined, before: Bounds | undefined): Bounds | undefined => {
  if (above === undefined || before === undefined) return before
  const bounds: { -readonly [K in keyof Bounds]: Bounds[K] } = {}
  for (const name of [...durations, ...counts]) {
    const limit = before[name]
    if (limit !== undefined && limit !== above[name]) bounds[name] = limit
  }
  return bounds
}

/** Of two limits of a kind, the tighter one holds. */
export const tightest = (above: Bounds | undefined, asked: Bounds | undefined): Bounds | undefined => {
  if (above === undefined || asked === undefined) return above ?? asked
  const bounds: { -readonly [K in keyof Bounds]: Bounds[K] } = { ...above }
  for (const name of [...durations, ...counts]) {
    const limit = asked[name]
    if (limit !== undefined) bounds[name] = Math.min(limit, above[name] ?? limit)
  }
  return Object.freeze(bounds)
}
