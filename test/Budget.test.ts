import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Budget } from "effect-subagent"
import { Account, budgets, enter, refusalOf, settle, spend } from "../src/internal/account.ts"

/** The paths of what is wrong with options that are none. */
const paths = (options: unknown) =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(Budget.make(options as Budget.Options))
    assert.strictEqual(error.code, "INVALID_REQUEST")
    return error.reason._tag === "InvalidRequest" ? error.reason.issues.map(({ path }) => path.join(".")) : []
  })

describe("Current", () => {
  it.effect("is no budget, unless one is given", () =>
    Effect.gen(function* () {
      assert.isUndefined(yield* Budget.Current)
      const budget = yield* Budget.make({ name: "tenant" })
      assert.strictEqual(yield* Effect.provideService(Budget.Current, Budget.Current, budget), budget)
    })
  )
})

describe("make", () => {
  it.effect("makes a value that says what it was made of, and nothing that was left out", () =>
    Effect.gen(function* () {
      const parent = yield* Budget.make({ name: "all", maxTokens: 100, maxRuns: undefined })
      const budget = yield* Budget.make({ name: "tenant", maxRuns: 0, parent })
      assert.deepStrictEqual(Object.keys(parent), ["name", "maxTokens", "spent"])
      assert.deepStrictEqual(Object.keys(budget), ["name", "maxRuns", "parent", "spent"])
      assert.strictEqual(parent.maxTokens, 100)
      assert.strictEqual(budget.maxRuns, 0)
      assert.strictEqual(budget.parent, parent)
      assert.isTrue(Object.isFrozen(budget))
    })
  )

  it.effect("makes one of which nothing has been used, each time", () =>
    Effect.gen(function* () {
      const make = Budget.make({ name: "tenant", maxTokens: 10 })
      const budget = yield* make
      spend(budgets.get(budget)!, 4)
      assert.deepStrictEqual(yield* budget.spent, { tokens: 4, reserved: 0, runs: 0 })
      assert.deepStrictEqual(yield* (yield* make).spent, { tokens: 0, reserved: 0, runs: 0 })
    })
  )

  it.effect("counts what is used of it in all that it is a part of, and nowhere else", () =>
    Effect.gen(function* () {
      const all = yield* Budget.make({ name: "all", maxTokens: 100 })
      const tenant = yield* Budget.make({ name: "tenant", parent: all })
      const user = yield* Budget.make({ name: "user", maxTokens: 30, parent: tenant })
      const other = yield* Budget.make({ name: "other", parent: all })
      const own = new Account("run 1", { maxTokens: 20 })
      const above = budgets.get(user)!
      enter(above, own, 20)
      spend([own, ...above], 5)
      for (const budget of [user, tenant, all]) {
        assert.deepStrictEqual(yield* budget.spent, { tokens: 5, reserved: 15, runs: 1 }, budget.name)
      }
      assert.deepStrictEqual(yield* other.spent, { tokens: 0, reserved: 0, runs: 0 })
      settle(own, above)
      for (const budget of [user, tenant, all]) {
        assert.deepStrictEqual(yield* budget.spent, { tokens: 5, reserved: 0, runs: 1 }, budget.name)
      }
    })
  )

  it.effect("names whose it is in every refusal, the innermost first", () =>
    Effect.gen(function* () {
      const all = yield* Budget.make({ name: "all", maxRuns: 0 })
      const tenant = yield* Budget.make({ name: 'the "first"', maxTokens: 10, parent: all })
      const whose = (budget: Budget.Budget, tokens: number) => refusalOf(budgets.get(budget)!, tokens)?.of
      assert.strictEqual(whose(tenant, 11), 'budget "all"')
      const counted = yield* Budget.make({ name: "counted" })
      const part = yield* Budget.make({ name: 'the "second"', maxTokens: 10, parent: counted })
      assert.strictEqual(whose(part, 11), 'budget "the \\"second\\""')
      assert.isUndefined(whose(part, 10))
    })
  )

  it.effect("allows no run where there is nothing to use", () =>
    Effect.gen(function* () {
      for (const [options, name] of [
        [{ maxTokens: 0 }, "maxTokens"],
        [{ maxRuns: 0 }, "maxRuns"]
      ] as const) {
        const budget = yield* Budget.make({ name: "none", ...options })
        const { limit, name: found, used } = refusalOf(budgets.get(budget)!)!
        assert.deepStrictEqual([found, limit, used], [name, 0, 0])
      }
    })
  )

  it.effect("fails for every figure that is none, for a misspelt key, and without a name, with the paths", () =>
    Effect.gen(function* () {
      for (const figure of [-1, -0, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, "1", null]) {
        assert.deepStrictEqual(yield* paths({ name: "a", maxTokens: figure, maxRuns: figure }), [
          "maxTokens",
          "maxRuns"
        ])
      }
      assert.deepStrictEqual(yield* paths({ name: "a", maxtokens: 1 }), ["maxtokens"])
      for (const name of [undefined, "", " ", 1]) assert.deepStrictEqual(yield* paths({ name }), ["name"])
      for (const options of [null, undefined, "a", []]) assert.deepStrictEqual(yield* paths(options), [""])
    })
  )

  it.effect("takes only what it has made for a parent", () =>
    Effect.gen(function* () {
      const parent = yield* Budget.make({ name: "all" })
      for (const none of [{ ...parent }, Object.create(parent), { name: "all" }, "all", null]) {
        assert.deepStrictEqual(yield* paths({ name: "a", parent: none }), ["parent"])
      }
    })
  )
})
