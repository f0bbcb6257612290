/**
 * What each subpath costs whoever imports it: the size of a bundle of everything in it, and the time of a cold import of
 * what is published. The floor is a plain scoped run on Effect with what a service can't leave out. `npm run size` prints
 * it; the benchmark takes the core entry from here.
 */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { gzipSync } from "node:zlib"
import { rolldown } from "rolldown"

const root = path.resolve(import.meta.dirname, "..")

/** Effect alone, as any service of this kind uses it: a scope, a deferred, an event hub, a decoded argument. */
const floor = `
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as PubSub from "effect/PubSub"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
export const run = Effect.gen(function*() {
  const scope = yield* Scope.make()
  const events = yield* PubSub.unbounded()
  const { prompt } = yield* Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Struct({ prompt: Schema.String })))("{}")
  const result = yield* Deferred.make()
  yield* PubSub.publish(events, prompt)
  yield* Effect.forkIn(Deferred.succeed(result, prompt), scope)
  return yield* Deferred.await(result)
})
`

/** What a host that only delegates takes from the package, beside the whole of each subpath. */
const delegates = `
import { Agent, Content, Subagents } from "./dist/index.js"
export const used = [Subagents.Subagents, Subagents.layer, Subagents.add, Agent.root, Content.toText]
`

/** What a host takes whose agents live in its own process. */
const hasAgents = `${delegates}
import { AgentRuntime } from "./dist/agent/index.js"
import { SpawnProvider } from "./dist/providers/index.js"
import { SubagentTool } from "./dist/tool/index.js"
export const agents = [AgentRuntime.layer, SpawnProvider.layer, SubagentTool.make, SubagentTool.layer]
`

/** Something to import. */
export interface Entry {
  readonly name: string
  readonly file: string
  /** The most that its bundle may have, in KB after gzip, and what it is to have next. */
  readonly must?: number
  readonly next?: number
}

export const names = {
  floor: "the floor: Effect alone",
  delegates: "a host that delegates",
  hasAgents: "a host with agents on effect/ai",
  core: "effect-subagent"
} as const

/** Builds the package into a folder of its own, which is gone afterwards. */
export const withEntries = async <A>(use: (entries: ReadonlyArray<Entry>) => Promise<A>): Promise<A> => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "effect-subagent-size-"))
  const write = (name: string, text: string): string => {
    fs.writeFileSync(path.join(folder, name), text)
    return path.join(folder, name)
  }
  try {
    const { exports, sideEffects } = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8")) as {
      exports: Record<string, { readonly default: string } | string | null>
      sideEffects: unknown
    }
    fs.symlinkSync(path.join(root, "node_modules"), path.join(folder, "node_modules"))
    write("package.json", JSON.stringify({ type: "module", sideEffects }))
    const tsc = path.join(root, "node_modules/.bin/tsc")
    const outDir = path.join(folder, "dist")
    execFileSync(tsc, ["-p", path.join(root, "tsconfig.build.json"), "--outDir", outDir], { stdio: "inherit" })
    return await use([
      { name: names.floor, file: write("floor.mjs", floor) },
      { name: names.delegates, file: write("delegates.mjs", delegates) },
      { name: names.hasAgents, file: write("hasAgents.mjs", hasAgents), must: 85 },
      ...Object.entries(exports).flatMap(([subpath, target]): ReadonlyArray<Entry> => {
        if (target === null || typeof target === "string") return []
        const entry = { name: path.posix.join("effect-subagent", subpath), file: path.join(folder, target.default) }
        return [entry.name === names.core ? { ...entry, must: 45, next: 38 } : entry]
      })
    ])
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/** The size of everything that an entry brings with it, in KB: minified, and that after gzip. */
export const bundle = async ({ file }: Entry): Promise<{ readonly min: number; readonly gzip: number }> => {
  const bundled = await rolldown({
    input: file,
    platform: "node",
    external: /^node:/,
    logLevel: "silent",
    treeshake: true
  })
  const { output } = await bundled.generate({ format: "esm", minify: true })
  await bundled.close()
  const code = output.map((chunk) => (chunk.type === "chunk" ? chunk.code : "")).join("")
  return { min: code.length / 1024, gzip: gzipSync(code, { level: 9 }).length / 1024 }
}

/** The time of an import in a process of its own, in milliseconds: wall, and CPU of all threads. */
export const importTime = ({ file }: Entry): { readonly wall: number; readonly cpu: number } => {
  const script = `const c = process.cpuUsage(); const t = performance.now(); await import(${JSON.stringify(file)}); const d = process.cpuUsage(c); console.log(JSON.stringify({ wall: performance.now() - t, cpu: (d.user + d.system) / 1000 })); process.exit(0)`
  const printed = execFileSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"]
  })
  return JSON.parse(printed) as { wall: number; cpu: number }
}

/** What an entry was measured to cost. */
export interface Cost {
  readonly entry: Entry
  readonly min: number
  readonly gzip: number
  readonly wall: number
  readonly cpu: number
}

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

/** Measures all of them; rounds interleave the entries, so that the noise of a shared machine falls on all alike. */
export const measure = async (entries: ReadonlyArray<Entry>, rounds: number): Promise<ReadonlyArray<Cost>> => {
  const times = entries.map((): Array<ReturnType<typeof importTime>> => [])
  for (let round = 0; round < rounds; round++) entries.forEach((entry, i) => times[i]!.push(importTime(entry)))
  const costs: Array<Cost> = []
  for (const [i, entry] of entries.entries()) {
    const wall = median(times[i]!.map(({ wall }) => wall))
    const cpu = median(times[i]!.map(({ cpu }) => cpu))
    costs.push({ entry, ...(await bundle(entry)), wall, cpu })
  }
  return costs
}

/** The lines of the table. Ratios are to the first entry. */
export const table = (costs: ReadonlyArray<Cost>): ReadonlyArray<string> => {
  const base = costs[0]!
  const line = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`
  return [
    line(["subpath", "min KB", "min+gzip KB", "× floor", "limit", "import ms", "import CPU ms", "× floor"]),
    line(["---", "---:", "---:", "---:", "---", "---:", "---:", "---:"]),
    ...costs.map(({ cpu, entry, gzip, min, wall }) =>
      line([
        `\`${entry.name}\``,
        min.toFixed(0),
        gzip.toFixed(1),
        (gzip / base.gzip).toFixed(2),
        limitOf(entry, gzip),
        wall.toFixed(0),
        cpu.toFixed(0),
        (cpu / base.cpu).toFixed(2)
      ])
    )
  ]
}

const limitOf = ({ must, next }: Entry, gzip: number): string => {
  if (must === undefined) return ""
  const limits = [`must ≤ ${must}`, ...(next === undefined ? [] : [`then ≤ ${next}`])].join(", ")
  const reached = next !== undefined && gzip <= next ? "then" : gzip <= must ? "must" : "**missed**"
  return `${limits}: ${reached}`
}

if (import.meta.main) {
  const costs = await withEntries((entries) => measure(entries, 5))
  console.log(table(costs).join("\n"))
}
