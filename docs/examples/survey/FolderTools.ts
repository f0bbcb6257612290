/**
 * Two tools that look into one folder and never out of it.
 *
 * Paths are relative to the folder. Absolute paths, `..` and whatever a link leads to outside are refused: a refusal is
 * a failed tool result, which the model reads, and not the end of the agent. The text that is given is bounded; lines
 * are counted to the end of the file, however long it is.
 */
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { CurrentAgent } from "effect-subagent"
import type { Journal } from "./Journal.ts"

export type Entry = typeof Entry.Type
export const Entry = Schema.Struct({
  path: Schema.String,
  kind: Schema.Literals(["file", "folder", "link", "other"]),
  /** Where a link leads, what an other thing is, why a folder can't be opened. */
  note: Schema.optionalKey(Schema.String)
})

export type FileText = typeof FileText.Type
export const FileText = Schema.Struct({
  /** A last line that does not end is one too. */
  lines: Schema.Int,
  bytes: Schema.Int,
  binary: Schema.Boolean,
  /** The beginning of the file, in whole lines where it has any; nothing of a binary one. */
  text: Schema.String,
  isWhole: Schema.Boolean
})

export const FolderTools = Toolkit.make(
  Tool.make("list_files", {
    description: "Lists what is in a folder. Links are not followed.",
    parameters: Schema.Struct({ path: Schema.String, recursive: Schema.Boolean }),
    success: Schema.Array(Entry),
    failure: Schema.String,
    failureMode: "return"
  }),
  Tool.make("read_file", {
    description: "Reads a file: how many lines it has, and the beginning of its text.",
    parameters: Schema.Struct({ path: Schema.String }),
    success: FileText,
    failure: Schema.String,
    failureMode: "return",
    dependencies: [CurrentAgent.CurrentAgent]
  })
)

/** How many bytes of a file are given unless fewer are asked for. */
const wholeText = 256 * 1024

/** The handlers of the tools, for the folder with this real path. No more than `textLimit` bytes of a file are given. */
export const layer = (
  folder: string,
  journal: Journal,
  textLimit = wholeText
): Layer.Layer<Tool.HandlersFor<typeof FolderTools.tools>, never, FileSystem.FileSystem | Path.Path> =>
  FolderTools.toLayer(
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path

      /** The real path of something in the folder. */
      const confine = Effect.fnUntraced(function* (asked: string) {
        if (asked.includes("\0") || path.isAbsolute(asked) || asked.split(path.sep).includes("..")) {
          return yield* Effect.fail("not a path inside the folder")
        }
        const real = yield* Effect.mapError(fs.realPath(path.join(folder, asked)), explain)
        const way = path.relative(folder, real)
        if (way.split(path.sep)[0] === ".." || path.isAbsolute(way))
          return yield* Effect.fail("leads out of the folder")
        return real
      })

      const look = Effect.fnUntraced(
        function* (entry: string) {
          const full = path.join(folder, entry)
          const link = yield* Effect.result(fs.readLink(full))
          if (Result.isSuccess(link)) return { path: entry, kind: "link", note: link.success } satisfies Entry
          const { type } = yield* fs.stat(full)
          if (type === "File") return { path: entry, kind: "file" } satisfies Entry
          if (type === "Directory") return { path: entry, kind: "folder" } satisfies Entry
          return { path: entry, kind: "other", note: type } satisfies Entry
        },
        // whoever reads it is told why that can't be done
        (looking, path) => Effect.catch(looking, () => Effect.succeed<Entry>({ path, kind: "file" }))
      )

      const namesIn = (folder: string) =>
        Effect.flatMap(confine(folder), (real) => Effect.mapError(fs.readDirectory(real), explain))

      const lookInto: (
        folder: string,
        names: ReadonlyArray<string>,
        recursive: boolean
      ) => Effect.Effect<ReadonlyArray<Entry>> = Effect.fnUntraced(function* (folder, names, recursive) {
        const found: Array<Entry> = []
        const entries = yield* Effect.forEach(names.toSorted(), (name) => look(path.join(folder, name)), {
          concurrency: 16
        })
        for (const entry of entries) {
          if (entry.kind !== "folder" || !recursive) {
            found.push(entry)
            continue
          }
          const below = yield* Effect.result(namesIn(entry.path))
          if (Result.isFailure(below)) found.push({ ...entry, note: below.failure })
          else for (const deeper of yield* lookInto(entry.path, below.success, true)) found.push(deeper)
        }
        return found
      })

      const read = Effect.fnUntraced(function* (asked: string) {
        const real = yield* confine(asked)
        const { type } = yield* Effect.mapError(fs.stat(real), explain)
        if (type !== "File") return yield* Effect.fail(`not a file (${type})`)
        const count = new TextCount(textLimit)
        yield* Effect.mapError(
          Stream.runForEach(fs.stream(real, { chunkSize: wholeText }), (bytes) => Effect.sync(() => count.add(bytes))),
          explain
        )
        return count.result()
      })

      return FolderTools.of({
        list_files: ({ path, recursive }) => Effect.flatMap(namesIn(path), (names) => lookInto(path, names, recursive)),
        read_file: ({ path }) =>
          Effect.flatMap(Effect.service(CurrentAgent.CurrentAgent), (agent) =>
            Effect.tap(read(path), () => journal.noteRead(agent.id, path))
          )
      })
    })
  )

/** The system's own words, without its path: whoever asked knows which one it was. */
const explain = ({ reason }: PlatformError): string =>
  reason.cause instanceof Error ? reason.cause.message.replace(/, \w+ '[^]*$/, "") : reason.message

/** A byte that no text has: a control character other than those that move or colour it. */
const isBinary = (byte: number): boolean => byte < 7 || (byte > 13 && byte < 32 && byte !== 27)

/** Counts the lines of a file and keeps its beginning. */
class TextCount {
  private lines = 0
  private bytes = 0
  private endsLine = true
  private beginning = new Uint8Array()
  private readonly limit: number

  constructor(limit: number) {
    this.limit = limit
  }

  add(chunk: Uint8Array): void {
    if (chunk.length === 0) return
    if (this.beginning.length < this.limit) {
      const more = chunk.subarray(0, this.limit - this.beginning.length)
      const joined = new Uint8Array(this.beginning.length + more.length)
      joined.set(this.beginning)
      joined.set(more, this.beginning.length)
      this.beginning = joined
    }
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) this.lines++
    this.bytes += chunk.length
    this.endsLine = chunk.at(-1) === 10
  }

  result(): FileText {
    const binary = this.beginning.some(isBinary)
    const isWhole = this.bytes <= this.beginning.length
    const text = binary ? "" : new TextDecoder().decode(this.beginning)
    return {
      lines: this.lines + (this.endsLine ? 0 : 1),
      bytes: this.bytes,
      binary,
      text: isWhole ? text : text.slice(0, text.lastIndexOf("\n") + 1 || text.length),
      isWhole
    }
  }
}
