/** Ten thousand children through eight places: every one runs, the parents take turns, and nothing is left (20). */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scheduler from "effect/Scheduler"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { type Agent, Limits, Subagents } from "effect-subagent"
import { all, completed, type Outcome, type Placed, provider, type Seam } from "./utils/seam.ts"

setFlagsFromString("--expose-gc")
const gc = runInNewContext("gc") as () => void

const places = 8

/** Collects until there is nothing more to collect, and gives the bytes in use. */
const collected = Effect.gen(function* () {
  for (let i = 0; i < 4; i++) {
    gc()
    // what is held by a task of this turn is let go of in the next one
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  }
  return process.memoryUsage().heapUsed
})

/** Counts what fibers do, one by one. */
class Counting extends Scheduler.MixedScheduler {
  steps = 0
  override shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    this.steps++
    return super.shouldYield(fiber)
  }
}

const parents = ["a", "b"].map((id): Agent.Agent => ({ id, session: { header: { id: `session of ${id}` } } }))

/** A provider whose children hold until they are let go, one after the other. */
const makeChildren = () => {
  const working: Array<Deferred.Deferred<Outcome>> = []
  const seen = { order: [] as Array<string>, most: 0, ended: 0 }
  const turn = (placed: Placed) =>
    Effect.suspend(() => {
      const gate = Deferred.makeUnsafe<Outcome>()
      working.push(gate)
      seen.order.push(placed.lineage.parentId)
      seen.most = Math.max(seen.most, working.length)
      placed.nextTurn()
      placed.emit({ _tag: "Usage", usage: { total: 1 } })
      placed.emit({ _tag: "Content", messageId: "m", block: { type: "text", text: "done" } })
      return Deferred.await(gate)
    })
  return {
    provider: provider({ capabilities: { ...all, turns: true }, turn }),
    seen,
    working: () => working.length,
    /** Lets the one go that has worked for the longest time. */
    letOneGo: () => {
      seen.ended++
      Deferred.doneUnsafe(working.shift()!, Exit.succeed(completed))
    }
  }
}

/** So many children, half of them each parent's. All are asked for before the first of them ends. */
const through = (seam: Seam, children: ReturnType<typeof makeChildren>, count: number) =>
  Effect.gen(function* () {
    const fibers: Array<Fiber.Fiber<unknown, unknown>> = []
    for (let i = 0; i < count; i++) {
      // one parent has asked for all of its own before the other one asks
      const parent = parents[i < count / 2 ? 0 : 1]!
      fibers.push(
        yield* Effect.forkChild(
          Effect.map(seam.run("p", { prompt: "go", parent, label: `${i}` }), ({ stopReason }) =>
            assert.strictEqual(stopReason, "completed")
          ),
          { startImmediately: true }
        )
      )
    }
    assert.strictEqual(children.working(), places)
    while (children.working() > 0) {
      children.letOneGo()
      yield* Effect.yieldNow
    }
    for (const fiber of fibers) yield* Fiber.join(fiber)
  })

const limits: Partial<Limits.LimitsOptions> = {
  maxConcurrent: { overall: places },
  maxQueued: 20_000,
  maxRuns: 1_000_000,
  maxTokens: 1_000,
  maxTurns: 3
}

const build = (children: ReturnType<typeof makeChildren>) =>
  Effect.gen(function* () {
    const layer = Subagents.layer.pipe(Layer.provide(Limits.layer(limits)))
    const seam = Context.get(yield* Layer.build(layer), Subagents.Subagents)
    yield* seam.register(children.provider)
    return seam
  })

describe("ten thousand children through eight places (20)", () => {
  it.effect(
    "all run, the parents in turn, never more than eight at work, and the heap is where it was",
    () =>
      Effect.gen(function* () {
        const children = makeChildren()
        const seam = yield* build(children)
        // what is compiled and cached once is there before anybody looks
        yield* through(seam, children, 2000)
        children.seen.order = []
        children.seen.ended = 0
        const before = yield* collected
        const count = 10_000
        yield* through(seam, children, count)
        const { ended, most, order } = children.seen
        assert.deepStrictEqual([order.length, ended, most], [count, count, places])
        // the first eight find places; from then on the two take turns as long as both have somebody who waits
        assert.deepStrictEqual(Array.from(new Set(order.slice(0, places))), ["a"])
        const turns = order.slice(places, count - places)
        assert.deepStrictEqual(new Set(turns.slice(0, 2)), new Set(["a", "b"]))
        assert.strictEqual(
          turns.findIndex((turn, i) => turn !== turns[i % 2]),
          -1
        )
        assert.deepStrictEqual(yield* seam.live, [])
        children.seen.order = []
        const grown = (yield* collected) - before
        // a run that is kept takes two kilobytes and more; what engines compile meanwhile is a megabyte at the most
        assert.isBelow(grown, count * 200, `${grown} bytes`)
      }),
    60_000
  )

  it.effect(
    "take as many steps each as a thousand do",
    () =>
      Effect.gen(function* () {
        const stepsOf = (count: number) => {
          const scheduler = new Counting()
          return Effect.gen(function* () {
            const children = makeChildren()
            const began = process.cpuUsage()
            yield* through(yield* build(children), children, count)
            const { system, user } = process.cpuUsage(began)
            console.log(`${count} children: ${scheduler.steps} steps, ${Math.round((user + system) / 1000)} ms of work`)
            return scheduler.steps / count
          }).pipe(Effect.scoped, Effect.provideService(Scheduler.Scheduler, scheduler))
        }
        const [few, many] = [yield* stepsOf(1000), yield* stepsOf(10_000)]
        assert.isAbove(few, 1)
        assert.isBelow(Math.abs(many - few) / few, 0.1)
      }),
    60_000
  )
})
