/**
 * Reads a host's agent: only the named fields, each once, whatever else the object is.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { AgentOptions, SessionHeader } from "../Agent.ts"
import type { RequestIssue } from "../SubagentError.ts"
import { issueAt } from "./issues.ts"

/**
 * What the seam has read of an agent: a value that no longer depends on the host's object.
 */
export interface AgentSnapshot {
  readonly id: string
  readonly header: SessionHeader & { readonly delegationDepth: number }
  readonly options: AgentOptions
}

/**
 * Reads the named fields of a host's agent, each once. Other fields are not looked at; a getter that throws is an
 * issue like a wrong type.
 */
export const readAgent = (
  agent: unknown,
  under: ReadonlyArray<string>
): Result.Result<AgentSnapshot, ReadonlyArray<RequestIssue>> => {
  if (!Predicate.isObject(agent)) return Result.fail([issueAt(under, "Expected an agent")])
  const issues: Array<RequestIssue> = []
  const field = <A>(
    owner: unknown,
    path: ReadonlyArray<string>,
    is: (value: unknown) => value is A,
    expected: string
  ): A | undefined => {
    const found = Result.try(() => (owner as Record<string, unknown>)[path[path.length - 1]!])
    if (Result.isSuccess(found) && is(found.success)) return found.success
    const message = Result.isFailure(found) ? "Could not be read" : `Expected ${expected}`
    issues.push(issueAt([...under, ...path], message))
    return undefined
  }
  const id = field(agent, ["id"], isName, "a non-blank string")
  const session = field(agent, ["session"], Predicate.isObject, "an object")
  const header = session && field(session, ["session", "header"], Predicate.isObject, "an object")
  const at = (name: string) => ["session", "header", name]
  const sessionId = header && field(header, at("id"), isName, "a non-blank string")
  const cwd = header && field(header, at("cwd"), isOptionalName, "a non-blank string or nothing")
  const parentSession = header && field(header, at("parentSession"), isOptionalName, "a non-blank string or nothing")
  const depth = header && field(header, at("delegationDepth"), isOptionalDepth, "a whole number from 0 or nothing")
  const options = field(agent, ["options"], isOptionalObject, "an object or nothing")
  const model = options && field(options, ["options", "model"], isOptionalName, "a non-blank string or nothing")
  if (issues.length > 0) return Result.fail(issues)
  return Result.succeed({
    id: id!,
    header: {
      id: sessionId!,
      ...(cwd ? { cwd } : undefined),
      ...(parentSession ? { parentSession } : undefined),
      delegationDepth: depth ?? 0
    },
    options: model ? { model } : {}
  })
}

const isName = (value: unknown): value is string => typeof value === "string" && value.trim() !== ""
const isOptionalName = (value: unknown): value is string | null | undefined => value == null || isName(value)
const isOptionalObject = (value: unknown): value is object | null | undefined =>
  value == null || Predicate.isObject(value)
const isOptionalDepth = (value: unknown): value is number | null | undefined =>
  value == null || (Number.isSafeInteger(value) && (value as number) >= 0)
