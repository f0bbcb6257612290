/**
 * The files that an agent reads and writes through its client, kept within the folders that the host names.
 *
 * A path counts as what it stands for: `..` and links are followed before it is held against the folders, and what is
 * opened is the path that was held against them. This keeps an agent's requests in bounds, not the agent: that is a
 * process with all the rights of its user.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type * as PlatformError from "effect/PlatformError"
import * as Stream from "effect/Stream"
import { describeUnknown } from "../../../internal/describe.ts"
import { codes, RpcError } from "./connection.ts"
import type { ReadTextFileRequest, WriteTextFileRequest } from "./messages.ts"

type Needs = FileSystem.FileSystem | Path.Path

/** More than this is not read at once: it would have to go into one message. */
const maxFileBytes = 16 * 1024 * 1024

/** No system takes a longer path. */
const maxPathLength = 4096

const failed = (error: PlatformError.PlatformError): RpcError =>
  error.reason._tag === "NotFound"
    ? new RpcError({ code: codes.notFound, message: "Resource not found" })
    : new RpcError({ code: codes.internal, message: describeUnknown(error.reason) })

const outside = (path: string): RpcError =>
  new RpcError({ code: codes.invalidParams, message: `Not within the folders there are: ${path}` })

const notAFile = (path: string): RpcError => new RpcError({ code: codes.invalidParams, message: `Not a file: ${path}` })

/** What a path stands for, its last parts not being there yet. */
const standsFor = (path: string): Effect.Effect<string, PlatformError.PlatformError, Needs> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const { basename, dirname, join, resolve } = yield* Path.Path
    const real = yield* fs.realPath(path).pipe(
      Effect.map(Option.some),
      Effect.catchIf(
        ({ reason }) => reason._tag === "NotFound",
        () => Effect.succeedNone
      )
    )
    if (Option.isSome(real)) return real.value
    // a link to what is not there would be followed by whoever writes
    const target = yield* Effect.option(fs.readLink(path))
    if (Option.isSome(target)) return yield* standsFor(resolve(dirname(path), target.value))
    if (dirname(path) === path) return path
    return join(yield* standsFor(dirname(path)), basename(path))
  })

/** The path to open for a path that was asked for. */
const admit = Effect.fnUntraced(function* (roots: ReadonlyArray<string>, path: string) {
  const fs = yield* FileSystem.FileSystem
  const { isAbsolute, normalize, relative } = yield* Path.Path
  if (path.length > maxPathLength) {
    const message = `A path of more than ${maxPathLength} characters`
    return yield* new RpcError({ code: codes.invalidParams, message })
  }
  if (!isAbsolute(path)) return yield* new RpcError({ code: codes.invalidParams, message: `Not absolute: ${path}` })
  const real = yield* Effect.mapError(standsFor(normalize(path)), failed)
  for (const root of roots) {
    const within = relative(yield* Effect.mapError(fs.realPath(root), failed), real)
    if (!/^\.\.(?:[/\\]|$)/.test(within) && !isAbsolute(within)) return real
  }
  return yield* outside(path)
})

/** Reads lines of a text, the first being 1. Bytes that are no UTF-8 become replacement characters. */
export const readTextFile = Effect.fnUntraced(function* (
  roots: ReadonlyArray<string>,
  { limit, line = 1, path }: typeof ReadTextFileRequest.Type
) {
  const fs = yield* FileSystem.FileSystem
  const real = yield* admit(roots, path)
  const { size, type } = yield* Effect.mapError(fs.stat(real), failed)
  if (type !== "File") return yield* notAFile(path)
  if (size > maxFileBytes) {
    return yield* new RpcError({ code: codes.invalidParams, message: `More than ${maxFileBytes} bytes: ${path}` })
  }
  // no more than it was held to have: it may be growing, and what has no size may have no end
  const bytes = yield* Effect.mapError(Stream.mkUint8Array(fs.stream(real, { bytesToRead: size })), failed)
  const text = new TextDecoder().decode(bytes)
  if (line <= 1 && limit === undefined) return { content: text }
  const start = Math.max(0, line - 1)
  // a line keeps its end, so that parts put together again are the whole
  const lines = text.split(/(?<=\n)/)
  return { content: lines.slice(start, limit === undefined ? undefined : start + Math.max(0, limit)).join("") }
})

/** Writes a text, making the folders it is in. */
export const writeTextFile = Effect.fnUntraced(function* (
  roots: ReadonlyArray<string>,
  { content, path }: typeof WriteTextFileRequest.Type
) {
  const fs = yield* FileSystem.FileSystem
  const { dirname } = yield* Path.Path
  const real = yield* admit(roots, path)
  // opening a pipe waits for its other end, in one of the few threads that all files of this process share
  const there = yield* Effect.option(fs.stat(real))
  if (Option.isSome(there) && there.value.type !== "File") return yield* notAFile(path)
  yield* Effect.mapError(fs.makeDirectory(dirname(real), { recursive: true }), failed)
  yield* Effect.mapError(fs.writeFileString(real, content), failed)
  return {}
})
