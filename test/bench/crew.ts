/**
 * Runs the benchmark's processes. Each contestant has one of its own, so that nobody profits from what the compiler
 * learnt of another; they take turns, so that the noise of a busy machine falls on all alike.
 */
import { type ChildProcess, fork } from "node:child_process"
import * as path from "node:path"
import { type GrowthName, growths } from "./growth/all.ts"
import type { Growth } from "./growth/Growth.ts"
import { full, type Figures, type MeasureName } from "./measures.ts"
import type { Answer, Step } from "./measuring.ts"
import type { ContestantName } from "./open.ts"
import { medians, type Round } from "./table.ts"

const startProcess = (): ChildProcess =>
  fork(path.join(import.meta.dirname, "measuring.ts"), {
    execArgv: [
      "--conditions=effect-subagent-source",
      "--max-old-space-size=4096",
      "--disable-warning=ExperimentalWarning"
    ]
  })

const ask = (child: ChildProcess, step: Step): Promise<Figures> =>
  new Promise((resolve, reject) => {
    const over = (code: number | null) => reject(new Error(`a process of the benchmark ended with ${code}`))
    child.once("exit", over)
    child.once("message", (answer: Answer) => {
      child.off("exit", over)
      if ("error" in answer) reject(new Error(answer.error))
      else resolve(answer.figures)
    })
    child.send(step)
  })

/** One round of a measure: fresh processes, each warmed up, then sampled in turn; the medians of the samples. */
export const round = async (
  measure: MeasureName,
  who: ReadonlyArray<ContestantName>,
  samples: number
): Promise<Round> => {
  const children = who.map((name) => ({ name, found: [] as Array<Figures>, child: startProcess() }))
  try {
    for (const { child, name } of children) {
      await ask(child, { open: name, measure, scale: full })
      await ask(child, "prepare")
    }
    for (let i = 0; i < samples; i++) {
      for (const { child, found } of children) found.push(await ask(child, "sample"))
    }
    return Object.fromEntries(children.map(({ found, name }) => [name, medians(found)]))
  } finally {
    for (const { child } of children) child.kill("SIGKILL")
  }
}

/** The curves of a growth, by name: a cost for each size. */
export type Curves = { readonly [line: string]: ReadonlyArray<number> }

/** Measures how a cost grows: each line in a process of its own, all of them at one size before any at the next. */
export const grow = async (name: GrowthName, rounds: number): Promise<Curves> => {
  const growth: Growth = growths[name]
  const scale = { ...full, warm: 250, window: 150 }
  const children = Object.keys(growth.lines).map((line) => ({
    line,
    curve: [] as Array<number>,
    child: startProcess()
  }))
  try {
    const middle = growth.sizes[growth.sizes.length >> 1]!
    for (const { child, line } of children) {
      // so that the first size is not the one that pays for getting warm
      await ask(child, { grow: name, line, size: middle, scale: full })
    }
    for (const size of growth.sizes) {
      const found = children.map((): Array<number> => [])
      for (let i = 0; i < rounds; i++) {
        for (const [k, { child, line }] of children.entries()) {
          found[k]!.push((await ask(child, { grow: name, line, size, scale }))["cost"]!)
        }
      }
      // the least of the rounds: what else a busy machine does can only add to it
      children.forEach(({ curve }, k) => curve.push(Math.min(...found[k]!)))
    }
    return Object.fromEntries(children.map(({ curve, line }) => [line, curve]))
  } finally {
    for (const { child } of children) child.kill("SIGKILL")
  }
}
