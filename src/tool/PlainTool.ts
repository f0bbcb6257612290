/**
 * The tool through which a model delegates, for loops that know nothing of Effect.
 *
 * A name, a description, a JSON Schema and an async function: what every loop takes in some form. `execute` never throws:
 * its answer says whether it is an error, as `SubagentTool`'s does in `effect/ai`, in the same words. `executeOrThrow` is
 * for loops whose only mark of an error is a throw. Each call is one run, on behalf of the agent in `parent`, and always
 * released. A host without Effect gets one from `PromiseSubagents`, a host with Effect from `make`.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Agent, RunId } from "../Agent.ts"
import type { ContentBlock } from "../Content.ts"
import { describeUnknown } from "../internal/describe.ts"
import { promiseRun, valueOf } from "../promise/internal/promiseRun.ts"
import type { PromiseRun } from "../promise/PromiseRun.ts"
import { DuplicateTool, fromReason, InvalidRequest, SubagentError } from "../SubagentError.ts"
import type { AbortSignalLike, SubagentStartRequest } from "../SubagentRequest.ts"
import type { SubagentFailure, SubagentStopReason, SubagentUsage } from "../SubagentResult.ts"
import { Subagents } from "../Subagents.ts"
import { answerFor, errorAnswer, explain } from "./internal/answer.ts"
import * as Binding from "./internal/binding.ts"
import type { Options } from "./SubagentTool.ts"

/**
 * Who calls.
 *
 * @category models
 * @since 0.1.0
 */
export interface PlainToolContext {
  /** The agent whose loop calls the tool. */
  readonly parent?: Agent | undefined
  /** Aborting it stops the run. */
  readonly signal?: AbortSignalLike | undefined
}

/**
 * What a call answers.
 *
 * @category models
 * @since 0.1.0
 */
export interface PlainToolAnswer {
  /** For loops that carry blocks. */
  readonly content: ReadonlyArray<ContentBlock>
  /** The same for loops that carry a text: what a text can't carry is named. */
  readonly text: string
  /** Anything but a completed run. */
  readonly isError: boolean
  /** How the run ended; `error` or `aborted` if there was none. */
  readonly stopReason: SubagentStopReason
  /** Absent if no run was accepted. */
  readonly runId?: RunId
  /** The value that the binding's `outputSchema` asks for. */
  readonly structured?: unknown
  readonly failure?: SubagentFailure
  /** What the run has used itself. */
  readonly usage?: SubagentUsage
  /** What the run and everything below it have used, as far as that was known at its end. */
  readonly treeUsage?: SubagentUsage
  /** Why there is no verdict of a child, if there is none. */
  readonly error?: SubagentError
}

/**
 * The JSON Schema of the arguments: of a tool's own, and not read-only, as many a loop's types ask for.
 *
 * @category models
 * @since 0.1.0
 */
export interface PlainToolSchema {
  type: "object"
  properties: { [K in "description" | "prompt"]: { type: "string"; description: string } }
  required: Array<"description" | "prompt">
  additionalProperties: false
}

/**
 * A tool that delegates.
 *
 * @category models
 * @since 0.1.0
 */
export interface PlainTool {
  readonly name: string
  readonly description: string
  /** The same for every provider. */
  readonly inputSchema: PlainToolSchema
  /** Never throws. */
  readonly execute: (input: unknown, context: PlainToolContext) => Promise<PlainToolAnswer>
  /** Throws a `PlainToolError` for an answer that is an error. */
  readonly executeOrThrow: (input: unknown, context: PlainToolContext) => Promise<PlainToolAnswer>
}

/**
 * An answer that is an error, for loops that mark errors by a throw. Its message is what the model is to read.
 *
 * @category errors
 * @since 0.1.0
 */
export class PlainToolError extends Error {
  override readonly name = "PlainToolError"
  readonly answer: PlainToolAnswer

  constructor(answer: PlainToolAnswer) {
    super(answer.text, { cause: answer.error })
    this.answer = answer
  }
}

