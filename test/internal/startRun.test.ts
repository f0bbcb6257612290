/** From a placed request to an accepted run, on the paths where something goes wrong (4). */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { SubagentError } from "effect-subagent"
import {
  agentOf,
  completed,
  inSeam,
  lines,
  makeSignal,
  type Placed,
  provider,
  reasonOf,
  root,
  say,
  tagOf,
  withSeam
} from "../utils/seam.ts"

const { fromReason, StartFailed } = SubagentError
const request = { prompt: "go", parent: root }

/** Acquires something for the session, and counts what lives. */
const makeResource = () => {
  let alive = 0
  let acquired = 0
  const acquire = Effect.acquireRelease(
    Effect.sync(() => {
      acquired++
      alive++
    }),
    () => Effect.sync(() => alive--)
  )
  return { acquire, alive: () => alive, acquired: () => acquired }
}

describe("a start that takes too long (20)", () => {
  it.effect("tells what was asked for where something tighter holds", () =>
    withSeam(
      [provider({ start: () => Effect.never })],
      (seam) =>
        Effect.gen(function* () {
          const asking = seam.start("p", { ...request, startTimeout: "1 minute" })
          const starting = yield* Effect.forkChild(asking, { startImmediately: true })
          yield* TestClock.adjust("5 seconds")
          assert.deepStrictEqual(
            reasonOf(yield* Fiber.await(starting)),
            new SubagentError.StartTimeout({ provider: "p", timeout: 5000, asked: 60_000 })
          )
        }),
      { startTimeout: "5 seconds" }
    )
  )
})

