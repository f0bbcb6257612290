/** What came of each agent and scenario, as a table. */
import type { RealAgent } from "./agents.ts"
import type { Scenario } from "./bench.ts"

export type Cell =
  | { readonly _tag: "Passed"; readonly note?: string }
  | { readonly _tag: "Failed"; readonly why: string }
  | { readonly _tag: "NotOffered"; readonly why: string }

/** By agent, then by scenario. */
export type Cells = ReadonlyMap<string, ReadonlyMap<string, Cell>>

/** The table in Markdown, with a note for each cell of which there is more to say. */
export const render = (agents: ReadonlyArray<RealAgent>, scenarios: ReadonlyArray<Scenario>, cells: Cells): string => {
  const notes: Array<string> = []
  const noted = (mark: string, why: string): string => {
    if (!notes.includes(why)) notes.push(why)
    return `${mark} (${notes.indexOf(why) + 1})`
  }
  const show = (cell: Cell | undefined): string => {
    if (cell === undefined) return ""
    if (cell._tag === "Passed") return cell.note === undefined ? "ok" : noted("ok", cell.note)
    return noted(cell._tag === "Failed" ? "failed" : "not offered", cell.why)
  }
  const row = (...columns: ReadonlyArray<string>): string => `| ${columns.join(" | ")} |`
  const lines = [
    row("scenario", ...agents.map(({ name }) => name)),
    row("---", ...agents.map(() => "---")),
    ...scenarios.map(({ name, says }) =>
      row(`${name}: ${says}`, ...agents.map((agent) => show(cells.get(agent.name)?.get(name))))
    )
  ]
  const numbered = notes.map((note, i) => `${i + 1}. ${note}`)
  return [...lines, ...(notes.length > 0 ? ["", ...numbered] : [])].join("\n")
}
