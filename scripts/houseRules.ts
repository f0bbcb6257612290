/**
 * Rules for `src` that oxlint has no rule for. `npm run lint` runs this file; test/repository.test.ts shows that each rule bites.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { type ESTree, parseSync, Visitor } from "vite"

/** The closed list behind `@category`. */
const categories = [
  "annotations",
  "combinators",
  "constructors",
  "errors",
  "guards",
  "layers",
  "models",
  "options",
  "references",
  "schemas",
  "services",
  "suites",
  "type-level"
]

/** Where Effect meets plain JavaScript: these may use `async`, `try` and `throw`. */
const edges = [/^src\/promise\//, /^src\/tool\/PlainTool\.ts$/, /^src\/internal\/abortSignal\.ts$/]

const maxLines = 500

interface Place {
  readonly start: number
}

/** Everything wrong with one file, each as `path:line message`. `file` is relative to the repository, with `/`. */
export const problems = (file: string, text: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  const report = (place: Place, message: string) =>
    found.push(`${file}:${text.slice(0, place.start).split("\n").length} ${message}`)

  for (const match of text.matchAll(/\/(?:work|tmp)\/|\b(?:TODO|FIXME)\b/g)) {
    report({ start: match.index }, `"${match[0]}": no machine paths and no loose ends`)
  }
  if (!file.startsWith("src/") || !file.endsWith(".ts")) return found

  const lines = text.trimEnd().split("\n").length
  if (lines > maxLines) report({ start: 0 }, `${lines} lines: split it by job, ${maxLines} is the most`)

  const { program, comments, errors } = parseSync(file, text)
  if (errors.length > 0) return [...found, `${file}:1 does not parse: ${errors[0]?.message}`]

  if (!edges.some((edge) => edge.test(file))) {
    const asynchronous = (node: Place & { readonly async: boolean }) => {
      if (node.async) report(node, "`async`: use Effect.gen or Effect.fn")
    }
    new Visitor({
      TryStatement: (node) => report(node, "`try`: use Effect.try or a Result"),
      ThrowStatement: (node) => report(node, "`throw`: fail in the error channel, or Effect.die"),
      FunctionDeclaration: asynchronous,
      FunctionExpression: asynchronous,
      ArrowFunctionExpression: asynchronous
    }).visit(program)
  }

  const generated = file.endsWith("/index.ts")
  if (generated || file.includes("/internal/")) return found

  if (!text.startsWith("/**")) report({ start: 0 }, "no header: what this is, who calls it, who owns what")
  // between a doc comment and its export there may be line comments: a lint directive, a reason
  const docOf = (node: Place): string | undefined =>
    comments.find(
      ({ type, value, end }) =>
        type === "Block" &&
        value.startsWith("*") &&
        end <= node.start &&
        /^(?:\s|\/\/.*)*$/.test(text.slice(end, node.start))
    )?.value
  const seen = new Set<string>()
  for (const node of program.body) {
    if (node.type !== "ExportNamedDeclaration" || node.declaration === null) continue
    for (const name of namesOf(node.declaration)) {
      // of overloads the first carries the comment; a type and a value of one name carry one each
      const key = `${node.exportKind} ${name}`
      if (seen.has(key)) continue
      seen.add(key)
      const doc = docOf(node)
      if (doc === undefined) {
        report(node, `export ${name}: no doc comment`)
        continue
      }
      if (doc.includes("@internal")) continue
      if (!/^\*[\s*]*[^\s*@]/.test(doc)) report(node, `export ${name}: the doc comment has no summary`)
      if (!/@since \d+\.\d+\.\d+\b/.test(doc)) report(node, `export ${name}: no @since`)
      const given = [...doc.matchAll(/@category (.*)/g)].map(([, category]) => category?.replace(/\s*\*?\s*$/, ""))
      if (given.length !== 1 || !categories.includes(given[0] ?? "")) {
        report(node, `export ${name}: needs one @category of ${categories.join(", ")}`)
      }
    }
  }
  return found
}

const namesOf = (declaration: ESTree.Declaration): ReadonlyArray<string> => {
  if (declaration.type === "VariableDeclaration") {
    return declaration.declarations.map(({ id }) => (id.type === "Identifier" ? id.name : "(pattern)"))
  }
  return "id" in declaration && declaration.id?.type === "Identifier" ? [declaration.id.name] : []
}

/** The problems of all files under `src` and `docs` of the repository at `root`. */
export const check = (root: string): ReadonlyArray<string> =>
  ["src", "docs"].flatMap((folder) => {
    const dir = path.join(root, folder)
    if (!fs.existsSync(dir)) return []
    return fs
      .readdirSync(dir, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.(?:ts|md|json)$/.test(name))
      .toSorted()
      .flatMap((name) =>
        problems(`${folder}/${name.replaceAll(path.sep, "/")}`, fs.readFileSync(path.join(dir, name), "utf8"))
      )
  })

if (import.meta.main) {
  const found = check(path.resolve(import.meta.dirname, ".."))
  console.log(found.length === 0 ? "house rules: no problems" : found.join("\n"))
  process.exitCode = found.length === 0 ? 0 : 1
}
