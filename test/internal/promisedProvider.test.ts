import { assert, describe, it } from "@effect/vitest"
import { Content, SubagentError, SubagentProvider, Subagents } from "effect-subagent"
import { ProviderConformance } from "effect-subagent/testing"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { gate, make, prompts, untilAborted } from "../fixtures/promiseProvider.ts"
import { inSeam, lines, reasonOf, root, withSeam } from "../utils/seam.ts"

const { provider, world } = make()

ProviderConformance.suite("promised", Subagents.add(provider).pipe(Layer.provideMerge(Subagents.layer)), {
  describe,
  it,
  prompts,
  capabilities: { outputSchema: false, depthLimit: false, toolFilter: false, usage: true },
  world: Effect.sync(() => ({ ...world }))
})

describe("a provider made of async functions", () => {
  const named = (options: Omit<SubagentProvider.PromiseOptions, "name">) =>
    SubagentProvider.fromPromise({ name: "p", ...options })

  it("honours nothing that it does not say", () => {
    const { capabilities, inheritsContext } = named({ run: () => "x" })
    assert.deepStrictEqual(capabilities, { outputSchema: false, depthLimit: false, toolFilter: false })
    assert.isFalse(inheritsContext)
    assert.isTrue(named({ run: () => "x", inheritsContext: true, capabilities: { model: true } }).capabilities.model)
  })

  it.effect("hands the function its prompt, what was asked for, and the request whole", () =>
    Effect.gen(function* () {
      const seen: Array<object> = []
      const each = SubagentProvider.fromPromise({
        name: "p",
        capabilities: { model: true, systemPrompt: true },
        open: (request) => ({ runId: request.runId }),
        run: ({ model, prompt, request, session, system }) => {
          seen.push({ model, prompt, system, isSame: session.runId === request.runId })
          return "done"
        }
      })
      yield* withSeam([each], ({ run }) =>
        Effect.andThen(
          run("p", { prompt: "a", parent: root }),
          run("p", { prompt: "b", parent: root, agentOptions: { model: "m", systemPrompt: "s" } })
        )
      )
      assert.deepStrictEqual(seen, [
        { model: undefined, prompt: "a", system: undefined, isSame: true },
        { model: "m", prompt: "b", system: "s", isSame: true }
      ])
    })
  )

  it.effect("refuses the start if its session does not open, with what it was told (4)", () =>
    Effect.gen(function* () {
      const start = (thrown: unknown) =>
        withSeam([named({ open: () => Promise.reject(thrown), run: () => "x" })], ({ start }) =>
          Effect.exit(Effect.scoped(start("p", { prompt: "a", parent: root })))
        )
      const failed = (detail: string) => new SubagentError.StartFailed({ provider: "p", detail })
      assert.deepStrictEqual(reasonOf(yield* start(new Error("no room"))), failed("no room"))
      assert.deepStrictEqual(reasonOf(yield* start("not an error")), failed("not an error"))
      assert.deepStrictEqual(reasonOf(yield* start(undefined)), failed("undefined"))
      const own = new SubagentError.HistoryUnavailable({ agentId: "root" })
      assert.strictEqual(reasonOf(yield* start(SubagentError.fromReason(own))), own)
    })
  )

  it.effect("closes a session that opens for a start which has been interrupted meanwhile (4)", () =>
    Effect.gen(function* () {
      const { promise, resolve } = gate()
      const closed: Array<string> = []
      const each = SubagentProvider.fromPromise({
        name: "p",
        open: () => promise,
        run: () => "x",
        close: (session) => closed.push(session)
      })
      yield* withSeam([each], ({ start }) =>
        Effect.gen(function* () {
          const starting = yield* Effect.forkChild(Effect.scoped(start("p", { prompt: "a", parent: root })), {
            startImmediately: true
          })
          const interrupting = yield* Effect.forkChild(Fiber.interrupt(starting), { startImmediately: true })
          resolve("late")
          yield* Fiber.join(interrupting)
          assert.deepStrictEqual(closed, ["late"])
        })
      )
    })
  )

  it.effect("announces a session that can't be closed, and goes on (10)", () =>
    Effect.gen(function* () {
      const each = SubagentProvider.fromPromise({
        name: "p",
        open: () => 1,
        run: () => "x",
        close: () => Promise.reject(new Error("stuck"))
      })
      const { events, value } = yield* inSeam([each], ({ run }) => run("p", { prompt: "a", parent: root }))
      assert.strictEqual(value.stopReason, "completed")
      assert.deepStrictEqual(lines(events), ["start p", "end p completed", "problem failed"])
    })
  )

  it.effect("is let go of within the bound if it takes no notice of its signal, and reported (10)", () =>
    Effect.gen(function* () {
      const { promise, resolve } = gate()
      const begun = yield* Deferred.make<AbortSignal>()
      const each = named({
        run: ({ signal }) => {
          Deferred.doneUnsafe(begun, Exit.succeed(signal))
          return promise
        }
      })
      const { events } = yield* inSeam([each], ({ live, start }) =>
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          const run = yield* Scope.provide(start("p", { prompt: "a", parent: root }), scope)
          const signal = yield* Deferred.await(begun)
          yield* run.cancel()
          assert.strictEqual((yield* run.result).stopReason, "aborted")
          assert.isTrue(signal.aborted)
          const releasing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
          yield* TestClock.adjust("9 seconds")
          assert.lengthOf(yield* live, 1)
          yield* TestClock.adjust("1 second")
          yield* Fiber.join(releasing)
          assert.lengthOf(yield* live, 0)
        })
      )
      assert.deepStrictEqual(lines(events), ["start p", "end p aborted Caller", "problem timed-out"])
      resolve("too late")
    })
  )

  it.effect("is quiet as soon as it has settled after its signal (9) (10)", () =>
    Effect.gen(function* () {
      let isQuiet = false
      const each = named({
        run: async ({ signal }) => {
          try {
            return await untilAborted(signal)
          } finally {
            await Promise.resolve()
            isQuiet = true
          }
        }
      })
      const { events } = yield* inSeam([each], ({ start }) =>
        Effect.scoped(Effect.asVoid(start("p", { prompt: "a", parent: root })))
      )
      assert.isTrue(isQuiet)
      assert.deepStrictEqual(lines(events), ["start p", "end p aborted Release"])
    })
  )

  it.effect("answers with what it returns, else with what it has streamed (14)", () =>
    Effect.gen(function* () {
      const output = (run: SubagentProvider.PromiseOptions["run"]) =>
        withSeam([named({ run })], ({ run }) =>
          Effect.map(run("p", { prompt: "a", parent: root }), (result) => Content.toText(result.output))
        )
      assert.strictEqual(yield* output(() => "returned"), "returned")
      assert.strictEqual(yield* output(({ onText }) => onText("streamed")), "streamed")
      assert.strictEqual(
        yield* output(({ onText }) => {
          onText("thinking aloud")
          return "returned"
        }),
        "returned"
      )
    })
  )

  it.effect("can go on only if it says so, and then runs again for the same session (16)", () =>
    Effect.gen(function* () {
      const each = (canResume: boolean) =>
        SubagentProvider.fromPromise({
          name: "p",
          canResume,
          open: () => [] as Array<string>,
          run: ({ prompt, session }) => {
            session.push(prompt)
            return session.join(", ")
          }
        })
      const start = { prompt: "a", parent: root }
      yield* withSeam([each(false)], (seam) =>
        Effect.scoped(Effect.map(seam.start("p", start), (run) => assert.isFalse("resume" in run)))
      )
      const texts = yield* withSeam([each(true)], (seam) =>
        Effect.gen(function* () {
          const first = yield* seam.start("p", start)
          yield* first.result
          const second = yield* first.resume!("b")
          return [Content.toText((yield* first.result).output), Content.toText((yield* second.result).output)]
        }).pipe(Effect.scoped)
      )
      assert.deepStrictEqual(texts, ["a", "a, b"])
    })
  )
})
