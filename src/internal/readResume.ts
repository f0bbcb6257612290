/**
 * Reads what is asked for with a token: the token itself, wherever it was kept, and what is said beside it.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Capabilities } from "../Capabilities.ts"
import { ResumeToken } from "../ResumeToken.ts"
import type { RequestIssue } from "../SubagentError.ts"
import { issueAt, issuesOf } from "./issues.ts"
import { ownCopy } from "./ownCopy.ts"
import { limitFields } from "./readLimits.ts"
import type { ReadRequest } from "./readRequest.ts"
import { readRequest } from "./readRequest.ts"

const decode = Schema.decodeUnknownResult(ResumeToken, { errors: "all", onExcessProperty: "error" })

/** A token, if it is one of a version that is known here, whole. */
export const readToken = (token: unknown): Result.Result<ResumeToken, ReadonlyArray<RequestIssue>> =>
  Result.getOrElse(
    Result.try(() => Result.mapError(decode(token), (error) => issuesOf(error, ["token"]))),
    () => Result.fail([issueAt(["token"], "Could not be read")])
  )

const keys = new Set(["parent", "signal", "outputSchema", ...Object.keys(limitFields)])

/** A request to go on: a start's, with what the token says filled in. */
export const readResume = (
  { agentOptions, label }: ResumeToken,
  prompt: unknown,
  request: unknown,
  capabilities: Capabilities
): Result.Result<ReadRequest, ReadonlyArray<RequestIssue>> => {
  const read = Result.try(() => {
    const asked = { ...(ownCopy(request, keys) as object) }
    const unexpected = Object.keys(asked).filter((key) => !keys.has(key))
    return unexpected.length > 0
      ? Result.fail(unexpected.map((key) => issueAt([key], "Unexpected key")))
      : Result.mapError(readRequest({ ...asked, prompt, agentOptions, label }, capabilities), asContent)
  })
  return Result.getOrElse(read, () => Result.fail([issueAt([], "Could not be read")]))
}

/** What is a prompt to a start is content to a child that exists. */
const asContent = (issues: ReadonlyArray<RequestIssue>): ReadonlyArray<RequestIssue> =>
  issues.map(({ message, path }) => issueAt(path[0] === "prompt" ? ["content", ...path.slice(1)] : path, message))
