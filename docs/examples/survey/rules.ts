/** The rules that the offline model follows: from a conversation to the next thing to do. They know nothing else. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { describeText } from "./describeText.ts"
import { Entry, FileText } from "./FolderTools.ts"
import type { Answer, Finding } from "./Report.ts"
import { Findings, merge } from "./Report.ts"
import type { Task } from "./tasks.ts"
import { ask, sliceSize } from "./tasks.ts"

/** How many files are read with one reply. */
const batchSize = 25

/** What the model does next: it calls tools, it is done and submits what it found, or it has something to say. */
export type Reply =
  | { readonly calls: ReadonlyArray<Call> }
  | { readonly result: Answer | Findings }
  | { readonly say: string }

export interface Call {
  readonly tool: "list_files" | "read_file" | "subagent"
  readonly params: { readonly [key: string]: unknown }
}

/** A call that was answered. */
export interface Answered {
  readonly params: { readonly [key: string]: unknown }
  readonly isFailure: boolean
  readonly result: unknown
}

/** The conversation so far. */
export interface Talk {
  /** Nothing if the model does not understand what it is asked. */
  readonly task: Task | undefined
  readonly answered: (tool: Call["tool"]) => ReadonlyArray<Answered>
}

/** What to do next, given all that has been said and done. */
export const next = (talk: Talk): Reply => {
  switch (talk.task?._tag) {
    case undefined:
      return { say: "I can tell what is in a folder, and nothing else." }
    case "Whole":
      return surveyWhole(talk)
    case "Folder":
      return surveyFolder(talk, talk.task)
    case "Files":
      return readAll(talk, talk.task.paths, [])
  }
}

const surveyWhole = (talk: Talk): Reply => {
  const listing = talk.answered("list_files")[0]
  if (!listing) return { calls: [{ tool: "list_files", params: { path: ".", recursive: false } }] }
  if (listing.isFailure) return { result: { parts: [], problems: [`The folder: ${String(listing.result)}`] } }
  const entries = entriesOf(listing)
  const folders = entries.filter(({ kind }) => kind === "folder")
  const tasks: ReadonlyArray<Task> = [
    ...folders.map(({ path }): Task => ({ _tag: "Folder", path, recursive: true })),
    ...(folders.length < entries.length ? [{ _tag: "Folder", path: ".", recursive: false } as const] : [])
  ]
  const reports = talk.answered("subagent")
  if (reports.length < tasks.length) return { calls: tasks.map(delegate) }
  return {
    result: { parts: reports.map((report) => ({ name: nameOf(report), ...findingsOf(report) })), problems: [] }
  }
}

const surveyFolder = (talk: Talk, { path, recursive }: Task & { readonly _tag: "Folder" }): Reply => {
  const listing = talk.answered("list_files")[0]
  if (!listing) return { calls: [{ tool: "list_files", params: { path, recursive } }] }
  if (listing.isFailure) return { result: { files: [], problems: [`${path}: ${String(listing.result)}`] } }
  const entries = entriesOf(listing)
  const paths = entries.filter(({ kind }) => kind === "file").map(({ path }) => path)
  const others = entries.flatMap((entry) => unreadable(entry, recursive))
  if (paths.length <= sliceSize) return readAll(talk, paths, others)
  const reports = talk.answered("subagent")
  return reports.length === 0
    ? { calls: slices(paths, sliceSize).map((paths) => delegate({ _tag: "Files", paths })) }
    : { result: merge([...reports.map(findingsOf), { files: others, problems: [] }]) }
}

const readAll = (talk: Talk, paths: ReadonlyArray<string>, others: ReadonlyArray<Finding>): Reply => {
  const texts = talk.answered("read_file")
  const batch = paths.slice(texts.length, texts.length + batchSize)
  return batch.length > 0
    ? { calls: batch.map((path) => ({ tool: "read_file", params: { path } })) }
    : { result: { files: [...texts.map(findingOf), ...others], problems: [] } }
}

const entriesOf = ({ result }: Answered): ReadonlyArray<Entry> => Schema.decodeUnknownSync(Schema.Array(Entry))(result)

const isFileText = Schema.is(FileText)

const findingOf = ({ isFailure, params, result }: Answered): Finding => {
  const path = String(params["path"])
  if (isFailure || !isFileText(result)) return { path, kind: "unread", note: String(result) }
  const { binary, bytes, isWhole, lines, text } = result
  if (binary) return { path, kind: "binary", lines, bytes }
  const note = isWhole ? undefined : { note: `only its first ${text.length} characters were looked at` }
  return { path, kind: "text", lines, bytes, ...describeText(path, text), ...note }
}

const unreadable = ({ kind, note = "", path }: Entry, recursive: boolean): ReadonlyArray<Finding> => {
  if (kind === "link" || kind === "other") return [{ path, kind, note }]
  // a listing goes into folders: one that it names could not be opened
  return kind === "folder" && recursive ? [{ path, kind: "unread", note }] : []
}

const findingsOf = (report: Answered): Findings => {
  const findings = report.isFailure ? Option.none() : decodeFindings(report.result)
  return Option.getOrElse(findings, () => ({ files: [], problems: [`${nameOf(report)}: ${String(report.result)}`] }))
}

const decodeFindings = Schema.decodeUnknownOption(Schema.fromJsonString(Findings))

const delegate = (task: Task): Call => ({ tool: "subagent", params: { description: titleOf(task), prompt: ask(task) } })

const titleOf = (task: Task): string => {
  switch (task._tag) {
    case "Whole":
      return "the folder"
    case "Folder":
      return task.recursive ? `${task.path}/` : "files at the top"
    case "Files":
      return `${task.paths.length} files from ${task.paths[0]}`
  }
}

const nameOf = ({ params }: Answered): string => String(params["description"])

const slices = <A>(all: ReadonlyArray<A>, size: number): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size))
