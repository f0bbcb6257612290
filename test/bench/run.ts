/**
 * `npm run bench`: what the library costs beside its floors. Options: `--rounds N` (5), `--row NAME` (as often as you
 * like; all rows without it), `--samples N` in each round (3), `--write` (into README and docs/performance.md).
 */
import { parseArgs } from "node:util"
import { round } from "./crew.ts"
import type { MeasureName } from "./measures.ts"
import type { ContestantName } from "./open.ts"
import { figuresOf, measureOf, rows } from "./rows.ts"
import { resultOf, type Round, tableOf, together } from "./table.ts"

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    samples: { type: "string", default: "3" },
    row: { type: "string", multiple: true, default: [] },
    write: { type: "boolean", default: false }
  }
})
const names = rows.map(({ name }) => name)
const unknown = values.row.filter((name) => !names.includes(name))
if (unknown.length > 0) throw new Error(`there is no row ${unknown.join(", ")}; there are ${names.join(", ")}`)
const chosen = values.row.length === 0 ? rows : rows.filter(({ name }) => values.row.includes(name))

/** Who is measured, by measure. */
const measured = new Map<MeasureName, Set<ContestantName>>()
for (const [who, figure] of chosen.flatMap(figuresOf)) {
  const measure = measureOf[figure]
  measured.set(measure, (measured.get(measure) ?? new Set()).add(who))
}
const rounds: Array<Round> = []
for (let i = 1; i <= Number(values.rounds); i++) {
  let figures: Round = {}
  for (const [measure, who] of measured) {
    console.error(`round ${i} of ${values.rounds}: ${measure} of ${[...who].join(", ")}`)
    figures = together(figures, await round(measure, [...who], Number(values.samples)))
  }
  rounds.push(figures)
}
console.log(tableOf(chosen.map((row) => resultOf(row, rounds))))