/**
 * A tool of a host with Effect, for a loop without. Its runs are started in the services that are here, and a start that
 * is under way ends with the scope. Fails with `InvalidRequest` for options that are not well formed.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Effect.Effect<PlainTool, SubagentError, Subagents | Scope.Scope> =>
  Effect.gen(function* () {
    yield* Effect.fromResult(Binding.check(options))
    const scope = yield* Effect.scope
    const context = yield* Effect.context<Subagents>()
    const { start } = yield* Subagents
    return fromStart(options, (name, request) => {
      const starting = Effect.runForkWith(context)(promiseRun(start(name, request)))
      Fiber.runIn(starting, scope)
      return Effect.runPromise(Fiber.await(starting)).then(valueOf)
    })
  })

type Start = (name: string, request: SubagentStartRequest) => Promise<PromiseRun>

/** @internal */
export const fromStart = (options: Options, start: Start): PlainTool => {
  const checked = Binding.check(options)
  if (Result.isFailure(checked)) throw checked.failure
  const execute = async (input: unknown, context: PlainToolContext): Promise<PlainToolAnswer> => {
    try {
      return await call(options, start, input, context)
    } catch (thrown) {
      return noVerdict(thrown)
    }
  }
  return Object.freeze<PlainTool>({
    name: Binding.nameOf(options),
    description: Binding.describe(options),
    inputSchema: copyOf(Binding.inputSchema),
    execute,
    executeOrThrow: async (input, context) => {
      const answer = await execute(input, context)
      if (answer.isError) throw new PlainToolError(answer)
      return answer
    }
  })
}

const copyOf = ({ additionalProperties, properties, required, type }: typeof Binding.inputSchema): PlainToolSchema => ({
  type,
  properties: { description: { ...properties.description }, prompt: { ...properties.prompt } },
  required: [...required],
  additionalProperties
})

const call = async (
  options: Options,
  start: Start,
  input: unknown,
  context: PlainToolContext | undefined
): Promise<PlainToolAnswer> => {
  // many a loop calls its tools with less than this
  const { parent, signal } = context ?? {}
  const request = Binding.requestOf(options, input, parent)
  if (Result.isFailure(request)) {
    const { issues, text } = request.failure
    const error = fromReason(new InvalidRequest({ issues }))
    return Object.freeze({ ...errorAnswer(text), stopReason: "error", error })
  }
  const run = await start(options.provider, { ...request.success, ...(signal != null && { signal }) })
  try {
    const result = await run.result
    const { failure, stopReason, structured, treeUsage, usage } = result
    return Object.freeze({
      ...(await Effect.runPromise(answerFor(options, result))),
      stopReason,
      runId: run.runId,
      ...(structured !== undefined && { structured }),
      ...(failure && { failure }),
      ...(usage && { usage }),
      ...(treeUsage && { treeUsage })
    })
  } catch (thrown) {
    return Object.freeze({ ...noVerdict(thrown), runId: run.runId })
  } finally {
    await run.dispose()
  }
}

/** The answer of a call that came to no verdict. */
const noVerdict = (thrown: unknown): PlainToolAnswer => {
  if (!(thrown instanceof SubagentError)) {
    return Object.freeze({ ...errorAnswer(describeUnknown(thrown)), stopReason: "error" })
  }
  // a call is part of its caller's turn: if that is over before there is a run, the call was stopped with it
  const isStopped = thrown.reason._tag === "AbortedBeforeStart" || thrown.reason._tag === "ParentSettled"
  const stopReason = isStopped ? "aborted" : "error"
  return Object.freeze({ ...errorAnswer(explain(thrown)), stopReason, error: thrown })
}

/**
 * Tools by their names, as many loops take them. Two tools with one name are refused, also if one is among the host's
 * own: a record would keep the last, in silence. Throws `SubagentError`.
 *
 * @category combinators
 * @since 0.1.0
 */
export const byName = (
  tools: ReadonlyArray<PlainTool>,
  options: { readonly with?: object | undefined } = {}
): { readonly [name: string]: PlainTool } => {
  const names = new Set(Object.keys(options.with ?? {}))
  for (const { name } of tools) {
    if (names.has(name)) throw fromReason(new DuplicateTool({ name }))
    names.add(name)
  }
  return Object.fromEntries(tools.map((tool) => [tool.name, tool]))
}
