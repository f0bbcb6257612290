/**
 * `npm run bench`: what the library costs beside its floors, or how that grows. Options: `--rounds N` (5), `--row NAME` (as
 * often as you like; all rows without it), `--samples N` in each round (3), `--growth` (the plots in place of the rows;
 * `--row` picks some), `--write` (into the docs; all rows only).
 */
import { parseArgs } from "node:util"
import { withEntries } from "../../scripts/size.ts"
import { grow, round } from "./crew.ts"
import { type GrowthName, growths } from "./growth/all.ts"
import type { MeasureName } from "./measures.ts"
import type { ContestantName } from "./open.ts"
import { tableOfPlot } from "./plot.ts"
import { figuresOf, isWeighed, measureOf, type Row, rows } from "./rows.ts"
import { weigh } from "./sizes.ts"
import { resultOf, type Result, type Round, shortOf, tableOf, together } from "./table.ts"
import { writePlot, writeTable } from "./write.ts"

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    samples: { type: "string", default: "3" },
    row: { type: "string", multiple: true, default: [] },
    growth: { type: "boolean", default: false },
    write: { type: "boolean", default: false }
  }
})
const count = Number(values.rounds)
const isChosen = (name: string): boolean => values.row.length === 0 || values.row.includes(name)

const check = (names: ReadonlyArray<string>): void => {
  const unknown = values.row.filter((name) => !names.includes(name))
  if (unknown.length > 0) throw new Error(`there is no row ${unknown.join(", ")}; there are ${names.join(", ")}`)
}

const measureRows = async (chosen: ReadonlyArray<Row>): Promise<ReadonlyArray<Result>> => {
  const figures = chosen.flatMap(figuresOf)
  const measured = new Map<MeasureName, Set<ContestantName>>()
  for (const figure of figures) {
    if (isWeighed(figure)) continue
    const measure = measureOf[figure[1]]
    measured.set(measure, (measured.get(measure) ?? new Set()).add(figure[0]))
  }
  const rounds: Array<Round> = []
  for (let i = 0; i < count; i++) {
    let found: Round = {}
    for (const [measure, who] of measured) {
      console.error(`round ${i + 1} of ${count}: ${measure} of ${[...who].join(", ")}`)
      found = together(found, await round(measure, [...who], Number(values.samples)))
    }
    rounds.push(found)
  }
  if (figures.some(isWeighed)) {
    await withEntries(async (entries) => {
      const next = await weigh(entries)
      for (let i = 0; i < count; i++) {
        console.error(`round ${i + 1} of ${count}: imports`)
        rounds[i] = together(rounds[i]!, next())
      }
    })
  }
  return chosen.map((row) => resultOf(row, rounds))
}

if (values.growth) {
  check(Object.keys(growths))
  for (const name of (Object.keys(growths) as ReadonlyArray<GrowthName>).filter(isChosen)) {
    console.error(`growth: ${name}`)
    const plot = { ...growths[name], curves: await grow(name, count) }
    console.log(`${plot.title}\n\n${tableOfPlot(plot)}\n`)
    if (values.write) writePlot(name, plot)
  }
} else {
  check(rows.map(({ name }) => name))
  if (values.write && values.row.length > 0) throw new Error("--write writes all rows, and --row measures some of them")
  const results = await measureRows(rows.filter(({ name }) => isChosen(name)))
  console.log(tableOf(results))
  if (values.write) writeTable(tableOf(results), shortOf(results))
}
