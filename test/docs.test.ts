/**
 * The docs say what the source says. `UPDATE_DOCS=1 npm run test:quick -- test/docs.test.ts` rewrites what is derived from it: declarations,
 * regions of examples, the manifest of types and the lists of tests in the contract.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { problems } from "../scripts/houseRules.ts"
import * as Checks from "./docs/checks.ts"
import { declarations } from "./docs/declarations.ts"
import { anchors, fences, links, region } from "./docs/markdown.ts"
import { allTitles, cases, cited, titles, unproven, withProofs } from "./docs/proofs.ts"

const root = path.resolve(import.meta.dirname, "..")
const read = (file: string): string => fs.readFileSync(path.join(root, file), "utf8")
const contract = "docs/contract.md"

if (process.env["UPDATE_DOCS"] === "1") {
  Checks.update(root)
  fs.writeFileSync(path.join(root, contract), withProofs(read(contract), allTitles(root)))
}

const inTemporaryFolder = <A>(files: Record<string, string>, use: (folder: string) => A): A => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "docs-test-"))
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

const lineCount = (text: string): number => text.trimEnd().split("\n").length

describe("the docs", () => {
  it("show declarations and examples as they are in the source", () => {
    assert.deepStrictEqual(Checks.fenceProblems(root), [])
  })

  it("show and list every public type of the core", () => {
    assert.deepStrictEqual(Checks.vocabularyProblems(root), [])
    assert.strictEqual(read(Checks.manifest), Checks.manifestText(root))
  })

  it("have no dead link", () => {
    assert.deepStrictEqual(Checks.linkProblems(root), [])
  })

  it("are all reached from the map", () => {
    const listed = new Set(
      links(read("docs/core.md")).map(({ target }) => path.posix.join("docs", target.split("#")[0]!))
    )
    const pages = Checks.markdownFiles(root).filter((file) => file.startsWith("docs/") && file !== "docs/core.md")
    assert.deepStrictEqual(
      pages.filter((file) => !listed.has(file)),
      []
    )
  })

  it("have no machine paths and no loose ends", () => {
    assert.deepStrictEqual(
      Checks.markdownFiles(root).flatMap((file) => problems(file, read(file))),
      []
    )
  })

  it("keep to their length", () => {
    assert.isAtMost(lineCount(read("README.md")), 150)
    assert.isAtMost(lineCount(read("AGENTS.md")), 80)
    for (const file of Checks.markdownFiles(root).filter((file) => file.startsWith("docs/decisions/"))) {
      assert.isAtMost(lineCount(read(file)), 60, file)
    }
  })
})

describe("the README", () => {
  it("names the two commands first", () => {
    const commands = fences(read("README.md"))
      .flatMap(({ body }) => body.split("\n"))
      .filter((line) => line.startsWith("npm "))
    assert.deepStrictEqual(commands.slice(0, 2), ["npm ci && npm start", "npm ci && npm test"])
  })

  it("has a row for every subpath of the package, and no other", () => {
    const { exports } = JSON.parse(read("package.json")) as { exports: Record<string, unknown> }
    const subpaths = Object.keys(exports).filter((key) => key !== "./package.json" && exports[key] !== null)
    const rows = [...read("README.md").matchAll(/^\| `(effect-subagent[^`]*)` \|/gm)].map(([, name = ""]) => name)
    assert.deepStrictEqual(rows.toSorted(), subpaths.map((key) => path.posix.join("effect-subagent", key)).toSorted())
  })
})

describe("the contract", () => {
  /** Those that this version keeps, whole or in part. */
  const kept = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]

  it("names the tests that prove each promise", () => {
    assert.strictEqual(read(contract), withProofs(read(contract), allTitles(root)), "run with UPDATE_DOCS=1")
    assert.deepStrictEqual(unproven(read(contract), kept), [])
  })

  it("has all twenty promises, each with what this version keeps of it", () => {
    const items = [
      ...read(contract).matchAll(/^## (\d+)\. .+\n\n[\s\S]*?\n\n(?:\*\*(Kept|Kept in part|Not yet)\*\*)/gm)
    ]
    assert.deepStrictEqual(
      items.map(([, item]) => Number(item)),
      Array.from({ length: 20 }, (_, i) => i + 1)
    )
    assert.deepStrictEqual(
      items.filter(([, item, status]) => status === "Not yet" && kept.includes(Number(item))),
      []
    )
  })
})

