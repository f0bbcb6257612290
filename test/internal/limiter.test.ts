import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Budget, type Capabilities, type Limits, SubagentError, type SubagentRequest } from "effect-subagent"
import { type Account, budgets } from "../../src/internal/account.ts"
import type { Admission, Asking, Limiter } from "../../src/internal/limiter.ts"
import * as LimiterOf from "../../src/internal/limiter.ts"
import { tightest } from "../../src/internal/readLimits.ts"
import { all, nothing } from "../utils/seam.ts"

const { InvalidRequest, LimitReached, UnsupportedCapability } = SubagentError

const make = (limits: Partial<Limits.LimitsOptions> = {}) =>
  LimiterOf.make({ maxDepth: 3, maxQueued: 10, wrapUp: true, ...limits })

interface Asks {
  readonly asked?: SubagentRequest.Bounds
  readonly owner?: Admission
  readonly budget?: Budget.Budget
  readonly provider?: string
  readonly capabilities?: Capabilities.Capabilities
  readonly rootId?: string
  readonly agent?: string
}

let runs = 0

/** A run as the seam would ask for it: what is inherited and what is asked for hold both. */
const asking = (limiter: Limiter, { agent, asked, budget, owner, rootId = "root", ...others }: Asks): Asking => {
  const runId = `run_${++runs}`
  const parent = owner?.asking.lineage
  const limits = tightest(owner === undefined ? limiter.bounds : owner.asking.policy.limits, asked)
  const lineage = {
    id: agent ?? `agent of ${runId}`,
    runId,
    parentId: parent?.id ?? rootId,
    ...(parent && { parentRunId: parent.runId }),
    rootId: parent?.rootId ?? rootId,
    depth: (parent?.depth ?? 0) + 1
  } as Asking["lineage"]
  const policy = { maxDepth: 3, toolFilters: [], ...(limits && { limits }) }
  return { provider: "p", capabilities: { ...all, turns: true }, ...others, lineage, policy, owner, asked, budget }
}

const admit = (limiter: Limiter, asks: Asks = {}) => limiter.admit(asking(limiter, asks))

/** What a run has been admitted to. */
const admitted = (limiter: Limiter, asks: Asks = {}): Admission =>
  Result.getOrThrowWith(admit(limiter, asks), (reason) => reason)!

const never = () => assert.fail("It was told")

/** A run that has been let in. */
const entered = (limiter: Limiter, asks: Asks = {}): Admission => {
  const admission = admitted(limiter, asks)
  assert.isUndefined(admission.ask(never))
  assert.isUndefined(admission.enter())
  return admission
}

const refused = (limiter: Limiter, asks: Asks = {}) => {
  const result = admit(limiter, asks)
  return Result.isFailure(result) ? result.failure : assert.fail("It was admitted")
}

/** Tokens, what is reserved, and runs. */
const figures = (accounts: ReadonlyArray<Account>) =>
  accounts.map(({ reserved, runs, tokens }) => [tokens, reserved, runs])

const names = (accounts: ReadonlyArray<Account>) => accounts.map(({ of }) => of)

const budgetOf = (options: Omit<Budget.Options, "name"> & { readonly name?: string }) =>
  Effect.runSync(Budget.make({ name: "b", ...options }))

describe("make", () => {
  it("tells the host's limits of one run, of a tree's depth, and at a limit", () => {
    const limiter = make({ maxDepth: 7, wrapUp: false, maxTurns: 3, timeout: "2 seconds", maxRuns: 9 })
    assert.deepStrictEqual(limiter.bounds, { maxTurns: 3, timeout: 2000 })
    assert.deepStrictEqual([limiter.maxDepth, limiter.wrapUp], [7, false])
  })

  it("has no bounds of one run where only those of a tree are set", () => {
    assert.isUndefined(make({ maxRuns: 3, maxConcurrent: { overall: 1 } }).bounds)
  })
})

