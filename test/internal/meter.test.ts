import { assert, describe, it } from "@effect/vitest"
import type { SubagentResult } from "effect-subagent"
import { Account, type Chain, enter, spend } from "../../src/internal/account.ts"
import { Meter, type Metered } from "../../src/internal/meter.ts"

/** A meter, and how often and why it has stopped its child. */
const metered = (options: Partial<Metered> = {}) => {
  const stops: Array<SubagentResult.SubagentFailure> = []
  const meter = new Meter({
    chain: [],
    maxTurns: undefined,
    asked: undefined,
    asks: true,
    wrapUp: true,
    stop: (failure) => stops.push(failure),
    ...options
  })
  return { meter, stops }
}

const limited = (maxTokens: number): Chain => [new Account("run 1", { maxTokens })]

describe("nextTurn", () => {
  it("allows any number of turns where nothing is limited", () => {
    const { meter, stops } = metered()
    for (let i = 0; i < 100; i++) assert.isUndefined(meter.nextTurn())
    assert.deepStrictEqual([meter.reached, stops], [undefined, []])
  })

  it("allows turns up to the last one, and says why there is no further", () => {
    for (const maxTurns of [1, 2, 5]) {
      const { meter, stops } = metered({ maxTurns })
      for (let turn = 0; turn < maxTurns; turn++) {
        assert.isUndefined(meter.nextTurn(), `${turn} of ${maxTurns}`)
        assert.isUndefined(meter.reached)
      }
      const failure = {
        kind: "limit",
        retryable: false,
        name: "maxTurns",
        limit: maxTurns,
        used: maxTurns,
        message: `The limit maxTurns of the run is reached: ${maxTurns}, of which ${maxTurns} used`
      }
      assert.deepStrictEqual(meter.nextTurn(), { failure, wrapUp: true })
      assert.deepStrictEqual(meter.reached, failure)
      assert.deepStrictEqual(stops, [])
    }
  })

  it("stops a child that has been refused and asks again, and offers it no last turn any more", () => {
    const { meter, stops } = metered({ maxTurns: 1 })
    meter.nextTurn()
    const { failure } = meter.nextTurn()!
    for (let again = 1; again <= 2; again++) {
      assert.deepStrictEqual(meter.nextTurn(), { failure, wrapUp: false })
      assert.strictEqual(stops.length, again)
      assert.strictEqual(stops[0], failure)
    }
  })

  it("gives no turn for last words to a child that has had none", () => {
    const account = new Account("pool", { maxTokens: 10 })
    spend([account], 10)
    const { meter } = metered({ chain: [account] })
    assert.deepInclude(meter.nextTurn(), { wrapUp: false })
  })

  it("offers a last turn only where the host wants one", () => {
    const { meter } = metered({ maxTurns: 1, wrapUp: false })
    meter.nextTurn()
    assert.isFalse(meter.nextTurn()!.wrapUp)
  })

  it("says what was asked for, where something tighter holds", () => {
    const refusalOf = (maxTurns: number) => {
      const { meter } = metered({ maxTurns: 1, asked: { maxTurns } })
      meter.nextTurn()
      return meter.nextTurn()!.failure
    }
    assert.strictEqual(refusalOf(3).asked, 3)
    assert.strictEqual(
      refusalOf(3).message,
      "The limit maxTurns of the run is reached: 1, of which 1 used; 3 asked for"
    )
    assert.notProperty(refusalOf(1), "asked")
    const { meter } = metered({ maxTurns: 1, asked: { maxTokens: 3 } })
    meter.nextTurn()
    assert.notProperty(meter.nextTurn()!.failure, "asked")
  })

  it("gives a refusal that nobody can change", () => {
    const { meter } = metered({ maxTurns: 1 })
    meter.nextTurn()
    assert.isTrue(Object.isFrozen(meter.nextTurn()))
    assert.isTrue(Object.isFrozen(meter.nextTurn()))
  })

  it("goes by the tokens, too: exactly at the limit there is no further turn", () => {
    for (const [total, isRefused] of [
      [9, false],
      [10, true],
      [11, true]
    ] as const) {
      const { meter, stops } = metered({ chain: limited(10), maxTurns: 5 })
      meter.nextTurn()
      meter.report({ total })
      const refusal = meter.nextTurn()
      assert.strictEqual(refusal !== undefined, isRefused, `${total} used`)
      assert.deepStrictEqual(stops, [])
      if (refusal === undefined) continue
      const { limit, name, used } = refusal.failure
      assert.deepStrictEqual([name, limit, used], ["maxTokens", 10, total])
      assert.strictEqual(meter.reached, refusal.failure)
    }
  })

  it("refuses a first turn where the others have left nothing", () => {
    const chain = limited(10)
    enter(chain, new Account("run 2", { maxTokens: 10 }), 10)
    const { failure } = metered({ chain }).meter.nextTurn()!
    assert.deepStrictEqual([failure.name, failure.used], ["maxTokens", 0])
  })
})

