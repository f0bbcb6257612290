/**
 * Random trees of runs and budgets, against sums that are made anew after each step. `ACCOUNT_SEQUENCES` says how many
 * (400 by default), `ACCOUNT_SEED` with which to begin. A failure says its seed and steps.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { Budget } from "effect-subagent"
import { Account, budgets, type Chain, enter, refusalOf, settle, spend, withdraw } from "../../src/internal/account.ts"
import { makeRandom, same } from "../utils/randomLives.ts"

const sequences = Number(process.env["ACCOUNT_SEQUENCES"] ?? 400)
const firstSeed = Number(process.env["ACCOUNT_SEED"] ?? 1)
const stepsEach = 60

interface Run {
  readonly own: Account | undefined
  readonly above: Chain
  readonly chain: Chain
  /** What it has reserved. */
  readonly share: number
  used: number
  isOver: boolean
  isWithdrawn: boolean
}

/**
 * One life of the accounts of some budgets and of trees of runs. What there must be in an account is told from the runs
 * alone, each time anew. The careful use no more than there is for them; the others go far beyond.
 */
const live = (seed: number, isCareful: boolean, hits: Map<string, number>, trace: Array<string>) =>
  Effect.gen(function* () {
    const { below, pick } = makeRandom(seed)
    const some = (n: number) => (below(3) === 0 ? undefined : below(n))
    const runs: Array<Run> = []
    const budgetsMade: Array<Budget.Budget> = []
    const accounts = new Set<Account>()
    for (let i = 0; i < 4; i++) {
      const parent = budgetsMade.length > 0 && below(3) > 0 ? pick(budgetsMade) : undefined
      budgetsMade.push(yield* Budget.make({ name: `${i}`, parent, maxTokens: some(400), maxRuns: some(12) }))
      accounts.add(budgets.get(budgetsMade[i]!)![0]!)
    }
    const roots = [new Account("root 0", { maxRuns: 6 }), new Account("root 1", {})]
    for (const root of roots) accounts.add(root)

    const note = (operation: string, about: string) => {
      hits.set(operation, (hits.get(operation) ?? 0) + 1)
      trace.push(`${operation} ${about}`)
    }
    const about = (run: Run) => `run ${runs.indexOf(run)}`

    /** As the seam does it: a budget is added to what holds already, each account but once. */
    const start = () => {
      const parent = runs.length > 0 && below(4) > 0 ? pick(runs) : undefined
      const inherited = parent?.chain ?? [pick(roots)]
      const budget = below(2) === 0 ? budgets.get(pick(budgetsMade))! : []
      const above = [...budget.filter((account) => !inherited.includes(account)), ...inherited]
      const maxTokens = below(3) === 0 ? undefined : 1 + below(150)
      const tokens = maxTokens !== undefined && below(3) > 0 ? maxTokens : 0
      const maxRuns = some(4)
      const own = (maxTokens ?? maxRuns) === undefined ? undefined : new Account("run", { maxTokens, maxRuns })
      const refusal = refusalOf(above, tokens)
      if (refusal !== undefined) {
        note(`refused for ${refusal.name}`, refusal.message)
        const { limit, reserved = 0, used } = refusal
        if (refusal.name === "maxRuns") assert.isAtLeast(used, limit)
        else assert.isBelow(limit - used - reserved, Math.max(tokens, 1))
        return
      }
      const state = parent === undefined ? "" : parent.isOver ? " below one that is over" : " below a run"
      note(`start${tokens > 0 ? " with a share" : ""}${state}`, `${tokens}, maxTokens ${maxTokens}, maxRuns ${maxRuns}`)
      enter(above, own, tokens)
      if (own !== undefined) accounts.add(own)
      runs.push({
        own,
        above,
        chain: own === undefined ? above : [own, ...above],
        share: tokens,
        used: 0,
        isOver: false,
        isWithdrawn: false
      })
    }

    const use = (run: Run, tokens: number) => {
      spend(run.chain, tokens)
      run.used += tokens
    }

    const operations: ReadonlyArray<(run: Run) => void> = [
      start,
      start,
      (run) => {
        const tokens = below(isCareful ? 60 : 300)
        if (isCareful && overdrawnBy(run.chain, tokens)) return
        note(run.isOver ? "use late" : "use", `${tokens} by ${about(run)}`)
        use(run, tokens)
      },
      (run) => {
        const tokens = below(run.used + 1)
        note(run.isOver ? "correct late" : "correct", `${tokens} by ${about(run)}`)
        use(run, -tokens)
      },
      (run) => {
        const isBelow = runs.some(({ above, isOver }) => run.own !== undefined && above.includes(run.own) && !isOver)
        note(run.isOver ? "settle again" : isBelow ? "settle before those below" : "settle", about(run))
        if (run.own !== undefined) settle(run.own, run.above)
        run.isOver = true
      },
      (run) => {
        const hasBelow = runs.some(({ above }) => run.own !== undefined && above.includes(run.own))
        if (run.isOver || hasBelow || run.own === undefined) return
        note("withdraw", about(run))
        withdraw(run.above, run.own)
        run.isWithdrawn = true
        run.isOver = true
      }
    ]

    /** What every account is to be, told from the runs. */
    const check = () => {
      const told = new Map(Array.from(accounts, (account) => [account, { tokens: 0, reserved: 0, runs: 0 }]))
      for (const { above, chain, isWithdrawn, used } of runs) {
        for (const account of chain) told.get(account)!.tokens += used
        if (!isWithdrawn) for (const account of above) told.get(account)!.runs++
      }
      const shares = new Map(runs.flatMap((run) => (run.share > 0 && !run.isOver ? [[run.own, run]] : [])))
      for (const { above, own, share } of shares.values()) {
        const rest = Math.max(0, share - told.get(own!)!.tokens)
        for (const account of above) {
          told.get(account)!.reserved += rest
          if (shares.has(account)) break
        }
      }
      // an assertion each would take ten times as long as the rest
      for (const [account, { reserved, runs, tokens }] of told) {
        const { maxRuns = runs, maxTokens = tokens + reserved, of } = account
        const isTold = account.tokens === tokens && account.reserved === reserved && account.runs === runs
        if (!isTold) same([account.tokens, account.reserved, account.runs], [tokens, reserved, runs], of)
        if (reserved < 0 || runs > maxRuns) assert.fail(`${of}: ${reserved} reserved, ${runs} runs`)
        if (isCareful && tokens + reserved > maxTokens) assert.fail(`${of}: more than ${maxTokens}`)
      }
    }

    for (let i = 0; i < stepsEach; i++) {
      if (runs.length === 0) start()
      else pick(operations)(pick(runs))
      check()
    }
    while (runs.some(({ isOver }) => !isOver)) {
      operations[4]!(pick(runs.filter(({ isOver }) => !isOver)))
      check()
    }
    for (const { of, reserved } of accounts) if (reserved !== 0) assert.fail(`${of}: ${reserved} reserved for nobody`)
  })

