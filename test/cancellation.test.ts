/** What users of comparable systems have reported about stopping children, as tests of the seam. Ids are those of the reports. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { Content, type SubagentRequest, type SubagentRun } from "effect-subagent"
import { getEventListeners } from "node:events"
import { type Event, inSeam, lines, makeSignal, provider, root, say, type Seam, tagOf, withSeam } from "./utils/seam.ts"
import { makeSteerable } from "./utils/steerable.ts"

type Run = SubagentRun.SubagentRun
type Steerable = ReturnType<typeof makeSteerable>

const request = { prompt: "go", parent: root }
const causeOf = (run: Run) => Effect.map(run.result, ({ cause }) => cause)
const stopReasonOf = (run: Run) => Effect.map(run.result, ({ stopReason }) => stopReason)

const below = (steerable: Steerable, label: string) => ({ prompt: "go", parent: steerable.child(label).agent })

/** What nobody provides. */
class Missing extends Context.Service<Missing, number>()("test/Missing") {}

/** Three runs, each the child of the one before. */
const nested = Effect.fnUntraced(function* (
  seam: Seam,
  steerable: Steerable,
  first: Effect.Effect<Run, unknown, Scope.Scope>
) {
  const a = yield* first
  const b = yield* seam.start("p", { ...below(steerable, "a"), label: "b" })
  const c = yield* seam.start("p", { ...below(steerable, "b"), label: "c" })
  return [a, b, c] as const
})

/** How often each run has been announced as ended. */
const endsOf = (events: ReadonlyArray<Event>) =>
  events.flatMap((event) => (event.type === "subagent/end" ? [event.runId] : []))

