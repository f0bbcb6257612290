import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Agent, CurrentAgent } from "effect-subagent"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import * as FolderTools from "../../../docs/examples/survey/FolderTools.ts"
import { Journal } from "../../../docs/examples/survey/Journal.ts"
import { temporaryFolder } from "../folder.ts"

/** Calls a tool as an agent's loop does, and gives its result: a string is a failed one. */
const call = <Name extends keyof typeof FolderTools.FolderTools.tools>(
  folder: string,
  name: Name,
  params: { readonly path: string; readonly recursive?: boolean },
  journal = new Journal(),
  agent: Agent.Agent = { id: "agent", session: { header: { id: "session" } } }
) =>
  Effect.gen(function* () {
    const kit = yield* FolderTools.FolderTools
    const results = yield* kit.handle(name, params as never, "call")
    return Option.getOrThrow(yield* Stream.runLast(results)).result
  }).pipe(
    Effect.provide(FolderTools.layer(folder, journal)),
    Effect.provideService(CurrentAgent.CurrentAgent, agent),
    Effect.provide(NodeServices.layer)
  )

describe("read_file", () => {
  it.effect("counts the lines of a file to its end, the last one also where it does not end", () =>
    Effect.gen(function* () {
      const texts = { "": 0, "\n": 1, a: 1, "a\n": 1, "a\r\nb": 2, "\n\n\n": 3 }
      const folder = yield* temporaryFolder()
      for (const [text, lines] of Object.entries(texts)) {
        fs.writeFileSync(path.join(folder, "file"), text)
        const bytes = text.length
        const expected: unknown = { lines, bytes, binary: false, text, isWhole: true }
        assert.deepStrictEqual(yield* call(folder, "read_file", { path: "file" }), expected)
      }
    })
  )

  it.effect("gives whole lines from the beginning of a huge file, and counts them all", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder({
        "lines.txt": "äöü\n".repeat(1_000_000),
        "line.txt": "x".repeat(3_000_000)
      })
      const lines = (yield* call(folder, "read_file", { path: "lines.txt" })) as FolderTools.FileText
      assert.deepStrictEqual(
        { ...lines, text: "" },
        { lines: 1_000_000, bytes: 7_000_000, binary: false, text: "", isWhole: false }
      )
      assert.match(lines.text, /^(äöü\n)+$/)
      assert.isAtMost(Buffer.byteLength(lines.text), 256 * 1024)
      const line = (yield* call(folder, "read_file", { path: "line.txt" })) as FolderTools.FileText
      assert.deepStrictEqual(
        { ...line, text: "" },
        { lines: 1, bytes: 3_000_000, binary: false, text: "", isWhole: false }
      )
      assert.strictEqual(line.text.length, 256 * 1024)
    })
  )

  it.effect("says that a file is binary, and gives nothing of it", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder({
        nul: "a\0b\nc",
        control: "x\u0001\n",
        colour: "\u001b[1mbold\n",
        latin: Buffer.of(228, 10)
      })
      const binary = Effect.fnUntraced(function* (name: string) {
        return ((yield* call(folder, "read_file", { path: name })) as FolderTools.FileText).binary
      })
      assert.deepStrictEqual(yield* Effect.forEach(["nul", "control", "colour", "latin"], binary), [
        true,
        true,
        false,
        false
      ])
      const expected: unknown = { lines: 2, bytes: 5, binary: true, text: "", isWhole: true }
      assert.deepStrictEqual(yield* call(folder, "read_file", { path: "nul" }), expected)
    })
  )

  it.effect("refuses what is not in the folder", () =>
    Effect.gen(function* () {
      const outside = yield* temporaryFolder({ secret: "secret", "below/secret": "secret" })
      const folder = yield* temporaryFolder({ "inside/file": "x" })
      const sibling = `${folder}-sibling`
      fs.mkdirSync(sibling)
      fs.writeFileSync(path.join(sibling, "secret"), "secret")
      yield* Effect.addFinalizer(() => Effect.sync(() => fs.rmSync(sibling, { recursive: true })))
      fs.symlinkSync(path.join(outside, "secret"), path.join(folder, "link"))
      fs.symlinkSync(outside, path.join(folder, "folder"))
      fs.symlinkSync(`../${path.basename(sibling)}/secret`, path.join(folder, "sibling"))
      fs.symlinkSync("link", path.join(folder, "inside/../chain"))
      const refused = {
        [path.join(outside, "secret")]: "not a path inside the folder",
        [path.join(folder, "inside/file")]: "not a path inside the folder",
        [`../${path.basename(outside)}/secret`]: "not a path inside the folder",
        "inside/../../x": "not a path inside the folder",
        "inside/../inside/file": "not a path inside the folder",
        "inside/file\0": "not a path inside the folder",
        link: "leads out of the folder",
        chain: "leads out of the folder",
        sibling: "leads out of the folder",
        "folder/secret": "leads out of the folder",
        "folder/below/secret": "leads out of the folder"
      }
      for (const [path, message] of Object.entries(refused)) {
        assert.strictEqual(yield* call(folder, "read_file", { path }), message, path)
      }
      for (const path of ["..", "folder", outside, "folder/below"]) {
        assert.isString(yield* call(folder, "list_files", { path, recursive: true }), path)
      }
    })
  )

  it.effect("fails, and does not hang, on what is no file", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder({ "below/file": "x" })
      execFileSync("mkfifo", [path.join(folder, "fifo")])
      fs.symlinkSync("nowhere", path.join(folder, "dangling"))
      fs.symlinkSync("self", path.join(folder, "self"))
      fs.symlinkSync("below/file", path.join(folder, "link"))
      assert.strictEqual(yield* call(folder, "read_file", { path: "fifo" }), "not a file (FIFO)")
      assert.strictEqual(yield* call(folder, "read_file", { path: "below" }), "not a file (Directory)")
      assert.strictEqual(yield* call(folder, "read_file", { path: "dangling" }), "ENOENT: no such file or directory")
      assert.strictEqual(yield* call(folder, "read_file", { path: "missing" }), "ENOENT: no such file or directory")
      assert.strictEqual(
        yield* call(folder, "read_file", { path: "self" }),
        "ELOOP: too many symbolic links encountered"
      )
      assert.strictEqual(yield* call(folder, "read_file", { path: "below/file/x" }), "ENOTDIR: not a directory")
      assert.isObject(yield* call(folder, "read_file", { path: "link" }))
    })
  )

  it.effect("notes who has read what", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder({ file: "x" })
      const journal = new Journal()
      const agent = yield* Agent.root()
      yield* call(folder, "read_file", { path: "file" }, journal, agent)
      yield* call(folder, "read_file", { path: "missing" }, journal, agent)
      yield* call(folder, "read_file", { path: "file" }, journal)
      assert.deepStrictEqual(journal.readsOf(agent.id), ["file"])
      assert.deepStrictEqual(journal.readsOf("agent"), ["file"])
      assert.deepStrictEqual(journal.readsOf("nobody"), [])
    })
  )
})

