/** The life of a run in the table: settled once, with all it owns, and released to quiet. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import type { SubagentRun } from "effect-subagent"
import type { Run } from "../../src/internal/runs.ts"
import * as Runs from "../../src/internal/runs.ts"
import { UpdateLog } from "../../src/internal/updateLog.ts"
import {
  agentOf,
  all,
  completed,
  inSeam,
  lines,
  logged,
  makeSignal,
  type Outcome,
  type Placed,
  provider,
  reasonOf,
  root,
  say,
  type Seam,
  tagOf,
  withSeam
} from "../utils/seam.ts"

const request = { prompt: "go", parent: root }

/** A provider whose children say "working" and then wait for their gate, by label. */
const makeGated = (name = "gated") => {
  const gates = new Map<string, Deferred.Deferred<Outcome>>()
  const agents = new Map<string, ReturnType<typeof agentOf>>()
  const ended: Array<string> = []
  return {
    provider: provider({
      name,
      turn: (placed) =>
        Effect.gen(function* () {
          const label = placed.label ?? name
          const gate = yield* Deferred.make<Outcome>()
          gates.set(label, gate)
          agents.set(label, agentOf(placed))
          placed.emit({ _tag: "Content", messageId: "m", block: { type: "text", text: `${label} working` } })
          return yield* Deferred.await(gate)
        }).pipe(Effect.onExit((exit) => Effect.sync(() => ended.push(`${placed.label ?? name} ${exit._tag}`))))
    }),
    gate: (label: string) => gates.get(label)!,
    finish: (label: string, outcome: Outcome = completed) =>
      Deferred.doneUnsafe(gates.get(label)!, Exit.succeed(outcome)),
    agent: (label: string) => agents.get(label)!,
    ended
  }
}

/** Three runs, each the parent of the next. */
const nested = Effect.fnUntraced(function* (seam: Seam, gated: ReturnType<typeof makeGated>) {
  const a = yield* seam.start("gated", { ...request, label: "a" })
  const b = yield* seam.start("gated", { prompt: "go", parent: gated.agent("a"), label: "b" })
  const c = yield* seam.start("gated", { prompt: "go", parent: gated.agent("b"), label: "c" })
  return { a, b, c }
})

const causeOf = (run: SubagentRun.SubagentRun) => Effect.map(run.result, ({ cause }) => cause)