describe("a cancel reaches the child (9)", () => {
  it.effect("and all below it before the interruption of its owner returns [A1]", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      yield* withSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const owner = yield* Effect.forkChild(
            Effect.scoped(Effect.andThen(seam.start("p", { ...request, label: "a" }), Effect.never)),
            { startImmediately: true }
          )
          const runs = yield* Effect.forEach(
            [
              ["a", "b"],
              ["a", "c"],
              ["a", "d"],
              ["d", "e"]
            ] as const,
            ([above, label]) => seam.start("p", { ...below(steerable, above), label })
          )
          yield* Fiber.interrupt(owner)
          assert.deepStrictEqual(
            steerable.children.map(({ isOpen, turns }) => [isOpen, turns.map(({ state }) => state)]),
            ["a", "b", "c", "d", "e"].map(() => [false, ["stopped"]])
          )
          assert.deepStrictEqual(
            (yield* Effect.forEach(runs, causeOf)).map((cause) => cause?._tag),
            ["Parent", "Parent", "Parent", "Parent"]
          )
          assert.deepStrictEqual(yield* seam.live, [])
        })
      )
    })
  )

  it.effect("three levels deep in one step, on whatever way it was started [A5]", () =>
    Effect.gen(function* () {
      const ways: Readonly<
        Record<
          string,
          (
            seam: Seam,
            steerable: Steerable,
            signal: SubagentRequest.AbortSignalLike
          ) => Effect.Effect<Run, unknown, Scope.Scope>
        >
      > = {
        start: (seam, _, signal) => seam.start("p", { ...request, label: "a", signal }),
        structured: (seam, _, signal) =>
          seam.start("p", { ...request, label: "a", signal, outputSchema: Schema.String }),
        "with a token": (seam, _, signal) =>
          seam.resume(
            {
              version: 1,
              provider: "p",
              id: "kept" as Run["id"],
              header: {
                id: "kept-session" as Run["header"]["id"],
                parentSession: root.session.header.id as Run["header"]["id"],
                delegationDepth: 1
              },
              policy: { maxDepth: 3, toolFilters: [] },
              agentOptions: {},
              label: "a",
              payload: null
            },
            "go",
            { parent: root, signal }
          )
      }
      for (const [way, start] of Object.entries(ways)) {
        const steerable = makeSteerable()
        const { abort, listeners, signal } = makeSignal()
        const { start: open } = steerable.provider
        yield* withSeam([{ ...steerable.provider, resume: open }], (seam) =>
          Effect.gen(function* () {
            const [a, b, c] = yield* nested(seam, steerable, start(seam, steerable, signal))
            abort()
            // no turn of the scheduler has passed
            assert.deepStrictEqual(
              (yield* seam.live).map(({ state }) => state),
              ["settled", "settled", "settled"],
              way
            )
            assert.deepStrictEqual(
              [yield* causeOf(a), yield* causeOf(b), yield* causeOf(c)],
              [{ _tag: "Signal" }, { _tag: "Parent", runId: a.runId }, { _tag: "Parent", runId: b.runId }]
            )
            assert.deepStrictEqual(
              steerable.children.map(({ turns }) => turns[0]!.state),
              ["stopped", "stopped", "stopped"]
            )
            assert.strictEqual(listeners(), 0)
          })
        )
      }
    })
  )

  it.effect("and ten thousand at once that share a signal, by the one listener it has", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      const { abort, added, listeners, signal } = makeSignal()
      yield* withSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const runs: Array<Run> = []
          for (let i = 0; i < 10_000; i++) runs.push(yield* seam.start("p", { ...request, signal }))
          assert.deepStrictEqual([added(), listeners()], [1, 1])
          abort()
          assert.isTrue((yield* seam.live).every(({ state }) => state === "settled"))
          for (const run of runs) assert.strictEqual((yield* causeOf(run))?._tag, "Signal")
          assert.strictEqual(listeners(), 0)
        })
      )
      assert.isTrue(steerable.children.every(({ isOpen, turns }) => !isOpen && turns[0]!.state === "stopped"))
    })
  )

  it.effect("between two of its turns: what it has said stands, and it can go on", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      const { abort, listeners, signal } = makeSignal()
      yield* withSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", { ...request, signal })
          steerable.child().turn().finish()
          const result = yield* run.result
          yield* run.cancel("too late")
          abort()
          assert.strictEqual(yield* run.result, result)
          const next = yield* run.resume!("go on")
          steerable.child().turn().finish()
          assert.deepStrictEqual([yield* stopReasonOf(next), listeners()], ["completed", 0])
        })
      )
    })
  )

  it.effect("three levels deep when it was resumed [A5]", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      yield* withSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const first = yield* seam.start("p", { ...request, label: "a" })
          yield* first.cancel()
          const [a, b, c] = yield* nested(seam, steerable, first.resume!("again"))
          yield* a.cancel()
          assert.deepStrictEqual(
            [yield* causeOf(a), yield* causeOf(b), yield* causeOf(c)],
            [{ _tag: "Caller" }, { _tag: "Parent", runId: a.runId }, { _tag: "Parent", runId: b.runId }]
          )
        })
      )
    })
  )

  it.effect("before a timeout round it is reported: the next one starts with a quiet world [A11]", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      const { events } = yield* inSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          for (const label of ["first", "second"]) {
            const running = yield* Effect.forkChild(
              Effect.timeoutOption(seam.run("p", { ...request, label }), "100 millis"),
              { startImmediately: true }
            )
            yield* seam.start("p", { ...below(steerable, label), label: `${label} below` })
            yield* TestClock.adjust("100 millis")
            assert.isTrue(Option.isNone(yield* Fiber.join(running)))
            assert.isTrue(steerable.children.every(({ isOpen, turns }) => !isOpen && turns[0]!.state === "stopped"))
            assert.deepStrictEqual(yield* seam.live, [])
          }
        })
      )
      assert.deepStrictEqual(
        lines(events),
        ["first", "second"].flatMap((label) => [
          `start ${label}`,
          `start ${label} below`,
          `end ${label} below aborted Parent`,
          `end ${label} aborted Interrupt`
        ])
      )
    })
  )
})