describe("a start that comes to nothing leaves nothing (4)", () => {
  it.effect("also for a signal that can't be listened to, or stops telling whether it is aborted", () =>
    Effect.gen(function* () {
      const { acquire, acquired, alive } = makeResource()
      const readable = (reads: number) => ({
        get aborted() {
          if (reads-- <= 0) throw new Error("revoked")
          return false
        },
        addEventListener: () => {},
        removeEventListener: () => {}
      })
      const deaf = {
        aborted: false,
        addEventListener: () => {
          throw new Error("deaf")
        },
        removeEventListener: () => {}
      }
      const opening = provider({
        start: () => Effect.as(Effect.andThen(acquire, Effect.yieldNow), { turn: Effect.succeed(completed) })
      })
      const reasons = yield* withSeam([opening], (seam) =>
        Effect.forEach([readable(1), readable(2), deaf], (signal) =>
          Effect.map(Effect.exit(Effect.scoped(seam.start("p", { ...request, signal }))), tagOf)
        )
      )
      assert.deepStrictEqual(reasons, ["AbortedBeforeStart", "AbortedBeforeStart", "InvalidRequest"])
      // the second signal failed only when there was a session
      assert.deepStrictEqual([acquired(), alive()], [1, 0])
    })
  )

  it.effect("also for a start that is an async function, whose rejection is handled", () =>
    Effect.gen(function* () {
      const rejections: Array<unknown> = []
      const listener = (reason: unknown) => rejections.push(reason)
      process.on("unhandledRejection", listener)
      const exit = yield* withSeam([provider({ start: (() => Promise.reject(new Error("async"))) as never })], (seam) =>
        Effect.exit(Effect.scoped(seam.start("p", request)))
      )
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      process.off("unhandledRejection", listener)
      assert.strictEqual(tagOf(exit), "ProviderFault")
      assert.deepStrictEqual(rejections, [])
    })
  )

  it.effect("whether it fails, dies, interrupts itself or gives what is no session", () =>
    Effect.gen(function* () {
      const { acquire, acquired, alive } = makeResource()
      const { listeners, signal } = makeSignal()
      const failing: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        Effect.fail(fromReason(new StartFailed({ provider: "p", detail: "no" }))),
        Effect.die(new Error("boom")),
        Effect.interrupt,
        Effect.succeed(undefined),
        Effect.succeed({}),
        Effect.succeed({ turn: () => completed }),
        Effect.succeed({
          get turn() {
            throw new Error("no turn")
          }
        }),
        Effect.succeed({
          turn: Effect.succeed(completed),
          get id() {
            throw new Error("no id")
          }
        }),
        Effect.fail("not one of ours")
      ]
      const providers = failing.map((start, i) =>
        provider({ name: `p${i}`, start: () => Effect.andThen(acquire, start) as never })
      )
      const { events, value: reasons } = yield* inSeam(providers, (seam) =>
        Effect.forEach(providers, ({ name }) =>
          Effect.gen(function* () {
            const exit = yield* Effect.exit(seam.start(name, { ...request, signal }))
            assert.deepStrictEqual([alive(), listeners(), yield* seam.live], [0, 0, []], name)
            const reason = reasonOf(exit) as { readonly _tag: string; readonly detail: string }
            return `${reason._tag}: ${reason.detail}`
          })
        )
      )
      assert.strictEqual(acquired(), failing.length)
      assert.deepStrictEqual(reasons, [
        "StartFailed: no",
        "ProviderFault: boom",
        "ProviderFault: its start interrupted itself",
        "ProviderFault: its start gave something that is not a session",
        "ProviderFault: its start gave something that is not a session",
        "ProviderFault: its start gave something that is not a session",
        "ProviderFault: its start gave something that is not a session",
        "ProviderFault: its start gave something that is not a session",
        "ProviderFault: not one of ours"
      ])
      assert.deepStrictEqual(lines(events), [])
    })
  )

  it.effect("also if it throws, or gives what is no effect", () =>
    Effect.gen(function* () {
      const throwing = provider({
        name: "throwing",
        start: () => {
          throw new Error("boom")
        }
      })
      const wrong = provider({ name: "wrong", start: (() => ({ turn: 1 })) as never })
      const { events } = yield* inSeam([throwing, wrong], (seam) =>
        Effect.gen(function* () {
          for (const name of ["throwing", "wrong"]) {
            assert.strictEqual(tagOf(yield* Effect.exit(seam.start(name, request))), "ProviderFault")
          }
          assert.deepStrictEqual(yield* seam.live, [])
        })
      )
      assert.deepStrictEqual(lines(events), [])
    })
  )

  const hanging = (
    use: (options: {
      readonly resource: ReturnType<typeof makeResource>
      readonly signal: ReturnType<typeof makeSignal>
      readonly starting: Fiber.Fiber<unknown, unknown>
    }) => Effect.Effect<void>
  ) =>
    Effect.gen(function* () {
      const resource = makeResource()
      const signal = makeSignal()
      const { events } = yield* inSeam(
        [provider({ start: () => Effect.andThen(resource.acquire, Effect.never) })],
        (seam) =>
          Effect.gen(function* () {
            const starting = yield* Effect.forkChild(
              Effect.scoped(seam.start("p", { ...request, signal: signal.signal })),
              {
                startImmediately: true
              }
            )
            assert.deepStrictEqual([resource.alive(), signal.listeners()], [1, 1])
            yield* use({ resource, signal, starting })
            assert.deepStrictEqual([resource.alive(), signal.listeners(), yield* seam.live], [0, 0, []])
          })
      )
      assert.deepStrictEqual(lines(events), [])
    })

  it.effect("whether it hangs and its caller is interrupted", () =>
    hanging(({ starting }) =>
      Effect.gen(function* () {
        yield* Fiber.interrupt(starting)
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(starting)))
      })
    )
  )

  it.effect("what it had acquired is closed after it was stopped, not under it", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const start = () =>
        Effect.andThen(
          Effect.addFinalizer(() => Effect.sync(() => log.push("closed"))),
          Effect.onInterrupt(Effect.never, () => Effect.sync(() => log.push("stopped")))
        )
      yield* withSeam([provider({ start })], (seam) =>
        Effect.gen(function* () {
          const starting = yield* Effect.forkChild(seam.run("p", request), { startImmediately: true })
          yield* Fiber.interrupt(starting)
          assert.deepStrictEqual(log, ["stopped", "closed"])
        })
      )
    })
  )

  it.effect("or its signal is aborted", () =>
    hanging(({ signal, starting }) =>
      Effect.gen(function* () {
        signal.abort()
        assert.strictEqual(tagOf(yield* Fiber.await(starting)), "AbortedBeforeStart")
      })
    )
  )

  it.effect("or whoever waits for it runs out of time", () =>
    Effect.gen(function* () {
      const { acquire, alive } = makeResource()
      const { events } = yield* inSeam([provider({ start: () => Effect.andThen(acquire, Effect.never) })], (seam) =>
        Effect.gen(function* () {
          const running = yield* Effect.forkChild(Effect.timeoutOption(seam.run("p", request), "1 second"))
          yield* TestClock.adjust("1 second")
          assert.strictEqual((yield* Fiber.join(running))._tag, "None")
          assert.strictEqual(alive(), 0)
        })
      )
      assert.deepStrictEqual(lines(events), [])
    })
  )

  it.effect("also if the signal is aborted inside the start itself, even one that succeeds or fails", () =>
    Effect.gen(function* () {
      for (const end of [Effect.succeed({ turn: Effect.succeed(completed) }), Effect.die("x"), Effect.never]) {
        const { acquire, alive } = makeResource()
        const { abort, listeners, signal } = makeSignal()
        const { events } = yield* inSeam(
          [provider({ start: () => acquire.pipe(Effect.andThen(Effect.sync(abort)), Effect.andThen(end)) })],
          (seam) =>
            Effect.gen(function* () {
              const exit = yield* Effect.exit(seam.start("p", { ...request, signal }))
              assert.strictEqual(tagOf(exit), "AbortedBeforeStart")
              assert.deepStrictEqual([alive(), listeners()], [0, 0])
            })
        )
        assert.deepStrictEqual(lines(events), [])
      }
    })
  )

  it.effect("if the signal was aborted already, the provider is never asked", () =>
    Effect.gen(function* () {
      const { listeners, signal } = makeSignal(true)
      const { events } = yield* inSeam([provider({ start: () => Effect.die("asked") })], (seam) =>
        Effect.gen(function* () {
          for (const each of [signal, AbortSignal.abort()]) {
            const exit = yield* Effect.exit(seam.start("p", { ...request, signal: each }))
            assert.strictEqual(tagOf(exit), "AbortedBeforeStart")
          }
        })
      )
      assert.strictEqual(listeners(), 0)
      assert.deepStrictEqual(lines(events), [])
    })
  )
})

