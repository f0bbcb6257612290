/**
 * The names in a tool filter, held against the tools there are.
 *
 * @since 0.1.0
 */
import { issueAt } from "../../internal/issues.ts"
import type { RequestIssue } from "../../SubagentError.ts"
import type { ToolFilter } from "../../SubagentRequest.ts"

/** Names of tools for people and models to read. */
export const listed = (names: ReadonlyArray<string>): string =>
  names.length === 0 ? "none" : names.map((name) => JSON.stringify(name)).join(", ")

/** An issue for each name in a filter that no tool has: a misspelt `deny` must not widen access. */
export const unknownNames = (
  filter: ToolFilter | undefined,
  names: ReadonlyArray<string>
): ReadonlyArray<RequestIssue> =>
  (["allow", "deny"] as const).flatMap((list) =>
    (filter?.[list] ?? []).flatMap((name, index) =>
      names.includes(name)
        ? []
        : [
            issueAt(
              ["toolFilter", list, index],
              `There is no tool ${JSON.stringify(name)}; the tools there are: ${listed(names)}`
            )
          ]
    )
  )
