/**
 * What a request needs of a provider, and where its run stands in the tree: the checks of contract 3, in their order.
 *
 * @since 0.1.0
 */
import * as Equal from "effect/Equal"
import type * as Random from "effect/Random"
import * as Result from "effect/Result"
import type { AgentId, ChildHeader, RunId, SessionId } from "../Agent.ts"
import type { ResumeToken } from "../ResumeToken.ts"
import type { Capabilities } from "../Capabilities.ts"
import type { ContentBlock } from "../Content.ts"
import type { SubagentErrorReason } from "../SubagentError.ts"
import { DepthExceeded, ForeignToken, InvalidRequest, ParentSettled, UnsupportedCapability } from "../SubagentError.ts"
import type { Lineage, Policy } from "../SubagentProvider.ts"
import type { Bounds, ToolFilter } from "../SubagentRequest.ts"
import { makeId } from "./id.ts"
import { issueAt } from "./issues.ts"
import { askedBefore, tightest } from "./readLimits.ts"
import type { ReadRequest } from "./readRequest.ts"
import { frozenFilter } from "./readRequest.ts"
import type { Verdict } from "./verdict.ts"

/** What the live table knows of a parent that is a child itself. */
export interface KnownParent {
  readonly lineage: Lineage
  readonly policy: Policy
  readonly header: ChildHeader
  readonly asked: Asked | undefined
  readonly verdict: Verdict | undefined
}

/** The limits that a request has asked for. What holds may be tighter. */
export interface Asked extends Bounds {
  readonly maxDepth?: number
}

/** Where a run stands. */
export interface Place {
  readonly lineage: Lineage
  readonly policy: Policy
  readonly header: ChildHeader
  readonly asked: Asked | undefined
}

/** What the request asks for and the provider lacks, in the fixed order. */
const missing = (read: ReadRequest, capabilities: Capabilities): ReadonlyArray<string> => {
  const { agentOptions, maxDepth, prompt, toolFilter } = read.checked
  const lacking: Array<string> = []
  if (read.outputSchema !== undefined && !capabilities.outputSchema) lacking.push("outputSchema")
  if (maxDepth !== undefined && !capabilities.depthLimit) lacking.push("depthLimit")
  if (toolFilter !== undefined && !capabilities.toolFilter) lacking.push("toolFilter")
  for (const option of Object.keys(agentOptions)) {
    if (capabilities[option as keyof Capabilities] !== true) lacking.push(option)
  }
  lacking.push(...missingContent(prompt, capabilities))
  return lacking
}

/** The kinds of block that the provider does not take. */
export const missingContent = (
  blocks: ReadonlyArray<ContentBlock>,
  capabilities: Capabilities
): ReadonlyArray<string> => {
  const lacking: Array<string> = []
  for (const { type } of blocks) {
    if (type === "text" || capabilities.content?.includes(type) === true) continue
    const kind = `content:${type}`
    if (!lacking.includes(kind)) lacking.push(kind)
  }
  return lacking
}

