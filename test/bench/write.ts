/** Where measured figures go in the docs: between a pair of comments, so that nobody types them. */
import * as fs from "node:fs"
import * as path from "node:path"
import { draw, type Plot, tableOfPlot } from "./plot.ts"

const root = path.resolve(import.meta.dirname, "../..")
const page = "docs/performance.md"

/** Puts a body between the marks of a name. Throws if there are none. */
export const between = (text: string, name: string, body: string): string => {
  const marks = [`<!-- bench ${name} -->`, `<!-- /bench ${name} -->`] as const
  const start = text.indexOf(marks[0])
  const end = text.indexOf(marks[1])
  if (start === -1 || end < start) throw new Error(`there is no ${marks[0]} … ${marks[1]}`)
  return `${text.slice(0, start + marks[0].length)}\n${body}\n${text.slice(end)}`
}

const rewrite = (file: string, name: string, body: string): void => {
  const at = path.join(root, file)
  fs.writeFileSync(at, between(fs.readFileSync(at, "utf8"), name, body))
}

/** The whole table, and what the README shows of it. */
export const writeTable = (table: string, short: string): void => {
  rewrite(page, "table", table)
  rewrite("README.md", "table", short)
}

/** A plot and its figures. */
export const writePlot = (name: string, plot: Plot): void => {
  fs.writeFileSync(path.join(root, `docs/performance/${name}.svg`), draw(plot))
  rewrite(page, name, `![${plot.title}](performance/${name}.svg)\n\n${tableOfPlot(plot)}`)
}
