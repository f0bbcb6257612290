/**
 * What a part of a host's work may use up in all, whoever asks for it: a tenant's, a user's, a job's.
 *
 * A budget is a value of the host's. It is read when a run is asked for, from the starter's context, holds for that run
 * and for everything below it, and may itself be part of another one. It counts for as long as the host keeps it: what
 * was used stays used.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Account, budgets } from "./internal/account.ts"
import { checkBudget } from "./internal/checkOptions.ts"
import { fromReason, type SubagentError } from "./SubagentError.ts"

/**
 * What a budget allows. What is left out is not limited, and is counted all the same.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** Whose it is, for people: every refusal says it. */
  readonly name: string
  /** The most tokens. 0 allows no run. */
  readonly maxTokens?: number | undefined
  /** The most runs that may ever be started. 0 allows none. */
  readonly maxRuns?: number | undefined
  /** The budget that this one is a part of. What is used here is used there, too. */
  readonly parent?: Budget | undefined
}

/**
 * What has been used of a budget.
 *
 * @category models
 * @since 0.1.0
 */
export interface Spent {
  /** Tokens, as far as they were reported. */
  readonly tokens: number
  /** Tokens that live runs have asked for and not used yet. */
  readonly reserved: number
  /** Runs that were ever started. */
  readonly runs: number
}

/**
 * A budget.
 *
 * @category models
 * @since 0.1.0
 */
export interface Budget {
  readonly name: string
  readonly maxTokens?: number
  readonly maxRuns?: number
  readonly parent?: Budget
  /** What has been used of it by now. */
  readonly spent: Effect.Effect<Spent>
}

/**
 * The budget in force, by default none: `Effect.provideService(Budget.Current, budget)` round whatever delegates.
 *
 * @category references
 * @since 0.1.0
 */
export const Current: Context.Reference<Budget | undefined> = Context.Reference<Budget | undefined>(
  "effect-subagent/Budget",
  { defaultValue: () => undefined }
)

/**
 * Makes a budget of which nothing has been used. Fails with `InvalidRequest` for a figure that is none.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Effect.Effect<Budget, SubagentError> =>
  Effect.suspend(() => {
    const checked = checkBudget(options)
    if (Result.isFailure(checked)) return Effect.fail(fromReason(checked.failure))
    const { maxRuns, maxTokens, name, parent } = checked.success
    const account = new Account(`budget ${JSON.stringify(name)}`, { maxRuns, maxTokens })
    const budget: Budget = Object.freeze({
      name,
      ...(maxTokens !== undefined && { maxTokens }),
      ...(maxRuns !== undefined && { maxRuns }),
      ...(parent && { parent }),
      spent: Effect.sync(() => ({ tokens: account.tokens, reserved: account.reserved, runs: account.runs }))
    })
    budgets.set(budget, parent === undefined ? [account] : [account, ...budgets.get(parent)!])
    return Effect.succeed(budget)
  })