describe("settling (5, 7)", () => {
  it.effect("happens once, whoever comes first in a tick, a thousand times over", () =>
    Effect.gen(function* () {
      const gated = makeGated()
      const { events } = yield* inSeam([gated.provider], (seam) =>
        Effect.gen(function* () {
          for (let i = 0; i < 2000; i++) {
            const run = yield* seam.start("gated", request)
            const cancelFirst = i % 2 === 0
            const finish = Effect.sync(() => gated.finish("gated"))
            yield* cancelFirst ? Effect.andThen(run.cancel(), finish) : Effect.andThen(finish, run.cancel())
            assert.strictEqual((yield* run.result).stopReason, cancelFirst ? "aborted" : "completed")
            yield* run.dispose
          }
        })
      )
      const seen = new Map<string, string>()
      for (const event of events) {
        if (event.type === "subagent/start") {
          assert.isFalse(seen.has(event.runId))
          seen.set(event.runId, "started")
        } else if (event.type === "subagent/end") {
          assert.strictEqual(seen.get(event.runId), "started")
          seen.set(event.runId, event.stopReason)
        }
      }
      const ends = Array.from(seen.values())
      assert.strictEqual(ends.filter((end) => end === "aborted").length, 1000)
      assert.strictEqual(ends.filter((end) => end === "completed").length, 1000)
      assert.strictEqual(gated.ended.length, 2000)
    })
  )

  it.effect("may come in the same tick as the start", () =>
    Effect.gen(function* () {
      const { events, value } = yield* inSeam([provider()], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          assert.strictEqual((yield* seam.live)[0]!.state, "settled")
          return yield* run.result
        })
      )
      assert.deepStrictEqual(value.output, [{ type: "text", text: "done" }])
      assert.deepStrictEqual(lines(events), ["start p", "end p completed"])
    })
  )

  it.effect("may come from inside the child's own turn", () =>
    Effect.gen(function* () {
      let wentOn = false
      const { events, value } = yield* inSeam([], (seam) =>
        Effect.gen(function* () {
          const scope = yield* Effect.scope
          const suicidal = provider({
            turn: (placed) =>
              Effect.gen(function* () {
                yield* say("last words")(placed)
                const live = yield* seam.live
                yield* live[0]!.cancel("enough")
                yield* Effect.yieldNow
                wentOn = true
                return completed
              })
          })
          yield* Scope.provide(seam.register(suicidal), scope)
          return yield* seam.run("p", request)
        })
      )
      assert.deepStrictEqual(value, {
        output: [{ type: "text", text: "last words" }],
        stopReason: "aborted",
        cause: { _tag: "Caller", reason: "enough" }
      })
      assert.isFalse(wentOn)
      assert.deepStrictEqual(lines(events), ["start p", "end p aborted Caller"])
    })
  )

  it.effect("may come from a signal that fires inside the turn's first step", () =>
    Effect.gen(function* () {
      const { abort, listeners, signal } = makeSignal()
      let wentOn = false
      const turn = (placed: Placed) =>
        Effect.sync(() => {
          placed.emit({ _tag: "Content", block: { type: "text", text: "so far" } })
          abort()
        }).pipe(
          Effect.andThen(Effect.yieldNow),
          Effect.andThen(
            Effect.sync(() => {
              wentOn = true
              return completed
            })
          )
        )
      const { events, value } = yield* inSeam([provider({ turn })], (seam) => seam.run("p", { ...request, signal }))
      assert.deepStrictEqual(value, {
        output: [{ type: "text", text: "so far" }],
        stopReason: "aborted",
        cause: { _tag: "Signal" }
      })
      assert.deepStrictEqual([wentOn, listeners()], [false, 0])
      assert.deepStrictEqual(lines(events), ["start p", "end p aborted Signal"])
    })
  )

  it.effect("in the turn's first step stops the turn there, not only at the release", () =>
    Effect.gen(function* () {
      const { abort, signal } = makeSignal()
      const log: Array<string> = []
      const turn = () =>
        Effect.andThen(
          Effect.sync(abort),
          Effect.onInterrupt(Effect.never, () => Effect.sync(() => log.push("stopped")))
        )
      yield* withSeam([provider({ turn })], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", { ...request, signal })
          assert.deepStrictEqual(yield* causeOf(run), { _tag: "Signal" })
          assert.deepStrictEqual(log, ["stopped"])
          assert.deepStrictEqual(
            (yield* seam.live).map(({ state }) => state),
            ["settled"]
          )
        })
      )
    })
  )

  it.effect("may come from whoever hears of the start", () =>
    Effect.gen(function* () {
      const gated = makeGated()
      const { events } = yield* inSeam([gated.provider], (seam) =>
        Effect.gen(function* () {
          yield* seam.on((event) =>
            event.type === "subagent/start"
              ? Effect.flatMap(seam.live, (live) => Effect.forEach(live, ({ cancel }) => cancel("not this one")))
              : Effect.void
          )
          const run = yield* seam.start("gated", request)
          assert.deepStrictEqual((yield* run.result).cause, { _tag: "Caller", reason: "not this one" })
        })
      )
      assert.deepStrictEqual(lines(events), ["start gated", "end gated aborted Caller"])
    })
  )

  it.effect("comes from a limit once, however often a child goes on that can't be stopped (20)", () =>
    Effect.gen(function* () {
      const refusals: Array<unknown> = []
      const gate = Deferred.makeUnsafe<void>()
      const deaf = provider({
        capabilities: { ...all, turns: true },
        turn: (placed) =>
          Effect.gen(function* () {
            for (let n = 0; n < 4; n++) refusals.push(placed.nextTurn()?.wrapUp)
            yield* Deferred.await(gate)
            refusals.push(placed.nextTurn()?.wrapUp)
            return completed
          }).pipe(Effect.uninterruptible)
      })
      const { events, value } = yield* inSeam([deaf], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", { ...request, maxTurns: 1 })
          const result = yield* run.result
          yield* Deferred.succeed(gate, undefined)
          yield* run.dispose
          assert.strictEqual(yield* run.result, result)
          return result
        })
      )
      assert.deepStrictEqual(refusals, [undefined, true, false, false, false])
      assert.deepInclude(value.failure, { kind: "limit", name: "maxTurns", limit: 1, used: 1 })
      assert.deepStrictEqual(lines(events), ["start p", "end p error"])
    })
  )

  it.effect("is an error if the provider has closed the run's scope itself before its turn (8)", () =>
    Effect.gen(function* () {
      const close = Effect.flatMap(Effect.scope, (scope) => Scope.close(scope as Scope.Closeable, Exit.void))
      const start = () => Effect.as(close, { turn: Effect.succeed(completed) })
      const { events, value } = yield* inSeam([provider({ start })], (seam) => Effect.exit(seam.run("p", request)))
      assert.deepInclude(reasonOf(value) as object, {
        _tag: "ProviderFault",
        detail: "its turn interrupted itself"
      })
      assert.deepStrictEqual(lines(events), ["start p", "end p error"])
    })
  )

  it.effect("discards what the child does later, and counts it at debug level", () =>
    Effect.gen(function* () {
      let emit: Placed["emit"] | undefined
      const turn = (placed: Placed) => {
        emit = placed.emit
        placed.emit({ _tag: "Unheard" } as never)
        return say("in time")(placed)
      }
      const [result, messages] = yield* logged(
        withSeam([provider({ turn })], (seam) =>
          Effect.gen(function* () {
            const run = yield* seam.start("p", request)
            emit!({ _tag: "Content", messageId: "m2", block: { type: "text", text: "late" } })
            const result = yield* run.result
            yield* run.dispose
            return [run.runId, result.output] as const
          })
        )
      )
      assert.deepStrictEqual(result[1], [{ type: "text", text: "in time" }])
      assert.deepStrictEqual(messages, [
        `Debug Run ${result[0]} dropped 1 updates that came after its end and 1 that were none`
      ])
    })
  )
})