describe("the examples", () => {
  const examples = fs
    .readdirSync(path.join(root, "docs/examples"))
    .filter((file) => file.endsWith(".ts"))
    .map((file) => `docs/examples/${file}`)

  it("compile", () => {
    const files = examples.map((file) => path.join(root, file))
    assert.isAbove(files.length, 0)
    assert.deepStrictEqual(Checks.compileProblems(root, files), [])
  })

  for (const file of examples) {
    it(`run: ${path.basename(file)}`, () => {
      inTemporaryFolder({ "a/one.ts": "export const one = 1\n", "two.md": "# Two\n" }, (folder) => {
        const printed = Checks.runExample(root, file, file.endsWith("/survey.ts") ? [folder] : [])
        assert.notStrictEqual(printed.trim(), "")
      })
    })
  }

  it("keep to the length that their issue gives them", () => {
    assert.isAtMost(lineCount(read("docs/examples/own-runtime.ts")), 60)
    for (const name of ["fork", "structured-output", "tool-filter", "approvals"]) {
      assert.isAtMost(lineCount(read(`docs/examples/${name}.ts`)), 40, name)
    }
    assert.isAtMost(lineCount(region(read("docs/examples/quickstart.ts"), "example")!), 15)
  })
})

describe("the checks of the docs", () => {
  const source = [
    "/** A module. */",
    "import * as Schema from 'effect/Schema'",
    "/** One. */",
    "export interface One {",
    "  /** A field. */",
    "  readonly a: string // why",
    "",
    "  readonly b: string",
    "}",
    "/** Two, a type and its schema. */",
    "export type Two = string",
    "export const Two: Schema.Codec<Two> = Schema.String",
    "/** Three. */",
    "export class Three {}",
    "const codes = {}",
    "export const four = codes",
    "interface Five {}",
    ""
  ].join("\n")
  const one = "export interface One {\n  readonly a: string\n  readonly b: string\n}"
  const fence = (tags: string, body: string) => `\`\`\`ts ${tags}\n${body}\n\`\`\`\n`
  const good = {
    "src/M.ts": source,
    "src/index.ts": "export * as M from './M.ts'",
    "src/internal/n.ts": "export interface N {}",
    [Checks.page]: [
      fence("type-equiv=M.One", one),
      fence("type-equiv=M.Two", "export type Two = string\nexport const Two: Schema.Codec<Two> = Schema.String"),
      fence("type-equiv=M.Three", "export class Three {}"),
      fence("type-equiv=M.codes", "const codes = {}")
    ].join("\n"),
    [Checks.manifest]:
      '[\n  { "module": "M", "name": "One" },\n  { "module": "M", "name": "Two" },\n  { "module": "M", "name": "Three" }\n]\n'
  }
  const inGood = <A>(changes: Record<string, string>, check: (root: string) => A): A =>
    inTemporaryFolder({ ...good, ...changes }, check)

  it("read declarations without their comments, and tell public types from the rest", () => {
    assert.deepStrictEqual(
      declarations("M.ts", source).map(({ isPublicType, name }) => [name, isPublicType]),
      [
        ["One", true],
        ["Two", true],
        ["Three", true],
        ["codes", false],
        ["four", false],
        ["Five", false]
      ]
    )
    assert.strictEqual(declarations("M.ts", source)[0]?.text, one)
    assert.throws(() => declarations("M.ts", "export interface {"), /M\.ts does not parse/)
  })

  it("find nothing where page, manifest and source agree", () => {
    inGood({}, (folder) => {
      assert.deepStrictEqual(Checks.fenceProblems(folder), [])
      assert.deepStrictEqual(Checks.vocabularyProblems(folder), [])
      assert.strictEqual(good[Checks.manifest], Checks.manifestText(folder))
    })
  })

  it("find a block that differs from the source, whichever of them changed", () => {
    const differs = [`${Checks.page}:1 differs from its source`]
    const changed = { "src/M.ts": source.replace("readonly b: string", "readonly b: number") }
    assert.deepStrictEqual(inGood(changed, Checks.fenceProblems), differs)
    const edited = { [Checks.page]: good[Checks.page].replace("  readonly b: string\n", "") }
    assert.deepStrictEqual(inGood(edited, Checks.fenceProblems), differs)
  })

  it("find a block whose type is gone", () => {
    const blocks = [
      fence("type-equiv=M.Six", ""),
      fence("type-equiv=internal/n.N", "export interface N {}"),
      fence("type-equiv=O.P", "")
    ]
    assert.deepStrictEqual(inGood({ "docs/a.md": blocks.join("") }, Checks.fenceProblems), [
      "docs/a.md:1 M.Six is not declared in src",
      "docs/a.md:7 O.P is not declared in src"
    ])
  })

  it("find a public type that page or manifest lack", () => {
    const added = { "src/M.ts": `${source}export interface Six {}\n`, "src/O.ts": "export type P = 1\n" }
    assert.deepStrictEqual(inGood(added, Checks.vocabularyProblems), [
      `${Checks.page} does not show M.Six`,
      `${Checks.page} does not show O.P`,
      `${Checks.manifest} does not list M.Six`,
      `${Checks.manifest} does not list O.P`
    ])
  })

  it("find a manifest that lists what is not there, and names that come twice", () => {
    const listed =
      '[{ "module": "M", "name": "Two" }, { "module": "M", "name": "One" }, { "module": "M", "name": "One" }, { "module": "M", "name": "Five" }, { "module": "M", "name": "Three" }]'
    const shown = good[Checks.page] + fence("type-equiv=M.Three", "export class Three {}")
    assert.deepStrictEqual(inGood({ [Checks.manifest]: listed, [Checks.page]: shown }, Checks.vocabularyProblems), [
      `${Checks.manifest} lists M.Five, which is no public type`,
      `${Checks.page} shows M.Three twice`,
      `${Checks.manifest} lists M.One twice`
    ])
  })

  it("find code that differs from its file or region, or that has none", () => {
    const example = "const a = 1\n  // #region x\n  const b = 2\n\n    const c = 3\n  // #endregion\n"
    const show = (text: string) => inGood({ "docs/examples/e.ts": example, "README.md": text }, Checks.fenceProblems)
    const file = "file=docs/examples/e.ts"
    assert.deepStrictEqual(show(fence(`${file} region=x`, "const b = 2\n\n  const c = 3")), [])
    assert.deepStrictEqual(show(fence(file, example.trimEnd())), [])
    assert.deepStrictEqual(show("```sh\nls\n```\n\n```\nany\n```\n"), [])
    assert.deepStrictEqual(show(fence(`${file} region=x`, "const b = 2")), ["README.md:1 differs from its source"])
    assert.deepStrictEqual(show(fence(`${file} region=y`, "")), ["README.md:1 docs/examples/e.ts has no region y"])
    assert.deepStrictEqual(show(fence("file=docs/f.ts", "")), ["README.md:1 docs/f.ts does not exist"])
    for (const language of ["ts", "typescript", "js", "mts", "tsx"]) {
      assert.deepStrictEqual(show(`text\n~~~${language}\nconst a: = 1\n~~~\n`), [
        "README.md:2 code is shown as type-equiv=Module.Name, or as file=… region=… of an example"
      ])
    }
  })

  it("find dead links, also to anchors, and leave code and other sites alone", () => {
    const text = [
      "# A heading, with `code` & more",
      "# Twice",
      "# Twice",
      '<a id="own"></a>',
      "[a](docs/b.md) [b](docs/b.md#b) [c](#a-heading-with-code--more) [d](#twice-1) [e](#own) [f](docs)",
      "[g](https://example.com/x) [h](mailto:a@b.c) `[i](gone.md)`",
      "```\n[j](gone.md)\n```",
      "[k](gone.md) [l](docs/b.md#gone) [m](#gone) ![n](gone.png)",
      "[o]: gone.md",
      "[p](/docs/b.md) [q](../README.md) [r](docs#b)"
    ].join("\n")
    const files = { "README.md": text, "docs/b.md": "# B\n[up](../README.md)\n[no](README.md)\n" }
    assert.deepStrictEqual(inTemporaryFolder(files, Checks.linkProblems), [
      "README.md:10 dead link gone.md",
      "README.md:10 dead link docs/b.md#gone",
      "README.md:10 dead link #gone",
      "README.md:10 dead link gone.png",
      "README.md:11 dead link gone.md",
      "README.md:12 dead link /docs/b.md",
      "README.md:12 dead link ../README.md",
      "README.md:12 dead link docs#b",
      "docs/b.md:3 dead link README.md"
    ])
  })

  it("look at every Markdown file but what was installed or built", () => {
    const files = { "A.md": "", "x/b/C.md": "", "x/d.ts": "", "node_modules/e/F.md": "", "dist/G.md": "" }
    assert.deepStrictEqual(inTemporaryFolder(files, Checks.markdownFiles), ["A.md", "x/b/C.md"])
  })

  it("know the anchors that GitHub gives to headings", () => {
    assert.deepStrictEqual(
      [...anchors("# 1. What is *it*?\n## [A link](to.md) `x_y`\n## Ünï – a\n\n```\n# not this\n```\n### Closed ###")],
      ["1-what-is-it", "a-link-x_y", "ünï--a", "closed"]
    )
  })

  it("tell fences from prose", () => {
    const [first, second, third] = fences("a\n````md x=1 y=b.c\n```ts\n```\n````\n~~~\nb\n~~~\n```sh\nopen")
    assert.deepStrictEqual(first, { line: 2, language: "md", tags: { x: "1", y: "b.c" }, body: "```ts\n```" })
    assert.deepStrictEqual(second, { line: 6, language: "", tags: {}, body: "b" })
    assert.deepStrictEqual(third, { line: 9, language: "sh", tags: {}, body: "open" })
  })

  it("rewrite what is derived, and nothing else", () => {
    const stale = {
      [Checks.page]: `# Title\n\n${good[Checks.page].replace(one, "old").replace("const codes = {}\n", "")}\nend`,
      [Checks.manifest]: "[]",
      "README.md": "```ts file=docs/gone.ts\nkept\n```\n```sh\nkept\n```"
    }
    inGood(stale, (folder) => {
      Checks.update(folder)
      const text = (file: string) => fs.readFileSync(path.join(folder, file), "utf8")
      assert.strictEqual(text(Checks.page), `# Title\n\n${good[Checks.page]}\nend`)
      assert.strictEqual(text(Checks.manifest), good[Checks.manifest])
      assert.strictEqual(text("README.md"), stale["README.md"])
    })
  })

  it("find an example that does not compile", () => {
    const files = { "bad.mts": 'export const a: number = "a"\n', "good.mts": "export const a: number = 1\n" }
    inTemporaryFolder(files, (folder) => {
      const bad = Checks.compileProblems(root, [path.join(folder, "bad.mts"), path.join(folder, "good.mts")])
      assert.strictEqual(bad.length, 1)
      assert.include(bad[0], "bad.mts(1,14): error TS2322")
    })
  })

  it("find an example that does not run", () => {
    const files = { "bad.ts": "process.exit(3)\n", "good.ts": "console.log(process.argv.length, process.version)\n" }
    inTemporaryFolder(files, (folder) => {
      assert.throws(() => Checks.runExample(root, path.join(folder, "bad.ts"), []))
      assert.strictEqual(Checks.runExample(root, path.join(folder, "good.ts"), ["a"]), `3 ${process.version}\n`)
    })
  })

  it("read which promises a title cites", () => {
    assert.deepStrictEqual(
      cited("settles once (7), announces (5, 10) [seed 13] (1-3) in (21) or (0) of f(x) (2 kB)"),
      [7, 5, 10, 1, 2, 3]
    )
  })

  const tests = [
    ...titles(
      "b.test.ts",
      [
        `describe("cancel (9)", () => {`,
        `  it.effect("stops (4)", () => f("x (1)"))`,
        "  it.effect.each([1])(`stops ${name} *twice*`, () => {})",
        `})`,
        `it.layer(L)("shared (5)", (it) => { it.effect.skip("is first", () => {}) })`,
        `it("is alone", () => Some.layer("(6)"))`
      ].join("\n")
    )
  ]

  it("collect the tests of a file, whichever way they are written", () => {
    assert.deepStrictEqual(tests, [
      { file: "b.test.ts", title: "cancel (9) › stops (4)", items: [9, 4] },
      { file: "b.test.ts", title: "cancel (9) › stops … *twice*", items: [9] },
      { file: "b.test.ts", title: "shared (5) › is first", items: [5] },
      { file: "b.test.ts", title: "is alone", items: [] }
    ])
  })

  it("collect the cases of the conformance suite", () => {
    const text =
      'const all = [{ item: 4, title: "starts", run: () => {} }, { item: n, title: "b" }, { item: 4 }, { ...{ title: "c" } }]'
    assert.deepStrictEqual(cases("src/c.ts", text), [{ file: "src/c.ts", title: "starts", items: [4] }])
    const written = withProofs("<!-- tests 4 -->\n<!-- /tests -->", cases("src/c.ts", text))
    assert.include(written, "- `src/c.ts`, the conformance suite\n  - starts\n")
  })

  it("write the lists of the contract, and see where one is empty, missing or out of date", () => {
    const page = (nine: string) =>
      `## 4. A\n<!-- tests 4 -->\n<!-- /tests -->\n## 9. B\n<!-- tests 9 -->\n${nine}<!-- /tests -->\n`
    const written = withProofs(page("old\n"), tests)
    assert.include(written, "Proven by 2 tests")
    assert.include(written, "- `b.test.ts`\n  - cancel (9) › stops (4)\n  - cancel (9) › stops … \\*twice\\*\n")
    assert.strictEqual(withProofs(written, tests), written)
    assert.notStrictEqual(withProofs(written, tests.slice(1)), written)
    assert.deepStrictEqual(unproven(written, [4, 9]), [])
    assert.deepStrictEqual(unproven(withProofs(written, tests.slice(1)), [4, 9, 10]), [4, 10])
  })
})
