/** The rounds of what the package weighs: its bundles do not change from round to round, its import times do. */
import { bundle, type Entry, importTime, names } from "../../scripts/size.ts"
import type { Figures } from "./measures.ts"
import type { Round } from "./table.ts"

/** What is weighed, as the rows name it. */
export const weighed = {
  core: names.core,
  coreFloor: names.floor,
  agentsHost: names.hasAgents
} as const
export type WeighedName = keyof typeof weighed

/** Gives what measures a round. */
export const weigh = async (entries: ReadonlyArray<Entry>): Promise<() => Round> => {
  const found: Array<readonly [name: string, entry: Entry, gzip: number]> = []
  for (const [name, title] of Object.entries(weighed)) {
    const entry = entries.find((each) => each.name === title)!
    found.push([name, entry, (await bundle(entry)).gzip])
  }
  return () =>
    Object.fromEntries(
      found.map(([name, entry, gzip]): readonly [string, Figures] => [
        name,
        { gzip, importing: median3(() => importTime(entry).cpu) }
      ])
    )
}

const median3 = (sample: () => number): number => [sample(), sample(), sample()].toSorted((a, b) => a - b)[1]!