describe("list_files", () => {
  it.effect("lists a folder, or all that is below it, and follows no link", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder({ "b/c/deep": "", "b/a": "", "a\nb": "", "z z": "" })
      fs.mkdirSync(path.join(folder, "empty"))
      fs.symlinkSync("..", path.join(folder, "b/up"))
      execFileSync("mkfifo", [path.join(folder, "fifo")])
      const top: unknown = [
        { path: "a\nb", kind: "file" },
        { path: "b", kind: "folder" },
        { path: "empty", kind: "folder" },
        { path: "fifo", kind: "other", note: "FIFO" },
        { path: "z z", kind: "file" }
      ]
      assert.deepStrictEqual(yield* call(folder, "list_files", { path: ".", recursive: false }), top)
      const below: unknown = [
        { path: "b/a", kind: "file" },
        { path: "b/c/deep", kind: "file" },
        { path: "b/up", kind: "link", note: ".." }
      ]
      assert.deepStrictEqual(yield* call(folder, "list_files", { path: "b", recursive: true }), below)
      assert.deepStrictEqual(yield* call(folder, "list_files", { path: "empty", recursive: true }), [])
      assert.strictEqual(
        yield* call(folder, "list_files", { path: "z z", recursive: true }),
        "ENOTDIR: not a directory"
      )
    })
  )
})
