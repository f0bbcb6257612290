import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { Approvals } from "effect-subagent"
import { agentOf, completed, logged, type Placed, provider, root, withSeam } from "./utils/seam.ts"
import * as Scope from "effect/Scope"

const question: Approvals.ApprovalRequest = { toolCallId: "t", toolName: "rm", input: { path: "/" } }
const askOf = (decide: Approvals.Approver["decide"], timeout?: Approvals.Approver["timeout"]) =>
  Effect.provideService(Approvals.ask(question), Approvals.Approvals, { decide, timeout })

describe("Approvals.ask (19)", () => {
  it.effect("is answered at once if there is nobody", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* Approvals.ask(question), "no-approver")
    })
  )

  it.effect("is answered by the approver, who sees the whole question", () =>
    Effect.gen(function* () {
      for (const decision of ["approved", "denied"] as const) {
        const asked: Array<unknown> = []
        const outcome = yield* askOf((request) =>
          Effect.as(
            Effect.sync(() => asked.push(request)),
            decision
          )
        )
        assert.strictEqual(outcome, decision)
        assert.deepStrictEqual(asked, [question])
      }
    })
  )

  it.effect(
    "never approves for an approver that fails, dies, throws, interrupts itself or answers something else",
    () =>
      Effect.gen(function* () {
        const unprintable = {
          toString: () => {
            throw new Error("no")
          }
        }
        const broken: ReadonlyArray<Approvals.Approver["decide"]> = [
          () => Effect.fail("offline"),
          () => Effect.die(new Error("boom")),
          () => Effect.die(unprintable),
          () => Effect.interrupt,
          () => {
            throw new Error("boom")
          },
          () => undefined as never
        ]
        for (const decide of broken) {
          const [outcome, messages] = yield* logged(askOf(decide))
          assert.strictEqual(outcome, "approver-failed")
          assert.strictEqual(messages.length, 1)
          assert.match(messages[0]!, /^Warn An approver failed; the tool call is denied/)
        }
        for (const answer of ["yes", true, undefined, { approved: true }]) {
          assert.strictEqual(yield* askOf(() => Effect.succeed(answer as never)), "approver-failed")
        }
      })
  )

  it.effect("ends with the approver's timeout, by default ten minutes, and withdraws the question", () =>
    Effect.gen(function* () {
      for (const [timeout, millis] of [
        ["30 seconds", 30_000],
        [undefined, 600_000]
      ] as const) {
        let withdrawn = false
        const never = Effect.onInterrupt(Effect.never, () => Effect.sync(() => (withdrawn = true)))
        const asking = yield* Effect.forkChild(askOf(() => never, timeout))
        yield* TestClock.adjust(millis - 1)
        assert.isUndefined(asking.pollUnsafe())
        yield* TestClock.adjust(1)
        assert.strictEqual(yield* Fiber.join(asking), "timed-out")
        assert.isTrue(withdrawn)
      }
    })
  )

  it.effect("ends with the timeout also if the approver can't be interrupted", () =>
    Effect.gen(function* () {
      const asking = yield* Effect.forkChild(askOf(() => Effect.uninterruptible(Effect.never), "5 seconds"))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* Fiber.join(asking), "timed-out")
    })
  )

  it.effect("handles the rejection of an approver that is an async function", () =>
    Effect.gen(function* () {
      const rejections: Array<unknown> = []
      const listener = (reason: unknown) => rejections.push(reason)
      process.on("unhandledRejection", listener)
      const decide = (() => Promise.reject(new Error("async"))) as unknown as Approvals.Approver["decide"]
      assert.strictEqual(yield* askOf(decide), "approver-failed")
      // rejections that nobody handles are reported once the microtasks are done
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      process.off("unhandledRejection", listener)
      assert.deepStrictEqual(rejections, [])
    })
  )

  it.effect("denies if the timeout itself makes no sense", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* askOf(() => Effect.never, "soon" as never), "approver-failed")
    })
  )

  it.effect("withdraws the question if whoever asks is interrupted", () =>
    Effect.gen(function* () {
      let withdrawn = false
      const asked = yield* Deferred.make<void>()
      const never = Effect.andThen(
        Deferred.succeed(asked, undefined),
        Effect.onInterrupt(Effect.never, () => Effect.sync(() => (withdrawn = true)))
      )
      const asking = yield* Effect.forkChild(askOf(() => never))
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(asking)
      assert.isTrue(withdrawn)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(asking)))
    })
  )
})

describe("the approver of a run (19)", () => {
  /** Who answers inside the start and the turn of a run, by name. */
  const asking = provider({
    name: "asking",
    start: (placed) =>
      Effect.map(Approvals.ask({ ...question, lineage: placed.lineage }), (atStart) => ({
        turn: Effect.map(Approvals.ask({ ...question, lineage: placed.lineage }), (inTurn) => {
          placed.emit({ _tag: "Content", block: { type: "text", text: `${atStart} ${inTurn}` } })
          return completed
        })
      }))
  })
  const approver = (asked: Array<unknown> = []): Approvals.Approver => ({
    decide: (request) =>
      Effect.sync(() => {
        asked.push(request.lineage)
        return "approved"
      })
  })
  const request = { prompt: "go", parent: root }
  const textOf = (result: { readonly output: ReadonlyArray<object> }) =>
    (result.output[0] as { readonly text: string }).text

  it.effect("is its starter's, also when the starter's context is gone, and is told the lineage of who asks", () =>
    withSeam([asking], (seam) =>
      Effect.gen(function* () {
        const asked: Array<unknown> = []
        const run = yield* seam
          .start("asking", request)
          .pipe(Effect.provideService(Approvals.Approvals, approver(asked)))
        assert.strictEqual(textOf(yield* run.result), "approved approved")
        assert.deepInclude(asked[0] as object, { id: run.id, runId: run.runId, parentId: "root", depth: 1 })
        assert.strictEqual(asked.length, 2)
        assert.strictEqual(textOf(yield* seam.run("asking", request)), "no-approver no-approver")
      })
    )
  )

  it.effect("is inherited by its children, wherever they are started", () =>
    withSeam([asking], (seam, scope) =>
      Effect.gen(function* () {
        const seen = yield* Deferred.make<Placed>()
        const parent = provider({
          name: "parent",
          turn: (placed) => Effect.andThen(Deferred.succeed(seen, placed), Effect.never)
        })
        yield* Scope.provide(seam.register(parent), scope)
        yield* seam.start("parent", request).pipe(Effect.provideService(Approvals.Approvals, approver()))
        const child = { prompt: "go", parent: agentOf(yield* Deferred.await(seen)) }
        assert.strictEqual(textOf(yield* seam.run("asking", child)), "approved approved")
        const strict: Approvals.Approver = { decide: () => Effect.succeed("denied") }
        const own = seam.run("asking", child).pipe(Effect.provideService(Approvals.Approvals, strict))
        assert.strictEqual(textOf(yield* own), "denied denied")
      })
    )
  )
})
