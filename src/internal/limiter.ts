/**
 * The one place where limits are checked, whichever way a run is asked for.
 *
 * A start is held against the limits when it has been placed, waits for its place if it has to, and is counted when it
 * has one. What it holds comes back once, when it comes to nothing or when its run settles. Where nothing is limited and
 * nobody counts, there is no admission.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import type { Budget } from "../Budget.ts"
import type { Capabilities } from "../Capabilities.ts"
import type { LimitsOptions } from "../Limits.ts"
import type { SubagentErrorReason } from "../SubagentError.ts"
import { InvalidRequest, LimitReached, UnsupportedCapability } from "../SubagentError.ts"
import type { Lineage, Policy } from "../SubagentProvider.ts"
import type { Bounds } from "../SubagentRequest.ts"
import type { Chain } from "./account.ts"
import { Account, budgets, enter, limitsTokens, refusalOf, settle, withdraw } from "./account.ts"
import { issueAt } from "./issues.ts"
import type { Places, Refused, Ticket } from "./places.ts"
import * as PlacesOf from "./places.ts"
import { boundsOf } from "./readLimits.ts"

/** A run, or the start of one, as the limits see it. */
export interface Asking {
  readonly provider: string
  readonly capabilities: Capabilities
  readonly lineage: Lineage
  readonly policy: Policy
  /** What the run of the parent holds, if it is a child itself. */
  readonly owner: Admission | undefined
  readonly asked: Bounds | undefined
  readonly budget: Budget | undefined
}

/** Roots whose runs are over are remembered for as long as so many others have not come after them. */
const remembered = 10_000

/** What a run has been admitted to, and what it holds of it. */
export class Admission {
  readonly asking: Asking
  /** The accounts of what the run is below. */
  readonly above: Chain
  /** Those that its own tokens are used from: its own, if it has one, and those above. */
  readonly chain: Chain
  private readonly own: Account | undefined
  private readonly tokens: number
  private readonly places: Places | undefined
  private ticket: Ticket | undefined = undefined
  private isCounted = false

  constructor(asking: Asking, above: Chain, places: Places | undefined) {
    const { asked, lineage, owner, policy } = asking
    const maxTokens = asked?.maxTokens === undefined && owner !== undefined ? undefined : policy.limits?.maxTokens
    const maxRuns = asked?.maxRuns === undefined ? undefined : policy.limits?.maxRuns
    this.asking = asking
    this.above = above
    this.places = places
    this.own =
      maxTokens === undefined && maxRuns === undefined
        ? undefined
        : new Account(`run ${lineage.runId}`, { maxTokens, maxRuns }, asked)
    this.chain = this.own === undefined ? above : [this.own, ...above]
    this.tokens = asked?.maxTokens === undefined ? 0 : maxTokens!
  }

  /** Why there can be no such run, as things are now; nothing, if there can. */
  get refusal(): LimitReached | undefined {
    return refusalOf(this.above, this.tokens, this.asking.asked?.maxTokens)
  }

  /** Asks for a place. It may have to be waited for: then `onGranted` says when it is there. */
  ask(onGranted: () => void): LimitReached | undefined {
    if (this.places === undefined) return undefined
    const { lineage, owner, provider } = this.asking
    const { parentId, parentRunId, rootId } = lineage
    const parentKey = parentRunId ?? parentId
    const asked = this.places.ask({ provider, rootId, parentKey, parent: owner?.ticket }, onGranted)
    if (Result.isFailure(asked)) return fullOf(asked.failure, lineage.rootId, provider)
    this.ticket = asked.success
    return undefined
  }

  /** Whether there is nothing to wait for any more. */
  get hasPlace(): boolean {
    return this.ticket?.isGranted !== false
  }

  /** Counts the run, and reserves what it is to have, unless it is too late for that. */
  enter(): LimitReached | undefined {
    const refusal = this.refusal
    if (refusal !== undefined) return refusal
    enter(this.above, this.own, this.tokens)
    this.isCounted = true
    return undefined
  }

