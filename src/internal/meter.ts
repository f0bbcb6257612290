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
    if (this.reached !== undefined) return Object.freeze({ failure: this.reached, wrapUp })
    this.turns++
    return undefined
  }

  /** Takes note of what the run has used in all by now. */
  charge(usage: SubagentUsage): void {
    const tokens = tokensOf(usage)
    spend(this.metered.chain, tokens - this.tokens)
    this.tokens = tokens
  }

  /** Takes note of what a child at work reports. */
  report(usage: SubagentUsage): void {
    this.charge(usage)
    const { asks, chain, stop } = this.metered
    if (asks) return
    const failure = overdrawn(chain)
    if (failure === undefined) return
    this.reached = failure
    stop(failure)
  }
}

/** The tokens of a report, as far as it has any. */
const tokensOf = ({ input, output, total }: SubagentUsage): number => {
  const tokens = total ?? (input ?? 0) + (output ?? 0)
  return Number.isFinite(tokens) && tokens > 0 ? tokens : 0
}