/** Whether so many tokens are more than a run may use: its own if they are reserved, else all that anybody has left. */
const overdrawnBy = (chain: Chain, tokens: number) => {
  const covers = chain.findIndex(({ isBacked }) => isBacked)
  const asked = covers === -1 ? chain : chain.slice(0, covers + 1)
  return asked.some(
    ({ maxTokens, reserved, tokens: used }) => maxTokens !== undefined && used + reserved + tokens > maxTokens
  )
}

describe("the accounts of a tree", () => {
  it.effect("add up, whatever is used, taken back, given back and when", () =>
    Effect.gen(function* () {
      const hits = new Map<string, number>()
      for (let seed = firstSeed; seed < firstSeed + sequences; seed++) {
        const trace: Array<string> = []
        const exit = yield* Effect.exit(live(seed, seed % 2 === 0, hits, trace))
        if (Exit.isFailure(exit)) {
          assert.fail(
            `seed ${seed} (ACCOUNT_SEED=${seed} ACCOUNT_SEQUENCES=1)\n${trace.join("\n")}\n${String(exit.cause)}`
          )
        }
      }
      if (sequences < 400) return
      for (const operation of everything) assert.isAtLeast(hits.get(operation) ?? 0, 100, operation)
    })
  )
})

/** What must have come up often enough for the sums to say something. */
const everything = [
  ...["start", "start with a share"].flatMap((one) => [one, `${one} below a run`, `${one} below one that is over`]),
  "refused for maxRuns",
  "refused for maxTokens",
  "withdraw",
  "use",
  "use late",
  "correct",
  "correct late",
  "settle",
  "settle before those below",
  "settle again"
]
