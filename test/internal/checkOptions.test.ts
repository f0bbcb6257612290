import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Budget, type SubagentError } from "effect-subagent"
import { checkBudget, checkLimits, checkOptions } from "../../src/internal/checkOptions.ts"

const issues = (checked: Result.Result<unknown, SubagentError.InvalidRequest>) =>
  Result.isFailure(checked) ? checked.failure.issues : []

const problems = (options: object) => issues(checkOptions(options)).map(String)

describe("checkOptions", () => {
  it("lets good options pass, and none at all", () => {
    assert.deepStrictEqual(problems({}), [])
    assert.deepStrictEqual(problems({ releaseTimeout: Duration.seconds(1), updateCapacity: 1, eventCapacity: 5 }), [])
    for (const releaseTimeout of ["2 seconds", 0, 250]) assert.deepStrictEqual(problems({ releaseTimeout }), [])
  })

  it("names each option that is wrong", () => {
    assert.deepStrictEqual(problems({ releaseTimeout: "soon", updateCapacity: 0, eventCapacity: 1.5 }), [
      "releaseTimeout: Expected a finite duration",
      "updateCapacity: Expected a whole number from 1",
      "eventCapacity: Expected a whole number from 1"
    ])
  })

  it("takes no number that is none, and no bound that is none", () => {
    for (const eventCapacity of [Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, "2", null, undefined]) {
      assert.strictEqual(problems({ eventCapacity }).length, 1, String(eventCapacity))
    }
    for (const releaseTimeout of [Number.NaN, -1, Number.POSITIVE_INFINITY, Duration.infinity, undefined, null, ""]) {
      assert.deepStrictEqual(problems({ releaseTimeout }), ["releaseTimeout: Expected a finite duration"])
    }
  })

  it("refuses a misspelt option, also one that every object seems to have", () => {
    assert.deepStrictEqual(problems({ updatecapacity: 1, toString: 1 }), [
      "updatecapacity: Expected no excess property",
      "toString: Expected no excess property"
    ])
  })
})

const limitProblems = (limits: unknown) => issues(checkLimits(limits)).map(String)

const limit = (name: string) => (figure: unknown) => limitProblems({ [name]: figure })

const capped = (name: string) => (figure: unknown) => limitProblems({ maxConcurrent: { [name]: figure } })

/** Each limit that is a count, how it is checked, and its least figure. */
const counts: ReadonlyArray<readonly [path: string, check: (figure: unknown) => ReadonlyArray<string>, least: number]> =
  [
    ["maxTurns", limit("maxTurns"), 1],
    ["maxTokens", limit("maxTokens"), 1],
    ["maxRuns", limit("maxRuns"), 0],
    ["maxDepth", limit("maxDepth"), 0],
    ["maxQueued", limit("maxQueued"), 0],
    ["maxConcurrent.overall", capped("overall"), 1],
    ["maxConcurrent.tree", capped("tree"), 1],
    ["maxConcurrent.provider", capped("provider"), 1],
    ["maxConcurrent.provider.acp", (figure) => capped("provider")({ acp: figure, spawn: 1 }), 1]
  ]

describe("checkLimits", () => {
  it("lets good limits pass, none at all, and what is left open", () => {
    const names = ["startTimeout", "timeout", "idleTimeout", ...counts.map(([path]) => path.split(".")[0]!), "wrapUp"]
    assert.deepStrictEqual(limitProblems({}), [])
    assert.deepStrictEqual(limitProblems(Object.fromEntries(names.map((name) => [name, undefined]))), [])
    for (const maxConcurrent of [{}, { overall: undefined, tree: undefined, provider: undefined }, { provider: {} }]) {
      assert.deepStrictEqual(limitProblems({ maxConcurrent }), [])
    }
    const limits = { startTimeout: "30 seconds", timeout: Duration.minutes(5), idleTimeout: 60_000, wrapUp: false }
    assert.deepStrictEqual(limitProblems(limits), [])
  })

  it("takes each count from its least figure up to what a program can count to, and nothing below", () => {
    for (const [path, check, least] of counts) {
      for (const figure of [least, least + 1, Number.MAX_SAFE_INTEGER]) assert.deepStrictEqual(check(figure), [], path)
      const expected = `${path}: Expected a whole number from ${least}`
      const none = [least - 1, -1, -0, 0.5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2 ** 53]
      for (const figure of none) assert.deepStrictEqual(check(figure), [expected], String(figure))
    }
  })

  it("takes no count that is of another type, by its path", () => {
    for (const [path, check] of counts) {
      for (const figure of ["1", null, true, [1], 1n]) {
        const found = check(figure)
        assert.strictEqual(found.length, 1, path)
        assert.isTrue(found[0]!.startsWith(`${path}: Expected `), found[0])
      }
    }
  })

  it("takes durations that end, and are at least a millisecond", () => {
    for (const name of ["startTimeout", "timeout", "idleTimeout"]) {
      for (const figure of [1, "1 milli", [1, 0], { seconds: 1 }, 2 ** 40, 1_000_000n]) {
        assert.deepStrictEqual(limit(name)(figure), [], name)
      }
      const none = [0, -0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, Duration.infinity, "Infinity", "soon", null]
      for (const figure of [...none, { minuts: 1 }]) {
        assert.deepStrictEqual(limit(name)(figure), [`${name}: Expected a finite duration of at least 1 ms`])
      }
    }
  })

  it("names all that is wrong, with a path", () => {
    const limits = { timeout: 0, maxTurns: 0, maxConcurrent: { overall: 0, provider: { a: -1, b: 1 } }, wrapUp: "yes" }
    assert.deepStrictEqual(
      issues(checkLimits(limits)).map(({ path }) => path),
      [["timeout"], ["maxTurns"], ["maxConcurrent", "overall"], ["maxConcurrent", "provider", "a"], ["wrapUp"]]
    )
    for (const maxConcurrent of [8, null, "8", [8]]) {
      assert.deepStrictEqual(limitProblems({ maxConcurrent }), ["maxConcurrent: Expected object | undefined"])
    }
  })

  it("refuses a misspelt limit, at every depth", () => {
    assert.deepStrictEqual(limitProblems({ maxturns: 1, maxConcurrent: { perTree: 1 }, toString: 1 }), [
      "maxturns: Expected no excess property",
      "toString: Expected no excess property",
      "maxConcurrent.perTree: Expected no excess property"
    ])
  })

  it("refuses what are no limits", () => {
    for (const limits of [null, undefined, 5, "maxTurns", [], () => ({})]) {
      assert.deepStrictEqual(limitProblems(limits), ["Expected object"])
    }
  })
})

