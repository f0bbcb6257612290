/**
 * The one place that checks a request, wherever it comes from.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Agent, AgentOptions } from "../Agent.ts"
import type { Capabilities } from "../Capabilities.ts"
import { ContentBlock, isBlank, text } from "../Content.ts"
import type { RequestIssue } from "../SubagentError.ts"
import type { AbortSignalLike, Bounds, CheckedRequest, SchemaSpec, ToolFilter } from "../SubagentRequest.ts"
import { countFrom } from "./figures.ts"
import { issueAt, issuesOf } from "./issues.ts"
import { NonBlank } from "./nonBlank.ts"
import type { AgentSnapshot } from "./readAgent.ts"
import { readAgent } from "./readAgent.ts"
import { boundsOf, limitFields } from "./readLimits.ts"

/**
 * Everything the seam needs to know of a request that has passed.
 */
export interface ReadRequest {
  readonly checked: CheckedRequest
  readonly parent: AgentSnapshot
  readonly signal: AbortSignalLike | undefined
  readonly outputSchema: SchemaSpec | undefined
  readonly limits: Bounds | undefined
}

/** How deep a child may be, or is. */
export const Depth = countFrom(0)

const isSignal = (u: unknown): u is AbortSignalLike =>
  typeof u === "object" &&
  u !== null &&
  Predicate.isBoolean((u as AbortSignalLike).aborted) &&
  Predicate.isFunction((u as AbortSignalLike).addEventListener) &&
  Predicate.isFunction((u as AbortSignalLike).removeEventListener)

const Signal = Schema.declare(isSignal, { expected: "an AbortSignal" })

const isSpec = (u: unknown): u is SchemaSpec => Schema.isSchema(u)

/** A schema to end with. */
export const OutputSchema = Schema.declare(isSpec, { expected: "a Schema" })

/** Options, whatever the names in them. */
export const OptionsObject = Schema.declare((u): u is { readonly [key: string]: unknown } => Predicate.isObject(u), {
  expected: "an object"
})

/** A filter that filters something. */
export const Filter = Schema.Struct({
  allow: Schema.optional(Schema.Array(NonBlank)),
  deny: Schema.optional(Schema.Array(NonBlank))
}).check(
  Schema.makeFilter(
    (filter) => filter.allow !== undefined || filter.deny !== undefined || "Expected allow, deny or both"
  )
)

const Fields = Schema.Struct({
  prompt: Schema.Unknown,
  parent: Schema.Unknown,
  signal: Schema.optional(Signal),
  agentOptions: Schema.optional(OptionsObject),
  outputSchema: Schema.optional(OutputSchema),
  maxDepth: Schema.optional(Depth),
  toolFilter: Schema.optional(Filter),
  label: Schema.optional(NonBlank),
  ...limitFields
})

const OwnOptions = Schema.Struct({ model: Schema.optional(NonBlank), systemPrompt: Schema.optional(NonBlank) })

const parseOptions = { errors: "all", onExcessProperty: "error" } as const
/** All that a request can ask for. */
export const requestKeys: ReadonlyArray<string> = Object.keys(Fields.fields)

const decodeFields = Schema.decodeUnknownResult(Fields, parseOptions)
const decodeOptions = Schema.decodeUnknownResult(OwnOptions, parseOptions)
const decodeBlocks = Schema.decodeUnknownResult(Schema.Array(ContentBlock), parseOptions)

/**
 * Reads a prompt, wherever one comes in: at a start, as a message, at a resume.
 */
export const readPrompt = (
  prompt: unknown,
  path: ReadonlyArray<string>
): Result.Result<ReadonlyArray<ContentBlock>, ReadonlyArray<RequestIssue>> =>
  Result.getOrElse(
    Result.try(() => inspectPrompt(prompt, path)),
    () => Result.fail([issueAt(path, "Could not be read")])
  )

const inspectPrompt = (
  prompt: unknown,
  path: ReadonlyArray<string>
): Result.Result<ReadonlyArray<ContentBlock>, ReadonlyArray<RequestIssue>> => {
  if (typeof prompt !== "string" && !Array.isArray(prompt)) {
    return Result.fail([issueAt(path, "Expected a string or an array of content blocks")])
  }
  const blocks = typeof prompt === "string" ? Result.succeed([text(prompt)]) : decodeBlocks(prompt)
  if (Result.isFailure(blocks)) return Result.fail(issuesOf(blocks.failure, path))
  if (isBlank(blocks.success)) return Result.fail([issueAt(path, "Expected a prompt that is not blank")])
  return Result.succeed(blocks.success)
}

