/**
 * What every tool that delegates has in common, whichever loop calls it: its words for the model, the check of the
 * arguments, and the request that follows from a binding.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Agent } from "../../Agent.ts"
import { issueAt, issuesOf } from "../../internal/issues.ts"
import { NonBlank } from "../../internal/nonBlank.ts"
import { limitFields } from "../../internal/readLimits.ts"
import { Depth, Filter, OptionsObject, OutputSchema } from "../../internal/readRequest.ts"
import type { RunLimits } from "../../Limits.ts"
import type { RequestIssue, SubagentError } from "../../SubagentError.ts"
import { fromReason, InvalidRequest } from "../../SubagentError.ts"
import type { SubagentStartRequest } from "../../SubagentRequest.ts"
import type { Options } from "../SubagentTool.ts"

/** The arguments the model gives. */
export const Input: Schema.Codec<{ readonly description: string; readonly prompt: string }> = Schema.Struct({
  description: NonBlank,
  prompt: NonBlank
})

/** The JSON Schema of the arguments: a constant, so that no provider makes a difference to it. */
export const inputSchema = {
  type: "object",
  properties: {
    description: { type: "string", description: "A few words that name the task." },
    prompt: { type: "string", description: "The whole task: what to do, and what to report back." }
  },
  required: ["description", "prompt"],
  additionalProperties: false
} as const

const decodeOptions = Schema.decodeUnknownResult(
  Schema.Struct({
    provider: NonBlank,
    toolName: Schema.optional(NonBlank),
    inheritsContext: Schema.optional(Schema.Boolean),
    agentOptions: Schema.optional(OptionsObject),
    toolFilter: Schema.optional(Filter),
    maxDepth: Schema.optional(Depth),
    outputSchema: Schema.optional(OutputSchema),
    maxResultBytes: Schema.optional(Schema.Int.check(Schema.isGreaterThan(0))),
    ...limitFields
  }),
  { errors: "all", onExcessProperty: "error" }
)

/** Checks a binding before a model can use it: a misspelt filter must never widen access. */
export const check = (options: Options): Result.Result<void, SubagentError> =>
  Result.mapBoth(decodeOptions(options), {
    onFailure: (error) => fromReason(new InvalidRequest({ issues: issuesOf(error) })),
    onSuccess: () => undefined
  })

/** What the model is told of the tool. */
export const describe = ({ inheritsContext = false }: Options): string =>
  "Delegates a task to a subagent, which works on it by itself and reports back once, at its end. " +
  (inheritsContext
    ? "It knows this conversation up to now."
    : "It does not see this conversation: the prompt must say all it needs to know.")

/** What the model calls it. */
export const nameOf = <Name extends string>(options: Options<Name>): Name => options.toolName ?? ("subagent" as Name)

const decodeInput = Schema.decodeUnknownResult(Input, { errors: "all", onExcessProperty: "error" })

/** Arguments come from anywhere: what throws when it is read is none. */
const readInput = (input: unknown): Result.Result<typeof Input.Type, ReadonlyArray<RequestIssue>> => {
  const decoded = Result.try(() => decodeInput(input))
  if (Result.isFailure(decoded)) return Result.fail([issueAt([], "Could not be read")])
  return Result.mapError(decoded.success, (error) => issuesOf(error))
}

/** Why there is no request: what to tell the model, and the same as issues. */
export interface Refusal {
  readonly text: string
  readonly issues: ReadonlyArray<RequestIssue>
}

/** The request of a call. What the binding does not say is not asked for. */
export const requestOf = (
  options: Options,
  input: unknown,
  parent: Agent | undefined
): Result.Result<SubagentStartRequest, Refusal> => {
  const decoded = readInput(input)
  if (Result.isFailure(decoded)) {
    return Result.fail({ text: `Invalid arguments: ${decoded.failure.join("; ")}`, issues: decoded.failure })
  }
  if (parent === undefined) {
    const text = "No agent is running here: a subagent needs the agent that calls it."
    return Result.fail({ text, issues: [issueAt(["parent"], text)] })
  }
  const { agentOptions, maxDepth, outputSchema, toolFilter } = options
  return Result.succeed({
    prompt: decoded.success.prompt,
    parent,
    label: decoded.success.description,
    ...(agentOptions && { agentOptions }),
    ...(outputSchema && { outputSchema }),
    ...(toolFilter && { toolFilter }),
    ...(maxDepth !== undefined && { maxDepth }),
    ...limitsOf(options)
  })
}

const limitNames = Object.keys(limitFields) as ReadonlyArray<keyof RunLimits>

const limitsOf = (options: Options): RunLimits =>
  Object.fromEntries(limitNames.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]))