describe("a cancel hits what was meant (5, 9)", () => {
  it.effect("and each way of ending is announced exactly once [B2]", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      const { abort, signal } = makeSignal()
      const { events, value } = yield* inSeam([], (seam, scope) =>
        Effect.gen(function* () {
          const registration = yield* Scope.make()
          yield* Scope.provide(seam.register(steerable.provider), registration)
          const start = (label: string, fields: object = {}) => {
            const own = Scope.makeUnsafe()
            return Effect.map(Scope.provide(seam.start("p", { ...request, label, ...fields }), own), (run) => ({
              run,
              own
            }))
          }
          const all = {
            cancelled: yield* start("cancelled"),
            aborted: yield* start("aborted", { signal }),
            disposed: yield* start("disposed"),
            closed: yield* start("closed"),
            interrupted: yield* start("interrupted"),
            answered: yield* start("answered"),
            failed: yield* start("failed"),
            broken: yield* start("broken"),
            parent: yield* start("parent"),
            left: yield* start("left")
          }
          const child = yield* start("child", below(steerable, "parent"))
          // the end of a registration ends no run
          yield* Scope.close(registration, Exit.void)
          assert.isTrue((yield* seam.live).every(({ state }) => state === "running"))
          yield* all.cancelled.run.cancel()
          abort()
          yield* all.disposed.run.dispose
          yield* Scope.close(all.closed.own, Exit.void)
          yield* Scope.close(all.interrupted.own, Exit.interrupt(1))
          steerable.child("answered").turn().finish()
          steerable.child("failed").turn().finish({ stopReason: "error" })
          steerable
            .child("broken")
            .turn()
            .finish(Exit.die(new Error("oh")))
          yield* all.parent.run.cancel()
          // and everything once more, which changes nothing
          for (const { own, run } of [...Object.values(all).filter(({ run }) => run !== all.left.run), child]) {
            yield* run.cancel("again")
            yield* run.dispose
            yield* Scope.close(own, Exit.void)
          }
          yield* Scope.close(scope, Exit.void)
          return [...Object.values(all), child].map(({ run }) => run.runId)
        })
      )
      assert.deepStrictEqual(endsOf(events).toSorted(), value.toSorted())
      assert.deepStrictEqual(
        lines(events).filter((line) => line.startsWith("end")),
        [
          "end cancelled aborted Caller",
          "end aborted aborted Signal",
          "end disposed aborted Release",
          "end closed aborted Release",
          "end interrupted aborted Interrupt",
          "end answered completed",
          "end failed error",
          "end broken error",
          "end child aborted Parent",
          "end parent aborted Caller",
          "end left aborted Release"
        ]
      )
    })
  )

  it.effect("and a turn that ends normally stops none of the children that are still at work [B4]", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      yield* withSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const parent = yield* seam.start("p", { ...request, label: "parent" })
          const labels = ["a", "b", "c", "d"]
          const runs = yield* Effect.forEach(labels, (label) =>
            seam.start("p", { ...below(steerable, "parent"), label })
          )
          for (const label of ["a", "b"]) steerable.child(label).turn().finish()
          steerable
            .child("parent")
            .turn()
            .finish({ stopReason: "error", failure: { kind: "limit", retryable: false } })
          assert.strictEqual(yield* stopReasonOf(parent), "error")
          for (const label of ["c", "d"]) steerable.child(label).turn().finish()
          assert.deepStrictEqual(
            yield* Effect.forEach(runs, stopReasonOf),
            labels.map(() => "completed")
          )
        })
      )
    })
  )
})