describe("a start that does not let itself be interrupted", () => {
  it.effect("is waited for no longer than the release timeout, and what it gives in the end is cleaned up (10)", () =>
    Effect.gen(function* () {
      const { acquire, acquired, alive } = makeResource()
      const gate = yield* Deferred.make<void>()
      const start = () =>
        Effect.as(Effect.uninterruptible(Effect.andThen(Deferred.await(gate), acquire)), {
          turn: Effect.succeed(completed)
        })
      const { events } = yield* inSeam(
        [provider({ start })],
        (seam) =>
          Effect.gen(function* () {
            const { abort, listeners, signal } = makeSignal()
            const starting = yield* Effect.forkChild(
              Effect.scoped(Effect.exit(seam.start("p", { ...request, signal }))),
              {
                startImmediately: true
              }
            )
            abort()
            yield* TestClock.adjust("4 seconds")
            assert.isUndefined(starting.pollUnsafe())
            yield* TestClock.adjust("1 second")
            assert.strictEqual(tagOf(yield* Fiber.join(starting)), "AbortedBeforeStart")
            assert.deepStrictEqual([listeners(), acquired()], [0, 0])
            yield* Deferred.succeed(gate, undefined)
            yield* TestClock.adjust(0)
            assert.deepStrictEqual([acquired(), alive()], [1, 0])
            assert.deepStrictEqual(yield* seam.live, [])
          }),
        { releaseTimeout: "5 seconds" }
      )
      assert.deepStrictEqual(lines(events), ["problem timed-out"])
    })
  )

  it.effect("leaves in time also if its own clean-up fails or dies, and says so", () =>
    Effect.gen(function* () {
      const start = () =>
        Effect.andThen(
          Effect.addFinalizer(() => Effect.die(new Error("stuck"))),
          Effect.fail(fromReason(new StartFailed({ provider: "p", detail: "first" })))
        )
      const { events } = yield* inSeam([provider({ start })], (seam) =>
        Effect.gen(function* () {
          const reason = reasonOf(yield* Effect.exit(seam.start("p", request)))
          assert.deepInclude(reason as object, { _tag: "StartFailed", detail: "first" })
        })
      )
      assert.deepStrictEqual(lines(events), ["problem failed"])
      assert.deepInclude(
        events.find(({ type }) => type === "subagent/release-problem"),
        { detail: "stuck" }
      )
    })
  )

  it.effect("can be interrupted from outside only once it is over: the wait is bounded for the interrupter, too", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { events } = yield* inSeam(
        [provider({ start: () => Effect.uninterruptible(Effect.andThen(Deferred.await(gate), Effect.never)) })],
        (seam) =>
          Effect.gen(function* () {
            const starting = yield* Effect.forkChild(Effect.scoped(seam.start("p", request)), {
              startImmediately: true
            })
            const interrupting = yield* Effect.forkChild(Fiber.interrupt(starting), { startImmediately: true })
            yield* TestClock.adjust("9 seconds")
            assert.isUndefined(interrupting.pollUnsafe())
            yield* TestClock.adjust("1 second")
            yield* Fiber.join(interrupting)
          })
      )
      assert.deepStrictEqual(lines(events), ["problem timed-out"])
    })
  )
})