describe("a tree of runs (9)", () => {
  const whole = ["start a", "start b", "start c"]

  it.effect("is stopped from its top: each has its own cause, and ends are announced children first", () =>
    Effect.gen(function* () {
      const gated = makeGated()
      const { events } = yield* inSeam([gated.provider], (seam) =>
        Effect.gen(function* () {
          const { a, b, c } = yield* nested(seam, gated)
          yield* a.cancel("stop")
          assert.deepStrictEqual(yield* causeOf(a), { _tag: "Caller", reason: "stop" })
          assert.deepStrictEqual(yield* causeOf(b), { _tag: "Parent", runId: a.runId })
          assert.deepStrictEqual(yield* causeOf(c), { _tag: "Parent", runId: b.runId })
          assert.deepStrictEqual((yield* c.result).output, [{ type: "text", text: "c working" }])
          yield* Effect.yieldNow
          assert.deepStrictEqual(gated.ended.toSorted(), ["a Failure", "b Failure", "c Failure"])
        })
      )
      assert.deepStrictEqual(lines(events), [
        ...whole,
        "end c aborted Parent",
        "end b aborted Parent",
        "end a aborted Caller"
      ])
    })
  )

  it.effect("is stopped from its middle: who is above goes on", () =>
    Effect.gen(function* () {
      const gated = makeGated()
      const { events } = yield* inSeam([gated.provider], (seam) =>
        Effect.gen(function* () {
          const { a, b, c } = yield* nested(seam, gated)
          yield* b.cancel()
          assert.deepStrictEqual(yield* causeOf(b), { _tag: "Caller" })
          assert.deepStrictEqual(yield* causeOf(c), { _tag: "Parent", runId: b.runId })
          gated.finish("a")
          assert.strictEqual((yield* a.result).stopReason, "completed")
        })
      )
      assert.deepStrictEqual(lines(events), [
        ...whole,
        "end c aborted Parent",
        "end b aborted Caller",
        "end a completed"
      ])
    })
  )

  it.effect("announces the end of a run that settles before its children after theirs", () =>
    Effect.gen(function* () {
      const gated = makeGated()
      const { events } = yield* inSeam([gated.provider], (seam) =>
        Effect.gen(function* () {
          const { a, b, c } = yield* nested(seam, gated)
          gated.finish("a")
          assert.strictEqual((yield* a.result).stopReason, "completed")
          gated.finish("b", { stopReason: "refusal" })
          assert.strictEqual((yield* b.result).stopReason, "refusal")
          gated.finish("c")
          assert.strictEqual((yield* c.result).stopReason, "completed")
        })
      )
      assert.deepStrictEqual(lines(events), [...whole, "end c completed", "end b refusal", "end a completed"])
    })
  )

  it.effect("keeps the end of a run that settled first, and still stops what that run left behind", () =>
    Effect.gen(function* () {
      const gated = makeGated()
      const { events } = yield* inSeam([gated.provider], (seam) =>
        Effect.gen(function* () {
          const { a, b, c } = yield* nested(seam, gated)
          gated.finish("b")
          assert.strictEqual((yield* b.result).stopReason, "completed")
          yield* a.cancel()
          assert.strictEqual((yield* b.result).stopReason, "completed")
          assert.deepStrictEqual(yield* causeOf(c), { _tag: "Parent", runId: b.runId })
        })
      )
      assert.deepStrictEqual(lines(events), [
        ...whole,
        "end c aborted Parent",
        "end b completed",
        "end a aborted Caller"
      ])
    })
  )

  it.effect("releases with its top all that it owns, wherever that was started", () =>
    Effect.gen(function* () {
      const gated = makeGated()
      const { events } = yield* inSeam([gated.provider], (seam) =>
        Effect.gen(function* () {
          const { a, b, c } = yield* nested(seam, gated)
          yield* a.dispose
          assert.deepStrictEqual(gated.ended.toSorted(), ["a Failure", "b Failure", "c Failure"])
          assert.deepStrictEqual(yield* seam.live, [])
          assert.deepStrictEqual(yield* causeOf(a), { _tag: "Release" })
          assert.deepStrictEqual(yield* causeOf(b), { _tag: "Parent", runId: a.runId })
          assert.deepStrictEqual(yield* causeOf(c), { _tag: "Parent", runId: b.runId })
        })
      )
      assert.deepStrictEqual(lines(events).slice(3), [
        "end c aborted Parent",
        "end b aborted Parent",
        "end a aborted Release"
      ])
    })
  )

  it.effect("never lets a parent that waits for its child go on after it was cancelled itself", () =>
    Effect.gen(function* () {
      let wentOn = false
      const gated = makeGated("child")
      const { events } = yield* inSeam([gated.provider], (seam, scope) =>
        Effect.gen(function* () {
          const parent = provider({
            name: "parent",
            turn: (placed) =>
              seam.run("child", { prompt: "go", parent: agentOf(placed) }).pipe(
                Effect.tap(() => Effect.sync(() => (wentOn = true))),
                Effect.andThen(say("parent goes on")(placed))
              )
          })
          yield* Scope.provide(seam.register(parent), scope)
          const run = yield* seam.start("parent", request)
          yield* run.cancel()
          const result = yield* run.result
          yield* run.dispose
          assert.deepStrictEqual(result, { output: [], stopReason: "aborted", cause: { _tag: "Caller" } })
        })
      )
      assert.isFalse(wentOn)
      assert.deepStrictEqual(gated.ended, ["child Failure"])
      assert.deepStrictEqual(lines(events), [
        "start parent",
        "start child",
        "end child aborted Parent",
        "end parent aborted Caller"
      ])
    })
  )

  it.effect("stops the parent before its child: what the child does on its way out wakes nobody who is stopped", () =>
    Effect.gen(function* () {
      const left = yield* Deferred.make<void>()
      const seen = yield* Deferred.make<Placed>()
      let wentOn = false
      const parent = provider({
        name: "parent",
        turn: (placed) =>
          Deferred.succeed(seen, placed).pipe(
            Effect.andThen(Deferred.await(left)),
            Effect.andThen(
              Effect.sync(() => {
                wentOn = true
                return completed
              })
            )
          )
      })
      const child = provider({ turn: () => Effect.onInterrupt(Effect.never, () => Deferred.succeed(left, undefined)) })
      yield* inSeam([parent, child], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("parent", request)
          yield* seam.start("p", { prompt: "go", parent: agentOf(yield* Deferred.await(seen)) })
          yield* run.cancel()
          yield* Deferred.await(left)
          assert.isFalse(wentOn)
        })
      )
    })
  )

  it.effect("lets a child be stopped by a signal that its own parent shares: both are the signal's", () =>
    Effect.gen(function* () {
      const gated = makeGated()
      const { abort, listeners, signal } = makeSignal()
      yield* inSeam([gated.provider], (seam) =>
        Effect.gen(function* () {
          const a = yield* seam.start("gated", { ...request, signal, label: "a" })
          const b = yield* seam.start("gated", { prompt: "go", parent: gated.agent("a"), signal, label: "b" })
          assert.strictEqual(listeners(), 1)
          abort()
          assert.deepStrictEqual(yield* causeOf(a), { _tag: "Signal" })
          // the parent's signal came first, and it takes everything below along
          assert.deepStrictEqual(yield* causeOf(b), { _tag: "Parent", runId: a.runId })
          assert.strictEqual(listeners(), 0)
        })
      )
    })
  )
})

