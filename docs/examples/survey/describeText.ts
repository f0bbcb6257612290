/** What a text is about: what a module exports, else the first line that says something. */

export interface Description {
  readonly exports?: ReadonlyArray<string>
  readonly heading?: string
}

/** Describes a text by the name of its file. A text without a word in it has no description. */
export const describeText = (path: string, text: string): Description => {
  const exports = /\.[cm]?[jt]sx?$/i.test(path) ? exportsOf(text) : []
  if (exports.length > 0) return { exports }
  const heading = headingOf(path, text)
  return heading === undefined ? {} : { heading }
}

const headingOf = (path: string, text: string): string | undefined => {
  const lines = text.split(/\r\n|\n|\r/)
  const title = /\.(md|markdown)$/i.test(path) ? markdownHeading(lines) : undefined
  // a line that says something has a word in it; the marks of a comment round it do not matter
  const line = title ?? lines.find((line) => /[\p{L}\p{N}]/u.test(line) && !line.startsWith("#!"))
  return line === undefined ? undefined : shorten(line.replace(/^[\s#/*;%!<-]+|[\s*/>-]+$/g, ""))
}

const markdownHeading = (lines: ReadonlyArray<string>): string | undefined => {
  let isCode = false
  for (const line of lines) {
    if (/^ {0,3}(```|~~~)/.test(line)) isCode = !isCode
    const heading = isCode ? null : /^ {0,3}#{1,6}\s+(.*?)[\s#]*$/.exec(line)
    if (heading?.[1]) return heading[1]
  }
  return undefined
}

const shorten = (line: string): string => {
  const characters = Array.from(line)
  return characters.length <= 100 ? line : `${characters.slice(0, 99).join("")}…`
}

/** The names a JavaScript or TypeScript module exports, in its order. */
export const exportsOf = (source: string): ReadonlyArray<string> => {
  const code = blankOut(source)
  const names = new Set<string>()
  let depth = 0
  for (const { 0: token, index } of code.matchAll(/[{}]|(?<![\w$.#])(?:export|exports|module\.exports)(?![\w$])/g)) {
    if (token === "{") depth++
    else if (token === "}") depth--
    // an export stands at the top of a module; the members of a namespace are not the module's
    else if (depth === 0) {
      const start = index + token.length
      const found = token === "export" ? exported(code, source, start) : assigned(code, token, start)
      for (const name of found) names.add(name)
    }
  }
  return Array.from(names)
}

const declaration =
  /\s+(?:(?:declare|abstract|async)\s+)*(?:const\s+enum|class|interface|type|enum|namespace|module|function\s*\*?|const|let|var|import)\s*(?<=[\s*])([\p{ID_Start}$_][\p{ID_Continue}$]*)/uy

/** What an `export` exports that ends at `start`. */
const exported = (code: string, source: string, start: number): ReadonlyArray<string> => {
  if (matchAt(/\s+default\b|\s*=/y, code, start)) return ["default"]
  const all = matchAt(/(?:\s+type)?\s*\*\s*(?:as\s+([\w$]+)\s+)?from/y, code, start)
  if (all) return [all[1] ?? `* from ${matchAt(/\s*["'](.*?)["']/y, source, start + all[0].length)?.[1]}`]
  const list = matchAt(/(?:\s+(?:type|const|let|var))?\s*\{([^{}]*)\}/y, code, start)
  if (list) return (list[1] ?? "").split(",").flatMap(listedName)
  return matchAt(declaration, code, start)?.slice(1, 2) ?? []
}

/** What is exported by an assignment to `exports` or `module.exports`. */
const assigned = (code: string, token: string, start: number): ReadonlyArray<string> => {
  const assignment = matchAt(/(?:\.([\w$]+))?\s*=(?![=>])/y, code, start)
  if (!assignment) return []
  return assignment[1] !== undefined ? [assignment[1]] : token === "module.exports" ? ["default"] : []
}

/** Of `type a as b`, of `a: b` and of `b = 1`: b. */
const listedName = (specifier: string): ReadonlyArray<string> =>
  /([\p{ID_Start}$_][\p{ID_Continue}$]*)\s*(?:=.*)?$/su.exec(specifier)?.slice(1, 2) ?? []

const matchAt = (sticky: RegExp, text: string, index: number): RegExpExecArray | null => {
  sticky.lastIndex = index
  return sticky.exec(text)
}

const notCode = new RegExp(
  [
    /\/\/.*/, // a comment
    /\/\*[^]*?(?:\*\/|$)/,
    /"(?:\\[^]|[^"\\\n])*"?/, // a string
    /'(?:\\[^]|[^'\\\n])*'?/,
    /`(?:\\[^]|[^`\\])*`?/, // a template
    // a regular expression: a slash where a value is expected
    /(?<=(?:^|[=(,:[!&|?{};+*%~^<>-]|\b(?:return|typeof|case|of|in|void|await|yield))\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/\w*/
  ]
    .map((kind) => kind.source)
    .join("|"),
  "g"
)

/** The same text with white space for what is no code, so that every index stays what it was. */
const blankOut = (source: string): string => source.replace(notCode, (match) => match.replace(/[^\n]/g, " "))
