/**
 * Checks what is registered as a provider, so that a half-built one is refused at once and not at its first start.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { RequestIssue } from "../SubagentError.ts"
import { issueAt } from "./issues.ts"

const contentKinds = new Set<unknown>(["image", "audio", "resource_link", "resource"])

/** What is wrong with a provider, if anything. */
export const checkProvider = (provider: unknown): ReadonlyArray<RequestIssue> =>
  Result.getOrElse(
    Result.try(() => inspect(provider)),
    () => [issueAt([], "Could not be read")]
  )

const inspect = (provider: unknown): ReadonlyArray<RequestIssue> => {
  if (!Predicate.isObject(provider)) return [issueAt([], "Expected a provider")]
  const issues: Array<RequestIssue> = []
  const { capabilities, inheritsContext, name, resume, start } = provider
  if (!Predicate.isString(name) || name.trim() === "") {
    issues.push(issueAt(["name"], "Expected a string that is not blank"))
  }
  if (!Predicate.isBoolean(inheritsContext)) issues.push(issueAt(["inheritsContext"], "Expected a boolean"))
  if (!Predicate.isFunction(start)) issues.push(issueAt(["start"], "Expected a function"))
  if (resume !== undefined && !Predicate.isFunction(resume)) issues.push(issueAt(["resume"], "Expected a function"))
  if (!Predicate.isObject(capabilities)) return [...issues, issueAt(["capabilities"], "Expected an object")]
  for (const key of ["outputSchema", "depthLimit", "toolFilter"]) {
    if (!Predicate.isBoolean(capabilities[key])) issues.push(issueAt(["capabilities", key], "Expected a boolean"))
  }
  const { content } = capabilities
  if (content !== undefined && !(Array.isArray(content) && content.every((kind) => contentKinds.has(kind)))) {
    issues.push(issueAt(["capabilities", "content"], "Expected an array of content kinds"))
  }
  return issues
}