describe("signals", () => {
  it.effect("have one listener for two thousand runs, and none when these are over (4)", () =>
    Effect.gen(function* () {
      const gated = makeGated()
      const { added, listeners, signal } = makeSignal()
      yield* withSeam([gated.provider], (seam) =>
        Effect.gen(function* () {
          yield* Effect.scoped(
            Effect.gen(function* () {
              for (let i = 0; i < 2000; i++) yield* seam.start("gated", { ...request, signal })
              assert.deepStrictEqual([added(), listeners(), (yield* seam.live).length], [1, 1, 2000])
            })
          )
          assert.deepStrictEqual([added(), listeners(), (yield* seam.live).length], [1, 0, 0])
        })
      )
    })
  )

  it.effect("are let go by every kind of end, not only by the release", () =>
    Effect.gen(function* () {
      const ends: ReadonlyArray<Effect.Effect<Outcome>> = [
        Effect.succeed({ stopReason: "error" }),
        Effect.die("x"),
        Effect.interrupt,
        Effect.succeed(undefined as never)
      ]
      for (const end of ends) {
        yield* withSeam([provider({ turn: () => end })], (seam) =>
          Effect.gen(function* () {
            const { listeners, signal } = makeSignal()
            yield* Effect.exit((yield* seam.start("p", { ...request, signal })).result)
            assert.strictEqual(listeners(), 0)
          })
        )
      }
    })
  )

  it.effect("that can't let go of a listener keep nobody waiting", () =>
    Effect.gen(function* () {
      const { signal } = makeSignal()
      const clinging = {
        ...signal,
        removeEventListener: () => {
          throw new Error("no")
        }
      }
      const result = yield* withSeam([provider()], (seam) => seam.run("p", { ...request, signal: clinging }))
      assert.strictEqual(result.stopReason, "completed")
    })
  )
})

