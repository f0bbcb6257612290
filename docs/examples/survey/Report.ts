/** What the agents report: findings about files, merged upwards into the report. */
import * as Schema from "effect/Schema"
import { printable } from "./printable.ts"

const about = <S extends Schema.Top>(schema: S, description: string) => schema.annotate({ description })

/** About one entry of a folder: a file that was read, or something that was not, and why. The agents read this, too. */
export type Finding = typeof Finding.Type
export const Finding = Schema.Struct({
  path: about(Schema.String, "Relative to the surveyed folder."),
  kind: about(Schema.Literals(["text", "binary", "link", "other", "unread"]), "'unread' is a file that can't be read."),
  lines: Schema.optionalKey(about(Schema.Int, "Of a file that was read; a last line that does not end is one too.")),
  bytes: Schema.optionalKey(about(Schema.Int, "Of a file that was read.")),
  exports: Schema.optionalKey(
    about(Schema.Array(Schema.String), "The names a JavaScript or TypeScript module exports.")
  ),
  heading: Schema.optionalKey(
    about(Schema.String, "Of any other text: its heading, or its first line that says something.")
  ),
  note: Schema.optionalKey(
    about(
      Schema.String,
      "Where a link leads, what an other thing is, why a file is unread, or which part of it was read."
    )
  )
})

/** What one agent found. */
export type Findings = typeof Findings.Type
export const Findings = Schema.Struct({
  files: Schema.Array(Finding),
  problems: about(Schema.Array(Schema.String), "What could not be done: then the findings are not complete.")
})

/** What the agents found, part by part. */
export type Answer = typeof Answer.Type
export const Answer = Schema.Struct({
  parts: Schema.Array(
    Schema.Struct({
      name: about(Schema.String, "What you called the part when you gave it to a subagent."),
      ...Findings.fields
    })
  ),
  problems: Findings.fields.problems
})

export type Totals = typeof Totals.Type
export const Totals = Schema.Struct({ files: Schema.Int, lines: Schema.Int, bytes: Schema.Int })

export type Part = typeof Part.Type
export const Part = Schema.Struct({ name: Schema.String, ...Findings.fields, totals: Totals })

export type Report = typeof Report.Type
export const Report = Schema.Struct({
  parts: Schema.Array(Part),
  problems: Schema.Array(Schema.String),
  totals: Totals
})

/** Several findings as one. */
export const merge = (all: ReadonlyArray<Findings>): Findings => ({
  files: all.flatMap(({ files }) => files),
  problems: all.flatMap(({ problems }) => problems)
})

const makePart = ({ name, ...findings }: Answer["parts"][number]): Part => {
  const read = findings.files.filter(({ lines }) => lines !== undefined)
  const totals = {
    files: read.length,
    lines: read.reduce((sum, { lines = 0 }) => sum + lines, 0),
    bytes: read.reduce((sum, { bytes = 0 }) => sum + bytes, 0)
  }
  return { name, ...findings, totals }
}

/** Adds up what was found. */
export const makeReport = ({ parts: found, problems }: Answer): Report => {
  const parts = found.map(makePart)
  const sum = (key: keyof Totals) => parts.reduce((sum, { totals }) => sum + totals[key], 0)
  return { parts, problems, totals: { files: sum("files"), lines: sum("lines"), bytes: sum("bytes") } }
}

/** Everything that keeps a report from being complete. */
export const shortcomings = ({ parts, problems }: Report): ReadonlyArray<string> => [
  ...problems,
  ...parts.flatMap(({ files, problems }) => [
    ...problems,
    ...files.filter(({ kind }) => kind === "unread").map(({ note, path }) => `${path}: ${note ?? "not read"}`)
  ])
]

/** The report for people. */
export const render = (folder: string, report: Report): string => {
  const lines = [`In ${printable(folder)}: ${renderTotals(report.totals)}`]
  for (const part of report.parts) {
    lines.push("", `${printable(part.name)}: ${renderTotals(part.totals)}`)
    for (const file of part.files) lines.push(...renderFinding(file))
  }
  const missing = shortcomings(report)
  if (missing.length > 0) lines.push("", "Not complete:", ...missing.map((problem) => `  ${printable(problem)}`))
  return lines.join("\n")
}

const renderTotals = ({ files, lines }: Totals): string => `${count(files, "file")}, ${count(lines, "line")}`

const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`

const renderFinding = ({ bytes = 0, exports, heading, kind, lines, note, path }: Finding): ReadonlyArray<string> => {
  const about: Record<Finding["kind"], ReadonlyArray<string | undefined>> = {
    text: [exports && `exports ${exports.join(", ")}`, heading, note],
    binary: [`binary, ${count(bytes, "byte")}`],
    link: [`link to ${note}, not followed`],
    other: [`${note}, not read`],
    unread: [`not read: ${note}`]
  }
  return [
    `  ${(lines === undefined ? "-" : String(lines)).padStart(7)}  ${printable(path)}`,
    ...about[kind].filter((line) => line !== undefined).map((line) => `           ${printable(line)}`)
  ]
}