  /** Gives everything back, for a start that came to nothing: there was no run. */
  leave(): void {
    if (this.isCounted) withdraw(this.above, this.own)
    this.isCounted = false
    this.ticket?.giveBack()
  }

  /** Gives back the tokens that a run that is over has not used. */
  close(): void {
    if (this.own !== undefined) settle(this.own, this.above)
  }

  /** Gives back everything, for a run that is over: whoever has waited for its place goes on at once. */
  settle(): void {
    this.close()
    this.ticket?.giveBack()
  }
}

/** Holds starts against the limits. */
export interface Limiter {
  /** What the host's limits say of a run of a root's. */
  readonly bounds: Bounds | undefined
  readonly maxDepth: number
  /** Whether a child at its limit gets one more turn. */
  readonly wrapUp: boolean
  /** What a start is admitted to; nothing, where nothing is limited. */
  readonly admit: (asking: Asking) => Result.Result<Admission | undefined, SubagentErrorReason>
}

/** For whom nothing is limited. */
const nothing = Result.succeed(undefined)

/** A limiter that has admitted nobody. */
export const make = (limits: LimitsOptions): Limiter => {
  const { maxConcurrent, maxDepth, maxQueued, maxRuns, wrapUp, ...others } = limits
  const places = maxConcurrent === undefined ? undefined : PlacesOf.make(maxConcurrent, maxQueued)
  const isOpen = places === undefined && maxRuns === undefined
  const trees = new Map<string, Account>()
  let latest: { readonly rootId: string; readonly account: Account } | undefined

  /** The account of a root. The ones that were asked for last are kept. */
  const treeOf = (rootId: string): Account => {
    if (latest?.rootId === rootId) return latest.account
    const account = trees.get(rootId) ?? new Account(`root ${JSON.stringify(rootId)}`, { maxRuns })
    trees.delete(rootId)
    trees.set(rootId, account)
    if (trees.size > remembered) trees.delete(trees.keys().next().value!)
    latest = { rootId, account }
    return account
  }

  /** What a run is below: what its parent's run is, or its root; and the budgets beside. */
  const above = ({ budget, lineage, owner }: Asking): Result.Result<Chain, SubagentErrorReason> => {
    const inherited = owner?.chain ?? (maxRuns === undefined ? [] : [treeOf(lineage.rootId)])
    if (budget === undefined) return Result.succeed(inherited)
    const added = budgets.get(budget)
    if (added === undefined) {
      return Result.fail(new InvalidRequest({ issues: [issueAt(["budget"], "Expected a budget that make has made")] }))
    }
    const more = added.filter((account) => !inherited.includes(account))
    return Result.succeed(more.length === 0 ? inherited : [...more, ...inherited])
  }

  return {
    bounds: boundsOf(others),
    maxDepth,
    wrapUp,
    admit: (asking) => {
      if (isOpen && asking.policy.limits === undefined && asking.budget === undefined && asking.owner === undefined) {
        return nothing
      }
      const { capabilities, policy, provider } = asking
      const chain = above(asking)
      if (Result.isFailure(chain)) return Result.fail(chain.failure)
      const admission = new Admission(asking, chain.success, places)
      const missing: Array<string> = []
      if (limitsTokens(admission.chain) && capabilities.usage !== true) missing.push("usage")
      if (policy.limits?.maxTurns !== undefined && capabilities.turns !== true) missing.push("turns")
      if (missing.length > 0) {
        return Result.fail(new UnsupportedCapability({ provider, capability: missing[0]!, missing }))
      }
      const refusal = admission.refusal
      return refusal === undefined ? Result.succeed(admission) : Result.fail(refusal)
    }
  }
}

const fullOf = ({ limit, maxQueued, queued, scope }: Refused, rootId: string, provider: string): LimitReached => {
  const whose = {
    overall: "the host",
    tree: `root ${JSON.stringify(rootId)}`,
    provider: `provider ${JSON.stringify(provider)}`
  }
  return maxQueued === 0
    ? new LimitReached({ name: "maxConcurrent", of: whose[scope], limit, used: limit })
    : new LimitReached({ name: "maxQueued", of: "the host", limit: maxQueued, used: queued })
}
