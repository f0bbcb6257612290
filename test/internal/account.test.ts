import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Budget } from "effect-subagent"
import {
  Account,
  budgets,
  type Chain,
  enter,
  exhausted,
  isBudget,
  limitFailure,
  limitsTokens,
  overdrawn,
  refusalOf,
  settle,
  spend,
  withdraw
} from "../../src/internal/account.ts"

/** Tokens, what is reserved, and runs. */
const figures = (accounts: Chain) => accounts.map(({ reserved, runs, tokens }) => [tokens, reserved, runs])

describe("isBudget", () => {
  it.effect("knows what make has made, and nothing else", () =>
    Effect.gen(function* () {
      const budget = yield* Budget.make({ name: "a" })
      assert.isTrue(isBudget(budget))
      assert.strictEqual(budgets.get(budget)?.length, 1)
      for (const none of [{ ...budget }, undefined, null, "a", [budget], new Account("a", {})])
        assert.isFalse(isBudget(none))
    })
  )
})

describe("limitsTokens", () => {
  it("asks every account of a chain", () => {
    const free = new Account("free", { maxRuns: 1 })
    assert.isFalse(limitsTokens([]))
    assert.isFalse(limitsTokens([free]))
    assert.isTrue(limitsTokens([free, new Account("none", { maxTokens: 0 })]))
  })
})

describe("refusalOf", () => {
  it("allows everything where nothing is limited", () => {
    assert.isUndefined(refusalOf([]))
    assert.isUndefined(refusalOf([new Account("free", {})], Number.MAX_SAFE_INTEGER))
  })

  it("allows runs up to the last one, and names what has run out, with the figures", () => {
    for (const maxRuns of [0, 1, 3]) {
      const chain = [new Account("free", {}), new Account("root", { maxRuns })]
      for (let runs = 0; runs < maxRuns; runs++) {
        assert.isUndefined(refusalOf(chain), `${runs} of ${maxRuns}`)
        enter(chain, undefined)
      }
      const { limit, message, name, of, used } = refusalOf(chain)!
      assert.deepStrictEqual([name, of, limit, used], ["maxRuns", "root", maxRuns, maxRuns])
      assert.strictEqual(message, `The limit maxRuns of root is reached: ${maxRuns}, of which ${maxRuns} used`)
    }
  })

  it("says what was asked for, where something tighter holds", () => {
    const chain = [new Account("run 1", { maxRuns: 0, maxTokens: 5 }, { maxRuns: 8, maxTokens: 50 })]
    assert.strictEqual(refusalOf(chain)?.asked, 8)
    const tokens = [new Account("run 1", { maxTokens: 5 }, { maxTokens: 50 })]
    spend(tokens, 5)
    assert.strictEqual(
      refusalOf(tokens)?.message,
      "The limit maxTokens of run 1 is reached: 5, of which 5 used; 50 asked for"
    )
    for (const asked of [4, 5, undefined]) {
      const alike = [new Account("run 1", { maxTokens: 5, maxRuns: 0 }, { maxTokens: asked, maxRuns: 0 })]
      assert.notProperty(refusalOf(alike), "asked")
    }
  })

  it("allows tokens up to the last one, and a run that asks for none as long as there is one", () => {
    const chain = [new Account("root", { maxTokens: 10 })]
    assert.isUndefined(refusalOf(chain, 10))
    const { asked, limit, used } = refusalOf(chain, 11)!
    assert.deepStrictEqual([asked, limit, used], [11, 10, 0])
    spend(chain, 9)
    assert.isUndefined(refusalOf(chain))
    assert.isUndefined(refusalOf(chain, 1))
    assert.isDefined(refusalOf(chain, 2))
    spend(chain, 1)
    assert.strictEqual(refusalOf(chain)?.message, "The limit maxTokens of root is reached: 10, of which 10 used")
    assert.isDefined(refusalOf(chain, 1))
  })

  it("counts what others have reserved, and says so", () => {
    const chain = [new Account("root", { maxTokens: 10 })]
    enter(chain, new Account("run 1", { maxTokens: 7 }), 7)
    assert.isUndefined(refusalOf(chain, 3))
    assert.strictEqual(
      refusalOf(chain, 4)?.message,
      "The limit maxTokens of root is reached: 10, of which 0 used, 7 reserved; 4 asked for"
    )
  })

  it("names the innermost account that is short of tokens, but any that is short of runs before it", () => {
    const [inner, outer] = [new Account("inner", { maxTokens: 1 }), new Account("outer", { maxTokens: 1 })]
    assert.strictEqual(refusalOf([inner, outer], 2)?.of, "inner")
    assert.strictEqual(refusalOf([outer, inner], 2)?.of, "outer")
    assert.strictEqual(refusalOf([inner, new Account("runs", { maxRuns: 0 })], 2)?.of, "runs")
  })

  it("asks no further out than the first one that has its own tokens reserved", () => {
    const root = new Account("root", { maxTokens: 10 })
    const own = new Account("run 1", { maxTokens: 10 })
    enter([root], own, 10)
    assert.isDefined(refusalOf([root]))
    assert.isUndefined(refusalOf([own, root], 10))
    assert.strictEqual(refusalOf([own, root], 11)?.of, "run 1")
  })
})

