import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import type * as Scheduler from "effect/Scheduler"
import { TestClock } from "effect/testing"
import { Budget, type Capabilities, type SubagentRequest, type SubagentUpdate } from "effect-subagent"
import { isTimed, Keeper, standing } from "../../src/internal/keeper.ts"
import type { Asking } from "../../src/internal/limiter.ts"
import * as LimiterOf from "../../src/internal/limiter.ts"
import { Watchers } from "../../src/internal/watchers.ts"
import { quiesce } from "../utils/randomLives.ts"
import { all as everything } from "../utils/seam.ts"

type Kept = ConstructorParameters<typeof Keeper>[0]["run"]

interface Keeps {
  readonly limits?: SubagentRequest.Bounds
  readonly asked?: SubagentRequest.Bounds
  readonly budget?: Budget.Budget
  readonly capabilities?: Capabilities.Capabilities
  readonly owner?: Kept
  readonly wrapUp?: boolean
}

/** Keepers of runs of one registry, and what they have stopped. */
const makeWorld = Effect.gen(function* () {
  const clock = yield* Clock.clockWith(Effect.succeed)
  const watchers = new Watchers(clock, Effect.runForkWith(yield* Effect.context()))
  const limiter = LimiterOf.make({ maxDepth: 3, maxQueued: 9, wrapUp: true, maxConcurrent: { overall: 1 } })
  const stops: Array<string> = []
  let runs = 0
  const keep = (keeps: Keeps = {}) => {
    const { asked, budget, capabilities = { ...everything, turns: true }, limits, owner, wrapUp = true } = keeps
    const runId = `run_${++runs}`
    const lineage = { id: "a", runId, parentId: "root", rootId: "root", depth: 1 } as Asking["lineage"]
    const policy = { maxDepth: 3, toolFilters: [], ...(limits && { limits }) }
    const admission = Result.getOrThrow(
      limiter.admit({ provider: "p", capabilities, lineage, policy, owner: undefined, asked, budget })
    )!
    const run: { readonly owner: Kept | undefined; keeper: Keeper | undefined } = { owner, keeper: undefined }
    const keeper = new Keeper({
      run,
      admission,
      watchers,
      wrapUp,
      stop: ({ name, used }) => {
        stops.push(`${runId} ${name} ${used}`)
        keeper.settle(undefined)
      }
    })
    run.keeper = keeper
    return { run, keeper, admission }
  }
  return { keep, stops }
})

const pass = (millis: number) => Effect.andThen(TestClock.adjust(millis), quiesce)

const stamp = { runId: "run" as SubagentUpdate.SubagentUpdate["runId"], seq: 0, at: 0 }

const used = (total: number): SubagentUpdate.SubagentUpdate => ({ ...stamp, _tag: "Usage", usage: { total } })

const said: SubagentUpdate.SubagentUpdate = { ...stamp, _tag: "Thought", text: "hm" }

