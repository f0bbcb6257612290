/** The tools that a model is offered, and how its answer is to look. */
import * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import { toCodecOpenAI } from "effect/ai/OpenAiStructuredOutput"
import * as Tool from "effect/ai/Tool"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type { ChatCompletionCreateParams, ChatCompletionFunctionTool } from "openai/resources/chat/completions"

/**
 * The tools, which are those that the choice leaves. Narrowing the choice itself is known to one server only, and
 * forbidding the tools that one sends to few: what may not be called is not sent.
 */
export const toolsOf = ({
  toolChoice,
  tools
}: Pick<LanguageModel.ProviderOptions, "toolChoice" | "tools">): Result.Result<
  Pick<ChatCompletionCreateParams, "tools" | "tool_choice">,
  AiError.AiErrorReason
> =>
  toolChoice === "none" || tools.length === 0
    ? Result.succeed({})
    : Result.map(Result.all(tools.map(toolOf)), (tools) => ({ tools, tool_choice: choiceOf(toolChoice) }))

const choiceOf = (
  toolChoice: LanguageModel.ToolChoice<string>
): NonNullable<ChatCompletionCreateParams["tool_choice"]> => {
  if (typeof toolChoice === "string") return toolChoice
  return "tool" in toolChoice ? { type: "function", function: { name: toolChoice.tool } } : (toolChoice.mode ?? "auto")
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
