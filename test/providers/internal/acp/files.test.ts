import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { readTextFile, writeTextFile } from "../../../../src/providers/internal/acp/files.ts"

/** A folder `root` and a folder beside it. */
const folders = () => {
  const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "acp-files-")))
  const root = path.join(base, "root")
  const beside = path.join(base, "root-beside")
  fs.mkdirSync(root)
  fs.mkdirSync(beside)
  fs.writeFileSync(path.join(root, "a.txt"), "one\ntwo\r\nthree")
  fs.writeFileSync(path.join(beside, "secret.txt"), "secret")
  return { base, root, beside }
}

const live = (
  name: string,
  test: (at: ReturnType<typeof folders>) => Effect.Effect<void, unknown, NodeServices.NodeServices>
) =>
  it.live(name, () =>
    Effect.provide(
      Effect.suspend(() => test(folders())),
      NodeServices.layer
    )
  )

const read = (root: string, file: string, fields: object = {}) =>
  readTextFile([root], { sessionId: "s", path: file, ...fields })
const write = (root: string, file: string, content = "new") =>
  writeTextFile([root], { sessionId: "s", path: file, content })

describe("the files of an agent", () => {
  live("are read whole or in lines", ({ root }) =>
    Effect.gen(function* () {
      const file = path.join(root, "a.txt")
      const parts: ReadonlyArray<readonly [object, string]> = [
        [{}, "one\ntwo\r\nthree"],
        [{ line: 0 }, "one\ntwo\r\nthree"],
        [{ line: 2 }, "two\r\nthree"],
        [{ limit: 1 }, "one\n"],
        [{ line: 2, limit: 1 }, "two\r\n"],
        [{ line: 3, limit: 9 }, "three"],
        [{ line: 4 }, ""],
        [{ limit: 0 }, ""],
        [{ limit: -1 }, ""]
      ]
      for (const [fields, content] of parts) assert.deepStrictEqual(yield* read(root, file, fields), { content })
    })
  )

  live("may have bytes that are no UTF-8", ({ root }) =>
    Effect.gen(function* () {
      fs.writeFileSync(path.join(root, "b"), Uint8Array.of(0x61, 0xff, 0x62))
      assert.deepStrictEqual(yield* read(root, path.join(root, "b")), { content: "a\uFFFDb" })
    })
  )

  live("are written, and the folders they are in are made", ({ root }) =>
    Effect.gen(function* () {
      const file = path.join(root, "new", "deep", "file.txt")
      assert.deepStrictEqual(yield* write(root, file), {})
      assert.strictEqual(fs.readFileSync(file, "utf8"), "new")
    })
  )

  live("are not found, and that is said so", ({ root }) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(read(root, path.join(root, "none")))
      assert.deepStrictEqual([error.code, error.message], [-32002, "Resource not found"])
    })
  )

  live("are kept within the roots", ({ beside, root }) =>
    Effect.gen(function* () {
      fs.symlinkSync(beside, path.join(root, "link"))
      fs.symlinkSync(path.join(beside, "secret.txt"), path.join(root, "file-link"))
      fs.symlinkSync(path.join(beside, "not-yet"), path.join(root, "dangling"))
      fs.symlinkSync("../root-beside/not-yet", path.join(root, "relative"))
      for (const file of [
        path.join(beside, "secret.txt"),
        `${root}/../root-beside/secret.txt`,
        path.join(root, "link", "secret.txt"),
        path.join(root, "file-link"),
        path.join(root, "dangling"),
        path.join(root, "relative"),
        path.join(root, "link", "not-yet"),
        "/no/such/place"
      ]) {
        assert.strictEqual((yield* Effect.flip(read(root, file))).code, -32602, `reading ${file}`)
        assert.strictEqual((yield* Effect.flip(write(root, file))).code, -32602, `writing ${file}`)
      }
      assert.deepStrictEqual(fs.readdirSync(beside), ["secret.txt"])
      assert.strictEqual(fs.readFileSync(path.join(beside, "secret.txt"), "utf8"), "secret")
    })
  )

  live("may be reached by links that stay within the roots, and have names that begin with dots", ({ root }) =>
    Effect.gen(function* () {
      fs.symlinkSync(path.join(root, "a.txt"), path.join(root, "link"))
      fs.symlinkSync(path.join(root, "later.txt"), path.join(root, "dangling"))
      assert.deepStrictEqual(yield* read(root, path.join(root, "link"), { limit: 1 }), { content: "one\n" })
      yield* write(root, path.join(root, "dangling"))
      assert.strictEqual(fs.readFileSync(path.join(root, "later.txt"), "utf8"), "new")
      yield* write(root, path.join(root, "..hidden"))
      assert.strictEqual(fs.readFileSync(path.join(root, "..hidden"), "utf8"), "new")
    })
  )

  live("are never what waits for another process, or has no end", ({ root }) =>
    Effect.gen(function* () {
      const pipe = path.join(root, "pipe")
      execFileSync("mkfifo", [pipe])
      for (const file of [pipe, "/dev/zero"]) {
        assert.strictEqual((yield* Effect.flip(read("/", file))).message, `Not a file: ${file}`)
        assert.strictEqual((yield* Effect.flip(write("/", file))).message, `Not a file: ${file}`)
      }
      // of no size, and endless
      assert.deepStrictEqual(yield* read("/", "/proc/self/pagemap"), { content: "" })
    })
  )

  live("have paths that can be", ({ root }) =>
    Effect.gen(function* () {
      const long = yield* Effect.flip(read(root, `${root}/${"a/".repeat(500_000)}`))
      assert.deepStrictEqual([long.code, long.message], [-32602, "A path of more than 4096 characters"])
      for (const name of ["a\0b", "n".repeat(300)]) {
        assert.strictEqual((yield* Effect.flip(read(root, path.join(root, name)))).code, -32603)
        assert.strictEqual((yield* Effect.flip(write(root, path.join(root, name)))).code, -32603)
      }
    })
  )

  it.effect("are not looked for beyond the top, where even that is not there", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(read("/a", "/a/b"))
      assert.strictEqual(error.code, -32002)
    }).pipe(Effect.provide([FileSystem.layerNoop({}), Path.layer]))
  )

  live("are read in any of several roots, which may be links themselves", ({ base, beside, root }) =>
    Effect.gen(function* () {
      const linked = path.join(base, "linked")
      fs.symlinkSync(beside, linked)
      const file = path.join(linked, "secret.txt")
      assert.deepStrictEqual(yield* readTextFile([root, linked], { sessionId: "s", path: file }), { content: "secret" })
    })
  )

  live(
    "are refused if they are no files, have no absolute path, go in circles, or are too much for a message",
    ({ root }) =>
      Effect.gen(function* () {
        fs.symlinkSync(path.join(root, "circle"), path.join(root, "circle"))
        fs.writeFileSync(path.join(root, "big"), "")
        fs.truncateSync(path.join(root, "big"), 16 * 1024 * 1024 + 1)
        assert.strictEqual((yield* Effect.flip(read(root, root))).message, `Not a file: ${root}`)
        assert.strictEqual((yield* Effect.flip(read(root, "a.txt"))).message, "Not absolute: a.txt")
        assert.strictEqual((yield* Effect.flip(read(root, path.join(root, "circle")))).code, -32603)
        assert.include((yield* Effect.flip(read(root, path.join(root, "big")))).message, "More than 16777216 bytes")
        assert.strictEqual((yield* Effect.flip(write(root, root))).message, `Not a file: ${root}`)
        assert.strictEqual((yield* Effect.flip(write(root, path.join(root, "a.txt", "b")))).code, -32603)
      })
  )
})