describe("a terminal state is true (7)", () => {
  it.effect("whoever comes first in the tick, a thousand times in both orders [C1]", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      const { events, value } = yield* inSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const stops: ReadonlyArray<(run: Run, abort: () => void) => Effect.Effect<unknown>> = [
            (run) => run.cancel(),
            (_, abort) => Effect.sync(abort),
            (run) => run.dispose,
            (run) => Effect.forkChild(run.dispose, { startImmediately: true })
          ]
          const expected: Array<string> = []
          for (let i = 0; i < 2000; i++) {
            const { abort, listeners, signal } = makeSignal()
            const run = yield* seam.start("p", { ...request, signal })
            const finish = Effect.sync(() => steerable.children[i]!.turn().finish())
            const stop = stops[i % 4]!(run, abort)
            const isStoppedFirst = i % 8 < 4
            yield* isStoppedFirst ? Effect.andThen(stop, finish) : Effect.andThen(finish, stop)
            expected.push(isStoppedFirst ? "aborted" : "completed")
            assert.strictEqual(yield* stopReasonOf(run), expected[i])
            yield* run.cancel("too late")
            assert.strictEqual(yield* stopReasonOf(run), expected[i])
            assert.strictEqual(listeners(), 0)
            yield* run.dispose
          }
          return expected
        })
      )
      assert.deepStrictEqual(
        events.flatMap((event) => (event.type === "subagent/end" ? [event.stopReason] : [])),
        value
      )
      assert.strictEqual(new Set(endsOf(events)).size, 2000)
    })
  )

  it.effect("at every stage: a start is refused without a word, whatever is at work is aborted [C3]", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const steerable = makeSteerable({
        before: ({ label }) => (label === "slow" ? Deferred.await(gate) : Effect.void)
      })
      const { events } = yield* inSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const { abort, signal } = makeSignal()
          const starting = yield* Effect.forkChild(seam.start("p", { ...request, label: "slow", signal }), {
            startImmediately: true
          })
          abort()
          assert.strictEqual(tagOf(yield* Fiber.await(starting)), "AbortedBeforeStart")
          assert.strictEqual(tagOf(yield* Effect.exit(seam.start("p", { ...request, signal }))), "AbortedBeforeStart")
          assert.deepStrictEqual([steerable.children, yield* seam.live], [[], []])
          const run = yield* seam.start("p", { ...request, label: "at work" })
          yield* run.cancel()
          assert.deepStrictEqual(yield* run.result, {
            output: [Content.text("on go")],
            stopReason: "aborted",
            cause: { _tag: "Caller" }
          })
        })
      )
      assert.deepStrictEqual(lines(events), ["start at work", "end at work aborted Caller"])
    })
  )

  it.effect("and what a cancelled child says later reaches nobody [C7]", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable({ isDeaf: true })
      const { events } = yield* inSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          const heard = yield* Effect.forkChild(Stream.runCollect(run.updates), { startImmediately: true })
          yield* run.cancel()
          const result = yield* run.result
          const child = steerable.child()
          child.say("a late answer")
          child.turn().letGo()
          yield* run.dispose
          child.say("later still")
          assert.strictEqual(yield* run.result, result)
          assert.strictEqual((yield* Fiber.join(heard)).length, 1)
          assert.deepStrictEqual(result.output, [Content.text("on go")])
        })
      )
      assert.deepStrictEqual(lines(events), ["start p", "end p aborted Caller"])
    })
  )

  it.effect("and a release that has returned leaves the connection free for the next child [C9]", () =>
    Effect.gen(function* () {
      let isTaken = false
      const gate = yield* Deferred.make<void>()
      const connection = provider({
        turn: (placed) =>
          Effect.suspend(() => {
            if (isTaken) return Effect.die(new Error("the connection is taken"))
            isTaken = true
            return placed.label === "first" ? Effect.never : say("done")(placed)
          }).pipe(
            // it takes a while to say goodbye
            Effect.onInterrupt(() => Deferred.await(gate)),
            Effect.ensuring(Effect.sync(() => (isTaken = false)))
          )
      })
      yield* withSeam([connection], (seam) =>
        Effect.gen(function* () {
          const first = yield* seam.start("p", { ...request, label: "first" })
          const next = yield* Effect.forkChild(Effect.andThen(first.dispose, seam.run("p", request)))
          yield* Effect.yieldNow
          assert.isTrue(isTaken)
          yield* Deferred.succeed(gate, undefined)
          assert.strictEqual((yield* Fiber.join(next)).stopReason, "completed")
        })
      )
    })
  )
})

