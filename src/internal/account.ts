/**
 * What is used up, and of what: one account for each thing that limits tokens or runs, in chains from a run outwards.
 *
 * A chain is a list, the innermost account first: a run's own, those of the runs above it, its root's, those of a
 * budget. What is used is used in every account of the chain. What a run has asked for is reserved in those above it, up
 * to the first one that has tokens reserved for itself: that one's reservation covers it further out.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import type { Budget } from "../Budget.ts"
import { LimitReached } from "../SubagentError.ts"
import type { SubagentFailure } from "../SubagentResult.ts"

/** What an account allows. */
export interface Allowance {
  readonly maxTokens?: number | undefined
  readonly maxRuns?: number | undefined
}

/** What has been used of one thing. */
export class Account {
  /** Whose it is, for people. */
  readonly of: string
  readonly maxTokens: number | undefined
  readonly maxRuns: number | undefined
  /** What was asked for, where something tighter holds. */
  readonly asked: Allowance
  tokens = 0
  /** Tokens that those further in have asked for and not used yet. */
  reserved = 0
  /** Runs that were ever started. */
  runs = 0
  /** Whether its tokens are reserved further out. */
  isBacked = false

  constructor(of: string, { maxRuns, maxTokens }: Allowance, asked: Allowance = {}) {
    this.of = of
    this.maxTokens = maxTokens
    this.maxRuns = maxRuns
    this.asked = asked
  }

  /** The tokens that nobody has used or asked for. */
  get available(): number {
    return this.maxTokens === undefined ? Number.POSITIVE_INFINITY : this.maxTokens - this.tokens - this.reserved
  }

  /** What is reserved for it further out and was not used. */
  get rest(): number {
    return this.isBacked ? Math.max(0, this.maxTokens! - this.tokens) : 0
  }
}

/** Accounts, the innermost first. */
export type Chain = ReadonlyArray<Account>

/** The chain of each budget: its own account, and those of the budgets that it is a part of. */
export const budgets = new WeakMap<Budget, Chain>()

/** Whether `make` of `Budget` has made it. */
export const isBudget = (u: unknown): u is Budget => Predicate.isObject(u) && budgets.has(u as unknown as Budget)

/** Those in which something is reserved: beyond one that has its own tokens reserved, those cover it. */
const upToBacked = (chain: Chain): Chain => {
  const last = chain.findIndex(({ isBacked }) => isBacked)
  return last === -1 ? chain : chain.slice(0, last + 1)
}

/** Whether anything in a chain limits tokens. */
export const limitsTokens = (chain: Chain): boolean => chain.some(({ maxTokens }) => maxTokens !== undefined)

/** Why no run can be started below a chain, or none with so many tokens (`asked` may be more); nothing, if one can. */
export const refusalOf = (above: Chain, tokens = 0, asked = tokens): LimitReached | undefined => {
  // what those further in have asked for holds where something further out is tighter
  let runsAsked: number | undefined
  for (const account of above) {
    const { maxRuns: limit, of, runs: used } = account
    runsAsked ??= account.asked.maxRuns
    if (limit !== undefined && used >= limit) {
      return new LimitReached({ name: "maxRuns", of, limit, used, ...looser(runsAsked, limit) })
    }
  }
  const short = upToBacked(above).find(({ available }) => available < Math.max(tokens, 1))
  if (short === undefined) return undefined
  const { maxTokens: limit = 0, of, reserved, tokens: used } = short
  const beside = tokens > 0 ? { asked } : looser(short.asked.maxTokens, limit)
  return new LimitReached({ name: "maxTokens", of, limit, used, ...(reserved > 0 && { reserved }), ...beside })
}

/** Counts a run below a chain, and reserves what its own account is to have. */
export const enter = (above: Chain, own: Account | undefined, tokens = 0): void => {
  for (const account of above) account.runs++
  if (own === undefined || tokens === 0) return
  for (const account of upToBacked(above)) account.reserved += tokens
  own.isBacked = true
}

/** Undoes `enter`, for a run that did not come about. */
export const withdraw = (above: Chain, own: Account | undefined): void => {
  for (const account of above) account.runs--
  if (own !== undefined) settle(own, above)
}

/** Uses tokens, or gives some back. */
export const spend = (chain: Chain, tokens: number): void => {
  let covered = 0
  for (const account of chain) {
    const before = account.rest
    account.tokens += tokens
    account.reserved -= covered
    if (account.isBacked) covered = before - account.rest
  }
}

/** Gives back what is left of an account's tokens, but for what those further in have still reserved in it. */
export const settle = (own: Account, above: Chain): void => {
  if (!own.isBacked) return
  const left = own.rest - own.reserved
  for (const account of upToBacked(above)) account.reserved -= left
  own.isBacked = false
}

/** Why a run is to use no more tokens; nothing, if it may. */
export const exhausted = (chain: Chain): SubagentFailure | undefined => tokenFailure(chain, 0)

/** Why a run has used too many tokens already; nothing, if it has not. */
export const overdrawn = (chain: Chain): SubagentFailure | undefined => tokenFailure(chain, -1)

const tokenFailure = (chain: Chain, left: number): SubagentFailure | undefined => {
  const account = upToBacked(chain).find(({ available }) => available <= left)
  if (account === undefined) return undefined
  const { asked, maxTokens: limit, of, reserved, tokens } = account
  return limitFailure("maxTokens", limit!, tokens, asked.maxTokens, { of, reserved })
}

/** The failure of a run that has reached a limit. Those further in may have reserved what nobody has used. */
export const limitFailure = (
  name: string,
  limit: number,
  used: number,
  asked: number | undefined,
  { of = "the run", reserved = 0 }: { readonly of?: string; readonly reserved?: number } = {}
): SubagentFailure => {
  const beside = looser(asked, limit)
  const held = reserved > 0 ? `, ${reserved} reserved` : ""
  const note = beside.asked === undefined ? "" : `; ${beside.asked} asked for`
  return {
    kind: "limit",
    retryable: false,
    name,
    limit,
    used,
    ...beside,
    message: `The limit ${name} of ${of} is reached: ${limit}, of which ${used} used${held}${note}`
  }
}

/** What was asked for beside a limit that is tighter. */
export const looser = (asked: number | undefined, limit: number): { readonly asked?: number } =>
  asked === undefined || asked <= limit ? {} : { asked }
