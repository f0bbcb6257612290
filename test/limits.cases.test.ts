/** What users of comparable systems have reported about caps and queues, as tests of the seam. Ids are those of the reports. */
import { assert, describe, it } from "@effect/vitest"
import { type Agent, SubagentError, type SubagentRun } from "effect-subagent"
import { ScriptedProvider } from "effect-subagent/testing"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { type Children, makeChildren, parentIn } from "./utils/limited.ts"
import {
  agentOf,
  inSeam,
  lines,
  makeSignal,
  type Placed,
  reasonOf,
  root,
  type Seam,
  type SeamOptions,
  tagOf
} from "./utils/seam.ts"

const one: SeamOptions = { maxConcurrent: { overall: 1 }, maxDepth: 4 }

/** What happens in a seam, and the events of it, each as a line. */
const within = <A, E>(
  body: (seam: Seam, children: Children, scope: Scope.Closeable) => Effect.Effect<A, E, Scope.Scope>,
  options: SeamOptions = one
) =>
  Effect.flatMap(makeChildren(), (children) =>
    Effect.map(
      inSeam([children.provider], (seam, scope) => Effect.scoped(body(seam, children, scope)), options),
      ({ events, value }) => ({ value, events: lines(events) })
    )
  )

/** Starts in a fiber of its own, for whoever waits. */
const starting = (seam: Seam, label: string, parent: Agent.Agent = root, fields: object = {}) =>
  Effect.forkChild(Effect.exit(seam.run("p", { prompt: "modest", parent, label, ...fields })), {
    startImmediately: true
  })

/** Whether there is a place again: a run need not wait for one. */
const hasPlace = (seam: Seam) =>
  Effect.gen(function* () {
    const next = yield* starting(seam, "next")
    yield* TestClock.adjust(1)
    const exit = next.pollUnsafe()
    assert.isTrue(exit !== undefined && Exit.isSuccess(exit) && Exit.isSuccess(exit.value), "there is no place")
  })

