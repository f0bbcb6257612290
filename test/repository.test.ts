/** The repository's own rules: what lint, the guard and the generator promise, and what only a look at all files can tell. */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { folders, modules } from "../oxlint.config.ts"
import { stale } from "../scripts/codegen.ts"
import { check, problems } from "../scripts/houseRules.ts"

const root = path.resolve(import.meta.dirname, "..")
const sources = fs
  .readdirSync(path.join(root, "src"), { recursive: true, encoding: "utf8" })
  .map((file) => file.replaceAll(path.sep, "/"))
  .filter((file) => file.endsWith(".ts") && path.basename(file) !== "index.ts")

const inTemporaryFolder = <A>(files: Record<string, string>, use: (folder: string) => A): A => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "repository-test-"))
  try {
    for (const [name, text] of Object.entries(files)) {
      fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
      fs.writeFileSync(path.join(folder, name), text)
    }
    return use(folder)
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/** What our lint says about these files: one `file: rule: message` per finding, sorted, without the rules that need types. */
const lint = (files: Record<string, string>): ReadonlyArray<string> =>
  inTemporaryFolder(files, (folder) => {
    const config = fs.readFileSync(path.join(root, "oxlint.config.ts"), "utf8").replace("typeAware: true, ", "")
    fs.writeFileSync(path.join(folder, "oxlint.config.ts"), config)
    const { stdout } = spawnSync(path.join(root, "node_modules/.bin/oxlint"), ["--format", "json", "src"], {
      cwd: folder,
      encoding: "utf8"
    })
    const { diagnostics } = JSON.parse(stdout) as {
      diagnostics: ReadonlyArray<{ filename: string; code: string; message: string; help?: string }>
    }
    return diagnostics.map(({ filename, code, message, help }) => `${filename}: ${code}: ${help ?? message}`).toSorted()
  })

describe("lint", () => {
  /** One module per floor and its path as seen from `src`; folders stand for the higher floors. */
  const floors: ReadonlyArray<ReadonlyArray<string>> = [
    ...modules,
    ...folders.map((names) => names.map((name) => `${name}/Some`))
  ]
  const importing = (from: string, to: ReadonlyArray<string>): string =>
    [
      ...to.map((name, i) => {
        const relative = path.posix.relative(path.posix.dirname(from), name)
        return `import * as M${i} from "${relative.startsWith(".") ? relative : `./${relative}`}.ts"`
      }),
      `export const all = [${to.map((_, i) => `M${i}`).join(", ")}]`
    ].join("\n")

  it("lets no floor import a higher one", () => {
    const files: Record<string, string> = {}
    const expected: Array<string> = []
    floors.forEach((names, floor) => {
      const above = floors.slice(floor + 1).flat()
      for (const name of names) {
        files[`src/${name}.ts`] = importing(name, above)
        floors.slice(floor + 1).forEach((higher, i) => {
          for (const _ of higher) {
            expected.push(
              `src/${name}.ts: eslint(no-restricted-imports): Floor ${floor} may not import floor ${floor + 1 + i}: imports go down only.`
            )
          }
        })
      }
    })
    assert.deepStrictEqual(lint(files), expected.toSorted())
  })

  it("lets every floor import the ones below", () => {
    const files: Record<string, string> = {}
    floors.forEach((names, floor) => {
      for (const name of names) files[`src/${name}.ts`] = importing(name, floors.slice(0, floor).flat())
    })
    assert.deepStrictEqual(lint(files), [])
  })

  it("knows the floor of every module of the core", () => {
    const core = sources
      .filter((file) => !file.includes("/") || file.startsWith("internal/"))
      .map((file) => file.replace(/\.ts$/, ""))
    assert.deepStrictEqual(modules.flat().toSorted(), core.toSorted(), "the table `modules` in oxlint.config.ts")
  })

  it("keeps barrels, platforms and cycles out of src, and unstable Effect out of the core", () => {
    const message = (file: string, help: string) => `src/${file}: eslint(no-restricted-imports): ${help}`
    const bad = (specifier: string) => `import * as X from "${specifier}"\nexport const x = X`
    const found = lint({
      "src/Agent.ts": bad("effect"),
      "src/Content.ts": bad("./index.ts"),
      "src/SubagentRun.ts": bad("effect/ai/Tool"),
      "src/Subagents.ts": bad("effect/FileSystem"),
      "src/internal/id.ts": bad("effect/process"),
      "src/process/A.ts": bad("node:child_process"),
      "src/providers/A.ts": bad("@effect/platform-node/NodeServices"),
      "src/testing/A.ts": bad("effect-subagent/agent"),
      "src/tool/A.ts": bad("../agent/index.ts"),
      "src/agent/A.ts": bad("effect/ai/Tool"),
      "src/agent/B.ts": bad("./C.ts"),
      "src/agent/C.ts": bad("./B.ts")
    })
    const platform = "src runs anywhere Effect runs: ask for a service, not for a platform."
    const index = "Index files are for users: import the module itself."
    const unstable = "Floors 0 to 2 import stable Effect modules only."
    assert.deepStrictEqual(
      found.filter((line) => !line.includes("no-cycle")),
      [
        message("Agent.ts", "Import the module (effect/Effect), not the barrel."),
        message("Content.ts", index),
        message("SubagentRun.ts", unstable),
        message("Subagents.ts", unstable),
        message("internal/id.ts", unstable),
        message("process/A.ts", platform),
        message("providers/A.ts", platform),
        message("testing/A.ts", "Inside src, import by relative path."),
        message("tool/A.ts", index)
      ]
    )
    assert.deepStrictEqual(
      found.filter((line) => line.includes("no-cycle")).map((line) => line.split(":")[0]),
      ["src/agent/B.ts", "src/agent/C.ts"]
    )
  })

  it("counts as unstable every module that the installed effect tags so", () => {
    const effect = path.join(root, "node_modules/effect/src")
    const unstable = fs.readdirSync(effect, { recursive: true, encoding: "utf8" }).filter((file) => {
      if (!file.endsWith(".ts") || file.includes("internal")) return false
      const text = fs.readFileSync(path.join(effect, file), "utf8")
      return text.includes("@stability unstable") && !text.includes("@stability stable")
    })
    assert.isAbove(unstable.length, 200)
    const specifiers = unstable.map((file) => `effect/${file.replaceAll(path.sep, "/").replace(/\.ts$/, "")}`)
    const imports = specifiers.map((specifier, i) => `import * as M${i} from "${specifier}"`)
    const all = `export const all = [${specifiers.map((_, i) => `M${i}`).join(", ")}]`
    assert.strictEqual(lint({ "src/Agent.ts": [...imports, all].join("\n") }).length, specifiers.length)
  })

  it("refuses clocks, randomness and the console, but for the edges to plain JavaScript", () => {
    const text = `export const all = () => [Date.now(), new Date(), Math.random(), setTimeout, crypto, console.log()]`
    const rules = (file: string) => lint({ [file]: text }).map((line) => line.split(": ")[1])
    const global = "eslint(no-restricted-globals)"
    const others = ["eslint(no-console)", "eslint(no-restricted-properties)"]
    assert.deepStrictEqual(rules("src/agent/A.ts"), [others[0], global, global, global, global, others[1]])
    assert.deepStrictEqual(rules("src/promise/A.ts"), others)
  })
})

describe("house rules", () => {
  const module = (body: string): string => `/** A module.\n * @since 0.1.0 */\nimport "./b.ts"\n${body}\n`
  const doc = "/** Says what.\n * @category models\n * @since 0.1.0 */\n"

  it("find nothing in this repository", () => {
    assert.deepStrictEqual(check(root), [])
  })

  it("refuse `async`, `try` and `throw`, but for the edges to plain JavaScript", () => {
    const text = module(
      "const a = async () => {}\nconst b = { async c() { try { throw a } finally {} } }\nvoid [a, b, async function () {}]"
    )
    assert.deepStrictEqual(problems("src/A.ts", text), [
      "src/A.ts:4 `async`: use Effect.gen or Effect.fn",
      "src/A.ts:5 `async`: use Effect.gen or Effect.fn",
      "src/A.ts:5 `try`: use Effect.try or a Result",
      "src/A.ts:5 `throw`: fail in the error channel, or Effect.die",
      "src/A.ts:6 `async`: use Effect.gen or Effect.fn"
    ])
    assert.deepStrictEqual(problems("src/promise/A.ts", text), [])
    assert.deepStrictEqual(problems("src/tool/PlainTool.ts", text), [])
    assert.deepStrictEqual(problems("src/internal/abortSignal.ts", text), [])
  })

  it("ask every public export for a summary, @since and one @category of the list", () => {
    assert.deepStrictEqual(
      problems(
        "src/A.ts",
        module(
          [
            `export const a = 1`,
            `/** @category models\n * @since 0.1.0 */\nexport interface B {}`,
            `/** Says what.\n * @category models */\nexport class C {}`,
            `/** Says what.\n * @since 0.1.0 */\nexport type D = 1`,
            `/** Says what.\n * @category utils\n * @since 0.1.0 */\nexport declare namespace E {}`,
            `${doc}// a reason\nexport function f(a: string): void\nexport function f(a: number): void\nexport function f() {}`,
            `/** @internal */\nexport const g = 1`,
            `${doc}export interface H {}\nexport const H = 1`
          ].join("\n")
        )
      ).map((line) => line.replace(/ needs one @category of .*/, " category")),
      [
        "src/A.ts:4 export a: no doc comment",
        "src/A.ts:7 export B: the doc comment has no summary",
        "src/A.ts:10 export C: no @since",
        "src/A.ts:13 export D: category",
        "src/A.ts:17 export E: category",
        "src/A.ts:31 export H: no doc comment"
      ]
    )
    assert.deepStrictEqual(problems("src/internal/a.ts", "export const a = 1"), [])
    assert.deepStrictEqual(problems("src/index.ts", "export {}"), [])
  })

  it("ask every public module for a header", () => {
    assert.deepStrictEqual(problems("src/A.ts", "const a = 1"), [
      "src/A.ts:1 no header: what this is, who calls it, who owns what"
    ])
  })

  it("refuse files over 500 lines", () => {
    const lines = (count: number) => problems("src/A.ts", module("//\n".repeat(count - 3)))
    assert.deepStrictEqual(lines(500), [])
    assert.deepStrictEqual(lines(501), ["src/A.ts:1 501 lines: split it by job, 500 is the most"])
  })

  it("refuse machine paths and loose ends, in the docs too", () => {
    const message = "no machine paths and no loose ends"
    // put together, so that this file has none itself
    const [work, temporary] = ["work", "tmp"].map((folder) => `/${folder}/`)
    const text = `see ${work}x\nand ${temporary}x\n// TODO, FIXME\nhttps://a.b/worked`
    assert.deepStrictEqual(problems("docs/a.md", text), [
      `docs/a.md:1 "${work}": ${message}`,
      `docs/a.md:2 "${temporary}": ${message}`,
      `docs/a.md:3 "TODO": ${message}`,
      `docs/a.md:3 "FIXME": ${message}`
    ])
  })
})

describe("tests", () => {
  it("mirror src", () => {
    const missing = sources
      .map((file) => `test/${file.replace(/\.ts$/, ".test.ts")}`)
      .filter((file) => !fs.existsSync(path.join(root, file)))
    assert.deepStrictEqual(missing, [])
  })
})

describe("generated index files", () => {
  const manifest = `{ "exports": { "./package.json": "", ".": {}, "./agent": {}, "./tool": {}, "./internal/*": null } }`

  it("list the modules of each subpath, and nothing internal", () => {
    inTemporaryFolder(
      {
        "package.json": manifest,
        "src/B.ts": "",
        "src/A.ts": "",
        "src/index.ts": "old",
        "src/tsconfig.json": "",
        "src/internal/c.ts": "",
        "src/agent/D.ts": "",
        "src/process/E.ts": ""
      },
      (folder) => {
        const lines = stale(folder).map(({ file, text }) => [
          path.relative(folder, file),
          ...text.split("\n").filter((line) => line.startsWith("export"))
        ])
        assert.deepStrictEqual(lines, [
          ["src/index.ts", `export * as A from "./A.ts"`, `export * as B from "./B.ts"`],
          ["src/agent/index.ts", `export * as D from "./D.ts"`],
          ["src/tool/index.ts", "export type {}"]
        ])
      }
    )
  })

  it("are current when they are what would be written", () => {
    inTemporaryFolder({ "package.json": manifest, "src/A.ts": "" }, (folder) => {
      for (const { file, text } of stale(folder)) {
        fs.mkdirSync(path.dirname(file), { recursive: true })
        fs.writeFileSync(file, text)
      }
      assert.deepStrictEqual(stale(folder), [])
    })
  })
})

describe("the Node guard", () => {
  const guard = (version: string) => {
    const fake = `Object.defineProperty(process, "versions", { value: { node: "${version}" } }); require("./scripts/node-guard.cjs")`
    const { status, stderr } = spawnSync(process.execPath, ["--eval", fake], { cwd: root, encoding: "utf8" })
    return { status, stderr }
  }

  it("refuses an older Node and says what to do", () => {
    assert.deepStrictEqual(guard("20.20.2"), {
      status: 1,
      stderr:
        "effect-subagent needs Node >= 22.19, but this is Node 20.20.2.\n" +
        "Run `npm ci` without --ignore-scripts (it installs the pinned Node into node_modules), then use the npm scripts.\n"
    })
    assert.strictEqual(guard("22.18.9").status, 1)
  })

  it("lets Node 22.19 and newer pass", () => {
    for (const version of ["22.19.0", "24.0.0"]) assert.deepStrictEqual(guard(version), { status: 0, stderr: "" })
  })

  it("comes first in every npm script", () => {
    const { scripts } = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"))
    const unguarded = Object.entries<string>(scripts)
      .filter(
        ([, script]) =>
          !/^(?:node scripts\/node-guard\.cjs &&|node --require \.\/scripts\/node-guard\.cjs|npm run) /.test(script)
      )
      .map(([name]) => name)
    assert.deepStrictEqual(unguarded, [])
  })
})