/**
 * Checks a request from anywhere. The provider's capabilities say which keys of `agentOptions` beside our own two are
 * known; whether it honours what is asked for is not this function's question.
 */
export const readRequest = (
  request: unknown,
  capabilities: Capabilities
): Result.Result<ReadRequest, ReadonlyArray<RequestIssue>> =>
  Result.getOrElse(
    Result.try(() => inspect(request, capabilities)),
    () => Result.fail([issueAt([], "Could not be read")])
  )

/** What nearly all requests ask for, and nothing else. */
const plainKeys = new Set<PropertyKey>(["prompt", "parent", "signal", "agentOptions", "outputSchema", "label"])

/** Whether it asks for nothing else, and inherits nothing that it could ask for. */
const isPlain = (request: object): boolean => {
  const prototype = Object.getPrototypeOf(request)
  return (
    (prototype === Object.prototype || prototype === null) &&
    Reflect.ownKeys(request).every((key) => plainKeys.has(key))
  )
}

/** The fields of a request that is plainly right. Of the others the schema says what is wrong, if anything is. */
const plainFields = (request: unknown): typeof Fields.Type | undefined => {
  if (!Predicate.isObject(request) || !isPlain(request)) return undefined
  const { agentOptions, label, outputSchema, parent, prompt, signal } = request as Record<string, unknown>
  return prompt !== undefined &&
    parent !== undefined &&
    (signal === undefined || isSignal(signal)) &&
    (agentOptions === undefined || Predicate.isObject(agentOptions)) &&
    (outputSchema === undefined || isSpec(outputSchema)) &&
    (label === undefined || (Predicate.isString(label) && label.trim() !== ""))
    ? { agentOptions, label, outputSchema, parent, prompt, signal }
    : undefined
}

const inspect = (
  request: unknown,
  capabilities: Capabilities
): Result.Result<ReadRequest, ReadonlyArray<RequestIssue>> => {
  const plain = plainFields(request)
  const decoded = plain === undefined ? decodeFields(request) : Result.succeed(plain)
  if (Result.isFailure(decoded)) return Result.fail(issuesOf(decoded.failure))
  const fields = decoded.success
  const prompt = readPrompt(fields.prompt, ["prompt"])
  const parent = readAgent(fields.parent, ["parent"])
  const options: ReturnType<typeof readOptions> =
    fields.agentOptions === undefined ? Result.succeed({}) : readOptions(fields.agentOptions, capabilities)
  if (Result.isFailure(prompt) || Result.isFailure(parent) || Result.isFailure(options)) {
    return Result.fail([
      ...(Result.isFailure(prompt) ? prompt.failure : []),
      ...(Result.isFailure(parent) ? parent.failure : []),
      ...(Result.isFailure(options) ? options.failure : [])
    ])
  }
  return Result.succeed({
    checked: Object.freeze({
      prompt: Object.freeze(prompt.success),
      parent: fields.parent as Agent,
      agentOptions: Object.freeze(options.success),
      ...(fields.maxDepth === undefined ? undefined : { maxDepth: fields.maxDepth }),
      ...(fields.toolFilter === undefined ? undefined : { toolFilter: frozenFilter(fields.toolFilter) }),
      ...(fields.label === undefined ? undefined : { label: fields.label })
    }),
    parent: parent.success,
    signal: fields.signal,
    outputSchema: fields.outputSchema,
    limits: plain === undefined ? boundsOf(fields) : undefined
  })
}

const readOptions = (
  options: { readonly [key: string]: unknown },
  capabilities: Capabilities
): Result.Result<AgentOptions, ReadonlyArray<RequestIssue>> => {
  const asked = Object.entries(options).filter(([, value]) => value !== undefined)
  const isMerged = ([key]: readonly [string, unknown]) => !reserved.has(key) && Object.hasOwn(capabilities, key)
  const decoded = decodeOptions(Object.fromEntries(asked.filter((entry) => !isMerged(entry))))
  return Result.isFailure(decoded)
    ? Result.fail(issuesOf(decoded.failure, ["agentOptions"]))
    : Result.succeed({ ...decoded.success, ...Object.fromEntries(asked.filter(isMerged)) })
}

/** What holds for everything below a child is out of its provider's reach. */
export const frozenFilter = (filter: ToolFilter): ToolFilter =>
  Object.freeze({
    ...(filter.allow && { allow: Object.freeze([...filter.allow]) }),
    ...(filter.deny && { deny: Object.freeze([...filter.deny]) })
  })

/** The capabilities that are no option's name. */
const reserved = new Set([
  "outputSchema",
  "depthLimit",
  "toolFilter",
  "model",
  "systemPrompt",
  "content",
  "usage",
  "turns"
])