describe("Keeper", () => {
  it.effect("counts turns, says what was reached, and offers a last one where the host wants it", () =>
    Effect.gen(function* () {
      const { keep } = yield* makeWorld
      for (const wrapUp of [true, false]) {
        const { keeper } = keep({ limits: { maxTurns: 1 }, asked: { maxTurns: 4 }, wrapUp })
        assert.isUndefined(keeper.nextTurn())
        assert.isUndefined(keeper.reached)
        const refused = keeper.nextTurn()!
        assert.deepStrictEqual([refused.wrapUp, refused.failure.limit, refused.failure.asked], [wrapUp, 1, 4])
        assert.strictEqual(keeper.reached, refused.failure)
      }
    })
  )

  it.effect("charges what is reported, and nothing for what is only said", () =>
    Effect.gen(function* () {
      const { keep } = yield* makeWorld
      const budget = yield* Budget.make({ name: "b" })
      const { keeper } = keep({ budget })
      keeper.heard(used(3))
      keeper.heard(said)
      keeper.heard(used(8))
      assert.strictEqual((yield* budget.spent).tokens, 8)
    })
  )

  it.effect("stops a child that does not ask when it has used more than it may, and leaves one that asks alone", () =>
    Effect.gen(function* () {
      const { keep, stops } = yield* makeWorld
      for (const turns of [true, false]) {
        const { keeper } = keep({
          limits: { maxTokens: 5 },
          asked: { maxTokens: 5 },
          capabilities: { ...everything, turns }
        })
        if (turns) assert.isUndefined(keeper.nextTurn())
        keeper.heard(used(5))
        keeper.heard(used(6))
        assert.deepStrictEqual(stops, turns ? [] : ["run_2 maxTokens 6"])
        assert.strictEqual(keeper.nextTurn()?.failure.name, "maxTokens")
      }
    })
  )

  it.effect("hears what a child says for all who wait for it, and lets them work no longer for that", () =>
    Effect.gen(function* () {
      const { keep, stops } = yield* makeWorld
      const top = keep({ limits: { idleTimeout: 10 } })
      // one that nothing limits has no keeper, and one that only counts has no clocks
      const middle = keep({ limits: { maxTurns: 9 }, owner: { owner: top.run, keeper: undefined } })
      const child = keep({ limits: { idleTimeout: 10, timeout: 25 }, owner: middle.run })
      for (const { keeper } of [top, middle, child]) keeper.begin(undefined)
      for (let i = 0; i < 3; i++) {
        yield* pass(8)
        child.keeper.heard(said)
      }
      assert.deepStrictEqual(stops, [])
      yield* pass(1)
      assert.deepStrictEqual(stops, ["run_3 timeout 25"])
      yield* pass(8)
      assert.lengthOf(stops, 1)
      yield* pass(1)
      assert.deepStrictEqual(stops, ["run_3 timeout 25", "run_1 idleTimeout 10"])
    })
  )

  it.effect("does not hear for a child what whoever waits for it says", () =>
    Effect.gen(function* () {
      const { keep, stops } = yield* makeWorld
      const parent = keep({ limits: { idleTimeout: 10 } })
      const child = keep({ limits: { idleTimeout: 10 }, owner: parent.run })
      child.keeper.begin(undefined)
      yield* pass(9)
      parent.keeper.heard(said)
      yield* pass(1)
      assert.deepStrictEqual(stops, ["run_2 idleTimeout 10"])
    })
  )

  it.effect("watches no clock before the run begins, and none when it is over", () =>
    Effect.gen(function* () {
      const { keep, stops } = yield* makeWorld
      const { keeper } = keep({ limits: { timeout: 10, idleTimeout: 5 } })
      yield* pass(3)
      keeper.begin(undefined)
      keeper.settle(undefined)
      yield* pass(50)
      assert.deepStrictEqual(stops, [])
    })
  )

  it.effect("charges what the run has used in all when it settles, and gives back the rest; the place comes last", () =>
    Effect.gen(function* () {
      const { keep } = yield* makeWorld
      const budget = yield* Budget.make({ name: "b", maxTokens: 100 })
      const asks = { limits: { maxTokens: 40 }, asked: { maxTokens: 40 }, budget }
      for (const [usage, tokens] of [
        [{ total: 9 }, 9],
        [undefined, 13]
      ] as const) {
        const { admission, keeper } = keep(asks)
        assert.isUndefined(admission.ask(() => {}) ?? admission.enter())
        assert.isTrue(admission.hasPlace)
        keeper.heard(used(4))
        assert.strictEqual((yield* budget.spent).reserved, 36)
        keeper.settle(usage)
        for (const isOver of [false, true]) {
          if (isOver) keeper.giveBack()
          const spent = yield* budget.spent
          assert.deepStrictEqual([spent.tokens, spent.reserved], [tokens, 0])
          assert.strictEqual(admission.hasPlace, !isOver)
        }
      }
    })
  )
})

describe("isTimed", () => {
  it.effect("says whether a clock runs for a run, or for one that waits for it", () =>
    Effect.gen(function* () {
      const { keep } = yield* makeWorld
      const timed = keep({ limits: { timeout: 10 } })
      const counted = keep({ limits: { maxTurns: 1 } })
      assert.isTrue(isTimed(timed.run))
      assert.isFalse(isTimed(counted.run))
      assert.isTrue(isTimed(keep({ limits: { maxTurns: 1 }, owner: timed.run }).run))
      assert.isFalse(isTimed(keep({ limits: { maxTurns: 1 }, owner: counted.run }).run))
      assert.isFalse(isTimed({ owner: undefined, keeper: undefined }))
    })
  )
})

