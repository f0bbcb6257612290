/**
 * The tools of a toolkit, ready to be executed: each with its handler and its schemas, prepared once.
 *
 * Executing never fails. Bad arguments, a failure or a defect of the handler, a result that can't be encoded: each
 * becomes a failed result, for the model to read. Only interruption gets through.
 *
 * @since 0.1.0
 */
import * as AiError from "effect/ai/AiError"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Approvals } from "../../Approvals.ts"
import { describeCause, describeUnknown } from "../../internal/describe.ts"
import { effectOf } from "../../internal/effectOf.ts"
import { issuesOf } from "../../internal/issues.ts"
import { jsonCopy } from "./jsonCopy.ts"
import type { ToolCall } from "./reply.ts"

/** What came of a tool call: the part of the conversation that answers it. */
export type ToolResult = Prompt.ToolResultPart

/** The agent on whose behalf a tool is executed. */
export interface Caller {
  /** What its tools find in their context before anything else. */
  readonly services: Context.Context<never>
  /** Settles whether a call may be executed: gives the result that answers it if it may not. */
  readonly permit: (
    needsApproval: NeedsApproval,
    call: ToolCall,
    params: unknown
  ) => Effect.Effect<ToolResult | undefined>
  /** Hears of results that a tool gives while it is still at work, encoded. */
  readonly onPreliminary: (call: ToolCall, output: unknown) => void
}

/** When a tool needs an approval. */
export type NeedsApproval = true | Tool.NeedsApprovalFunction<Schema.Codec<unknown>>

/** Answers a call: decodes its arguments, gets an approval if it needs one, executes it, encodes what came of it. */
export type ExecutableTool = (call: ToolCall, caller: Caller) => Effect.Effect<ToolResult>

/** The answer to a call that did not work out. */
export const failedResult = ({ id, name }: ToolCall, result: unknown): ToolResult =>
  Prompt.makePart("tool-result", { id, name, isFailure: true, result, providerExecuted: false })

/** The answer to a call that was not executed, in the shape that `effect/ai` has for it. */
export const unexecutedResult = (
  call: ToolCall,
  type: (typeof Tool.ExecutionFailure.Type)["type"],
  reason: string
): ToolResult => failedResult(call, { type, reason })

/** Any tool: the services that its schemas and its handler ask for are in the context in which it is executed. */
type AnyTool = Tool.Tool<
  string,
  {
    readonly parameters: Schema.Codec<unknown>
    readonly success: Schema.Codec<unknown>
    readonly failure: Schema.Codec<unknown>
    readonly failureMode: Tool.FailureMode
  }
>

/** Any toolkit with its handlers. */
export type BoundToolkit = Toolkit.WithHandler<Record<string, AnyTool>>

/**
 * The tools of a toolkit that are executed here, by name. A handler in the context is called directly, which costs a
 * twentieth of `handle`; a toolkit whose handlers are not in the context is asked to `handle`.
 */
export const executableTools = (
  kit: BoundToolkit,
  context: Context.Context<never>
): ReadonlyMap<string, ExecutableTool> => {
  const tools = new Map<string, ExecutableTool>()
  for (const tool of Object.values(kit.tools)) {
    if (Tool.isProviderDefined(tool) && !tool.requiresHandler) continue
    // where a toolkit leaves the handler of a tool
    const handler = context.mapUnsafe.get(tool.id) as Tool.Handler<string> | undefined
    tools.set(
      tool.name,
      handler === undefined
        ? executable(tool, withoutApprovals(context), handling(kit, tool))
        : executable(tool, withoutApprovals(Context.merge(context, handler.context)), calling(tool, handler))
    )
  }
  return tools
}

/** Who approves is a matter of the run, never of where a tool was built. */
const withoutApprovals = Context.omit(Approvals)

/** Runs a handler to its end: what it gave, encoded. Fails with what the handler failed with. */
type Run = (call: ToolCall, params: unknown, caller: Caller) => Effect.Effect<Encoded, unknown>