describe("charge", () => {
  const charged = (...reports: ReadonlyArray<SubagentResult.SubagentUsage>) => {
    const chain = limited(100)
    const { meter } = metered({ chain })
    for (const usage of reports) meter.charge(usage)
    return chain[0]!.tokens
  }

  it("takes each report for all that the run has used by then", () => {
    assert.strictEqual(charged({ total: 3 }, { total: 8 }, { total: 8 }), 8)
    assert.strictEqual(charged({ total: 8 }, { total: 3 }), 3)
  })

  it("counts in every account, beside what others use there", () => {
    const chain = [new Account("run 1", {}), new Account("root", { maxTokens: 100 })]
    const [first, second] = [metered({ chain }), metered({ chain: chain.slice(1) })]
    first.meter.charge({ total: 5 })
    second.meter.charge({ total: 7 })
    first.meter.charge({ total: 6 })
    assert.deepStrictEqual(
      chain.map(({ tokens }) => tokens),
      [6, 13]
    )
  })

  it("adds input and output where there is no total", () => {
    assert.strictEqual(charged({ input: 3, output: 4 }), 7)
    assert.strictEqual(charged({ input: 3 }), 3)
    assert.strictEqual(charged({ output: 4 }), 4)
    assert.strictEqual(charged({ input: 3, output: 4, total: 9 }), 9)
    assert.strictEqual(charged({ input: 3, output: 4, total: 0 }), 0)
  })

  it("takes a report without tokens for none", () => {
    for (const none of [{}, { cacheRead: 3 }, { reasoning: 2, cacheWrite: 1 }]) {
      assert.strictEqual(charged(none), 0)
      assert.strictEqual(charged({ total: 5 }, none), 5)
    }
  })

  it("passes over figures that are none, but not over those beside them", () => {
    const none = [-1, -0.5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, "5", null, {}, 5n]
    for (const figure of none as Array<number>) {
      assert.strictEqual(charged({ total: figure }), 0)
      assert.strictEqual(charged({ total: 5 }, { total: figure }), 5)
      assert.strictEqual(charged({ total: 5 }, { input: figure, output: figure }), 5)
      assert.strictEqual(charged({ input: figure, output: 4 }), 4)
      assert.strictEqual(charged({ input: 3, output: figure }), 3)
      assert.strictEqual(charged({ input: 3, output: 4, total: figure }), 7)
    }
  })

  it("takes a part of a token for one, and a figure beyond counting for the most there is", () => {
    assert.strictEqual(charged({ total: 4.2 }), 5)
    assert.strictEqual(charged({ input: 0.1, output: 0.2 }), 2)
    const chain = limited(100)
    const [first, second] = [metered({ chain }), metered({ chain })]
    first.meter.charge({ total: 7 })
    second.meter.charge({ total: Number.MAX_VALUE })
    assert.isAbove(chain[0]!.tokens, 100)
    second.meter.charge({ total: 2 })
    assert.strictEqual(chain[0]!.tokens, 9)
  })
})

describe("report", () => {
  it("stops a child that does not ask once it has used more than it may, not before", () => {
    for (const [total, isStopped] of [
      [9, false],
      [10, false],
      [11, true]
    ] as const) {
      const { meter, stops } = metered({ chain: limited(10), asks: false })
      meter.report({ total })
      assert.strictEqual(stops.length, isStopped ? 1 : 0, `${total} used`)
      assert.strictEqual(meter.reached, stops[0])
      if (isStopped) assert.deepStrictEqual([stops[0]!.name, stops[0]!.limit, stops[0]!.used], ["maxTokens", 10, 11])
    }
  })

  it("leaves one that asks to its next turn, and counts all the same", () => {
    const chain = limited(10)
    const { meter, stops } = metered({ chain })
    meter.nextTurn()
    meter.report({ total: 50 })
    assert.deepStrictEqual([meter.reached, stops, chain[0]!.tokens], [undefined, [], 50])
  })

  it("stops one that says that it asks, and has not", () => {
    const { meter, stops } = metered({ chain: limited(10) })
    meter.report({ total: 10 })
    assert.deepStrictEqual(stops, [])
    meter.report({ total: 11 })
    assert.deepStrictEqual(stops, [meter.reached])
  })

  it("stops a child once, with the figures of then, and goes on counting", () => {
    const chain = limited(10)
    const { meter, stops } = metered({ chain, asks: false })
    meter.report({ total: 11 })
    const [first] = stops
    meter.report({ total: 60 })
    meter.report({ total: 3 })
    assert.strictEqual(meter.reached, first)
    assert.strictEqual(first!.used, 11)
    assert.deepStrictEqual(stops, [first])
    assert.strictEqual(chain[0]!.tokens, 3)
  })

  it("stops a child when others have used what it shares with them, as soon as it reports", () => {
    const chain = limited(10)
    const [one, other] = [metered({ chain, asks: false }), metered({ chain })]
    one.meter.report({ total: 4 })
    other.meter.report({ total: 7 })
    assert.deepStrictEqual(one.stops, [])
    one.meter.report({ total: 4 })
    assert.strictEqual(one.stops[0]?.used, 11)
  })
})
