/** What the checks of the docs see in a Markdown file: its fences, links and anchors. */

export interface Fence {
  /** The first line, from 1. */
  readonly line: number
  readonly language: string
  /** What follows the language: `key=value` pairs. */
  readonly tags: { readonly [key: string]: string }
  readonly body: string
}

const opening = /^(?<indent> {0,3})(?<mark>`{3,}|~{3,})\s*(?<language>[^\s`]*)(?<info>[^`]*)$/

/** The fenced blocks of a text, in order. */
export const fences = (text: string): ReadonlyArray<Fence> => {
  const found: Array<Fence> = []
  eachLine(text, { fence: (fence) => found.push(fence) })
  return found
}

/** The text with the body of each fence replaced by what `rewrite` gives for it. */
export const rewriteFences = (text: string, rewrite: (fence: Fence) => string): string => {
  const lines = text.split("\n")
  for (const fence of fences(text).toReversed()) {
    const size = fence.body === "" ? 0 : fence.body.split("\n").length
    const body = rewrite(fence)
    lines.splice(fence.line, size, ...(body === "" ? [] : body.split("\n")))
  }
  return lines.join("\n")
}

/** The targets of all links and pictures outside code, each with its line. */
export const links = (text: string): ReadonlyArray<{ readonly line: number; readonly target: string }> => {
  const found: Array<{ line: number; target: string }> = []
  eachLine(text, {
    prose: (line, number) => {
      const bare = line.replaceAll(/(`+)(?:(?!\1).)+?\1/g, "``")
      const inline = bare.matchAll(/\]\(\s*<?([^\s)>]+)>?(?:\s+"[^"]*")?\s*\)/g)
      const reference = bare.matchAll(/^\s{0,3}\[[^\]]+\]:\s*<?([^\s>]+)>?/g)
      for (const [, target = ""] of [...inline, ...reference]) found.push({ line: number, target })
    }
  })
  return found
}

/** The anchors that a text offers: its headings, as GitHub names them, and explicit ids. */
export const anchors = (text: string): ReadonlySet<string> => {
  const found = new Set<string>()
  eachLine(text, {
    prose: (line) => {
      for (const [, id = ""] of line.matchAll(/<a\s+(?:id|name)="([^"]+)"/g)) found.add(id)
      const heading = /^#{1,6}\s+(.*?)\s*#*$/.exec(line)?.[1]
      if (heading === undefined) return
      const slug = heading
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\p{M}\s_-]/gu, "")
        .replaceAll(/\s/g, "-")
      let free = slug
      for (let i = 1; found.has(free); i++) free = `${slug}-${i}`
      found.add(free)
    }
  })
  return found
}

/** The lines between `// #region name` and its `// #endregion`, without their common indent; nothing, if there is no such region. */
export const region = (text: string, name: string): string | undefined => {
  const lines = text.split("\n")
  const from = lines.findIndex((line) => line.trim() === `// #region ${name}`)
  const size = lines.slice(from + 1).findIndex((line) => line.trim().startsWith("// #endregion"))
  if (from < 0 || size < 0) return undefined
  const body = lines.slice(from + 1, from + 1 + size)
  const indent = Math.min(...body.filter((line) => line.trim() !== "").map((line) => line.search(/\S/)))
  return body.map((line) => line.slice(indent)).join("\n")
}

/** Walks a text line by line, telling prose from fences. */
const eachLine = (
  text: string,
  visit: {
    readonly prose?: (line: string, number: number) => void
    readonly fence?: (fence: Fence) => void
  }
): void => {
  const lines = text.split("\n")
  for (let i = 0; i < lines.length; i++) {
    const start = opening.exec(lines[i]!)?.groups
    if (start === undefined) {
      visit.prose?.(lines[i]!, i + 1)
      continue
    }
    const line = i + 1
    const body: Array<string> = []
    const end = new RegExp(`^ {0,3}${start["mark"]![0]}{${start["mark"]!.length},}\\s*$`)
    while (++i < lines.length && !end.test(lines[i]!)) body.push(lines[i]!)
    const pairs = start["info"]!.matchAll(/([\w-]+)=(\S+)/g)
    visit.fence?.({
      line,
      language: start["language"]!,
      tags: Object.fromEntries([...pairs].map(([, key = "", value = ""]) => [key, value])),
      body: body.join("\n")
    })
  }
}