describe("a parent never waits for ever (10)", () => {
  it.effect("for a child that has answered and does not close: the answer is kept, the close is bounded [D4]", () =>
    Effect.gen(function* () {
      const never = provider({
        start: (placed) =>
          Effect.as(
            Effect.addFinalizer(() => Effect.never),
            { turn: say("the answer")(placed) }
          )
      })
      const { events } = yield* inSeam(
        [never],
        (seam) =>
          Effect.gen(function* () {
            const run = yield* seam.start("p", request)
            assert.deepStrictEqual((yield* run.result).output, [Content.text("the answer")])
            const releasing = yield* Effect.forkChild(run.dispose, { startImmediately: true })
            yield* TestClock.adjust("1 second")
            yield* Fiber.join(releasing)
            assert.strictEqual(yield* stopReasonOf(run), "completed")
          }),
        { releaseTimeout: "1 second" }
      )
      assert.deepStrictEqual(lines(events), ["start p", "end p completed", "problem timed-out"])
    })
  )

  it.effect("and trouble at the close is no part of a good result [D6]", () =>
    Effect.gen(function* () {
      const killed = provider({
        start: (placed) =>
          Effect.as(
            Effect.addFinalizer(() => Effect.die(new Error("exit code 1"))),
            { turn: say("the answer")(placed) }
          )
      })
      const { events, value } = yield* inSeam([killed], (seam) => seam.run("p", request))
      assert.deepStrictEqual(value, { output: [Content.text("the answer")], stopReason: "completed" })
      assert.deepStrictEqual(lines(events), ["start p", "end p completed", "problem failed"])
    })
  )

  it.effect("for a child that was done before anybody listened [D8]", () =>
    withSeam([provider()], (seam) =>
      Effect.gen(function* () {
        for (let i = 0; i < 1000; i++) {
          const run = yield* seam.start("p", request)
          const waiting = yield* Effect.forkChild(run.result, { startImmediately: true })
          assert.strictEqual((yield* Fiber.join(waiting)).stopReason, "completed")
          assert.strictEqual((yield* Stream.runCollect(run.updates)).length, 1)
          yield* run.dispose
        }
      })
    )
  )

  it.effect("for a start that never answers: who gives up leaves nothing behind [D12]", () =>
    Effect.gen(function* () {
      let open = 0
      const silent = provider({
        start: () =>
          Effect.acquireRelease(
            Effect.sync(() => open++),
            () => Effect.sync(() => open--)
          ).pipe(Effect.andThen(Effect.never))
      })
      const { events } = yield* inSeam([silent], (seam) =>
        Effect.gen(function* () {
          const giving = yield* Effect.forkChild(Effect.timeoutOption(seam.run("p", request), "10 seconds"), {
            startImmediately: true
          })
          assert.strictEqual(open, 1)
          yield* TestClock.adjust("10 seconds")
          assert.isTrue(Option.isNone(yield* Fiber.join(giving)))
          assert.deepStrictEqual([open, yield* seam.live], [0, []])
        })
      )
      assert.deepStrictEqual(lines(events), [])
    })
  )
})

