/**
 * Issues with their paths, made in one place for requests, tool arguments and submitted values alike.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { RequestIssue } from "../SubagentError.ts"

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** One issue. */
export const issueAt = (path: ReadonlyArray<string | number>, message: string): RequestIssue =>
  new RequestIssue({ path, message })

/** The issues of a schema error, under the path at which the value stood. */
export const issuesOf = (
  error: Schema.SchemaError,
  under: ReadonlyArray<string | number> = []
): ReadonlyArray<RequestIssue> =>
  format(error.issue).issues.map(({ message, path }) => {
    // Standard Schema allows for more; this formatter always gives a path, and it gives plain keys
    const keys = path as ReadonlyArray<PropertyKey>
    return issueAt([...under, ...keys.map((key) => (Predicate.isNumber(key) ? key : String(key)))], message)
  })
