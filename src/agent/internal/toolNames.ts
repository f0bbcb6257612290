/**
 * The names in tool filters, held against the tools there are.
 *
 * @since 0.1.0
 */
import { issueAt } from "../../internal/issues.ts"
import type { RequestIssue } from "../../SubagentError.ts"
import type { ToolFilter } from "../../SubagentRequest.ts"
import type { AgentSpec } from "../AgentRuntime.ts"

/** Names of tools for people and models to read. */
export const listed = (names: ReadonlyArray<string>): string =>
  names.length === 0 ? "none" : names.map((name) => JSON.stringify(name)).join(", ")

/**
 * An issue for each name in the filters of an agent that no tool has: a misspelt `deny` must not widen access. What it
 * has inherited was checked where it was asked for, perhaps against other tools.
 */
export const unknownTools = (
  { policy, request }: AgentSpec,
  names: ReadonlyArray<string>
): ReadonlyArray<RequestIssue> =>
  request === undefined
    ? policy.toolFilters.flatMap((filter, index) => unknownIn(filter, names, ["policy", "toolFilters", index]))
    : request.toolFilter === undefined
      ? []
      : unknownIn(request.toolFilter, names, ["toolFilter"])

const unknownIn = (
  filter: ToolFilter,
  names: ReadonlyArray<string>,
  path: ReadonlyArray<string | number>
): ReadonlyArray<RequestIssue> =>
  (["allow", "deny"] as const).flatMap((list) =>
    (filter[list] ?? []).flatMap((name, index) =>
      names.includes(name)
        ? []
        : [
            issueAt(
              [...path, list, index],
              `There is no tool ${JSON.stringify(name)}; the tools there are: ${listed(names)}`
            )
          ]
    )
  )
