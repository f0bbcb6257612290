/** From the figures of all rounds to the table. */
import type { Figures } from "./measures.ts"
import type { Figure, Row } from "./rows.ts"

/** The figures of one round, by contestant. */
export type Round = { readonly [who: string]: Figures }

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The medians of several samples. */
export const medians = (samples: ReadonlyArray<Figures>): Figures =>
  Object.fromEntries(Object.keys(samples[0] ?? {}).map((name) => [name, median(samples.map((each) => each[name]!))]))

/** The figures of two measures of one round. */
export const together = (one: Round, other: Round): Round =>
  Object.fromEntries([...Object.keys(one), ...Object.keys(other)].map((who) => [who, { ...one[who], ...other[who] }]))

export interface Result {
  readonly row: Row
  readonly ours: number
  readonly floor: number
  /** The median of the rounds' ratios, which is what the noise of a busy machine leaves alone. */
  readonly ratio: number
}

export const resultOf = (row: Row, rounds: ReadonlyArray<Round>): Result => {
  const pairs = rounds.map((round) => {
    const read = ([who, figure]: Figure): number => round[who]![figure]!
    const floor = typeof row.floor === "number" ? row.floor : row.floor.reduce((sum, each) => sum + read(each), 0)
    return { ours: read(row.ours), floor }
  })
  return {
    row,
    ours: median(pairs.map(({ ours }) => ours)),
    floor: median(pairs.map(({ floor }) => floor)),
    ratio: median(pairs.map(({ floor, ours }) => ours / floor))
  }
}

export const verdictOf = ({ ratio, row: { must, next } }: Result): string => {
  if (next !== undefined && ratio <= next) return "then"
  if (must !== undefined && ratio <= must) return "must"
  return must !== undefined ? "**missed**" : next !== undefined ? "not yet" : ""
}

const number = (value: number): string =>
  value >= 1000 ? Math.round(value).toLocaleString("en-US") : value >= 100 ? value.toFixed(0) : value.toPrecision(2)

const times = (value: number | undefined): string => (value === undefined ? "" : `≤ ${value} ×`)

export const tableOf = (results: ReadonlyArray<Result>): string =>
  [
    "| what | ours | floor | ratio | must | then | reached |",
    "|---|---:|---:|---:|---:|---:|---|",
    ...results.map((result) => {
      const { floor, ours, ratio, row } = result
      const cells = [
        row.what,
        `${number(ours)} ${row.unit}`,
        `${row.floorName}: ${number(floor)} ${row.unit}`,
        `${ratio.toFixed(2)} ×`,
        times(row.must),
        times(row.next),
        verdictOf(result)
      ]
      return `| ${cells.join(" | ")} |`
    })
  ].join("\n")

/** The rows that say most, in a line: the README has no room for a table. */
export const shortOf = (results: ReadonlyArray<Result>): string =>
  [
    ...results
      .filter(({ row }) => row.isInReadme === true)
      .map(
        ({ ours, ratio, row }) => `${row.what}: ${number(ours)} ${row.unit}, ${ratio.toFixed(2)} × ${row.floorName}`
      ),
    "[all of it](docs/performance.md)"
  ].join(" · ")
