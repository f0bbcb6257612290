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
  const read = Result.try(() => snapshotOf(agent))
  return Result.isSuccess(read) && read.success !== undefined
    ? Result.succeed(read.success)
    : Result.fail(issuesOf(agent, under))
}

/** The snapshot of an agent that is in order; nothing, if it is not. */
const snapshotOf = (agent: Record<PropertyKey, unknown>): AgentSnapshot | undefined => {
  const { id, session } = agent
  if (!isName(id) || !Predicate.isObject(session)) return undefined
  const { header } = session
  if (!Predicate.isObject(header)) return undefined
  const { id: sessionId, cwd, parentSession, delegationDepth } = header
  const { options } = agent
  if (!isOptionalObject(options)) return undefined
  const model = options?.model
  return isName(sessionId) &&
    isOptionalName(cwd) &&
    isOptionalName(parentSession) &&
    isOptionalDepth(delegationDepth) &&
    isOptionalName(model)
    ? {
        id,
        header: {
          id: sessionId,
          ...(cwd ? { cwd } : undefined),
          ...(parentSession ? { parentSession } : undefined),
          delegationDepth: delegationDepth ?? 0
        },
        options: model ? { model } : {}
      }
    : undefined
}

/** What is wrong with an agent that is not in order. */
const issuesOf = (agent: object, under: ReadonlyArray<string>): ReadonlyArray<RequestIssue> => {
  const issues: Array<RequestIssue> = []
  const field = (
    owner: unknown,
    path: ReadonlyArray<string>,
    is: (value: unknown) => boolean,
    expected: string
  ): unknown => {
    const found = Result.try(() => (owner as Record<string, unknown>)[path[path.length - 1]!])
    if (Result.isSuccess(found) && is(found.success)) return found.success
    const message = Result.isFailure(found) ? "Could not be read" : `Expected ${expected}`
    issues.push(issueAt([...under, ...path], message))
    return undefined
  }
  field(agent, ["id"], isName, "a non-blank string")
  const session = field(agent, ["session"], Predicate.isObject, "an object")
  const header = session && field(session, ["session", "header"], Predicate.isObject, "an object")
  if (header) {
    const at = (name: string) => ["session", "header", name]
    field(header, at("id"), isName, "a non-blank string")
    field(header, at("cwd"), isOptionalName, "a non-blank string or nothing")
    field(header, at("parentSession"), isOptionalName, "a non-blank string or nothing")
    field(header, at("delegationDepth"), isOptionalDepth, "a whole number from 0 or nothing")
  }
  const options = field(agent, ["options"], isOptionalObject, "an object or nothing")
  if (options) field(options, ["options", "model"], isOptionalName, "a non-blank string or nothing")
  // a field that is right only when it is looked at again
  return issues.length > 0 ? issues : [issueAt(under, "Could not be read")]
}

const isName = (value: unknown): value is string => typeof value === "string" && value.trim() !== ""
const isOptionalName = (value: unknown): value is string | null | undefined => value == null || isName(value)
const isOptionalObject = (value: unknown): value is Record<PropertyKey, unknown> | null | undefined =>
  value == null || Predicate.isObject(value)
const isOptionalDepth = (value: unknown): value is number | null | undefined =>
  value == null || (Number.isSafeInteger(value) && (value as number) >= 0)