describe("admit", () => {
  it("gives no admission where nothing is limited and nobody counts", () => {
    assert.deepStrictEqual(admit(make()), Result.succeed(undefined))
  })

  it("gives one as soon as anything is: a run's own limit, its root's, a budget, a place", () => {
    const each: ReadonlyArray<readonly [Partial<Limits.LimitsOptions>, Asks]> = [
      [{ timeout: 1 }, {}],
      [{}, { asked: { timeout: 1 } }],
      [{}, { asked: { maxTurns: 1 } }],
      [{ maxRuns: 1 }, {}],
      [{ maxConcurrent: {} }, {}],
      [{}, { budget: budgetOf({}) }]
    ]
    for (const [host, asks] of each) {
      const admission = admitted(make(host), asks)
      assert.isUndefined(admission.refusal)
    }
  })

  it("has an account of a run's own only for what it has to count alone", () => {
    const ownOf = (host: Partial<Limits.LimitsOptions>, asked?: SubagentRequest.Bounds) => {
      const limiter = make({ timeout: 1000, ...host })
      const { above, chain } = admitted(limiter, asked === undefined ? {} : { asked })
      const [own] = chain
      return chain.length === above.length ? undefined : { maxTokens: own!.maxTokens, maxRuns: own!.maxRuns }
    }
    assert.isUndefined(ownOf({}))
    assert.isUndefined(ownOf({}, { maxTurns: 3 }))
    assert.deepStrictEqual(ownOf({}, { maxTokens: 5 }), { maxTokens: 5, maxRuns: undefined })
    assert.deepStrictEqual(ownOf({}, { maxRuns: 0 }), { maxTokens: undefined, maxRuns: 0 })
    assert.deepStrictEqual(ownOf({ maxTokens: 9 }), { maxTokens: 9, maxRuns: undefined })
    assert.deepStrictEqual(ownOf({ maxTokens: 3 }, { maxTokens: 5 }), { maxTokens: 3, maxRuns: undefined })
    // the host's figure of runs is a root's, and the root has an account for it
    assert.isUndefined(ownOf({ maxRuns: 4 }))
  })

  it("makes an account say whose it is", () => {
    const limiter = make({ maxRuns: 4 })
    const budget = budgetOf({ name: "acme", parent: budgetOf({ name: "overall" }) })
    const { chain, asking } = admitted(limiter, { budget, asked: { maxTokens: 3 }, rootId: 'a "root"' })
    assert.deepStrictEqual(names(chain), [
      `run ${asking.lineage.runId}`,
      'budget "acme"',
      'budget "overall"',
      'root "a \\"root\\""'
    ])
  })

  it("puts a child below what its parent is below, and gives it the parent's tokens, not some of its own", () => {
    const limiter = make({ maxTokens: 10 })
    const parent = entered(limiter)
    const child = admitted(limiter, { owner: parent })
    assert.strictEqual(child.above, parent.chain)
    assert.strictEqual(child.chain, parent.chain)
    const asks = admitted(limiter, { owner: parent, asked: { maxTokens: 4 } })
    assert.strictEqual(asks.above, parent.chain)
    assert.strictEqual(asks.chain[0]!.maxTokens, 4)
  })

  it("counts a budget once, whether it is inherited, given again, or part of one that is given", () => {
    const limiter = make()
    const overall = budgetOf({ name: "overall" })
    const acme = budgetOf({ name: "acme", parent: overall })
    const parent = entered(limiter, { budget: acme })
    const [acmes, overalls] = budgets.get(acme)!
    assert.deepStrictEqual(admitted(limiter, { owner: parent, budget: acme }).chain, parent.chain)
    assert.strictEqual(admitted(limiter, { owner: parent, budget: overall }).chain, parent.chain)
    const other = budgetOf({ name: "other", parent: overall })
    assert.deepStrictEqual(names(admitted(limiter, { owner: parent, budget: other }).chain), [
      'budget "other"',
      'budget "acme"',
      'budget "overall"'
    ])
    entered(limiter, { owner: parent, budget: acme })
    assert.deepStrictEqual([acmes!.runs, overalls!.runs], [2, 2])
  })

  it("refuses a budget that nobody has made", () => {
    const reason = refused(make(), { budget: { ...budgetOf({}) } })
    assert.instanceOf(reason, InvalidRequest)
    assert.strictEqual(reason.issues[0]!.message, "Expected a budget that make has made")
    assert.deepStrictEqual(reason.issues[0]!.path, ["budget"])
  })

  it("refuses a limit that the provider can't be held to, wherever the limit is from", () => {
    const missing = (host: Partial<Limits.LimitsOptions>, asks: Asks, capabilities = nothing) => {
      const reason = refused(make(host), { ...asks, capabilities, provider: "q" })
      assert.instanceOf(reason, UnsupportedCapability)
      assert.deepStrictEqual([reason.provider, reason.capability], ["q", reason.missing[0]])
      return reason.missing
    }
    const limited = budgetOf({ maxTokens: 5 })
    assert.deepStrictEqual(missing({}, { asked: { maxTokens: 5 } }), ["usage"])
    assert.deepStrictEqual(missing({ maxTokens: 5 }, {}), ["usage"])
    assert.deepStrictEqual(missing({}, { budget: limited }), ["usage"])
    assert.deepStrictEqual(missing({}, { budget: budgetOf({ parent: limited }) }), ["usage"])
    assert.deepStrictEqual(missing({}, { owner: entered(make(), { budget: limited }) }), ["usage"])
    assert.deepStrictEqual(missing({}, { asked: { maxTurns: 5 } }), ["turns"])
    assert.deepStrictEqual(missing({ maxTurns: 5 }, {}), ["turns"])
    assert.deepStrictEqual(missing({ maxTurns: 5, maxTokens: 5 }, {}), ["usage", "turns"])
    assert.deepStrictEqual(missing({ maxTurns: 5, maxTokens: 5 }, {}, { ...nothing, usage: true }), ["turns"])
    assert.deepStrictEqual(missing({ maxTurns: 5, maxTokens: 5 }, {}, { ...nothing, turns: true }), ["usage"])
  })

  it("needs nothing of a provider for what is counted without it", () => {
    const asked = { maxRuns: 1, timeout: 1, idleTimeout: 1, startTimeout: 1 }
    const limiter = make({ maxRuns: 1, maxConcurrent: { overall: 1 } })
    const budget = budgetOf({ maxRuns: 1 })
    assert.isUndefined(admitted(limiter, { asked, budget, capabilities: nothing }).refusal)
  })

  it("allows runs of a root up to the last one, each root for itself", () => {
    for (const maxRuns of [0, 1, 3]) {
      const limiter = make({ maxRuns })
      for (let n = 0; n < maxRuns; n++) entered(limiter)
      const reason = refused(limiter)
      assert.deepStrictEqual(
        reason,
        new LimitReached({ name: "maxRuns", of: 'root "root"', limit: maxRuns, used: maxRuns })
      )
      if (maxRuns > 0) entered(limiter, { rootId: "another" })
    }
  })

  it("counts the runs below a child on its behalf, its own and its grandchildren's, and not itself", () => {
    const limiter = make()
    const parent = entered(limiter, { asked: { maxRuns: 2 } })
    const child = entered(limiter, { owner: parent })
    entered(limiter, { owner: child })
    for (const owner of [parent, child]) {
      const reason = refused(limiter, { owner })
      assert.instanceOf(reason, LimitReached)
      const { lineage } = parent.asking
      assert.deepStrictEqual([reason.of, reason.limit, reason.used], [`run ${lineage.runId}`, 2, 2])
    }
  })

  it("refuses a share that is not there, with what was asked for, and says what others have reserved", () => {
    const limiter = make()
    const budget = budgetOf({ maxTokens: 10 })
    entered(limiter, { budget, asked: { maxTokens: 6 } })
    assert.isUndefined(admitted(limiter, { budget, asked: { maxTokens: 4 } }).refusal)
    assert.deepStrictEqual(
      refused(limiter, { budget, asked: { maxTokens: 5 } }),
      new LimitReached({ name: "maxTokens", of: 'budget "b"', limit: 10, used: 0, reserved: 6, asked: 5 })
    )
  })

  it("reserves what holds, where more was asked for", () => {
    const limiter = make({ maxTokens: 4 })
    const budget = budgetOf({ maxTokens: 5 })
    entered(limiter, { budget, asked: { maxTokens: 100 } })
    assert.deepStrictEqual(figures(budgets.get(budget)!), [[0, 4, 1]])
    const reason = refused(limiter, { budget, asked: { maxTokens: 100 } })
    assert.instanceOf(reason, LimitReached)
    assert.deepStrictEqual([reason.limit, reason.reserved, reason.asked], [5, 4, 100])
  })

  it("remembers the roots that have delegated last, ten thousand of them", () => {
    const limiter = make({ maxRuns: 1 })
    const isOver = (rootId: string) => Result.isFailure(admit(limiter, { rootId }))
    entered(limiter, { rootId: "first" })
    entered(limiter, { rootId: "second" })
    for (let n = 0; n < 9998; n++) admitted(limiter, { rootId: `other ${n}` })
    // who is asked about is remembered for as long again
    assert.isTrue(isOver("first"))
    admitted(limiter, { rootId: "one more" })
    assert.isTrue(isOver("first"))
    assert.isFalse(isOver("second"))
  })
})

