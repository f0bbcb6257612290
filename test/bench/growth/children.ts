/** Children at once: what each costs, and what it costs to interrupt each. */
import * as Effect from "effect/Effect"
import { costOf, runMany, suspend } from "../measures.ts"
import { type ContestantName, open } from "../open.ts"
import type { At, Growth } from "./Growth.ts"

const opened = (who: ContestantName) =>
  Effect.acquireRelease(
    Effect.promise(() => open(who)),
    ({ close }) => Effect.promise(close)
  )

const running =
  (who: ContestantName): At =>
  (count, scale) =>
    Effect.flatMap(opened(who), ({ contestant, gate }) =>
      Effect.promise(async () => {
        // a few of them after each other: the clock is too coarse for less
        const runs = Math.max(count, 100)
        const batch = () => runMany("child", contestant.child!, gate, runs, count)
        return ((await costOf(batch, scale)) * 1000) / runs
      })
    )

const interrupting =
  (who: ContestantName): At =>
  (count, scale) =>
    Effect.flatMap(opened(who), ({ contestant, gate }) =>
      Effect.promise(async () => {
        gate.pace = "never"
        const batch = async () => {
          const { cancel } = await suspend(contestant.child!, gate, count, { ...scale, collections: 0 })
          return { cpu: (cancel * count) / 1000 }
        }
        return ((await costOf(batch, scale)) * 1000) / count
      })
    )

const sizes = [1, 10, 100, 1000, 10_000]

export const children: Growth = {
  title: "Children at once, each",
  of: "children",
  unit: "µs",
  sizes,
  lines: { ours: running("seam"), lifecycle: running("lifecycle"), plain: running("plain") }
}

export const interrupted: Growth = {
  title: "Interrupting live children, each",
  of: "children",
  unit: "µs",
  sizes,
  lines: { ours: interrupting("seam"), lifecycle: interrupting("lifecycle"), plain: interrupting("plain") }
}