describe("a start that hangs", () => {
  it.effect("is called off when the run it is for is cancelled, wherever it was started", () =>
    Effect.gen(function* () {
      const { acquire, alive } = makeResource()
      const seen = yield* Deferred.make<Placed>()
      const parent = provider({
        name: "parent",
        turn: (placed) => Effect.andThen(Deferred.succeed(seen, placed), Effect.never)
      })
      const child = provider({ name: "child", start: () => Effect.andThen(acquire, Effect.never) })
      const { events } = yield* inSeam([parent, child], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("parent", request)
          const agent = agentOf(yield* Deferred.await(seen))
          const starting = yield* Effect.forkChild(seam.start("child", { prompt: "go", parent: agent }), {
            startImmediately: true
          })
          assert.strictEqual(alive(), 1)
          yield* run.cancel()
          assert.strictEqual(tagOf(yield* Fiber.await(starting)), "ParentSettled")
          assert.strictEqual(alive(), 0)
        })
      )
      assert.deepStrictEqual(lines(events), ["start parent", "end parent aborted Caller"])
    })
  )

  it.effect("is called off when the run it is for ends by itself", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const seen = yield* Deferred.make<Placed>()
      const parent = provider({
        name: "parent",
        turn: (placed) => Effect.andThen(Deferred.succeed(seen, placed), Effect.as(Deferred.await(gate), completed))
      })
      const child = provider({ name: "child", start: () => Effect.never })
      yield* inSeam([parent, child], (seam) =>
        Effect.gen(function* () {
          yield* seam.start("parent", request)
          const agent = agentOf(yield* Deferred.await(seen))
          const starting = yield* Effect.forkChild(seam.start("child", { prompt: "go", parent: agent }), {
            startImmediately: true
          })
          yield* Deferred.succeed(gate, undefined)
          assert.strictEqual(tagOf(yield* Fiber.await(starting)), "ParentSettled")
        })
      )
    })
  )

  it.effect("is called off when the registry is released, which waits for its clean-up", () =>
    Effect.gen(function* () {
      const { acquire, alive } = makeResource()
      const gate = yield* Deferred.make<void>()
      const start = () =>
        Effect.andThen(
          acquire,
          Effect.onInterrupt(Effect.never, () => Deferred.await(gate))
        )
      let starting: Fiber.Fiber<unknown, unknown> | undefined
      const whole = yield* Effect.forkChild(
        inSeam([provider({ start })], (seam) =>
          Effect.map(
            Effect.forkDetach(Effect.scoped(seam.start("p", request)), { startImmediately: true }),
            (fiber) => (starting = fiber)
          )
        )
      )
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([whole.pollUnsafe(), alive()], [undefined, 1])
      yield* Deferred.succeed(gate, undefined)
      const { events } = yield* Fiber.join(whole)
      assert.deepStrictEqual([lines(events), alive()], [[], 0])
      assert.strictEqual(tagOf(yield* Fiber.await(starting!)), "RegistryClosed")
    })
  )

  it.effect("is called off by a signal that fires and does not say that it is aborted", () =>
    withSeam([provider({ start: () => Effect.never })], (seam) =>
      Effect.gen(function* () {
        const { abort, signal } = makeSignal()
        const mute = { ...signal, aborted: false }
        const starting = yield* Effect.forkChild(seam.start("p", { ...request, signal: mute }), {
          startImmediately: true
        })
        abort()
        assert.strictEqual(tagOf(yield* Fiber.await(starting)), "AbortedBeforeStart")
      })
    )
  )
})

