/** A process of the benchmark: measures one contestant, a step for each message it is sent. */
import * as Effect from "effect/Effect"
import type { GrowthName } from "./growth/all.ts"
import type { Growth } from "./growth/Growth.ts"
import type { Figures, Measure, MeasureName, Scale } from "./measures.ts"
import { type ContestantName, open } from "./open.ts"

export type Step =
  | { readonly open: ContestantName; readonly measure: MeasureName; readonly scale: Scale }
  | "prepare"
  | "sample"
  | { readonly grow: GrowthName; readonly line: string; readonly size: number; readonly scale: Scale }
export type Answer = { readonly figures: Figures } | { readonly error: string }

let measure: Measure

const take = async (step: Step): Promise<Figures> => {
  if (step === "sample") return measure.sample()
  if (step === "prepare") {
    await measure.prepare()
  } else if ("grow" in step) {
    const { growths } = await import("./growth/all.ts")
    const growth: Growth = growths[step.grow]
    return { cost: await Effect.runPromise(Effect.scoped(growth.lines[step.line]!(step.size, step.scale))) }
  } else {
    measure = (await open(step.open)).measure(step.measure, step.scale)
  }
  return {}
}

process.on("message", (step: Step) => {
  void take(step)
    .then(
      (figures): Answer => ({ figures }),
      (error: unknown): Answer => ({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    )
    .then((answer) => process.send!(answer))
})
