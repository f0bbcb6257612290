/** The tools that a model is offered, and how its answer is to look. */
import * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import { toCodecOpenAI } from "effect/ai/OpenAiStructuredOutput"
import * as Tool from "effect/ai/Tool"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type { ChatCompletionCreateParams, ChatCompletionFunctionTool } from "openai/resources/chat/completions"

/**
 * Those of the tools that the choice leaves. Narrowing the choice itself is known to one server only, and forbidding the
 * tools that one sends to few: what may not be called is not sent.
 */
export const toolsOf = ({
  toolChoice,
  tools
}: Pick<LanguageModel.ProviderOptions, "toolChoice" | "tools">): Result.Result<
  Pick<ChatCompletionCreateParams, "tools" | "tool_choice">,
  AiError.AiErrorReason
> => {
  const { choice, isOffered } = choose(toolChoice)
  return Result.map(Result.all(tools.filter(({ name }) => isOffered(name)).map(toolOf)), (tools) =>
    tools.length === 0 ? {} : { tools, tool_choice: choice }
  )
}

const choose = (
  toolChoice: LanguageModel.ToolChoice<string>
): {
  readonly choice: NonNullable<ChatCompletionCreateParams["tool_choice"]>
  readonly isOffered: (name: string) => boolean
} => {
  if (toolChoice === "none") return { choice: "none", isOffered: () => false }
  if (typeof toolChoice === "string") return { choice: toolChoice, isOffered: () => true }
  if ("tool" in toolChoice) {
    return { choice: { type: "function", function: { name: toolChoice.tool } }, isOffered: () => true }
  }
  const { mode = "auto", oneOf } = toolChoice
  return { choice: mode, isOffered: (name) => oneOf.includes(name) }
}

const toolOf = (tool: Tool.Any): Result.Result<ChatCompletionFunctionTool, AiError.AiErrorReason> => {
  const { name } = tool
  if (Tool.isProviderDefined(tool)) {
    return Result.fail(
      new AiError.ToolConfigurationError({ toolName: name, description: "Chat completions have no tools of their own" })
    )
  }
  const description = Tool.getDescription(tool)
  return Result.map(
    shown(() => Tool.getJsonSchema(tool)),
    (parameters) => ({
      type: "function",
      function: { name, parameters, ...(description !== undefined && { description }) }
    })
  )
}

/** A schema that a value is to satisfy, if one was asked for. */
export const formatOf = (
  format: LanguageModel.ProviderOptions["responseFormat"]
): Result.Result<Pick<ChatCompletionCreateParams, "response_format">, AiError.AiErrorReason> =>
  format.type === "text"
    ? Result.succeed({})
    : Result.map(
        shown(() => toCodecOpenAI(format.schema as Schema.Codec<unknown>).jsonSchema),
        (schema) => ({
          response_format: { type: "json_schema", json_schema: { name: format.objectName, schema, strict: true } }
        })
      )

const shown = <A>(make: () => A): Result.Result<A, AiError.UnsupportedSchemaError> =>
  Result.try({
    try: make,
    catch: (error) => new AiError.UnsupportedSchemaError({ description: String(error) })
  })