describe("checkBudget", () => {
  const budgetProblems = (options: unknown) => issues(checkBudget(options)).map(String)

  it("lets a good budget pass, also one that is nothing but counted", () => {
    assert.deepStrictEqual(budgetProblems({ name: "a" }), [])
    assert.deepStrictEqual(
      budgetProblems({ name: "a", maxTokens: undefined, maxRuns: undefined, parent: undefined }),
      []
    )
    assert.deepStrictEqual(budgetProblems({ name: "a", maxTokens: 0, maxRuns: 0 }), [])
  })

  it("wants to know whose it is", () => {
    assert.deepStrictEqual(budgetProblems({}), ["name: Missing key"])
    for (const name of ["", " \n"]) {
      assert.deepStrictEqual(budgetProblems({ name }), ["name: Expected a string that is not blank"])
    }
    for (const name of [1, null, undefined]) assert.deepStrictEqual(budgetProblems({ name }), ["name: Expected string"])
  })

  it("takes no figure that is none, and no misspelt key", () => {
    for (const figure of [-1, -0, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      assert.deepStrictEqual(budgetProblems({ name: "a", maxTokens: figure, maxRuns: figure }), [
        "maxTokens: Expected a whole number from 0",
        "maxRuns: Expected a whole number from 0"
      ])
    }
    assert.deepStrictEqual(budgetProblems({ name: "a", maxtokens: 1 }), ["maxtokens: Expected no excess property"])
  })

  it.effect("takes only a budget for its parent: not one that looks like one", () =>
    Effect.gen(function* () {
      const parent = yield* Budget.make({ name: "a" })
      assert.deepStrictEqual(budgetProblems({ name: "b", parent }), [])
      for (const none of [{ ...parent }, Object.create(parent), "a", null, 1, [parent], () => parent]) {
        assert.deepStrictEqual(budgetProblems({ name: "b", parent: none }), ["parent: Expected a Budget"])
      }
    })
  )

  it("refuses what are no options", () => {
    for (const options of [null, undefined, "a", []])
      assert.deepStrictEqual(budgetProblems(options), ["Expected object"])
  })
})

describe("what is checked", () => {
  class Limits {
    wrapUp = false
    get maxRuns() {
      return 3
    }
  }

  it("is what is used: each field is read once, of whatever object, and nothing changes it later", () => {
    assert.deepStrictEqual(Result.getOrThrow(checkLimits(new Limits())), { wrapUp: false, maxRuns: 3 })
    let reads = 0
    const limits = {
      maxConcurrent: { overall: 1, provider: { p: 2 } },
      get maxTurns() {
        return ++reads
      }
    }
    const checked = Result.getOrThrow(checkLimits(limits))
    limits.maxConcurrent.overall = limits.maxConcurrent.provider.p = Number.NaN
    assert.deepStrictEqual(checked, { maxConcurrent: { overall: 1, provider: { p: 2 } }, maxTurns: 1 })
    assert.strictEqual(reads, 1)
    assert.deepStrictEqual(Result.getOrThrow(checkOptions(Object.create({ eventCapacity: 5 }))), { eventCapacity: 5 })
    assert.deepStrictEqual(Result.getOrThrow(checkBudget(Object.create({ name: "acme", maxTokens: 5 }))), {
      name: "acme",
      maxTokens: 5
    })
  })
})