describe("release (10)", () => {
  const released = (finalizer: Effect.Effect<unknown>, turn: Effect.Effect<Outcome> = Effect.never) =>
    provider({
      start: (placed) =>
        Effect.as(
          Effect.addFinalizer(() => finalizer),
          { turn: Effect.andThen(say("said")(placed), turn) }
        )
    })

  it.effect("runs the finalizers on every path: success, error, abort, defect", () =>
    Effect.gen(function* () {
      const ends: ReadonlyArray<readonly [Effect.Effect<Outcome>, string]> = [
        [Effect.succeed(completed), "completed"],
        [Effect.succeed({ stopReason: "error" }), "error"],
        [Effect.never, "aborted"],
        [Effect.die(new Error("boom")), "ProviderFault"]
      ]
      for (const [turn, expected] of ends) {
        let closed = 0
        yield* withSeam(
          [
            released(
              Effect.sync(() => closed++),
              turn
            )
          ],
          (seam) =>
            Effect.gen(function* () {
              const run = yield* Effect.scoped(seam.start("p", request))
              const exit = yield* Effect.exit(run.result)
              assert.strictEqual(Exit.isSuccess(exit) ? exit.value.stopReason : tagOf(exit), expected)
              assert.deepStrictEqual([closed, (yield* seam.live).length], [1, 0])
            })
        )
      }
    })
  )

  it.effect("tells whoever closed the scope from whoever was interrupted", () =>
    Effect.gen(function* () {
      const gated = makeGated()
      yield* withSeam([gated.provider], (seam) =>
        Effect.gen(function* () {
          for (const [exit, cause] of [
            [Exit.void, "Release"],
            [Exit.fail("x"), "Release"],
            [Exit.interrupt(), "Interrupt"]
          ] as const) {
            const scope = yield* Scope.make()
            const run = yield* Scope.provide(seam.start("gated", request), scope)
            yield* Scope.close(scope, exit)
            assert.deepStrictEqual(yield* causeOf(run), { _tag: cause })
          }
          const starting = yield* Effect.forkChild(
            Effect.scoped(Effect.flatMap(seam.start("gated", { ...request, label: "x" }), () => Effect.never)),
            { startImmediately: true }
          )
          const live = yield* seam.live
          assert.deepStrictEqual(
            live.map(({ label }) => label),
            ["x"]
          )
          yield* Fiber.interrupt(starting)
          assert.deepStrictEqual(yield* seam.live, [])
        })
      )
    })
  )

  it.effect("never hides how the run ended, whatever its finalizers do, and says what they did", () =>
    Effect.gen(function* () {
      for (const finalizer of [Effect.die(new Error("stuck")), Effect.interrupt, Effect.fail("x") as never]) {
        const [{ events, value }, messages] = yield* logged(
          inSeam([released(finalizer, Effect.succeed(completed))], (seam) => seam.run("p", request))
        )
        assert.strictEqual(value.stopReason, "completed")
        assert.deepStrictEqual(lines(events), ["start p", "end p completed", "problem failed"])
        assert.isTrue(messages.some((message) => message.startsWith("Warn The release of run")))
      }
    })
  )

  it.effect("is bounded: a finalizer that hangs is left to itself, announced and logged", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      let closed = false
      const finalizer = Effect.andThen(
        Deferred.await(gate),
        Effect.sync(() => (closed = true))
      )
      const [{ events }, messages] = yield* logged(
        inSeam(
          [released(finalizer, Effect.succeed(completed))],
          (seam) =>
            Effect.gen(function* () {
              const running = yield* Effect.forkChild(seam.run("p", request), { startImmediately: true })
              yield* TestClock.adjust("1999 millis")
              assert.isUndefined(running.pollUnsafe())
              assert.strictEqual((yield* seam.live)[0]!.state, "releasing")
              yield* TestClock.adjust("1 millis")
              assert.strictEqual((yield* Fiber.join(running)).stopReason, "completed")
              assert.deepStrictEqual(yield* seam.live, [])
              assert.isFalse(closed)
              yield* Deferred.succeed(gate, undefined)
              yield* TestClock.adjust(0)
              assert.isTrue(closed)
            }),
          { releaseTimeout: "2 seconds" }
        )
      )
      assert.deepStrictEqual(lines(events), ["start p", "end p completed", "problem timed-out"])
      assert.deepInclude(
        events.find(({ type }) => type === "subagent/release-problem"),
        {
          provider: "p",
          problem: "timed-out",
          detail: "a finalizer of its session has not ended"
        }
      )
      assert.strictEqual(messages.filter((message) => message.startsWith("Warn")).length, 1)
    })
  )

  it.effect("waits for a turn that is slow to stop, and says if it was too slow", () =>
    Effect.gen(function* () {
      for (const isSlow of [false, true]) {
        const gate = yield* Deferred.make<void>()
        const slow = provider({ turn: () => Effect.onInterrupt(Effect.never, () => Deferred.await(gate)) })
        const { events } = yield* inSeam(
          [slow],
          (seam) =>
            Effect.gen(function* () {
              const run = yield* seam.start("p", request)
              const disposing = yield* Effect.forkChild(run.dispose, { startImmediately: true })
              // the verdict does not wait for the child
              assert.deepStrictEqual(yield* causeOf(run), { _tag: "Release" })
              yield* TestClock.adjust("999 millis")
              assert.isUndefined(disposing.pollUnsafe())
              yield* isSlow ? TestClock.adjust("1 millis") : Deferred.succeed(gate, undefined)
              yield* Fiber.join(disposing)
            }),
          { releaseTimeout: "1 second" }
        )
        assert.deepStrictEqual(lines(events).slice(2), isSlow ? ["problem timed-out"] : [])
        const problem = events.find(({ type }) => type === "subagent/release-problem")
        if (problem !== undefined) assert.deepInclude(problem, { detail: "its turn has not ended" })
      }
    })
  )

  it.effect("can be interrupted by nobody, and keeps no interrupter waiting longer than the timeout", () =>
    Effect.gen(function* () {
      const { events } = yield* inSeam([released(Effect.never)], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          const disposing = yield* Effect.forkChild(run.dispose, { startImmediately: true })
          const interrupting = yield* Effect.forkChild(Fiber.interrupt(disposing), { startImmediately: true })
          yield* TestClock.adjust("9 seconds")
          assert.isUndefined(interrupting.pollUnsafe())
          yield* TestClock.adjust("1 second")
          yield* Fiber.join(interrupting)
          assert.deepStrictEqual(yield* seam.live, [])
        })
      )
      assert.deepStrictEqual(lines(events), ["start p", "end p aborted Release", "problem timed-out"])
    })
  )

  it.effect("is one, however many ask for it: all of them wait for quiet", () =>
    Effect.gen(function* () {
      let closed = 0
      const gate = yield* Deferred.make<void>()
      const slow = Effect.andThen(
        Deferred.await(gate),
        Effect.sync(() => closed++)
      )
      const { events } = yield* inSeam([released(slow)], (seam) =>
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          const run = yield* Scope.provide(seam.start("p", request), scope)
          const first = yield* Effect.forkChild(run.dispose, { startImmediately: true })
          const second = yield* Effect.forkChild(run.dispose, { startImmediately: true })
          const third = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
          yield* TestClock.adjust("1 second")
          for (const fiber of [first, second, third]) assert.isUndefined(fiber.pollUnsafe())
          yield* Deferred.succeed(gate, undefined)
          yield* Effect.forEach([first, second, third], Fiber.join)
          yield* run.dispose
          assert.strictEqual(closed, 1)
        })
      )
      assert.deepStrictEqual(lines(events), ["start p", "end p aborted Release"])
    })
  )

  it.effect("releases the children also if the parent's own finalizer dies at once", () =>
    Effect.gen(function* () {
      const gated = makeGated()
      let agent: ReturnType<typeof agentOf> | undefined
      const parent = provider({
        name: "parent",
        start: (placed) => {
          agent = agentOf(placed)
          return Effect.as(
            Effect.addFinalizer(() => Effect.die("stuck")),
            { turn: Effect.never }
          )
        }
      })
      yield* withSeam([parent, gated.provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("parent", request)
          for (const label of ["a", "b"]) yield* seam.start("gated", { prompt: "go", parent: agent!, label })
          yield* run.dispose
          assert.deepStrictEqual(yield* seam.live, [])
          assert.deepStrictEqual(gated.ended.toSorted(), ["a Failure", "b Failure"])
        })
      )
    })
  )

  it.effect("from inside the child's own turn ends at the timeout at the latest", () =>
    Effect.gen(function* () {
      const { events } = yield* inSeam([], (seam, scope) =>
        Effect.gen(function* () {
          const runs: Array<SubagentRun.SubagentRun> = []
          const started = yield* Deferred.make<void>()
          const own = provider({
            turn: () =>
              Effect.andThen(
                Deferred.await(started),
                Effect.suspend(() => runs[0]!.dispose)
              ) as never
          })
          yield* Scope.provide(seam.register(own), scope)
          runs.push(yield* seam.start("p", request))
          yield* Deferred.succeed(started, undefined)
          assert.deepStrictEqual(yield* causeOf(runs[0]!), { _tag: "Release" })
          yield* TestClock.adjust("10 seconds")
          assert.deepStrictEqual(yield* seam.live, [])
        })
      )
      assert.deepStrictEqual(lines(events), ["start p", "end p aborted Release", "problem timed-out"])
    })
  )

  it.effect("leaves nothing in the caller's scope: two thousand runs, one long-lived scope", () =>
    Effect.gen(function* () {
      const size = (scope: Scope.Scope): number => {
        const state = scope.state
        if (state._tag !== "Open") return 0
        return state.finalizers?.size ?? (state.finalizer === undefined ? 0 : 1)
      }
      yield* withSeam([provider()], (seam) =>
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          const kept = yield* Scope.provide(seam.start("p", request), scope)
          assert.strictEqual(size(scope), 1)
          for (let i = 0; i < 2000; i++) {
            const run = yield* Scope.provide(seam.start("p", request), scope)
            yield* run.dispose
          }
          assert.deepStrictEqual([size(scope), (yield* seam.live).length], [1, 1])
          yield* kept.dispose
          assert.strictEqual(size(scope), 0)
        })
      )
    })
  )

  it.effect("happens at once in a scope that is closed already: nothing is left, and no turn was run", () =>
    Effect.gen(function* () {
      let closed = 0
      let turns = 0
      const turn = Effect.sync(() => {
        turns++
        return completed
      })
      const start = () =>
        Effect.as(
          Effect.addFinalizer(() => Effect.sync(() => closed++)),
          { turn }
        )
      const { events } = yield* inSeam([provider({ start })], (seam) =>
        Effect.gen(function* () {
          for (const [exit, cause] of [
            [Exit.void, "Release"],
            [Exit.interrupt(), "Interrupt"]
          ] as const) {
            const scope = yield* Scope.make()
            yield* Scope.close(scope, exit)
            const run = yield* Scope.provide(seam.start("p", request), scope)
            assert.deepStrictEqual(yield* causeOf(run), { _tag: cause })
            assert.deepStrictEqual(yield* seam.live, [])
          }
        })
      )
      assert.deepStrictEqual([closed, turns], [2, 0])
      assert.deepStrictEqual(lines(events), ["start p", "end p aborted Release", "start p", "end p aborted Interrupt"])
    })
  )
})