describe("standing", () => {
  /** A child and its parent, both with both clocks. */
  const family = Effect.gen(function* () {
    const { keep, stops } = yield* makeWorld
    const parent = keep({ limits: { timeout: 30, idleTimeout: 10 } })
    const child = keep({ limits: { timeout: 30, idleTimeout: 10 }, owner: parent.run })
    for (const { keeper } of [parent, child]) keeper.begin(undefined)
    return { child, parent, stops }
  })

  it.effect("is the effect itself where no clock runs, and where nobody waits", () =>
    Effect.gen(function* () {
      const { keep } = yield* makeWorld
      const { run } = keep({ limits: { maxTurns: 1 } })
      for (const each of [undefined, run]) assert.strictEqual(yield* standing(each, "all", Effect.succeed("x")), "x")
    })
  )

  it.effect("lets the clocks of a child, and of those that wait for it, stand still until it is over", () =>
    Effect.gen(function* () {
      const { child, stops } = yield* family
      yield* pass(4)
      const fiber = yield* Effect.forkChild(standing(child.run, "all", Effect.sleep(1000)), { startImmediately: true })
      yield* pass(1000)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(stops, [])
      yield* pass(5)
      assert.deepStrictEqual(stops, [])
      yield* pass(1)
      assert.deepStrictEqual(stops, ["run_1 idleTimeout 10", "run_2 idleTimeout 10"])
    })
  )

  it.effect("lets only those for silence stand still, if it is only for that", () =>
    Effect.gen(function* () {
      const { child, stops } = yield* family
      yield* Effect.forkChild(standing(child.run, "silence", Effect.never), { startImmediately: true })
      yield* pass(29)
      assert.deepStrictEqual(stops, [])
      yield* pass(1)
      assert.deepStrictEqual(stops, ["run_1 timeout 30", "run_2 timeout 30"])
    })
  )

  it.effect("leaves a child's clocks alone when its parent is the one that waits", () =>
    Effect.gen(function* () {
      const { parent, stops } = yield* family
      yield* Effect.forkChild(standing(parent.run, "all", Effect.never), { startImmediately: true })
      yield* pass(100)
      assert.deepStrictEqual(stops, ["run_2 idleTimeout 10"])
    })
  )

  it.effect("lets them go on however it ends, and not before the last of several is over", () =>
    Effect.gen(function* () {
      for (const end of ["fails", "is interrupted"] as const) {
        const { child, stops } = yield* family
        const fork = <A, E>(effect: Effect.Effect<A, E>) =>
          Effect.forkChild(standing(child.run, "all", effect), { startImmediately: true })
        const others = yield* fork(Effect.sleep(60))
        const fiber = yield* fork(end === "fails" ? Effect.andThen(Effect.sleep(40), Effect.fail("oh")) : Effect.never)
        yield* pass(50)
        yield* Fiber.interrupt(fiber)
        const exit = yield* Fiber.await(fiber)
        assert.strictEqual(Exit.hasInterrupts(exit), end === "is interrupted")
        yield* pass(10)
        yield* Fiber.join(others)
        yield* pass(9)
        assert.deepStrictEqual(stops, [], end)
        yield* pass(1)
        assert.lengthOf(stops, 2, end)
      }
    })
  )

  it.effect("lets them go on whenever it is interrupted, between any two steps of it", () =>
    Effect.gen(function* () {
      for (let step = 1; step <= 8; step++) {
        const { child, stops } = yield* family
        const tasks: Array<() => void> = []
        let steps = 0
        // the fiber gives way once, before this step, and is gone when it would have gone on
        const scheduler: Scheduler.Scheduler = {
          executionMode: "async",
          shouldYield: () => ++steps === step,
          makeDispatcher: () => ({ scheduleTask: (task) => void tasks.push(task), flush: () => {} })
        }
        const fiber = Effect.runForkWith(yield* Effect.context())(standing(child.run, "all", Effect.never), {
          scheduler
        })
        fiber.interruptUnsafe()
        for (const task of tasks) task()
        yield* pass(10)
        assert.deepStrictEqual(stops, ["run_1 idleTimeout 10", "run_2 idleTimeout 10"], `step ${step}`)
      }
    })
  )
})
