/** A process of the benchmark: measures one contestant, a step for each message it is sent. */
import type { Figures, Measure, MeasureName, Scale } from "./measures.ts"
import { type ContestantName, open, type Opened } from "./open.ts"

export type Step =
  | { readonly open: ContestantName; readonly measure: MeasureName; readonly scale: Scale }
  | "prepare"
  | "sample"
export type Answer = { readonly figures: Figures } | { readonly error: string } | { readonly done: true }

let opened: Opened
let measure: Measure

const take = async (step: Step): Promise<Answer> => {
  if (step === "sample") return { figures: await measure.sample() }
  if (step === "prepare") {
    await measure.prepare()
  } else {
    opened = await open(step.open)
    measure = opened.measure(step.measure, step.scale)
  }
  return { done: true }
}

process.on("message", (step: Step) => {
  void take(step)
    .catch((error: unknown): Answer => ({
      error: error instanceof Error ? (error.stack ?? error.message) : String(error)
    }))
    .then((answer) => process.send!(answer))
})
