/** The checks of the docs, over any tree of files, so that each of them can be shown to bite. */
import { execFileSync, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { type Declaration, declarations } from "./declarations.ts"
import { anchors, type Fence, fences, links, region, rewriteFences } from "./markdown.ts"

/** Where the vocabulary of the seam is written down. */
export const page = "docs/core-data-structures/subagent.md"
export const manifest = "docs/core-data-structures/subagent.manifest.json"

const read = (root: string, file: string): string => fs.readFileSync(path.join(root, file), "utf8")

/** The Markdown files of a repository, without what was installed or built. */
export const markdownFiles = (root: string): ReadonlyArray<string> => {
  const walk = (folder: string): ReadonlyArray<string> =>
    fs.readdirSync(path.join(root, folder), { withFileTypes: true }).flatMap((entry) => {
      const file = path.posix.join(folder, entry.name)
      if (entry.isDirectory()) return /^(?:\.git|node_modules|dist|coverage)$/.test(entry.name) ? [] : walk(file)
      return entry.name.endsWith(".md") ? [file] : []
    })
  return walk("").toSorted()
}

/** The declarations of the core, by `Module.Name`. */
export const coreDeclarations = (root: string): ReadonlyMap<string, Declaration & { readonly module: string }> => {
  const found = new Map<string, Declaration & { module: string }>()
  for (const file of fs.readdirSync(path.join(root, "src")).toSorted()) {
    if (!/^[A-Z]\w*\.ts$/.test(file)) continue
    const module = path.basename(file, ".ts")
    for (const declaration of declarations(file, read(root, `src/${file}`))) {
      found.set(`${module}.${declaration.name}`, { ...declaration, module })
    }
  }
  return found
}

/** The manifest as it should be: every public type of the core, one a line. */
export const manifestText = (root: string): string => {
  const types = [...coreDeclarations(root).values()].filter(({ isPublicType }) => isPublicType)
  const lines = types.map(({ module, name }) => `  ${JSON.stringify({ module, name })}`.replaceAll(/([:,{])"/g, '$1 "'))
  return `[\n${lines.map((line) => line.replace(/\}$/, " }")).join(",\n")}\n]\n`
}

/** The text of `Module.Name`, or of `folder/Module.Name` for a module of a higher floor. */
const declarationText = (root: string, type: string): string | undefined => {
  const [module = "", name] = type.split(".")
  const file = `src/${module}.ts`
  if (!fs.existsSync(path.join(root, file))) return undefined
  return declarations(file, read(root, file)).find((declaration) => declaration.name === name)?.text
}

/** What a fence has to say; nothing for a fence that is free to say what it likes. */
const wanted = (root: string, fence: Fence): string | { readonly problem: string } | undefined => {
  const { file, region: name, "type-equiv": type } = fence.tags
  if (type !== undefined) return declarationText(root, type) ?? { problem: `${type} is not declared in src` }
  if (file !== undefined) {
    if (!fs.existsSync(path.join(root, file))) return { problem: `${file} does not exist` }
    const text = read(root, file)
    const body = name === undefined ? text.trimEnd() : region(text, name)
    return body ?? { problem: `${file} has no region ${name}` }
  }
  return /^(?:[cm]?[tj]sx?|typescript|javascript)$/.test(fence.language)
    ? { problem: "code is shown as type-equiv=Module.Name, or as file=… region=… of an example" }
    : undefined
}

/** Fences that differ from the source they show, and code that shows no source. */
export const fenceProblems = (root: string): ReadonlyArray<string> =>
  markdownFiles(root).flatMap((file) =>
    fences(read(root, file)).flatMap((fence) => {
      const body = wanted(root, fence)
      if (body === undefined || body === fence.body) return []
      return [`${file}:${fence.line} ${typeof body === "string" ? "differs from its source" : body.problem}`]
    })
  )

/** Public types of the core that page or manifest lack or name twice, and names there that stand for nothing. */
export const vocabularyProblems = (root: string): ReadonlyArray<string> => {
  const types = [...coreDeclarations(root)].filter(([, { isPublicType }]) => isPublicType).map(([name]) => name)
  const shown = fences(read(root, page)).flatMap(({ tags }) => tags["type-equiv"] ?? [])
  const listed = (JSON.parse(read(root, manifest)) as ReadonlyArray<{ module: string; name: string }>).map(
    ({ module, name }) => `${module}.${name}`
  )
  const twice = (names: ReadonlyArray<string>) => names.filter((name, i) => names.indexOf(name) !== i)
  return [
    ...types.filter((name) => !shown.includes(name)).map((name) => `${page} does not show ${name}`),
    ...types.filter((name) => !listed.includes(name)).map((name) => `${manifest} does not list ${name}`),
    ...listed
      .filter((name) => !types.includes(name))
      .map((name) => `${manifest} lists ${name}, which is no public type`),
    ...twice(shown).map((name) => `${page} shows ${name} twice`),
    ...twice(listed).map((name) => `${manifest} lists ${name} twice`)
  ]
}

/** Relative links that lead nowhere, into another file or to an anchor. */
export const linkProblems = (root: string): ReadonlyArray<string> =>
  markdownFiles(root).flatMap((file) =>
    links(read(root, file)).flatMap(({ line, target }) => {
      if (/^[a-z][a-z0-9+.-]*:/i.test(target)) return []
      const [to = "", anchor] = decodeURIComponent(target).split("#")
      const other = to === "" ? file : path.posix.join(path.posix.dirname(file), to)
      const at = path.join(root, other)
      const dead = `${file}:${line} dead link ${target}`
      if (to.startsWith("/") || other.startsWith("..") || !fs.existsSync(at)) return [dead]
      if (anchor === undefined) return []
      return fs.statSync(at).isFile() && anchors(read(root, other)).has(anchor) ? [] : [dead]
    })
  )

/** Rewrites what is derived from the source: the shown declarations and regions, and the manifest. */
export const update = (root: string): void => {
  fs.writeFileSync(path.join(root, manifest), manifestText(root))
  for (const file of markdownFiles(root)) {
    const text = read(root, file)
    const current = rewriteFences(text, (fence) => {
      const body = wanted(root, fence)
      return typeof body === "string" ? body : fence.body
    })
    if (current !== text) fs.writeFileSync(path.join(root, file), current)
  }
}

/** What the compiler has to say about some files, under the options of the repository at `root`. */
export const compileProblems = (root: string, files: ReadonlyArray<string>): ReadonlyArray<string> => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "docs-test-"))
  try {
    const config = path.join(folder, "tsconfig.json")
    fs.writeFileSync(
      config,
      JSON.stringify({
        extends: path.join(root, "tsconfig.json"),
        compilerOptions: { typeRoots: [path.join(root, "node_modules/@types")] },
        include: [],
        files
      })
    )
    const { stdout } = spawnSync(path.join(root, "node_modules/.bin/tsc"), ["--pretty", "false", "-p", config], {
      cwd: root,
      encoding: "utf8"
    })
    return stdout.split("\n").filter((line) => line !== "")
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/** Runs an example as a user does, in a process of its own without a network to speak of. Gives what it printed; throws if it fails. */
export const runExample = (root: string, file: string, args: ReadonlyArray<string>): string =>
  execFileSync(process.execPath, ["--conditions=effect-subagent-source", file, ...args], {
    cwd: root,
    encoding: "utf8",
    timeout: 25_000,
    stdio: ["ignore", "pipe", "pipe"],
    // an attempt to fetch anything but from this machine itself fails at once
    env: {
      ...process.env,
      HTTP_PROXY: "http://127.0.0.1:9",
      HTTPS_PROXY: "http://127.0.0.1:9",
      NO_PROXY: "127.0.0.1",
      NODE_USE_ENV_PROXY: "1"
    }
  })