describe("those who wait for a place (20)", () => {
  it.effect("A9: never start once the signal of their parent is aborted, and are aborted before their start", () =>
    Effect.gen(function* () {
      const { abort, listeners, signal } = makeSignal()
      const { events } = yield* within((seam, children) =>
        Effect.gen(function* () {
          const running = yield* seam.start("p", { prompt: "hold", parent: root, label: "running", signal })
          const queued = [
            yield* starting(seam, "first", root, { signal }),
            yield* starting(seam, "second", root, { signal })
          ]
          abort()
          assert.deepStrictEqual((yield* running.result).cause, { _tag: "Signal" })
          for (const fiber of queued) {
            assert.deepStrictEqual(
              reasonOf(yield* Fiber.join(fiber)),
              new SubagentError.AbortedBeforeStart({ provider: "p" })
            )
          }
          assert.strictEqual(children.placed.length, 1)
          assert.strictEqual(listeners(), 0)
          yield* hasPlace(seam)
        })
      )
      assert.deepStrictEqual(events, [
        "start running",
        "end running aborted Signal",
        "start next",
        "end next completed"
      ])
    })
  )

  it.effect("A9: never start once the run of their parent is cancelled, at whatever level they are", () =>
    Effect.gen(function* () {
      const { events } = yield* within((seam, children) =>
        Effect.gen(function* () {
          const above = yield* parentIn(seam, children, { label: "above" })
          const parent = yield* parentIn(seam, children, { label: "parent" }, above.agent)
          const running = yield* parentIn(seam, children, { label: "running" }, parent.agent)
          const queued = [
            yield* starting(seam, "first", parent.agent),
            yield* starting(seam, "second", above.agent),
            yield* starting(seam, "third", running.agent)
          ]
          // the last one waits for nobody: the place of its parent is its own
          assert.strictEqual(Exit.isSuccess(yield* Fiber.join(queued.pop()!)), true)
          yield* above.run.cancel("enough")
          for (const fiber of queued) assert.strictEqual(tagOf(yield* Fiber.join(fiber)), "ParentSettled")
          assert.deepStrictEqual((yield* running.run.result).cause, { _tag: "Parent", runId: parent.run.runId })
          yield* hasPlace(seam)
        })
      )
      assert.deepStrictEqual(
        events.filter((line) => /first|second/.test(line)),
        []
      )
    })
  )

  const calls: Readonly<
    Record<
      string,
      (
        seam: Seam,
        waiting: Fiber.Fiber<unknown, unknown>,
        scope: Scope.Closeable,
        abort: () => void
      ) => Effect.Effect<unknown>
    >
  > = {
    "their signal": (_, __, ___, abort) => Effect.sync(abort),
    "the interruption of whoever asks": (_, waiting) => Fiber.interrupt(waiting),
    "the end of the layer": (_, __, scope) => Scope.close(scope, Exit.void)
  }
  const tags: Readonly<Record<string, string>> = {
    "their signal": "AbortedBeforeStart",
    "the end of the layer": "RegistryClosed"
  }
  for (const [by, call] of Object.entries(calls)) {
    it.effect(`are called off by ${by}, without a trace`, () =>
      Effect.gen(function* () {
        const { abort, listeners, signal } = makeSignal()
        const { events } = yield* within((seam, children, scope) =>
          Effect.gen(function* () {
            yield* seam.start("p", { prompt: "hold", parent: root, label: "running" })
            const waiting = yield* Effect.forkChild(
              seam.run("p", { prompt: "modest", parent: root, label: "waiting", signal }),
              { startImmediately: true }
            )
            yield* call(seam, waiting, scope, abort)
            const exit = yield* Fiber.await(waiting)
            if (by in tags) assert.strictEqual(tagOf(exit), tags[by])
            else assert.isTrue(Exit.hasInterrupts(exit))
            assert.strictEqual(listeners(), 0)
            assert.strictEqual(children.placed.length, 1)
            yield* children.letGo
          })
        )
        assert.deepStrictEqual(
          events.filter((line) => line.includes("waiting")),
          []
        )
      })
    )
  }

  it.effect("are called off by the end of their parent's turn, which has not waited for them", () =>
    Effect.gen(function* () {
      const { events } = yield* within(
        (seam, children) =>
          Effect.gen(function* () {
            yield* seam.start("p", { prompt: "wait", parent: root, label: "stranger" })
            yield* seam.register({ ...children.provider, name: "q" })
            const parent = yield* seam.start("q", { prompt: "hold", parent: root, label: "parent" })
            const queued = yield* starting(seam, "queued", children.agent())
            yield* children.letGo
            assert.strictEqual((yield* parent.result).stopReason, "completed")
            assert.strictEqual(tagOf(yield* Fiber.join(queued)), "ParentSettled")
          }),
        { maxConcurrent: { provider: { p: 1 } } }
      )
      assert.isFalse(events.some((line) => line.includes("queued")))
    })
  )

  it.effect("are served in order, parents in turn", () =>
    Effect.gen(function* () {
      const other: Agent.Agent = { id: "other", session: { header: { id: "other-session" } } }
      const { events } = yield* within((seam, children) =>
        Effect.gen(function* () {
          yield* seam.start("p", { prompt: "hold", parent: root, label: "running" })
          const queued = []
          for (const n of [1, 2, 3]) queued.push(yield* starting(seam, `a${n}`))
          for (const n of [1, 2, 3]) queued.push(yield* starting(seam, `b${n}`, other))
          yield* children.letGo
          for (const fiber of queued) yield* Fiber.join(fiber)
        })
      )
      // whose place it is has ended, and that is known, before the next one starts
      const expected = ["running", "a1", "b1", "a2", "b2", "a3", "b3"]
      assert.deepStrictEqual(
        events,
        expected.flatMap((label) => [`start ${label}`, `end ${label} completed`])
      )
    })
  )

  it.effect("may be those that resume a child: in its turn, called off with it, and never twice", () =>
    Effect.gen(function* () {
      const { events } = yield* within((seam, children) =>
        Effect.gen(function* () {
          const child = yield* seam.start("p", { prompt: "modest", parent: root, label: "child" })
          yield* child.result
          const { run } = yield* parentIn(seam, children, { label: "running" })
          const resume = Effect.scoped(Effect.flatMap(child.resume!("modest"), ({ result }) => result))
          const fork = Effect.forkChild(resume, { startImmediately: true })
          const [first, second] = [yield* fork, yield* fork]
          assert.isUndefined(first.pollUnsafe())
          yield* run.cancel()
          assert.strictEqual((yield* Fiber.join(first)).stopReason, "completed")
          assert.strictEqual((yield* Fiber.join(second)).stopReason, "completed")

          yield* parentIn(seam, children, { label: "again" })
          const third = yield* fork
          yield* child.dispose
          assert.strictEqual(tagOf(yield* Fiber.await(third)), "RunReleased")
        })
      )
      assert.deepStrictEqual(
        events.filter((line) => line.includes("child")),
        [
          "start child",
          "end child completed",
          "start child",
          "end child completed",
          "start child",
          "end child completed"
        ]
      )
    })
  )

  it.effect(
    "are children of a parent that has used up its cap of one: it delegates to itself to the greatest depth",
    () =>
      Effect.gen(function* () {
        let known: Seam | undefined
        const script = (placed: Placed): ScriptedProvider.RunScript => [
          ScriptedProvider.run(() =>
            placed.lineage.depth === 3
              ? Effect.void
              : // two at once, which share the one place
                Effect.all(
                  ["a", "b"].map((label) => known!.run("p", { prompt: "go", parent: agentOf(placed), label })),
                  { concurrency: "unbounded" }
                )
          ),
          ScriptedProvider.text("done")
        ]
        for (const maxConcurrent of [
          { overall: 1 },
          { tree: 1 },
          { provider: 1 },
          { overall: 1, tree: 1, provider: 1 }
        ]) {
          const { provider } = yield* ScriptedProvider.make(script, { name: "p" })
          const { events, value } = yield* inSeam(
            [provider],
            (seam) => {
              known = seam
              return seam.run("p", { prompt: "go", parent: root })
            },
            { maxConcurrent }
          )
          assert.strictEqual(value.stopReason, "completed")
          assert.strictEqual(events.filter(({ type }) => type === "subagent/end").length, 7)
        }
      })
  )
})