describe("enter", () => {
  it("counts a run in all that it is below, and reserves nothing unless it asks", () => {
    const chain = [new Account("run 1", {}), new Account("root", { maxTokens: 10 })]
    const own = new Account("run 2", { maxTokens: 4 })
    enter(chain, undefined)
    enter(chain, own)
    enter(chain, undefined, 4)
    assert.deepStrictEqual(figures([own, ...chain]), [
      [0, 0, 0],
      [0, 0, 3],
      [0, 0, 3]
    ])
    assert.isFalse(own.isBacked)
    assert.strictEqual(own.rest, 0)
  })

  it("reserves up to the first account that is itself reserved, which covers it further out", () => {
    const [root, all] = [new Account("root", { maxTokens: 50 }), new Account("all", {})]
    const parent = new Account("run 1", { maxTokens: 20 })
    const child = new Account("run 2", { maxTokens: 8 })
    enter([root, all], parent, 20)
    enter([parent, root, all], child, 8)
    assert.deepStrictEqual(figures([child, parent, root, all]), [
      [0, 0, 0],
      [0, 8, 1],
      [0, 20, 2],
      [0, 20, 2]
    ])
    assert.deepStrictEqual([child.available, parent.available, root.available], [8, 12, 30])
    assert.strictEqual(all.available, Number.POSITIVE_INFINITY)
  })
})

describe("withdraw", () => {
  it("leaves nothing of a run that did not come about", () => {
    const chain = [new Account("root", { maxTokens: 10, maxRuns: 1 })]
    // each of them would be one too many, if anything were left of the one before
    for (const own of [undefined, new Account("run 1", { maxTokens: 10 }), new Account("run 2", { maxTokens: 10 })]) {
      assert.isUndefined(refusalOf(chain, 10))
      enter(chain, own, 10)
      assert.isDefined(refusalOf(chain, 1))
      withdraw(chain, own)
      assert.deepStrictEqual(figures(chain), [[0, 0, 0]])
    }
  })

  it("leaves what its provider has used already", () => {
    const chain = [new Account("root", { maxTokens: 10 })]
    const own = new Account("run 1", { maxTokens: 6 })
    enter(chain, own, 6)
    spend([own, ...chain], 2)
    withdraw(chain, own)
    assert.deepStrictEqual(figures(chain), [[2, 0, 0]])
  })
})

describe("spend", () => {
  const nested = () => {
    const [root, all] = [new Account("root", { maxTokens: 50 }), new Account("all", { maxTokens: 60 })]
    const parent = new Account("run 1", { maxTokens: 20 })
    const child = new Account("run 2", { maxTokens: 8 })
    enter([root, all], parent, 20)
    enter([parent, root, all], child, 8)
    return { all, child, parent, root, chain: [child, parent, root, all] }
  }
  const tokens = (accounts: Chain) => accounts.map(({ reserved, tokens }) => [tokens, reserved])

  it("uses what was reserved: once, in every account", () => {
    const { chain } = nested()
    spend(chain, 5)
    assert.deepStrictEqual(tokens(chain), [
      [5, 0],
      [5, 3],
      [5, 15],
      [5, 15]
    ])
  })

  it("uses what is beyond the reservation, too, from what the others have", () => {
    const { chain } = nested()
    spend(chain, 11)
    assert.deepStrictEqual(tokens(chain), [
      [11, 0],
      [11, 0],
      [11, 9],
      [11, 9]
    ])
    spend(chain, 30)
    assert.deepStrictEqual(tokens(chain), [
      [41, 0],
      [41, 0],
      [41, 0],
      [41, 0]
    ])
  })

  it("gives back, as if it had never been used, also what was beyond the reservation", () => {
    for (const used of [3, 8, 15, 25, 70]) {
      const { chain } = nested()
      spend(chain, used)
      spend(chain, -used)
      assert.deepStrictEqual(tokens(chain), tokens(nested().chain), String(used))
    }
  })

  it("uses nothing of the reservation of a run whose parent's it is not", () => {
    const { parent, root, all } = nested()
    spend([parent, root, all], 4)
    assert.deepStrictEqual(tokens([parent, root, all]), [
      [4, 8],
      [4, 16],
      [4, 16]
    ])
    spend([root, all], 2)
    assert.deepStrictEqual(tokens([root, all]), [
      [6, 16],
      [6, 16]
    ])
  })
})