describe("Admission", () => {
  /** A limiter with places, and how often each run was told that there is one for it. */
  const queueing = (host: Partial<Limits.LimitsOptions>) => {
    const limiter = make(host)
    const told: Array<string> = []
    const ask = (what: string, asks: Asks = {}) => {
      const admission = admitted(limiter, asks)
      return { admission, refusal: admission.ask(() => told.push(what)) }
    }
    return { limiter, told, ask }
  }

  it("has a place at once where places are not limited", () => {
    const admission = admitted(make({ timeout: 1 }))
    assert.isTrue(admission.hasPlace)
    assert.isUndefined(admission.ask(never))
    assert.isTrue(admission.hasPlace)
  })

  it("waits for a place, and is told when it is there", () => {
    const { ask, told } = queueing({ maxConcurrent: { overall: 1 } })
    const [first, second, third] = [ask("first"), ask("second"), ask("third")]
    assert.deepStrictEqual(
      [first, second, third].map(({ admission }) => admission.hasPlace),
      [true, false, false]
    )
    first.admission.settle()
    assert.deepStrictEqual(told, ["second"])
    assert.deepStrictEqual(
      [first, second, third].map(({ admission }) => admission.hasPlace),
      [false, true, false]
    )
    second.admission.leave()
    assert.deepStrictEqual(told, ["second", "third"])
  })

  it("leaves the queue when it comes to nothing while it waits", () => {
    const { ask, told } = queueing({ maxConcurrent: { overall: 1 } })
    const [first, second, third] = [ask("first"), ask("second"), ask("third")]
    second.admission.leave()
    first.admission.settle()
    assert.deepStrictEqual(told, ["third"])
    assert.isTrue(third.admission.hasPlace)
  })

  it("gives its place back once, however often it leaves and settles", () => {
    const { ask, told } = queueing({ maxConcurrent: { overall: 1 } })
    const [first] = [ask("first"), ask("second"), ask("third")]
    first.admission.settle()
    first.admission.leave()
    first.admission.settle()
    assert.deepStrictEqual(told, ["second"])
  })

  it("shares its place with its children, one at a time", () => {
    const { ask, limiter, told } = queueing({ maxConcurrent: { overall: 1 } })
    const parent = entered(limiter)
    const [one, other] = [ask("one", { owner: parent }), ask("other", { owner: parent })]
    assert.deepStrictEqual([one.admission.hasPlace, other.admission.hasPlace], [true, false])
    one.admission.settle()
    assert.deepStrictEqual(told, ["other"])
  })

  it("serves parents in turn: roots, and each run of a child that delegates", () => {
    const { ask, limiter, told } = queueing({ maxConcurrent: { provider: { p: 1 } } })
    const first = entered(limiter, { rootId: "z" })
    const one = entered(limiter, { provider: "q", rootId: "a" })
    // the same child, gone on with
    const other = entered(limiter, { provider: "q", rootId: "a", agent: one.asking.lineage.id })
    const parents: ReadonlyArray<readonly [string, Asks]> = [
      ["a", { rootId: "a" }],
      ["b", { rootId: "b" }],
      ["c", { owner: one }],
      ["d", { owner: other }]
    ]
    const all = parents.flatMap(([name, asks]) => [1, 2].map((n) => [`${name}${n}`, ask(`${name}${n}`, asks)] as const))
    const asked = new Map<string, (typeof all)[number][1]>(all)
    first.settle()
    for (let n = 0; n < 7; n++) asked.get(told[n]!)!.admission.settle()
    assert.deepStrictEqual(told, ["a1", "b1", "c1", "d1", "a2", "b2", "c2", "d2"])
  })

  it("is refused where nobody may wait, and says which cap it was", () => {
    const refusal = (maxConcurrent: Limits.MaxConcurrent) => {
      const { ask } = queueing({ maxConcurrent, maxQueued: 0 })
      assert.isUndefined(ask("first").refusal)
      const { admission, refusal } = ask("second")
      // it holds nothing, and there is nothing to give back
      admission.leave()
      return refusal
    }
    const full = (of: string) => new LimitReached({ name: "maxConcurrent", of, limit: 1, used: 1 })
    assert.deepStrictEqual(refusal({ overall: 1 }), full("the host"))
    assert.deepStrictEqual(refusal({ tree: 1 }), full('root "root"'))
    assert.deepStrictEqual(refusal({ provider: 1 }), full('provider "p"'))
    assert.deepStrictEqual(refusal({ provider: { p: 1, q: 5 } }), full('provider "p"'))
  })

  it("is refused where too many wait", () => {
    const { ask } = queueing({ maxConcurrent: { overall: 1 }, maxQueued: 2 })
    for (const what of ["first", "second", "third"]) assert.isUndefined(ask(what).refusal)
    assert.deepStrictEqual(
      ask("fourth").refusal,
      new LimitReached({ name: "maxQueued", of: "the host", limit: 2, used: 2 })
    )
  })

  it("counts a run when it enters, and looks again whether there can be one", () => {
    const limiter = make({ maxRuns: 1 })
    const [first, second] = [admitted(limiter), admitted(limiter)]
    assert.deepStrictEqual(figures(first.above), [[0, 0, 0]])
    assert.isUndefined(first.enter())
    assert.deepStrictEqual(figures(first.above), [[0, 0, 1]])
    assert.deepStrictEqual(second.enter(), second.refusal)
    assert.instanceOf(second.refusal, LimitReached)
    second.leave()
    assert.deepStrictEqual(figures(first.above), [[0, 0, 1]])
  })

  it("reserves what is asked for when it enters, and gives back what was not used", () => {
    const limiter = make()
    const budget = budgetOf({ maxTokens: 100 })
    const accounts = budgets.get(budget)!
    const admission = admitted(limiter, { budget, asked: { maxTokens: 60 } })
    assert.deepStrictEqual(figures(accounts), [[0, 0, 0]])
    admission.enter()
    assert.deepStrictEqual(figures(accounts), [[0, 60, 1]])
    admission.settle()
    assert.deepStrictEqual(figures(accounts), [[0, 0, 1]])
    admission.settle()
    assert.deepStrictEqual(figures(accounts), [[0, 0, 1]])
  })

  it("gives back what was not used before it gives back its place", () => {
    const limiter = make({ maxConcurrent: { overall: 1 } })
    const budget = budgetOf({ maxTokens: 100 })
    const admission = entered(limiter, { budget, asked: { maxTokens: 60 } })
    admission.close()
    assert.deepStrictEqual(figures(budgets.get(budget)!), [[0, 0, 1]])
    assert.isTrue(admission.hasPlace)
    admission.settle()
    assert.deepStrictEqual(figures(budgets.get(budget)!), [[0, 0, 1]])
    assert.isFalse(admission.hasPlace)
  })

  it("reserves nothing for a limit that is the host's", () => {
    const budget = budgetOf({ maxTokens: 100 })
    entered(make({ maxTokens: 60 }), { budget })
    assert.deepStrictEqual(figures(budgets.get(budget)!), [[0, 0, 1]])
  })

  it("takes back all of a start that came to nothing, once", () => {
    const budget = budgetOf({ maxTokens: 100 })
    const limiter = make({ maxRuns: 2 })
    const admission = entered(limiter, { budget, asked: { maxTokens: 60 } })
    assert.deepStrictEqual(figures(admission.above), [
      [0, 60, 1],
      [0, 60, 1]
    ])
    for (let again = 0; again < 2; again++) {
      admission.leave()
      assert.deepStrictEqual(figures(admission.above), [
        [0, 0, 0],
        [0, 0, 0]
      ])
    }
    // a start that was never counted takes nothing back
    admitted(limiter, { budget }).leave()
    assert.deepStrictEqual(figures(admission.above), [
      [0, 0, 0],
      [0, 0, 0]
    ])
  })
})