describe("what changes while a provider starts", () => {
  it.effect("a parent whose run settles takes no child any more", () =>
    Effect.gen(function* () {
      const { acquire, alive } = makeResource()
      const gate = yield* Deferred.make<void>()
      const seen = yield* Deferred.make<Placed>()
      const parent = provider({
        name: "parent",
        turn: (placed) => Effect.andThen(Deferred.succeed(seen, placed), Effect.never)
      })
      const child = provider({
        name: "child",
        start: () => acquire.pipe(Effect.andThen(Deferred.await(gate)), Effect.as({ turn: Effect.succeed(completed) }))
      })
      const { events } = yield* inSeam([parent, child], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("parent", request)
          const placed = yield* Deferred.await(seen)
          const starting = yield* Effect.forkChild(seam.start("child", { prompt: "go", parent: agentOf(placed) }), {
            startImmediately: true
          })
          yield* run.cancel()
          yield* Deferred.succeed(gate, undefined)
          assert.deepInclude(reasonOf(yield* Fiber.await(starting)) as object, {
            _tag: "ParentSettled",
            parentRunId: run.runId
          })
          assert.strictEqual(alive(), 0)
        })
      )
      assert.deepStrictEqual(lines(events), ["start parent", "end parent aborted Caller"])
    })
  )

  it.effect("a registry that is released takes no run any more", () =>
    Effect.gen(function* () {
      const { acquire, alive } = makeResource()
      const gate = yield* Deferred.make<void>()
      const start = () =>
        acquire.pipe(Effect.andThen(Deferred.await(gate)), Effect.as({ turn: Effect.succeed(completed) }))
      const { events, value: starting } = yield* inSeam([provider({ start })], (seam) =>
        Effect.forkDetach(Effect.scoped(seam.start("p", request)), { startImmediately: true })
      )
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(tagOf(yield* Fiber.await(starting)), "RegistryClosed")
      assert.strictEqual(alive(), 0)
      assert.deepStrictEqual(lines(events), [])
    })
  )

  it.effect("a provider whose registration ends does not hurt a start under way (2)", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { events } = yield* inSeam([], (seam) =>
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          const start = (placed: Placed) => Effect.as(Deferred.await(gate), { turn: say("hello")(placed) })
          yield* Scope.provide(seam.register(provider({ start })), scope)
          const running = yield* Effect.forkChild(seam.run("p", request), { startImmediately: true })
          yield* Scope.close(scope, Exit.void)
          yield* Deferred.succeed(gate, undefined)
          assert.strictEqual((yield* Fiber.join(running)).stopReason, "completed")
        })
      )
      assert.deepStrictEqual(lines(events), ["start p", "end p completed"])
    })
  )
})

describe("a session", () => {
  const idOf = (id: unknown) =>
    Effect.gen(function* () {
      const start = (placed: Placed) => Effect.succeed({ id, turn: say("hello")(placed) } as never)
      const { events, value } = yield* inSeam([provider({ start })], (seam) =>
        Effect.map(seam.start("p", request), (run) => ({ ...run }))
      )
      const announced = events.flatMap((event) => ("id" in event ? [event.id] : []))
      assert.deepStrictEqual(announced, [value.id, value.id])
      return value
    })

  it.effect("may have a name of its own, which is then the child's", () =>
    Effect.gen(function* () {
      const run = yield* idOf("external-7")
      assert.strictEqual(run.id, "external-7")
      assert.notStrictEqual(run.header.id, "external-7")
    })
  )

  it.effect("keeps the seam's name if its own is none", () =>
    Effect.gen(function* () {
      for (const id of ["", " ", 7, null, undefined]) assert.match((yield* idOf(id)).id, /[0-9a-f]{32}$/)
    })
  )

  it.effect("can't take the name of its parent or of another run, and so pass for it", () =>
    Effect.gen(function* () {
      assert.match((yield* idOf("root")).id, /[0-9a-f]{32}$/)
      assert.match((yield* idOf("root-session")).id, /[0-9a-f]{32}$/)
      const start = (placed: Placed) =>
        Effect.succeed({ id: "same", turn: Effect.andThen(say("x")(placed), Effect.never) })
      yield* inSeam([provider({ start })], (seam) =>
        Effect.gen(function* () {
          const first = yield* seam.start("p", request)
          const second = yield* seam.start("p", request)
          assert.strictEqual(first.id, "same")
          assert.match(second.id, /[0-9a-f]{32}$/)
          yield* first.dispose
          assert.strictEqual((yield* seam.start("p", request)).id, "same")
          // a run is cancelled by its id: nobody else answers to it
          const named = provider({
            name: "named",
            start: (placed) => Effect.map(start(placed), (session) => ({ ...session, id: second.runId }))
          })
          yield* Effect.scoped(
            Effect.andThen(seam.register(named), () =>
              Effect.map(seam.start("named", request), ({ id }) => assert.match(id, /^agent_/))
            )
          )
        })
      )
    })
  )

  it.effect("is read once: what it says later of its turn does not count", () =>
    Effect.gen(function* () {
      let reads = 0
      const start = (placed: Placed) =>
        Effect.succeed({
          get turn() {
            return reads++ === 0 ? say("first")(placed) : Effect.die("second")
          }
        })
      const { value } = yield* inSeam([provider({ start })], (seam) => seam.run("p", request))
      assert.deepStrictEqual([value.stopReason, reads], ["completed", 1])
    })
  )
})