describe("settle", () => {
  it("gives back what was not used, once", () => {
    const root = new Account("root", { maxTokens: 10 })
    const own = new Account("run 1", { maxTokens: 10 })
    enter([root], own, 10)
    spend([own, root], 4)
    settle(own, [root])
    assert.deepStrictEqual(figures([root]), [[4, 0, 1]])
    settle(own, [root])
    assert.deepStrictEqual(figures([root]), [[4, 0, 1]])
    assert.isUndefined(refusalOf([root], 6))
    assert.isDefined(refusalOf([root], 7))
  })

  it("does nothing for one that had asked for nothing", () => {
    const root = new Account("root", { maxTokens: 10 })
    const own = new Account("run 1", { maxTokens: 5 })
    enter([root], own)
    settle(own, [root])
    assert.deepStrictEqual(figures([root]), [[0, 0, 1]])
  })

  it("leaves to those further in what they have reserved, also when they use or return it later", () => {
    const root = new Account("root", { maxTokens: 30 })
    const parent = new Account("run 1", { maxTokens: 20 })
    const child = new Account("run 2", { maxTokens: 8 })
    enter([root], parent, 20)
    enter([parent, root], child, 8)
    settle(parent, [root])
    assert.deepStrictEqual(figures([parent, root]), [
      [0, 8, 1],
      [0, 8, 2]
    ])
    spend([child, parent, root], 5)
    assert.deepStrictEqual(figures([parent, root]), [
      [5, 3, 1],
      [5, 3, 2]
    ])
    settle(child, [parent, root])
    assert.deepStrictEqual(figures([parent, root]), [
      [5, 0, 1],
      [5, 0, 2]
    ])
  })

  it("keeps what those further in have reserved, even where their parent has used more than was left", () => {
    const root = new Account("root", { maxTokens: 30 })
    const parent = new Account("run 1", { maxTokens: 10 })
    const child = new Account("run 2", { maxTokens: 8 })
    enter([root], parent, 10)
    enter([parent, root], child, 8)
    spend([parent, root], 6)
    settle(parent, [root])
    assert.deepStrictEqual(figures([parent, root]), [
      [6, 8, 1],
      [6, 8, 2]
    ])
    settle(child, [parent, root])
    assert.deepStrictEqual(figures([parent, root]), [
      [6, 0, 1],
      [6, 0, 2]
    ])
  })

  it("counts what is reported late, and what is taken back late", () => {
    const root = new Account("root", { maxTokens: 30 })
    const own = new Account("run 1", { maxTokens: 10 })
    enter([root], own, 10)
    settle(own, [root])
    spend([own, root], 7)
    assert.deepStrictEqual(figures([root]), [[7, 0, 1]])
    spend([own, root], -3)
    assert.deepStrictEqual(figures([root]), [[4, 0, 1]])
  })
})

describe("exhausted and overdrawn", () => {
  it("are one token apart", () => {
    const chain = [new Account("run 1", { maxTokens: 10 }), new Account("free", {})]
    for (const [used, isExhausted, isOverdrawn] of [
      [0, false, false],
      [9, false, false],
      [10, true, false],
      [11, true, true]
    ] as const) {
      spend(chain, used - chain[0]!.tokens)
      assert.strictEqual(exhausted(chain) !== undefined, isExhausted, `${used} used`)
      assert.strictEqual(overdrawn(chain) !== undefined, isOverdrawn, `${used} used`)
    }
    assert.isUndefined(exhausted([]))
    assert.isUndefined(overdrawn([new Account("free", {})]))
  })

  it("say whose limit it is, and have its figures", () => {
    const chain = [new Account("run 1", { maxTokens: 50 }), new Account("root", { maxTokens: 10 }, { maxTokens: 20 })]
    spend(chain, 12)
    assert.deepStrictEqual(overdrawn(chain), {
      kind: "limit",
      retryable: false,
      name: "maxTokens",
      limit: 10,
      used: 12,
      asked: 20,
      message: "The limit maxTokens of root is reached: 10, of which 12 used; 20 asked for"
    })
    assert.deepStrictEqual(exhausted(chain), overdrawn(chain))
  })

  it("go by what is reserved further in, and say so", () => {
    const chain = [new Account("run 1", { maxTokens: 10 })]
    enter(chain, new Account("run 2", { maxTokens: 8 }), 8)
    spend(chain, 2)
    assert.isUndefined(overdrawn(chain))
    assert.strictEqual(
      exhausted(chain)?.message,
      "The limit maxTokens of run 1 is reached: 10, of which 2 used, 8 reserved"
    )
  })

  it("leave alone who has its own tokens reserved, whatever the others have used", () => {
    const root = new Account("root", { maxTokens: 10 })
    const own = new Account("run 1", { maxTokens: 6 })
    enter([root], own, 6)
    spend([root], 20)
    assert.isDefined(overdrawn([root]))
    assert.isUndefined(exhausted([own, root]))
    settle(own, [root])
    assert.isDefined(overdrawn([own, root]))
  })
})

describe("limitFailure", () => {
  it("has the figures, and whose limit it is", () => {
    assert.deepStrictEqual(limitFailure("maxTurns", 3, 3, undefined), {
      kind: "limit",
      retryable: false,
      name: "maxTurns",
      limit: 3,
      used: 3,
      message: "The limit maxTurns of the run is reached: 3, of which 3 used"
    })
  })

  it("says what was asked for only where it is looser", () => {
    assert.strictEqual(limitFailure("maxTurns", 3, 3, 4).asked, 4)
    for (const asked of [undefined, 2, 3]) assert.notProperty(limitFailure("maxTurns", 3, 3, asked), "asked")
  })
})
