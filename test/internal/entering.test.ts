import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { type Limits, SubagentError } from "effect-subagent"
import type { Entering } from "../../src/internal/entering.ts"
import { enter } from "../../src/internal/entering.ts"
import type { Admission, Asking } from "../../src/internal/limiter.ts"
import * as LimiterOf from "../../src/internal/limiter.ts"
import type { AllWaiting } from "../../src/internal/waiting.ts"
import { Waiting } from "../../src/internal/waiting.ts"
import { quiesce } from "../utils/randomLives.ts"
import { all as everything, reasonOf } from "../utils/seam.ts"

const { AbortedBeforeStart, LimitReached, ParentSettled } = SubagentError

const never = () => assert.fail("It was called")

/** A place for one, and those who want it. */
const makeWorld = (limits: Partial<Limits.LimitsOptions> = {}) => {
  const limiter = LimiterOf.make({
    maxDepth: 3,
    maxQueued: 10,
    wrapUp: true,
    maxConcurrent: { overall: 1 },
    ...limits
  })
  const all: AllWaiting = new Map()
  const starts = new Set<() => void>()
  const log: Array<string> = []
  let runs = 0
  const admit = () => {
    const lineage = { id: "a", runId: `run_${++runs}`, parentId: "root", rootId: "root", depth: 1 } as Asking["lineage"]
    const policy = { maxDepth: 3, toolFilters: [] }
    return Result.getOrThrow(
      limiter.admit({
        provider: "p",
        capabilities: everything,
        lineage,
        policy,
        owner: undefined,
        asked: undefined,
        budget: undefined
      })
    )!
  }
  /** The way in of one, and what it comes to. */
  const coming = (name: string, entering: Partial<Entering> = {}, admission: Admission = admit()) => ({
    admission,
    entering: Effect.uninterruptibleMask((restore) =>
      enter(
        {
          admission,
          waiting: new Waiting(all),
          by: [starts, undefined],
          owner: undefined,
          restore,
          refusal: () => undefined,
          onRefused: () => log.push(`${name} is refused`),
          ...entering
        },
        () =>
          Effect.sync(() => {
            log.push(`${name} goes on`)
            return name
          })
      )
    )
  })
  /** One that is in. */
  const inside = Effect.sync(() => admit()).pipe(
    Effect.tap((admission) => Effect.sync(() => assert.isUndefined(admission.ask(never) ?? admission.enter())))
  )
  const fork = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkChild(effect, { startImmediately: true })
  /** Nobody waits, and there is a place. */
  const isFree = Effect.sync(() => {
    assert.deepStrictEqual([all.size, starts.size], [0, 0])
    const admission = admit()
    assert.isUndefined(admission.ask(never))
    assert.isTrue(admission.hasPlace)
    admission.leave()
  })
  return { all, starts, log, admit, coming, inside, fork, isFree }
}

