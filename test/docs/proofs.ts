/** Which tests prove which promise of the contract, and the lists of them in `docs/contract.md`. */
import * as fs from "node:fs"
import * as path from "node:path"
import { type ESTree, parseSync, Visitor } from "vite"

export interface Titled {
  readonly file: string
  /** With the titles of the blocks around it. */
  readonly title: string
  /** The promises that the title cites. */
  readonly items: ReadonlyArray<number>
}

/** The numbers in parentheses: `(4)`, `(1, 3)`, `(1-3)`. Others than the contract's mean something else. */
export const cited = (title: string): ReadonlyArray<number> =>
  [...title.matchAll(/\((\d+(?:\s*[,–-]\s*\d+)*)\)/g)].flatMap(([, list = ""]) =>
    list
      .split(",")
      .flatMap((part) => {
        const [from = 0, to = from] = part.split(/[–-]/).map(Number)
        return from > 20 || to > 20 ? [] : Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i)
      })
      .filter((item) => item >= 1)
  )

/** The tests of a file, with the promises that they cite. */
export const titles = (file: string, text: string): ReadonlyArray<Titled> => {
  const { program } = parseSync(file, text)
  const found: Array<Titled> = []
  const around: Array<string> = []
  const kindOf = (call: ESTree.CallExpression, title: string | undefined): "block" | "test" | undefined => {
    const names = namesOf(call.callee)
    if (title === undefined) return undefined
    if (names[0] === "describe" || (names[0] === "it" && names.includes("layer"))) return "block"
    return names[0] === "it" || names[0] === "test" ? "test" : undefined
  }
  new Visitor({
    CallExpression: (call) => {
      const title = titleOf(call.arguments[0])
      const kind = kindOf(call, title)
      if (kind !== undefined) around.push(title!)
      if (kind === "test") {
        const full = around.join(" › ")
        found.push({ file, title: full, items: [...new Set(cited(full))] })
      }
    },
    "CallExpression:exit": (call) => {
      if (kindOf(call, titleOf(call.arguments[0])) !== undefined) around.pop()
    }
  }).visit(program)
  return found
}

/** The names in `it`, `it.effect`, `it.effect.each(…)`, `it.layer(…)`, `describe.sequential`, … */
const namesOf = (callee: ESTree.Node): ReadonlyArray<string> => {
  switch (callee.type) {
    case "Identifier":
      return [callee.name]
    case "MemberExpression":
      return [...namesOf(callee.object), ...namesOf(callee.property)]
    case "CallExpression":
      return namesOf(callee.callee)
    default:
      return []
  }
}

const titleOf = (argument: ESTree.Node | undefined): string | undefined => {
  if (argument?.type === "Literal" && typeof argument.value === "string") return argument.value
  if (argument?.type !== "TemplateLiteral") return undefined
  return argument.quasis.map(({ value }) => value.cooked ?? "").join("…")
}

/** The cases of the conformance suite in a file: what has an `item` and a `title`. */
export const cases = (file: string, text: string): ReadonlyArray<Titled> => {
  const found: Array<Titled> = []
  new Visitor({
    ObjectExpression: ({ properties }) => {
      const valueOf = (name: string): ESTree.Node | undefined =>
        properties.flatMap((property) =>
          property.type === "Property" && property.key.type === "Identifier" && property.key.name === name
            ? [property.value]
            : []
        )[0]
      const item = valueOf("item")
      const title = titleOf(valueOf("title"))
      if (item?.type === "Literal" && typeof item.value === "number" && title !== undefined) {
        found.push({ file, title, items: [item.value] })
      }
    }
  }).visit(parseSync(file, text).program)
  return found
}

/** All tests of a repository, and the cases that its conformance suite makes tests of. */
export const allTitles = (root: string): ReadonlyArray<Titled> => {
  const collect = (folder: string, ending: string, read: typeof titles) =>
    fs
      .readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" })
      .map((file) => `${folder}/${file.replaceAll(path.sep, "/")}`)
      .filter((file) => file.endsWith(ending))
      .toSorted()
      .flatMap((file) => read(file, fs.readFileSync(path.join(root, file), "utf8")))
  return [...collect("test", ".test.ts", titles), ...collect("src/testing/internal", "Cases.ts", cases)]
}

const list = /(<!-- tests (\d+) -->\n)[\s\S]*?(<!-- \/tests -->)/g

/** The contract's page with its lists as they should be. */
export const withProofs = (contract: string, tests: ReadonlyArray<Titled>): string =>
  contract.replaceAll(list, (_, open: string, item: string, close: string) => {
    const proofs = tests.filter(({ items }) => items.includes(Number(item)))
    if (proofs.length === 0) return `${open}${close}`
    const files = [...new Set(proofs.map(({ file }) => file))]
    const lines = files.flatMap((file) => [
      `- \`${file}\`${file.startsWith("src/") ? ", the conformance suite" : ""}`,
      ...proofs.filter((proof) => proof.file === file).map(({ title }) => `  - ${escaped(title)}`)
    ])
    const summary = `<details><summary>Proven by ${proofs.length} ${proofs.length === 1 ? "test" : "tests"}</summary>`
    return [`${open}${summary}\n`, ...lines, `\n</details>\n${close}`].join("\n")
  })

/** A title as plain text in Markdown. */
const escaped = (title: string): string => title.replaceAll(/[\\`*_[\]<>]/g, "\\$&").replaceAll("\n", " ")

/** The promises whose list is there but empty, or not there at all. */
export const unproven = (contract: string, items: ReadonlyArray<number>): ReadonlyArray<number> => {
  const proven = new Set(
    [...contract.matchAll(list)].filter(([text]) => text.includes("  - ")).map((m) => Number(m[2]))
  )
  return items.filter((item) => !proven.has(item))
}
