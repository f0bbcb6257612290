/** The top-level declarations of a module as the docs show them: without comments and blank lines. */
import { type ESTree, parseSync } from "vite"

export interface Declaration {
  readonly name: string
  /** All declarations of the name, a type before the value it shares its name with. */
  readonly text: string
  /** Exported, and an interface, a type, a class or a schema: what the vocabulary has to show. */
  readonly isPublicType: boolean
}

/** What a module declares at its top level, in order. */
export const declarations = (file: string, text: string): ReadonlyArray<Declaration> => {
  const { comments, errors, program } = parseSync(file, text)
  if (errors.length > 0) throw new Error(`${file} does not parse: ${errors[0]?.message}`)
  const found = new Map<string, Declaration>()
  for (const node of program.body) {
    const isExported = node.type === "ExportNamedDeclaration"
    const declared = isExported ? node.declaration : node
    const name = declared === null ? undefined : nameOf(declared)
    if (name === undefined) continue
    const inside = comments.filter(({ end, start }) => start >= node.start && end <= node.end)
    let bare = ""
    let from = node.start
    for (const { end, start } of inside) {
      bare += text.slice(from, start)
      from = end
    }
    bare = withoutBlankLines(bare + text.slice(from, node.end))
    const earlier = found.get(name)
    found.set(name, {
      name,
      text: earlier === undefined ? bare : `${earlier.text}\n${bare}`,
      isPublicType: (isExported && isType(text, declared!)) || earlier?.isPublicType === true
    })
  }
  return [...found.values()]
}

const withoutBlankLines = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "")
    .join("\n")

const nameOf = (node: ESTree.Node): string | undefined => {
  switch (node.type) {
    case "TSInterfaceDeclaration":
    case "TSTypeAliasDeclaration":
    case "ClassDeclaration":
    case "FunctionDeclaration":
      return node.id?.name
    case "VariableDeclaration": {
      const id = node.declarations[0]?.id
      return id?.type === "Identifier" ? id.name : undefined
    }
    default:
      return undefined
  }
}

const isType = (text: string, node: ESTree.Node): boolean =>
  node.type === "TSInterfaceDeclaration" ||
  node.type === "TSTypeAliasDeclaration" ||
  node.type === "ClassDeclaration" ||
  // our exports have explicit types
  (node.type === "VariableDeclaration" && /^(?:const|let)\s+\w+: Schema\./.test(text.slice(node.start, node.end)))