describe("a place (20)", () => {
  it.effect(
    "I1: is not kept by who has finished: 50 runs one after the other below a cap of 2, none released before the end",
    () =>
      Effect.gen(function* () {
        const { value } = yield* within(
          (seam) =>
            Effect.gen(function* () {
              const ends = []
              for (let n = 0; n < 50; n++) {
                const run = yield* seam.start("p", { prompt: "modest", parent: root })
                ends.push((yield* run.result).stopReason)
              }
              const live = yield* seam.live
              return { ends, states: new Set(live.map(({ state }) => state)), live: live.length }
            }),
          { maxConcurrent: { overall: 2, tree: 2, provider: 2 }, maxQueued: 0 }
        )
        assert.deepStrictEqual(value, {
          ends: Array.from({ length: 50 }, () => "completed"),
          states: new Set(["settled"]),
          live: 50
        })
      })
  )

  it.effect("is there for whoever hears of the end of the run that had it", () =>
    Effect.gen(function* () {
      const { value } = yield* within(
        (seam, children) =>
          Effect.gen(function* () {
            const next = yield* Stream.filter(seam.events, ({ type }) => type === "subagent/end").pipe(
              Stream.take(1),
              Stream.runForEach(() => seam.run("p", { prompt: "modest", parent: root })),
              Effect.forkChild({ startImmediately: true })
            )
            const { run } = yield* parentIn(seam, children)
            yield* run.cancel()
            return yield* Fiber.await(next)
          }),
        { maxConcurrent: { overall: 1 }, maxQueued: 0 }
      )
      assert.isTrue(Exit.isSuccess(value))
    })
  )

  it.effect(
    "I3: is not kept by who has crashed, and who has crashed can be closed: there is one list of the living",
    () =>
      Effect.gen(function* () {
        const script = (placed: Placed): ScriptedProvider.RunScript =>
          placed.label === "crashes" ? [ScriptedProvider.die("segfault")] : []
        const { provider } = yield* ScriptedProvider.make(script, { name: "p" })
        const { events } = yield* inSeam(
          [provider],
          (seam) =>
            Effect.gen(function* () {
              for (let n = 0; n < 3; n++) {
                const scope = yield* Scope.make()
                const run = yield* Scope.provide(
                  seam.start("p", { prompt: "go", parent: root, label: "crashes" }),
                  scope
                )
                assert.strictEqual(tagOf(yield* Effect.exit(run.result)), "ProviderFault")
                assert.deepStrictEqual(
                  (yield* seam.live).map(({ runId, state }) => [runId, state]),
                  [[run.runId, "settled"]]
                )
                // twice is as good as once, by either id
                for (const id of [run.runId, run.id, run.runId]) assert.isTrue(yield* seam.cancel(id))
                const next = yield* seam.run("p", { prompt: "go", parent: root, label: "next" })
                assert.strictEqual(next.stopReason, "completed")
                yield* Scope.close(scope, Exit.void)
                assert.isFalse(yield* seam.cancel(run.runId))
                assert.deepStrictEqual(yield* seam.live, [])
              }
            }),
          { maxConcurrent: { overall: 1 }, maxQueued: 0 }
        )
        const once = ["start crashes", "end crashes error", "start next", "end next completed"]
        assert.deepStrictEqual(lines(events), [...once, ...once, ...once])
      })
  )

  const { die, end, fail, hang, interrupt, onInterrupt, run: step } = ScriptedProvider
  const failed = new SubagentError.StartFailed({ provider: "p", detail: "no room" })
  const turn = (...steps: ReadonlyArray<ScriptedProvider.Step>) => ({ turn: steps })
  const paths: Readonly<
    Record<
      string,
      {
        script: ScriptedProvider.Phases
        stop?: (
          run: SubagentRun.SubagentRun | undefined,
          fiber: Fiber.Fiber<unknown, unknown>
        ) => Effect.Effect<unknown>
      }
    >
  > = {
    "it has completed": { script: {} },
    "it has failed": { script: turn(end({ stopReason: "error", failure: { kind: "model", retryable: false } })) },
    "it has no outcome": { script: turn(end("nonsense")) },
    "its provider has failed": { script: turn(fail(failed)) },
    "its provider has died": { script: turn(die("bug")) },
    "it has interrupted itself": { script: turn(interrupt) },
    "it was cancelled": { script: turn(hang), stop: (run) => run!.cancel() },
    "it was disposed of": { script: turn(hang), stop: (run) => run!.dispose },
    "its owner was interrupted": { script: turn(hang), stop: (_, fiber) => Fiber.interrupt(fiber) },
    "its time was over": { script: turn(hang), stop: () => TestClock.adjust("1 minute") },
    "it could not start": { script: { start: [fail(failed)] } },
    "it died as it started": { script: { start: [die("bug")] } },
    "it interrupted itself as it started": { script: { start: [interrupt] } },
    "it was released as it started": { script: { start: [hang] }, stop: (_, fiber) => Fiber.interrupt(fiber) },
    "its start took too long": { script: { start: [hang] }, stop: () => TestClock.adjust("1 minute") },
    "its release fails": { script: { release: [die("bug")] } },
    "it has settled and does not end": {
      script: turn(
        onInterrupt(
          hang,
          step(() => Effect.sleep("1 hour"))
        )
      ),
      stop: (run) => run!.cancel()
    }
  }
  for (const [when, { script, stop }] of Object.entries(paths)) {
    it.effect(`comes back when ${when}`, () =>
      Effect.gen(function* () {
        const { provider } = yield* ScriptedProvider.make(({ label }) => (label === "it" ? script : []), { name: "p" })
        yield* inSeam(
          [provider],
          (seam) =>
            Effect.gen(function* () {
              let accepted: SubagentRun.SubagentRun | undefined
              const limits = { timeout: "1 minute", startTimeout: "1 minute" } as const
              const it = yield* Effect.forkChild(
                Effect.scoped(
                  Effect.gen(function* () {
                    accepted = yield* seam.start("p", { prompt: "go", parent: root, label: "it", ...limits })
                    yield* Effect.exit(accepted.result)
                    // its place is free though it is still there
                    yield* stop === undefined ? Effect.void : Effect.never
                  })
                ),
                { startImmediately: true }
              )
              const next = yield* Effect.forkChild(seam.run("p", { prompt: "go", parent: root, label: "next" }), {
                startImmediately: true
              })
              if (stop !== undefined) {
                assert.isUndefined(next.pollUnsafe())
                yield* stop(accepted, it)
              }
              assert.strictEqual((yield* Fiber.join(next)).stopReason, "completed")
              const ending = yield* Effect.forkChild(Fiber.interrupt(it))
              yield* TestClock.adjust("2 hours")
              yield* Fiber.join(ending)
            }),
          { maxConcurrent: { overall: 1, tree: 1, provider: 1 } }
        )
      })
    )
  }
})
