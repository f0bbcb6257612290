/** The catalog of events, as they are announced. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { SubagentRun } from "effect-subagent"
import { agentOf, completed, type Event, inSeam, type Placed, provider, root, say } from "./utils/seam.ts"

const request = { prompt: "go", parent: root }
const of = (events: ReadonlyArray<Event>, type: Event["type"]) => events.filter((event) => event.type === type)

describe("events", () => {
  it.effect("tell of a run's start and end with the same ids, and its stop reason [seed 11] (5)", () =>
    Effect.gen(function* () {
      const turn = (placed: Placed) =>
        Effect.as(say("hi")(placed), { ...completed, usage: { total: 2 }, diagnostic: "not for events" })
      const { events, value: run } = yield* inSeam([provider({ turn })], (seam) =>
        seam.start("p", { ...request, label: "l" })
      )
      const common = { provider: "p", id: run.id, runId: run.runId, parentId: "root", label: "l" }
      assert.deepStrictEqual(events, [
        { type: "subagent/provider-added", provider: "p" },
        { type: "subagent/start", ...common },
        { type: "subagent/end", ...common, stopReason: "completed", usage: { total: 2 }, treeUsage: { total: 2 } },
        { type: "subagent/provider-removed", provider: "p" }
      ])
    })
  )

  it.effect("have no keys for what there is not", () =>
    Effect.gen(function* () {
      const { events } = yield* inSeam([provider()], (seam) => seam.run("p", request))
      assert.deepStrictEqual(Object.keys(of(events, "subagent/start")[0]!), [
        "type",
        "provider",
        "id",
        "runId",
        "parentId"
      ])
      assert.deepStrictEqual(Object.keys(of(events, "subagent/end")[0]!), [
        "type",
        "provider",
        "id",
        "runId",
        "parentId",
        "stopReason"
      ])
    })
  )

  it.effect("name the run of a parent that is a child itself", () =>
    Effect.gen(function* () {
      const { events, value } = yield* inSeam([provider()], (seam, scope) =>
        Effect.gen(function* () {
          const seen = yield* Deferred.make<Placed>()
          const parent = provider({
            name: "parent",
            turn: (placed) => Effect.andThen(Deferred.succeed(seen, placed), Effect.never)
          })
          yield* Scope.provide(seam.register(parent), scope)
          const run = yield* seam.start("parent", request)
          yield* seam.run("p", { prompt: "go", parent: agentOf(yield* Deferred.await(seen)) })
          return run
        })
      )
      for (const event of events.filter((event) => "runId" in event && event.runId !== value.runId)) {
        assert.deepInclude(event as object, { parentId: value.id, parentRunId: value.runId })
      }
    })
  )

  it.effect("say why a run ended that did not complete", () =>
    Effect.gen(function* () {
      const failure = { kind: "model", retryable: true, status: 429 }
      const failing = provider({ turn: () => Effect.succeed({ stopReason: "error", failure }) })
      const hanging = provider({ name: "hanging", turn: () => Effect.never })
      const { events } = yield* inSeam([failing, hanging], (seam) =>
        Effect.gen(function* () {
          yield* seam.run("p", request)
          yield* (yield* seam.start("hanging", request)).cancel("why")
        })
      )
      const [error, aborted] = of(events, "subagent/end")
      assert.deepInclude(error as object, { stopReason: "error", failure })
      assert.notProperty(error, "cause")
      assert.deepInclude(aborted as object, { stopReason: "aborted", cause: { _tag: "Caller", reason: "why" } })
      assert.notProperty(aborted, "failure")
    })
  )

  it.effect("tell what a release left behind, in a line", () =>
    Effect.gen(function* () {
      const start = () =>
        Effect.as(
          Effect.addFinalizer(() => Effect.die(new Error("stuck"))),
          { turn: Effect.never }
        )
      const { events, value: run } = yield* inSeam([provider({ start })], (seam) => seam.start("p", request))
      assert.deepStrictEqual(of(events, "subagent/release-problem"), [
        {
          type: "subagent/release-problem",
          provider: "p",
          id: run.id,
          runId: run.runId,
          problem: "failed",
          detail: "stuck"
        }
      ])
    })
  )

  it.effect("are values that no listener can change for another, or for the run (6)", () =>
    Effect.gen(function* () {
      let run: SubagentRun.SubagentRun | undefined
      const turn = () =>
        Effect.succeed({ stopReason: "error", failure: { kind: "model", retryable: true }, usage: { total: 1 } })
      const { events } = yield* inSeam([provider({ turn })], (seam) =>
        Effect.gen(function* () {
          yield* seam.on((event) => Effect.sync(() => Object.assign(event, { stopReason: "completed" })))
          run = yield* seam.start("p", request)
        })
      )
      for (const event of events) assert.isTrue(Object.isFrozen(event))
      const [end] = of(events, "subagent/end") as ReadonlyArray<{ readonly failure: object; readonly usage: object }>
      assert.isTrue(Object.isFrozen(end!.failure) && Object.isFrozen(end!.usage))
      assert.strictEqual((yield* run!.result).stopReason, "error")
    })
  )

  it.effect("are not heard from before one has subscribed", () =>
    Effect.gen(function* () {
      const { value } = yield* inSeam([provider()], (seam) =>
        Effect.gen(function* () {
          yield* seam.run("p", { ...request, label: "before" })
          const heard: Array<Event> = []
          yield* seam.on((event) => Effect.sync(() => heard.push(event)))
          yield* seam.run("p", { ...request, label: "after" })
          yield* Effect.repeat(Effect.yieldNow, { times: 10 })
          return heard
        })
      )
      assert.deepStrictEqual(
        value.map((event) => "label" in event && event.label),
        ["after", "after"]
      )
    })
  )

  it.effect("come before the result is known: who has the result has been announced (5)", () =>
    Effect.gen(function* () {
      const { events, value } = yield* inSeam([provider()], (seam) =>
        Effect.gen(function* () {
          const exit = yield* Effect.exit(Effect.scoped(seam.start("p", request)))
          return Exit.isSuccess(exit)
        })
      )
      assert.isTrue(value)
      assert.deepStrictEqual(
        events.map(({ type }) => type),
        ["subagent/provider-added", "subagent/start", "subagent/end", "subagent/provider-removed"]
      )
    })
  )
})
