/**
 * Runs the benchmark's processes. Each contestant has one of its own, so that nobody profits from what the compiler
 * learnt of another; they take turns, so that the noise of a busy machine falls on all alike.
 */
import { type ChildProcess, fork } from "node:child_process"
import * as path from "node:path"
import { full, type Figures, type MeasureName } from "./measures.ts"
import type { Answer, Step } from "./measuring.ts"
import type { ContestantName } from "./open.ts"
import { medians, type Round } from "./table.ts"

const script = path.join(import.meta.dirname, "measuring.ts")

const ask = (child: ChildProcess, step: Step): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const over = (code: number | null) => reject(new Error(`a process of the benchmark ended with ${code}`))
    child.once("exit", over)
    child.once("message", (answer: Answer) => {
      child.off("exit", over)
      if ("error" in answer) reject(new Error(answer.error))
      else resolve(answer)
    })
    child.send(step)
  })

const figuresOf = (answer: Answer): Figures => ("figures" in answer ? answer.figures : {})

/** One round of a measure: fresh processes, each warmed up, then sampled in turn; the medians of the samples. */
export const round = async (
  measure: MeasureName,
  who: ReadonlyArray<ContestantName>,
  samples: number
): Promise<Round> => {
  const children = who.map((name) => ({
    name,
    samples: [] as Array<Figures>,
    child: fork(script, {
      execArgv: [
        "--conditions=effect-subagent-source",
        "--max-old-space-size=4096",
        "--disable-warning=ExperimentalWarning"
      ]
    })
  }))
  try {
    for (const { child, name } of children) {
      await ask(child, { open: name, measure, scale: full })
      await ask(child, "prepare")
    }
    for (let i = 0; i < samples; i++) {
      for (const { child, samples } of children) samples.push(figuresOf(await ask(child, "sample")))
    }
    return Object.fromEntries(children.map(({ name, samples }) => [name, medians(samples)]))
  } finally {
    for (const { child } of children) child.kill("SIGKILL")
  }
}
