/**
 * Which model an agent is run on.
 *
 * @since 0.1.0
 */
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Result from "effect/Result"
import { issueAt } from "../../internal/issues.ts"
import type { RequestIssue } from "../../SubagentError.ts"
import type { AgentSpec } from "../AgentRuntime.ts"
import { listed } from "./toolNames.ts"

/** The models of a runtime: those that have a name, and the one for agents that name none. */
export interface Models {
  readonly named: ReadonlyMap<string, LanguageModel.LanguageModel>
  readonly unnamed: LanguageModel.LanguageModel
}

/** The model of an agent, or what is wrong with its name, at the path where that was given. */
export const modelOf = (
  { named, unnamed }: Models,
  { options: { model: name }, request }: AgentSpec
): Result.Result<LanguageModel.LanguageModel, RequestIssue> => {
  if (name === undefined) return Result.succeed(unnamed)
  const model = named.get(name)
  if (model !== undefined) return Result.succeed(model)
  const path =
    request === undefined
      ? ["options", "model"]
      : request.agentOptions.model === undefined
        ? ["parent", "options", "model"]
        : ["agentOptions", "model"]
  const names = listed([...named.keys()])
  return Result.fail(issueAt(path, `There is no model ${JSON.stringify(name)}; the models there are: ${names}`))
}
