/**
 * What each subpath costs whoever imports it: the size of a bundle of everything in it, and the time of a cold import of
 * what is published. The floor is a plain scoped run on Effect with what a service can't leave out.
 */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { gzipSync } from "node:zlib"
import { rolldown } from "rolldown"

const root = path.resolve(import.meta.dirname, "..")
const work = fs.mkdtempSync(path.join(os.tmpdir(), "effect-subagent-size-"))
fs.symlinkSync(path.join(root, "node_modules"), path.join(work, "node_modules"))

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

const rounds = 5
const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

const bundle = async (entry: string) => {
  const bundled = await rolldown({
    input: entry,
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

/** CPU and wall time of an import in a process of its own, less that of an empty one. */
const importTime = (entry: string) => {
  const script = `const c = process.cpuUsage(); const t = performance.now(); await import(${JSON.stringify(entry)}); const d = process.cpuUsage(c); console.log(JSON.stringify([performance.now() - t, (d.user + d.system) / 1000])); process.exit(0)`
  return JSON.parse(execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" })) as [
    number,
    number
  ]
}

try {
  execFileSync("npm", ["run", "--silent", "build"], { cwd: root, stdio: "inherit" })
  const { exports } = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8")) as {
    exports: Record<string, { readonly default: string } | string | null>
  }
  const floorFile = path.join(work, "floor.mjs")
  fs.writeFileSync(floorFile, floor)
  // what a host that only delegates bundles, beside the whole of each subpath
  const useFile = path.join(work, "use.mjs")
  fs.writeFileSync(
    useFile,
    `import { Agent, Content, Subagents } from ${JSON.stringify(path.join(root, "dist/index.js"))}\n` +
      `export const used = [Subagents.Subagents, Subagents.layer, Subagents.add, Agent.root, Content.toText]\n`
  )
  const entries: ReadonlyArray<readonly [name: string, file: string]> = [
    ["the floor: Effect alone", floorFile],
    ["a host that delegates", useFile],
    ...Object.entries(exports).flatMap(([subpath, target]) =>
      target === null || typeof target === "string"
        ? []
        : [[path.posix.join("effect-subagent", subpath), path.join(root, target.default)] as const]
    )
  ]
  // rounds interleave the entries, so that the noise of a shared machine falls on all alike
  const times = entries.map((): Array<[number, number]> => [])
  for (let round = 0; round < rounds; round++) {
    entries.forEach(([, file], i) => times[i]!.push(importTime(file)))
  }
  const rows = []
  for (const [i, [name, file]] of entries.entries()) {
    const { gzip, min } = await bundle(file)
    rows.push({
      name,
      min,
      gzip,
      wall: median(times[i]!.map(([wall]) => wall)),
      cpu: median(times[i]!.map(([, cpu]) => cpu))
    })
  }
  const base = rows[0]!
  const line = (cells: ReadonlyArray<string>) => console.log(`| ${cells.join(" | ")} |`)
  line(["subpath", "min KB", "min+gzip KB", "× floor", "import ms", "import CPU ms", "× floor"])
  line(["---", "---:", "---:", "---:", "---:", "---:", "---:"])
  for (const { cpu, gzip, min, name, wall } of rows) {
    line([
      `\`${name}\``,
      min.toFixed(0),
      gzip.toFixed(1),
      (gzip / base.gzip).toFixed(2),
      wall.toFixed(0),
      cpu.toFixed(0),
      (cpu / base.cpu).toFixed(2)
    ])
  }
} finally {
  fs.rmSync(work, { recursive: true, force: true })
}
