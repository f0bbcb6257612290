/**
 * `npm run bench`: what the library costs beside its floors. Options: `--rounds N` (5), `--row NAME` (as often as you
 * like; all rows without it), `--samples N` in each round (3), `--write` (into README and docs/performance.md).
 */
import { parseArgs } from "node:util"
import { withEntries } from "../../scripts/size.ts"
import { round } from "./crew.ts"
import type { MeasureName } from "./measures.ts"
import type { ContestantName } from "./open.ts"
import { figuresOf, isWeighed, measureOf, rows } from "./rows.ts"
import { weigh } from "./sizes.ts"
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

/** Who is measured, by measure. What is weighed takes turns of its own. */
const measured = new Map<MeasureName, Set<ContestantName>>()
for (const figure of chosen.flatMap(figuresOf)) {
  if (isWeighed(figure)) continue
  const measure = measureOf[figure[1]]
  measured.set(measure, (measured.get(measure) ?? new Set()).add(figure[0]))
}
const rounds: Array<Round> = []
for (let i = 0; i < Number(values.rounds); i++) {
  let figures: Round = {}
  for (const [measure, who] of measured) {
    console.error(`round ${i + 1} of ${values.rounds}: ${measure} of ${[...who].join(", ")}`)
    figures = together(figures, await round(measure, [...who], Number(values.samples)))
  }
  rounds.push(figures)
}
if (chosen.flatMap(figuresOf).some(isWeighed)) {
  await withEntries(async (entries) => {
    const next = await weigh(entries)
    for (let i = 0; i < rounds.length; i++) {
      console.error(`round ${i + 1} of ${values.rounds}: imports`)
      rounds[i] = together(rounds[i]!, next())
    }
  })
}
console.log(tableOf(chosen.map((row) => resultOf(row, rounds))))