describe("a child whose turn outlives its release", () => {
  it.effect("is still known as what it is: it starts nothing, neither as a child nor as a root (11, 12)", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const exits: Array<Exit.Exit<unknown, unknown>> = []
      yield* inSeam([provider({ name: "other" })], (seam, scope) =>
        Effect.gen(function* () {
          const stubborn = provider({
            turn: (placed) =>
              Deferred.await(gate).pipe(
                Effect.andThen(Effect.exit(seam.run("other", { prompt: "go", parent: agentOf(placed) }))),
                Effect.tap((exit) => Effect.sync(() => exits.push(exit))),
                Effect.as(completed),
                Effect.uninterruptible
              )
          })
          yield* Scope.provide(seam.register(stubborn), scope)
          const run = yield* seam.start("p", { ...request, toolFilter: { allow: [] } })
          const disposing = yield* Effect.forkChild(run.dispose, { startImmediately: true })
          yield* TestClock.adjust("10 seconds")
          yield* Fiber.join(disposing)
          assert.deepStrictEqual(yield* seam.live, [])
          yield* Deferred.succeed(gate, undefined)
          yield* TestClock.adjust(0)
          assert.deepInclude(reasonOf(exits[0]!) as object, { _tag: "ParentSettled", parentRunId: run.runId })
          assert.strictEqual(exits.length, 1)
        })
      )
    })
  )
})