describe("nothing is lost on the way", () => {
  it.effect("a child has its task when it starts, however late it is ready, and a blank one never starts [G3]", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const steerable = makeSteerable({ before: () => Deferred.await(gate) })
      yield* withSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const starting = yield* Effect.forkChild(seam.start("p", { ...request, prompt: "the task" }), {
            startImmediately: true
          })
          yield* Deferred.succeed(gate, undefined)
          yield* Effect.yieldNow
          steerable.child().turn().finish()
          assert.strictEqual(steerable.child().turn().prompt, "the task")
          yield* Fiber.join(starting)
          for (const prompt of ["", " \t\n", [Content.text(" ")]]) {
            assert.strictEqual(tagOf(yield* Effect.exit(seam.start("p", { ...request, prompt }))), "InvalidRequest")
          }
          assert.strictEqual(steerable.children.length, 1)
        })
      )
    })
  )

  it.effect("a child that ends when its parent's turn is over hurts nobody [G7]", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      const { events } = yield* inSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const parent = yield* seam.start("p", { ...request, label: "parent" })
          const child = yield* seam.start("p", { ...below(steerable, "parent"), label: "child" })
          steerable.child("parent").turn().finish()
          yield* parent.result
          yield* Effect.yieldNow
          steerable.child("child").turn().finish()
          assert.deepStrictEqual([yield* stopReasonOf(parent), yield* stopReasonOf(child)], ["completed", "completed"])
          const again = yield* parent.resume!("what came of it?")
          steerable.child("parent").turn().finish()
          assert.strictEqual(yield* stopReasonOf(again), "completed")
        })
      )
      assert.deepStrictEqual(lines(events).slice(0, 4), [
        "start parent",
        "start child",
        "end child completed",
        "end parent completed"
      ])
    })
  )

  it.effect("a report comes before the end it was made before, to a busy listener too [G9]", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      yield* withSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          const order: Array<string> = []
          const busy = yield* Effect.forkChild(
            Stream.runForEach(run.updates, (update) =>
              Effect.andThen(
                Effect.sleep("1 minute"),
                Effect.sync(() => order.push(update._tag === "Content" ? Content.toText([update.block]) : update._tag))
              )
            ).pipe(
              Effect.andThen(Effect.flatMap(run.result, ({ stopReason }) => Effect.sync(() => order.push(stopReason))))
            ),
            { startImmediately: true }
          )
          steerable.child().say("the last report")
          steerable.child().turn().finish()
          yield* run.result
          yield* TestClock.adjust("1 hour")
          yield* Fiber.join(busy)
          assert.deepStrictEqual(order, ["on go", "the last report", "completed"])
        })
      )
    })
  )
})

describe("the books are true", () => {
  it.effect("a provider that breaks leaves no run that can't be closed, and the next one starts [I3]", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      yield* withSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", { ...request, label: "a" })
          steerable
            .child("a")
            .turn()
            .finish(Exit.die(new Error("crash")))
          assert.strictEqual(tagOf(yield* Effect.exit(run.result)), "ProviderFault")
          assert.deepStrictEqual(
            (yield* seam.live).map(({ state }) => state),
            ["settled"]
          )
          yield* Effect.all([run.dispose, run.dispose], { concurrency: "unbounded" })
          assert.deepStrictEqual(yield* seam.live, [])
          yield* run.dispose
          const next = yield* seam.start("p", { ...request, label: "b" })
          steerable.child("b").turn().finish()
          assert.strictEqual(yield* stopReasonOf(next), "completed")
        })
      )
    })
  )

  it.effect("a thousand runs after each other leave no listener on their signal, which has one at a time [I7]", () =>
    withSeam([provider()], (seam) =>
      Effect.gen(function* () {
        const { signal } = new AbortController()
        for (let i = 0; i < 1000; i++) {
          const run = yield* Effect.scoped(seam.start("p", { ...request, signal }))
          assert.strictEqual(yield* stopReasonOf(run), "completed")
          assert.strictEqual(getEventListeners(signal, "abort").length, 0)
        }
      })
    )
  )

  it.effect("what a child's tools have opened is closed once, however it ends [I9]", () =>
    Effect.gen(function* () {
      const closed: Array<string> = []
      const holding = provider({
        turn: (placed) =>
          Effect.acquireRelease(Effect.void, () => Effect.sync(() => closed.push(placed.label!))).pipe(
            Effect.andThen(
              placed.label === "completes"
                ? say("done")(placed)
                : placed.label === "fails"
                  ? Effect.die(new Error("oh"))
                  : Effect.never
            )
          )
      })
      yield* withSeam([holding], (seam) =>
        Effect.gen(function* () {
          for (const label of ["completes", "fails", "is cancelled", "is released"]) {
            const run = yield* seam.start("p", { ...request, label })
            if (label === "is cancelled") yield* run.cancel()
            yield* run.dispose
            yield* run.dispose
          }
        })
      )
      assert.deepStrictEqual(closed, ["completes", "fails", "is cancelled", "is released"])
    })
  )
})

