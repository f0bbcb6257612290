/**
 * What one run uses up: its turns, and its tokens in all the accounts that it draws on.
 *
 * @since 0.1.0
 */
import type { TurnRefused } from "../SubagentProvider.ts"
import type { Bounds } from "../SubagentRequest.ts"
import type { SubagentFailure, SubagentUsage } from "../SubagentResult.ts"
import type { Chain } from "./account.ts"
import { exhausted, limitFailure, overdrawn, spend } from "./account.ts"
import { isFigure } from "./usage.ts"

/** What a meter goes by. */
export interface Metered {
  /** The accounts that the run's tokens are used from. */
  readonly chain: Chain
  readonly maxTurns: number | undefined
  readonly asked: Bounds | undefined
  /** Whether the provider asks before each turn. One that does not is stopped by what it reports. */
  readonly asks: boolean
  readonly wrapUp: boolean
  /** Stops a child that goes on where it must not. */
  readonly stop: (failure: SubagentFailure) => void
}

/** The meter of one run. */
export class Meter {
  /** The limit that the run has reached: whatever its child says, it is its end. */
  reached: SubagentFailure | undefined = undefined
  private readonly metered: Metered
  private turns = 0
  private tokens = 0

  constructor(metered: Metered) {
    this.metered = metered
  }

  /** Counts a turn, or says why there is none. A child that asks once more has not taken it for an answer. */
  nextTurn(): TurnRefused | undefined {
    const { asked, chain, maxTurns, stop, wrapUp } = this.metered
    if (this.reached !== undefined) {
      stop(this.reached)
      return Object.freeze({ failure: this.reached, wrapUp: false })
    }
    const isLast = maxTurns !== undefined && this.turns >= maxTurns
    this.reached = isLast ? limitFailure("maxTurns", maxTurns, this.turns, asked?.maxTurns) : exhausted(chain)
    // who has done nothing has nothing to say
    if (this.reached !== undefined) {
      return Object.freeze({ failure: this.reached, wrapUp: wrapUp && this.turns > 0 })
    }
    this.turns++
    return undefined
  }

  /** Takes note of what the run has used in all by now. A report without tokens says nothing. */
  charge(usage: SubagentUsage): void {
    const tokens = tokensOf(usage)
    if (tokens === undefined) return
    spend(this.metered.chain, tokens - this.tokens)
    this.tokens = tokens
  }

  /** Takes note of what a child at work reports. */
  report(usage: SubagentUsage): void {
    this.charge(usage)
    const { asks, chain, stop } = this.metered
    // one that declares that it asks and never has is no better than one that does not
    if ((asks && this.turns > 0) || this.reached !== undefined) return
    const failure = overdrawn(chain)
    if (failure === undefined) return
    this.reached = failure
    stop(failure)
  }
}

/** The tokens of a report, if it has any. */
const tokensOf = ({ input, output, total }: SubagentUsage): number | undefined => {
  const [all, read, said] = [countOf(total), countOf(input), countOf(output)]
  return all ?? (read === undefined && said === undefined ? undefined : (read ?? 0) + (said ?? 0))
}

/** A figure of a provider's as a count, so that sums of it stay exact; nothing, if it is none. */
const countOf = (n: unknown): number | undefined => (isFigure(n) ? Math.min(Math.ceil(n), 2 ** 50) : undefined)
