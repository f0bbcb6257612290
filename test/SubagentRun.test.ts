/** The handle on a run: what it says, and what can be done with it. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { SubagentError, type SubagentEvent } from "effect-subagent"
import {
  completed,
  inSeam,
  lines,
  makeSignal,
  type Outcome,
  type Placed,
  provider,
  reasonOf,
  root,
  say,
  withSeam
} from "./utils/seam.ts"

const { fromReason, StartFailed } = SubagentError
const request = { prompt: "go", parent: root }

const gated = Effect.map(Deferred.make<Outcome>(), (gate) => ({
  finish: Deferred.succeed(gate, completed),
  provider: provider({
    turn: (placed) => Effect.andThen(say("so far")(placed), Deferred.await(gate))
  })
}))

describe("a run", () => {
  it.effect("says who it is, and can't be changed", () =>
    withSeam([provider()], (seam) =>
      Effect.gen(function* () {
        const run = yield* seam.start("p", { ...request, label: "l" })
        assert.deepStrictEqual(Object.keys(run).toSorted(), [
          "cancel",
          "dispose",
          "header",
          "id",
          "provider",
          "result",
          "runId",
          "updates"
        ])
        assert.strictEqual(run.provider, "p")
        assert.deepStrictEqual<unknown>(run.header, {
          id: run.header.id,
          cwd: "/project",
          parentSession: "root-session",
          delegationDepth: 1
        })
        assert.isTrue(Object.isFrozen(run) && Object.isFrozen(run.header) && Object.isFrozen(yield* run.result))
        assert.isFalse("sendMessage" in run || "resume" in run)
      })
    )
  )
})

describe("result (8)", () => {
  it.effect("is one and the same for everybody, whenever they ask", () =>
    Effect.gen(function* () {
      const { finish, provider } = yield* gated
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          const early = yield* Effect.forkChild(Effect.all([run.result, run.result]), { startImmediately: true })
          yield* finish
          const [a, b] = yield* Fiber.join(early)
          assert.strictEqual(a, b)
          assert.strictEqual(yield* run.result, a)
          yield* run.dispose
          assert.strictEqual(yield* run.result, a)
        })
      )
    })
  )

  it.effect("does not fail for a child's own failure", () =>
    Effect.gen(function* () {
      for (const stopReason of ["error", "max-tokens", "refusal", "odd"]) {
        const { events, value } = yield* inSeam(
          [provider({ turn: (placed) => Effect.as(say("partly")(placed), { stopReason }) })],
          (seam) => seam.run("p", request)
        )
        assert.strictEqual(value.stopReason, stopReason)
        assert.deepStrictEqual(value.output, [{ type: "text", text: "partly" }])
        assert.deepStrictEqual(lines(events), ["start p", `end p ${stopReason}`])
      }
    })
  )

  it.effect("fails for a fault of the provider, which ends the run with `error` [seed 12]", () =>
    Effect.gen(function* () {
      const own = fromReason(new StartFailed({ provider: "p", detail: "lost it" }))
      const faults: ReadonlyArray<readonly [Effect.Effect<unknown, unknown>, string]> = [
        [Effect.die(new Error("boom")), 'Provider "p" is at fault: boom'],
        [
          Effect.die(Object.assign(new Error("x"), { message: { odd: true } })),
          'Provider "p" is at fault: [object Object]'
        ],
        [
          Effect.sync(() => {
            throw new Error("thrown")
          }),
          'Provider "p" is at fault: thrown'
        ],
        [Effect.interrupt, 'Provider "p" is at fault: its turn interrupted itself'],
        [Effect.fail("not ours"), 'Provider "p" is at fault: not ours'],
        [Effect.fail(own), own.message],
        [Effect.succeed({}), 'Provider "p" is at fault: its turn ended with something that is not an outcome'],
        [
          Effect.succeed({
            get stopReason() {
              throw new Error("unreadable")
            }
          }),
          'Provider "p" is at fault: unreadable'
        ],
        [Effect.die("€".repeat(9999)), `Provider "p" is at fault: ${"€".repeat(340)}…`]
      ]
      for (const [turn, message] of faults) {
        const start = () => Effect.succeed({ turn: turn as Effect.Effect<Outcome> })
        const { events, value } = yield* inSeam([provider({ start })], (seam) => Effect.exit(seam.run("p", request)))
        assert.strictEqual((reasonOf(value) as Error).message, message)
        assert.deepStrictEqual(lines(events), ["start p", "end p error"])
        const end = events.find(({ type }) => type === "subagent/end")
        const { failure } = end as SubagentEvent.EndEvent
        assert.deepInclude(failure, { kind: "provider", retryable: false })
        assert.isTrue(message.startsWith(failure!.message!.replace(/…$/, "")))
      }
    })
  )

  it.effect("can be waited for with a timeout, which stops nothing (9)", () =>
    Effect.gen(function* () {
      const { finish, provider } = yield* gated
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          const waiting = yield* Effect.forkChild(Effect.timeoutOption(run.result, "1 second"))
          yield* TestClock.adjust("1 second")
          assert.strictEqual((yield* Fiber.join(waiting))._tag, "None")
          const other = yield* Effect.forkChild(run.result, { startImmediately: true })
          yield* Fiber.interrupt(other)
          assert.deepStrictEqual(
            (yield* seam.live).map(({ state }) => state),
            ["running"]
          )
          yield* finish
          assert.strictEqual((yield* run.result).stopReason, "completed")
        })
      )
    })
  )
})

describe("cancel (9)", () => {
  it.effect("settles the run at once, keeps what was said, and never waits for the child", () =>
    Effect.gen(function* () {
      const stubborn = provider({
        turn: (placed) =>
          Effect.andThen(say("so far")(placed), Effect.uninterruptible(Effect.sleep("5 seconds"))) as never
      })
      const { events } = yield* inSeam([stubborn], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          yield* run.cancel("no need any more")
          assert.deepStrictEqual(yield* run.result, {
            output: [{ type: "text", text: "so far" }],
            stopReason: "aborted",
            cause: { _tag: "Caller", reason: "no need any more" }
          })
          assert.deepStrictEqual(
            (yield* seam.live).map(({ state }) => state),
            ["settled"]
          )
          const disposing = yield* Effect.forkChild(run.dispose)
          yield* TestClock.adjust("5 seconds")
          yield* Fiber.join(disposing)
        })
      )
      assert.deepStrictEqual(lines(events), ["start p", "end p aborted Caller"])
    })
  )

  it.effect("is done once: later ones and later signals change nothing", () =>
    Effect.gen(function* () {
      const { finish, provider } = yield* gated
      const { abort, signal } = makeSignal()
      const { events } = yield* inSeam([provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", { ...request, signal })
          yield* run.cancel()
          yield* run.cancel("again")
          abort()
          yield* finish
          yield* run.dispose
          assert.deepStrictEqual((yield* run.result).cause, { _tag: "Caller" })
        })
      )
      assert.deepStrictEqual(lines(events), ["start p", "end p aborted Caller"])
    })
  )

  it.effect("does nothing to a run that has settled [seed 39]", () =>
    withSeam([provider()], (seam) =>
      Effect.gen(function* () {
        const run = yield* seam.start("p", request)
        yield* run.cancel()
        assert.strictEqual((yield* run.result).stopReason, "completed")
      })
    )
  )

  it.effect("takes a reason that is bounded, and one that is no text", () =>
    Effect.gen(function* () {
      const { provider } = yield* gated
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          for (const [reason, expected] of [
            ["x".repeat(5000), `${"x".repeat(1021)}…`],
            [new Error("why") as never, "why"]
          ] as const) {
            const run = yield* seam.start("p", request)
            yield* run.cancel(reason)
            assert.deepStrictEqual((yield* run.result).cause, { _tag: "Caller", reason: expected })
          }
        })
      )
    })
  )
})

describe("a signal (9)", () => {
  it.effect("stops the run when it is aborted, whoever's realm it is of", () =>
    Effect.gen(function* () {
      const { provider } = yield* gated
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const { abort, listeners, signal } = makeSignal()
          const controller = new AbortController()
          const a = yield* seam.start("p", { ...request, signal })
          const b = yield* seam.start("p", { ...request, signal: controller.signal })
          abort()
          controller.abort()
          for (const run of [a, b]) {
            assert.deepStrictEqual(yield* run.result, {
              output: [{ type: "text", text: "so far" }],
              stopReason: "aborted",
              cause: { _tag: "Signal" }
            })
          }
          assert.strictEqual(listeners(), 0)
        })
      )
    })
  )
})

describe("dispose (10)", () => {
  it.effect("stops what runs, waits for quiet, and can be repeated", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const start = (placed: Placed) =>
        Effect.as(
          Effect.addFinalizer(() => Effect.sync(() => order.push("session closed"))),
          {
            turn: Effect.onInterrupt(Effect.andThen(say("so far")(placed), Effect.never), () =>
              Effect.sync(() => order.push("turn stopped"))
            )
          }
        )
      const { events } = yield* inSeam([provider({ start })], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          yield* run.dispose
          assert.deepStrictEqual(order, ["turn stopped", "session closed"])
          yield* run.dispose
          yield* run.cancel()
          assert.deepStrictEqual((yield* run.result).cause, { _tag: "Release" })
        })
      )
      assert.strictEqual(order.length, 2)
      assert.deepStrictEqual(lines(events), ["start p", "end p aborted Release"])
    })
  )

  it.effect("keeps the end of a run that had settled, good or bad", () =>
    Effect.gen(function* () {
      const faulty = provider({ name: "faulty", turn: () => Effect.die(new Error("boom")) })
      yield* withSeam([provider(), faulty], (seam) =>
        Effect.gen(function* () {
          const good = yield* seam.start("p", request)
          const bad = yield* seam.start("faulty", request)
          yield* good.dispose
          yield* bad.dispose
          assert.strictEqual((yield* good.result).stopReason, "completed")
          assert.isTrue(Exit.isFailure(yield* Effect.exit(bad.result)))
        })
      )
    })
  )
})

describe("updates (7)", () => {
  it.effect("come as they are emitted, from acceptance on, and end when the run settles", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const turn = (placed: Placed) =>
        Effect.gen(function* () {
          placed.emit({ _tag: "Thought", text: "early" })
          yield* Deferred.await(gate)
          return yield* say("late")(placed)
        })
      yield* TestClock.setTime(70)
      yield* withSeam([provider({ turn })], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          const watching = yield* Effect.forkChild(Stream.runCollect(run.updates), { startImmediately: true })
          yield* TestClock.adjust(5)
          yield* Deferred.succeed(gate, undefined)
          const updates = yield* Fiber.join(watching)
          const { runId } = run
          assert.deepStrictEqual(updates, [
            { _tag: "Thought", text: "early", runId, seq: 0, at: 70 },
            { _tag: "Content", messageId: "m1", block: { type: "text", text: "late" }, runId, seq: 1, at: 75 }
          ])
          assert.deepStrictEqual(yield* Stream.runCollect(run.updates), updates)
          yield* run.dispose
          assert.deepStrictEqual(yield* Stream.runCollect(run.updates), updates)
        })
      )
    })
  )

  it.effect("never fail, also if the run does", () =>
    withSeam([provider({ turn: () => Effect.die(new Error("boom")) })], (seam) =>
      Effect.gen(function* () {
        const run = yield* seam.start("p", request)
        assert.deepStrictEqual(yield* Stream.runCollect(run.updates), [])
      })
    )
  )

  it.effect("can be left at any time without hurting the run", () =>
    Effect.gen(function* () {
      const { finish, provider } = yield* gated
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          assert.strictEqual((yield* Stream.runCollect(Stream.take(run.updates, 1))).length, 1)
          yield* finish
          assert.strictEqual((yield* run.result).stopReason, "completed")
        })
      )
    })
  )
})