describe("resuming touches one child only", () => {
  it.effect("its siblings are not run again [O7]", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      yield* withSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          yield* seam.start("p", { ...request, label: "parent" })
          const labels = ["a", "b", "c"]
          const [a] = yield* Effect.forEach(labels, (label) =>
            seam.start("p", { ...below(steerable, "parent"), label })
          )
          for (const label of labels) steerable.child(label).turn().finish()
          const next = yield* a!.resume!("go on")
          steerable.child("a").turn().finish()
          yield* next.result
          assert.deepStrictEqual(
            labels.map((label) => steerable.child(label).turns.length),
            [2, 1, 1]
          )
        })
      )
    })
  )

  it.effect("a child that was cancelled and goes on reports to its parent again [O5]", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      const { events } = yield* inSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const parent = yield* seam.start("p", { ...request, label: "parent" })
          const child = yield* seam.start("p", { ...below(steerable, "parent"), label: "child" })
          yield* child.cancel()
          const next = yield* child.resume!("go on")
          steerable.child("child").turn().finish()
          assert.deepStrictEqual((yield* next.result).output, [Content.text("on go on")])
          steerable.child("parent").turn().finish()
          yield* parent.result
          return [parent.runId, parent.runId]
        })
      )
      assert.deepStrictEqual(
        events.flatMap((event) =>
          event.type === "subagent/start" && event.label === "child" ? [event.parentRunId] : []
        ),
        events.flatMap((event) =>
          event.type === "subagent/start" && event.label === "parent" ? [event.runId, event.runId] : []
        )
      )
    })
  )

  it.effect("what comes late, or twice, for a child that has ended is refused, and nobody is hurt [O9]", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      yield* withSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const parent = yield* seam.start("p", { ...request, label: "parent" })
          const child = yield* seam.start("p", { ...below(steerable, "parent"), label: "child" })
          steerable.child("child").turn().finish()
          yield* child.result
          for (const answer of ["yes", "yes"]) {
            assert.strictEqual(tagOf(yield* Effect.exit(child.sendMessage!(answer))), "RunSettled")
          }
          steerable.child("parent").turn().finish()
          assert.strictEqual(yield* stopReasonOf(parent), "completed")
        })
      )
    })
  )
})

describe("work is not lost, and watching costs nothing", () => {
  it.effect("a child whose model has failed keeps what it said and can go on [P4]", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      const failure = { kind: "model", retryable: true, status: 529 } as const
      yield* withSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          steerable.child().say("five steps of seven")
          steerable.child().turn().finish({ stopReason: "error", failure })
          assert.deepStrictEqual(yield* run.result, {
            output: [Content.text("five steps of seven")],
            stopReason: "error",
            failure
          })
          const next = yield* run.resume!("go on")
          steerable.child().say("all seven")
          steerable.child().turn().finish()
          assert.deepStrictEqual((yield* next.result).output, [Content.text("all seven")])
          assert.strictEqual(next.id, run.id)
        })
      )
    })
  )

  it.effect("a listener that throws, hangs or lacks its services changes neither order nor result [P10]", () =>
    Effect.gen(function* () {
      const listeners: ReadonlyArray<() => Effect.Effect<unknown, unknown>> = [
        () => {
          throw new Error("thrown")
        },
        () => Effect.die(new Error("died")),
        () => Effect.fail("failed"),
        () => Effect.never,
        () => undefined as never,
        () => Effect.service(Missing) as Effect.Effect<unknown>
      ]
      const { events } = yield* inSeam([provider()], (seam) =>
        Effect.gen(function* () {
          for (const listener of listeners) yield* seam.on(listener)
          for (const label of ["a", "b"]) {
            assert.strictEqual((yield* seam.run("p", { ...request, label })).stopReason, "completed")
          }
        })
      )
      assert.deepStrictEqual(lines(events), ["start a", "end a completed", "start b", "end b completed"])
    })
  )
})