describe("enter", () => {
  it("goes on at once where there is a place, and is counted", () => {
    const { admit, all, coming, log } = makeWorld({ maxRuns: 1 })
    const { admission, entering } = coming("a")
    const later = admit()
    assert.strictEqual(Effect.runSync(entering), "a")
    assert.deepStrictEqual([log, all.size], [["a goes on"], 0])
    assert.strictEqual(admission.above[0]!.runs, 1)
    assert.instanceOf(later.enter(), LimitReached)
  })

  it.effect("is refused where nobody may wait", () =>
    Effect.gen(function* () {
      const { coming, inside, isFree, log } = makeWorld({ maxQueued: 0 })
      const one = yield* inside
      const exit = yield* Effect.exit(coming("a").entering)
      assert.deepStrictEqual(
        reasonOf(exit),
        new LimitReached({ name: "maxConcurrent", of: "the host", limit: 1, used: 1 })
      )
      assert.deepStrictEqual(log, ["a is refused"])
      one.settle()
      yield* isFree
    })
  )

  it.effect("gives its place back where others have taken the last run meanwhile", () =>
    Effect.gen(function* () {
      const { admit, coming, log } = makeWorld({ maxRuns: 1, maxConcurrent: { overall: 2 } })
      const { admission, entering } = coming("a")
      const other = admit()
      assert.isUndefined(other.ask(never) ?? other.enter())
      const reason = reasonOf(yield* Effect.exit(entering))
      assert.deepStrictEqual(reason, new LimitReached({ name: "maxRuns", of: 'root "root"', limit: 1, used: 1 }))
      assert.deepStrictEqual(log, ["a is refused"])
      assert.deepStrictEqual([admission.hasPlace, admission.above[0]!.runs], [false, 1])
    })
  )

  it.effect("waits for a place, in order, and holds nothing until then", () =>
    Effect.gen(function* () {
      const { all, coming, fork, inside, isFree, log, starts } = makeWorld({ maxRuns: 9 })
      const one = yield* inside
      const [a, b] = [coming("a"), coming("b")]
      const fibers = [yield* fork(a.entering), yield* fork(b.entering)]
      yield* quiesce
      assert.deepStrictEqual([log, all.size, starts.size], [[], 2, 2])
      assert.strictEqual(a.admission.above[0]!.runs, 1)
      one.settle()
      assert.strictEqual(yield* Fiber.join(fibers[0]!), "a")
      yield* quiesce
      assert.deepStrictEqual([log, all.size, starts.size], [["a goes on"], 1, 1])
      assert.strictEqual(a.admission.above[0]!.runs, 2)
      a.admission.settle()
      assert.strictEqual(yield* Fiber.join(fibers[1]!), "b")
      b.admission.settle()
      yield* isFree
    })
  )

  it.effect("comes to nothing when it is called off while it waits: by what it waits for, or by the registry", () =>
    Effect.gen(function* () {
      for (const who of ["starts", "all"] as const) {
        const { coming, fork, inside, isFree, log, ...waiting } = makeWorld()
        const one = yield* inside
        const fiber = yield* fork(coming("a").entering)
        for (const callOff of waiting[who].keys()) callOff()
        assert.deepStrictEqual(reasonOf(yield* Fiber.await(fiber)), new AbortedBeforeStart({ provider: "p" }))
        assert.deepStrictEqual(log, ["a is refused"])
        one.settle()
        yield* quiesce
        assert.deepStrictEqual(log, ["a is refused"])
        yield* isFree
      }
    })
  )

  it.effect("says why it was called off, where it knows", () =>
    Effect.gen(function* () {
      const { coming, fork, inside, starts } = makeWorld()
      yield* inside
      const reason = new ParentSettled({ parentId: "root", parentRunId: "run_0" })
      const fiber = yield* fork(coming("a", { refusal: () => reason }).entering)
      for (const callOff of starts) callOff()
      assert.strictEqual(reasonOf(yield* Fiber.await(fiber)), reason)
    })
  )

  it.effect("comes to nothing when it is interrupted while it waits", () =>
    Effect.gen(function* () {
      const { coming, fork, inside, isFree, log } = makeWorld()
      const one = yield* inside
      const fiber = yield* fork(coming("a").entering)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
      assert.deepStrictEqual(log, ["a is refused"])
      one.settle()
      yield* isFree
    })
  )

  it.effect("passes its place on when it gets it, or was to get it, and can't go on any more", () =>
    Effect.gen(function* () {
      const reason = new ParentSettled({ parentId: "root", parentRunId: "run_0" })
      type Stop = (fiber: Fiber.Fiber<string, unknown>, callOffs: ReadonlySet<() => void>) => void
      const ways: ReadonlyArray<readonly [string, Stop, boolean]> = [
        ["refused", () => {}, true],
        ["called off", (_, callOffs) => callOffs.forEach((callOff) => callOff()), true],
        ["interrupted", (fiber) => fiber.interruptUnsafe(), false]
      ]
      for (const [what, stop, isRefused] of ways) {
        const { coming, fork, inside, isFree, log, starts } = makeWorld()
        const one = yield* inside
        let isLate = false
        const fiber = yield* fork(coming("a", { refusal: () => (isLate ? reason : undefined) }).entering)
        const b = coming("b", { by: [] })
        const next = yield* fork(b.entering)
        // all of it in one step
        isLate = true
        stop(fiber, starts)
        one.settle()
        const exit = yield* Fiber.await(fiber)
        if (isRefused) assert.strictEqual(reasonOf(exit), reason, what)
        else assert.isTrue(Exit.hasInterrupts(exit), what)
        assert.strictEqual(yield* Fiber.join(next), "b", what)
        assert.deepStrictEqual(log, ["a is refused", "b goes on"], what)
        b.admission.settle()
        yield* isFree
      }
    })
  )

  it.effect("is refused where its limit was reached while it waited", () =>
    Effect.gen(function* () {
      const { all, coming, fork, inside, log, starts } = makeWorld({ maxRuns: 2 })
      const one = yield* inside
      const [a, b, c] = [coming("a"), coming("b"), coming("c")]
      const fibers = yield* Effect.forEach([a, b, c], ({ entering }) => fork(entering))
      one.settle()
      yield* Fiber.join(fibers[0]!)
      a.admission.settle()
      for (const fiber of fibers.slice(1)) {
        const reason = reasonOf(yield* Fiber.await(fiber))
        assert.deepStrictEqual(reason, new LimitReached({ name: "maxRuns", of: 'root "root"', limit: 2, used: 2 }))
      }
      assert.deepStrictEqual(log, ["a goes on", "b is refused", "c is refused"])
      assert.strictEqual(a.admission.above[0]!.runs, 2)
      assert.deepStrictEqual([all.size, starts.size], [0, 0])
    })
  )

  it.effect("lets the clocks for silence stand still as long as it waits, of all who wait for it", () =>
    Effect.gen(function* () {
      const { coming, fork, inside, log, starts } = makeWorld()
      const kept = (name: string, owner?: Entering["owner"]) => {
        const noting = (what: string) => (which: string) => log.push(`${name} ${what} ${which}`)
        // what is looked at of a run
        return { owner, keeper: { watch: { pause: noting("pauses"), proceed: noting("proceeds") } } } as never
      }
      const owner: NonNullable<Entering["owner"]> = kept("child", kept("parent"))
      const one = yield* inside
      const fiber = yield* fork(coming("a", { owner }).entering)
      assert.deepStrictEqual(log, ["child pauses silence", "parent pauses silence"])
      one.settle()
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(log.splice(0).slice(2), ["child proceeds silence", "parent proceeds silence", "a goes on"])
      const other = yield* fork(coming("b", { owner }).entering)
      for (const callOff of starts) callOff()
      yield* Fiber.await(other)
      assert.deepStrictEqual(log.slice(2), ["child proceeds silence", "parent proceeds silence", "b is refused"])
    })
  )
})
