/**
 * Checks the package as a stranger gets it (after `npm run build`): packs it, runs publint and are-the-types-wrong on the tarball,
 * follows every path named in the packed files, installs it in a temporary folder beside `effect`, offline, and there imports every subpath,
 * tries what must stay closed, and typechecks a user of all subpaths with the packed declarations checked too.
 */
import { execFileSync, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const root = path.resolve(import.meta.dirname, "..")
const temp = fs.mkdtempSync(path.join(os.tmpdir(), "pack-check-"))
let failed = 0

const step = (name: string, run: () => void): void => {
  try {
    run()
    console.log(`ok      ${name}`)
  } catch (error) {
    failed += 1
    const { stdout, stderr, message } = error as { stdout?: string; stderr?: string; message: string }
    console.log(`FAILED  ${name}\n${[stdout, stderr || message].filter(Boolean).join("\n")}`)
  }
}
const exec = (cwd: string, command: string, ...args: ReadonlyArray<string>): string =>
  execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })
const bin = (name: string): string => path.join(root, "node_modules", ".bin", name)
const none = (problems: ReadonlyArray<string>): void => {
  if (problems.length > 0) throw new Error(problems.join("\n"))
}

let tarball = ""
step("npm pack", () => {
  const [packed] = JSON.parse(exec(root, "npm", "pack", "--json", "--pack-destination", temp))
  tarball = path.join(temp, packed.filename)
})
step("publint", () => void exec(temp, bin("publint"), "run", tarball, "--strict"))
step(
  "are the types wrong",
  () => void exec(temp, bin("attw"), tarball, "--profile", "esm-only", "--no-definitely-typed")
)

const consumer = path.join(temp, "consumer")
const installed = path.join(consumer, "node_modules", "effect-subagent")
step("install the tarball", () => {
  fs.mkdirSync(consumer)
  fs.writeFileSync(path.join(consumer, "package.json"), `{ "private": true, "type": "module" }`)
  const effect = path.join(root, "node_modules", "effect")
  exec(consumer, "npm", "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", tarball, effect)
})

const manifest = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"))
const subpaths = Object.keys(manifest.exports).filter((key) => manifest.exports[key] !== null)
const specifier = (key: string): string => path.posix.join(manifest.name, key)
const files = fs.existsSync(installed) ? fs.readdirSync(installed, { recursive: true, encoding: "utf8" }) : []

step("every path that a packed file names is packed", () => {
  none(
    files.flatMap((file) => {
      if (!/\.(?:js|ts|map)$/.test(file)) return []
      const text = fs.readFileSync(path.join(installed, file), "utf8")
      const named = file.endsWith(".map")
        ? (JSON.parse(text).sources as ReadonlyArray<string>)
        : [...text.matchAll(/(?:from|import)\s*\(?\s*"(\.{1,2}\/[^"]+)"/g)].map(([, to = ""]) => to)
      return (
        named
          .map((to) => path.join(path.dirname(file), to))
          // declarations keep the .ts of their source; TypeScript reads it as .d.ts
          .filter(
            (to) => !files.includes(to) && !(file.endsWith(".d.ts") && files.includes(to.replace(/\.ts$/, ".d.ts")))
          )
          .map((to) => `${file}: ${to} is not packed`)
      )
    })
  )
})

step("every subpath imports", () => {
  none(
    subpaths.flatMap((key) => {
      const attributes = key.endsWith(".json") ? `, { with: { type: "json" } }` : ""
      const names = exec(
        consumer,
        process.execPath,
        "--input-type=module",
        "--eval",
        `console.log(Object.keys(await import("${specifier(key)}"${attributes})).toSorted().join())`
      ).trim()
      if (key.endsWith(".json")) return []
      const wanted = [...fs.readFileSync(path.join(root, "src", key, "index.ts"), "utf8").matchAll(/ as (\w+) from/g)]
        .map(([, name]) => name)
        .join()
      return names === wanted ? [] : [`${specifier(key)} has ${names || "nothing"}, wanted ${wanted}`]
    })
  )
})

step("internal and unlisted paths are refused", () => {
  const closed = files
    .filter((file) => /^dist\/(?:.*\/)?(?:internal\/.*|[A-Z]\w*)\.js$/.test(file))
    .flatMap((file) => [file, file.replace("dist/", "").replace(/\.js$/, "")])
  const paths = [...closed, "internal/x", "agent/internal/x", "src/index.ts"].map((file) => `${manifest.name}/${file}`)
  const tryAll = `for (const to of ${JSON.stringify(paths)})
    console.log(to, await import(to).then(() => "opens", (error) => error.code))`
  const said = exec(consumer, process.execPath, "--input-type=module", "--eval", tryAll).trim().split("\n")
  none(said.filter((line) => !line.endsWith(" ERR_PACKAGE_PATH_NOT_EXPORTED")))
})

step("a user of every subpath typechecks, without a DOM or Node's types", () => {
  const modules = subpaths.filter((key) => !key.endsWith(".json"))
  fs.writeFileSync(
    path.join(consumer, "user.ts"),
    modules.map((key, i) => `export * as m${i} from "${specifier(key)}"\n`).join("")
  )
  // the libraries are checked too, to see our declarations after stripInternal; what effect's own lack without a DOM is not ours
  const libs = "ES2023,ESNext.Disposable,WebWorker"
  const options = ["--noEmit", "--strict", "--skipLibCheck", "false", "--types", "", "--lib", libs]
  const { stdout } = spawnSync(bin("tsc"), [...options, "--target", "ES2022", "--module", "NodeNext", "user.ts"], {
    cwd: consumer,
    encoding: "utf8"
  })
  none(stdout.split("\n").filter((line) => line.includes("error TS") && !line.includes("node_modules/effect/")))
})

fs.rmSync(temp, { recursive: true, force: true })
process.exitCode = failed === 0 ? 0 : 1