describe("the table", () => {
  it.effect("keeps nothing of a run that was released, neither itself nor in its owner", () =>
    Effect.gen(function* () {
      const runs = Runs.make({ releaseTimeout: "1 second", announce: () => {} })
      const make = (id: string, owner?: Run): Run => ({
        lineage: { id, runId: `${id}-run`, parentId: "root", rootId: "root", depth: 1 } as Run["lineage"],
        policy: { maxDepth: 3, toolFilters: [] },
        asked: undefined,
        keeper: undefined,
        below: undefined,
        header: { id: `${id}-session`, parentSession: "root-session", delegationDepth: 1 } as Run["header"],
        provider: "p",
        session: {
          scope: Scope.makeUnsafe(),
          holder: undefined,
          resumed: undefined,
          current: undefined,
          work: undefined
        },
        since: 0,
        approver: undefined,
        log: new UpdateLog("run" as Run["lineage"]["runId"], { currentTimeMillisUnsafe: () => 0 }, 1),
        owner,
        scope: Scope.makeUnsafe(),
        done: Deferred.makeUnsafe(),
        children: new Set(),
        starts: new Set(),
        verdict: undefined,
        isAnnounced: false,
        turn: undefined,
        released: undefined,
        forgetSignal: () => {}
      })
      const parent = make("parent")
      const child = make("child", parent)
      runs.accept(parent)
      runs.accept(child)
      assert.deepStrictEqual([Array.from(runs.all()), Array.from(parent.children)], [[parent, child], [child]])
      assert.deepStrictEqual([runs.of("child", "x"), runs.of("x", "child-session")], [child, child])
      yield* runs.release(child, { _tag: "Release" }, Exit.void)
      assert.deepStrictEqual([Array.from(runs.all()), parent.children.size], [[parent], 0])
      assert.deepStrictEqual([runs.of("child", "x"), runs.of("x", "child-session")], [undefined, undefined])
    })
  )
})