/** Holds a request against the provider and against everything above it, and gives the run its place. */
export const place = (options: {
  readonly provider: string
  readonly capabilities: Capabilities
  readonly read: ReadRequest
  readonly parent: KnownParent | undefined
  /** The host's. */
  readonly maxDepth: number
  readonly limits: Bounds | undefined
  readonly random: Random.Random
  /** Where the child stood before, if it is to go on. What held there holds as well. */
  readonly token?: ResumeToken
}): Result.Result<Place, SubagentErrorReason> => {
  const { capabilities, parent, provider, random, read, token } = options
  const unsupported = (lacking: ReadonlyArray<string>) =>
    Result.fail(new UnsupportedCapability({ provider, capability: lacking[0]!, missing: lacking }))

  const lacking = missing(read, capabilities)
  if (lacking.length > 0) return unsupported(lacking)
  if (parent?.verdict !== undefined) {
    return Result.fail(new ParentSettled({ parentId: read.parent.id, parentRunId: parent.lineage.runId }))
  }
  const parentSession = (parent?.header.id ?? read.parent.header.id) as SessionId
  const rootId = parent?.lineage.rootId ?? read.parent.id
  const cwd = read.parent.header.cwd
  if (token !== undefined) {
    if (token.header.parentSession !== parentSession) {
      return Result.fail(new ForeignToken({ id: token.id, parentId: read.parent.id }))
    }
    // one that passes for somebody above it would be taken for that agent
    const above = new Set<string>([read.parent.id, read.parent.header.id, parentSession, rootId])
    if (above.has(token.id) || above.has(token.header.id)) {
      return Result.fail(new InvalidRequest({ issues: [issueAt(["token"], "Expected the id of a child")] }))
    }
    // a child works where its parent does: a token does not move it
    if (token.header.cwd !== undefined && token.header.cwd !== cwd) {
      const issue = issueAt(
        ["token", "header", "cwd"],
        `Expected the parent's folder, ${cwd ?? "of which it has none"}`
      )
      return Result.fail(new InvalidRequest({ issues: [issue] }))
    }
  }
  // the live table outranks what a caller's header says, which may only be deeper
  const depth = Math.max(
    (parent?.lineage.depth ?? 0) + 1,
    read.parent.header.delegationDepth + 1,
    token?.header.delegationDepth ?? 0
  )
  const maxDepth = Math.min(
    options.maxDepth,
    parent?.policy.maxDepth ?? Number.POSITIVE_INFINITY,
    token?.policy.maxDepth ?? Number.POSITIVE_INFINITY,
    read.checked.maxDepth ?? Number.POSITIVE_INFINITY
  )
  const around = parent === undefined ? options.limits : parent.policy.limits
  const before = token?.policy.limits
  const bounds = before === undefined ? read.limits : { ...askedBefore(around, before), ...read.limits }
  const asked: Asked | undefined =
    read.checked.maxDepth === undefined ? bounds : { ...bounds, maxDepth: read.checked.maxDepth }
  if (depth > maxDepth) {
    const beside = Math.max(asked?.maxDepth ?? 0, parent?.asked?.maxDepth ?? 0)
    return Result.fail(new DepthExceeded({ depth, maxDepth, ...(beside > maxDepth && { asked: beside }) }))
  }
  const inherited = filtersOf(parent?.policy.toolFilters ?? none, token?.policy.toolFilters ?? none)
  if (inherited.length > 0 && !capabilities.toolFilter) return unsupported(["toolFilter"])

  const { label, toolFilter } = read.checked
  // one draw names the agent, its session and its run: three would be a tenth of the cost of a start
  const name = makeId(random)
  const limits = tightest(tightest(around, before), read.limits)
  return Result.succeed({
    lineage: Object.freeze({
      id: token?.id ?? (`agent_${name}` as AgentId),
      runId: `run_${name}` as RunId,
      parentId: read.parent.id,
      ...(parent && { parentRunId: parent.lineage.runId }),
      rootId,
      depth,
      ...(label !== undefined && { label })
    }),
    policy: Object.freeze({
      maxDepth,
      toolFilters: toolFilter === undefined ? inherited : Object.freeze([...inherited, toolFilter]),
      ...(limits && { limits })
    }),
    asked,
    header: Object.freeze({
      ...(token?.header ?? { id: `session_${name}` as SessionId, ...(cwd !== undefined && { cwd }) }),
      parentSession,
      delegationDepth: depth
    })
  })
}

const none: ReadonlyArray<ToolFilter> = Object.freeze([])

/** The filters above a child: those of today, and those that held for it before. */
const filtersOf = (above: ReadonlyArray<ToolFilter>, before: ReadonlyArray<ToolFilter>): ReadonlyArray<ToolFilter> => {
  if (before.length === 0) return above
  const others = before.filter((filter) => !above.some((known) => Equal.equals(known, filter)))
  return others.length === 0 ? above : Object.freeze([...above, ...others.map(frozenFilter)])
}