interface Encoded {
  readonly isFailure: boolean
  readonly output: unknown
  readonly modelOutput?: ReadonlyArray<Prompt.ToolModelOutputPart> | undefined
}

const executable = (tool: AnyTool, context: Context.Context<never>, run: Run): ExecutableTool => {
  const decode = Schema.decodeUnknownEffect(tool.parametersSchema, { errors: "all" })
  const encodeFailure = Schema.encodeUnknownEffect(tool.failureSchema)
  const { needsApproval } = tool

  const failureOf = (error: unknown): Effect.Effect<Encoded> => {
    const inWords = (): Encoded => ({ isFailure: true, output: describeUnknown(error) })
    return AiError.isAiError(error) || AiError.isAiErrorReason(error) || Schema.isSchemaError(error)
      ? Effect.sync(inWords)
      : Effect.match(encodeFailure(error), {
          onFailure: inWords,
          onSuccess: (output) => ({ isFailure: true, output })
        })
  }
  const execute = (call: ToolCall, params: unknown, caller: Caller): Effect.Effect<ToolResult> =>
    run(call, params, caller).pipe(
      Effect.catch(failureOf),
      Effect.map((encoded) => resultOf(call, encoded))
    )

  return (call, caller) =>
    // a copy: what a handler does with its arguments changes nothing of what the model said
    decode(jsonCopy(call.params)).pipe(
      Effect.matchEffect({
        onFailure: (error) => Effect.succeed(failedResult(call, `Invalid arguments: ${issuesOf(error).join("; ")}`)),
        onSuccess: (params) =>
          needsApproval === undefined || needsApproval === false
            ? execute(call, params, caller)
            : Effect.flatMap(caller.permit(needsApproval, call, params), (refusal) =>
                refusal === undefined ? execute(call, params, caller) : Effect.succeed(refusal)
              )
      }),
      Effect.catchCause((cause) =>
        Effect.as(
          Effect.logWarning(`Tool ${call.name} died; the model is told so`, cause),
          failedResult(call, `The tool failed unexpectedly: ${describeCause(cause)}`)
        )
      ),
      Effect.updateContext((current: Context.Context<never>) => Context.mergeAll(context, current, caller.services))
    )
}

const resultOf = (call: ToolCall, { isFailure, modelOutput, output }: Encoded): ToolResult => {
  const { id, name } = call
  // a tool without a result gives nothing, and nothing can't cross a wire
  const result = output === undefined ? null : jsonCopy(output)
  return result === undefined
    ? failedResult(call, "The tool's result can't be written as JSON")
    : Prompt.makePart("tool-result", {
        id,
        name,
        isFailure,
        result,
        providerExecuted: false,
        ...(modelOutput === undefined ? undefined : { modelOutput })
      })
}

const calling = (tool: AnyTool, { handler }: Tool.Handler<string>): Run => {
  const encode = Schema.encodeUnknownEffect(tool.successSchema)
  const { toModelOutput } = tool
  return (call, params, { onPreliminary }) =>
    Effect.flatMap(
      effectOf(
        handler(params, {
          toolCallId: call.id,
          preliminary: (result: unknown) =>
            Effect.ignore(Effect.map(encode(result), (output) => onPreliminary(call, output)))
        })
      ),
      (result) =>
        Effect.map(encode(result), (output) => ({
          isFailure: false,
          output,
          ...(toModelOutput === undefined ? undefined : { modelOutput: toModelOutput(result) })
        }))
    )
}

const handling =
  (kit: BoundToolkit, tool: AnyTool): Run =>
  (call, _params, { onPreliminary }) =>
    Effect.suspend(() => {
      let last: Encoded = { isFailure: true, output: "The tool gave no result" }
      return Effect.map(
        Stream.runForEach(
          Stream.unwrap(kit.handle(tool.name, jsonCopy(call.params), call.id)),
          ({ encodedResult, isFailure, modelOutput, preliminary }) =>
            Effect.sync(() => {
              if (preliminary) onPreliminary(call, encodedResult)
              else last = { isFailure, output: encodedResult, modelOutput }
            })
        ),
        () => last
      )
    })