describe("a Random that repeats itself (18)", () => {
  it.effect("does not make two runs one: each lives, settles and is released", () =>
    Effect.gen(function* () {
      const gated = makeGated()
      const { events } = yield* inSeam([gated.provider], (seam, scope) =>
        Effect.gen(function* () {
          const inner = yield* Scope.make()
          const a = yield* seam
            .start("gated", { ...request, label: "a" })
            .pipe(Scope.provide(inner), Random.withSeed("same"))
          const b = yield* seam
            .start("gated", { ...request, label: "b" })
            .pipe(Scope.provide(inner), Random.withSeed("same"))
          assert.strictEqual(a.runId, b.runId)
          assert.strictEqual((yield* seam.live).length, 2)
          yield* a.dispose
          assert.deepStrictEqual(
            (yield* seam.live).map(({ label }) => label),
            ["b"]
          )
          assert.deepStrictEqual(gated.ended, ["a Failure"])
          // the one that is left is still known as a parent, by its id and by its session's
          const { id, session } = gated.agent("b")
          for (const parent of [
            { id, session: { header: { id: "elsewhere" } } },
            { id: "elsewhere", session: { header: { id: session.header.id } } }
          ]) {
            const child = yield* seam.start("gated", { prompt: "go", parent, label: "c" })
            assert.strictEqual(child.header.delegationDepth, 2)
          }
          yield* Scope.close(scope, Exit.void)
          assert.deepStrictEqual(gated.ended.toSorted(), ["a Failure", "b Failure", "c Failure", "c Failure"])
        })
      )
      assert.strictEqual(lines(events).filter((line) => line.startsWith("end")).length, 4)
    })
  )
})
