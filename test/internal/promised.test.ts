import { assert, describe, it } from "@effect/vitest"
import { Approvals, Content, type SubagentProvider, type SubagentResult, type SubagentUpdate } from "effect-subagent"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { promised, promisedTurn } from "../../src/internal/promised.ts"
import { gate } from "../fixtures/promiseProvider.ts"

describe("an async function as an effect", () => {
  it.effect("succeeds with what it resolves to, or returns", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* promised(() => Promise.resolve(1)), 1)
      assert.strictEqual(yield* promised(() => 2), 2)
    })
  )

  it.effect("fails with what it rejects with, or throws, whatever that is", () =>
    Effect.gen(function* () {
      for (const thrown of [new Error("x"), "x", undefined, null, { x: 1 }]) {
        assert.strictEqual(yield* Effect.flip(promised(() => Promise.reject(thrown))), thrown)
        const throws = promised(() => {
          throw thrown
        })
        assert.strictEqual(yield* Effect.flip(throws), thrown)
      }
    })
  )

  it.effect("settles once, however often its thenable does", () =>
    Effect.gen(function* () {
      const twice = {
        // oxlint-disable-next-line unicorn/no-thenable -- a broken thenable is the subject
        then: (resolve: (value: number) => void, reject: (thrown: unknown) => void) => {
          resolve(1)
          reject(new Error("no"))
          resolve(2)
        }
      } as PromiseLike<number>
      assert.strictEqual(yield* promised(() => twice), 1)
    })
  )

  it.effect("aborts its signal when it is interrupted, and waits until the function has settled", () =>
    Effect.gen(function* () {
      const { promise, reject } = gate<never>()
      let signal: AbortSignal | undefined
      const running = yield* Effect.forkChild(
        promised((own) => {
          signal = own
          return promise
        }),
        { startImmediately: true }
      )
      assert.isFalse(signal!.aborted)
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(running), { startImmediately: true })
      assert.isTrue(signal!.aborted)
      assert.isUndefined(interrupting.pollUnsafe())
      reject(signal!.reason)
      yield* Fiber.join(interrupting)
    })
  )
})

/** Runs one turn and gives its outcome and its updates. */
const turn = (
  run: (
    call: SubagentProvider.PromiseCall
  ) => PromiseLike<SubagentProvider.PromiseAnswer> | SubagentProvider.PromiseAnswer
) =>
  Effect.suspend(() => {
    const updates: Array<SubagentUpdate.UnstampedUpdate> = []
    const emit = (update: SubagentUpdate.UnstampedUpdate) => updates.push(update)
    return Effect.map(
      promisedTurn({ kind: "transport", agentOptions: {}, prompt: "hello", lineage: undefined, emit, run }),
      (outcome) => ({ outcome, updates })
    )
  })

const said = (text: string): SubagentUpdate.UnstampedUpdate => ({
  _tag: "Content",
  messageId: "answer",
  block: Content.text(text)
})

describe("the turn of an async function", () => {
  it.effect("is completed, with the text that it returns as a message", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* turn(({ prompt }) => `You said ${prompt}`), {
        outcome: { stopReason: "completed" },
        updates: [said("You said hello")]
      })
    })
  )

  it.effect("does not say twice what was streamed and returned", () =>
    Effect.gen(function* () {
      const streams = ({ onText }: SubagentProvider.PromiseCall) => {
        onText("a")
        onText("b")
      }
      const streamed: ReadonlyArray<SubagentUpdate.UnstampedUpdate> = [
        { _tag: "Content", block: Content.text("a") },
        { _tag: "Content", block: Content.text("b") }
      ]
      const { updates } = yield* turn((call) => {
        streams(call)
        return "ab"
      })
      assert.deepStrictEqual(updates, streamed)
      assert.deepStrictEqual((yield* turn(streams)).updates, streamed)
    })
  )

  it.effect("may be told as an outcome with a text", () =>
    Effect.gen(function* () {
      const { outcome, updates } = yield* turn(() => ({ text: "x", usage: { total: 1 }, structured: { a: 1 } }))
      assert.deepStrictEqual(outcome, { stopReason: "completed", usage: { total: 1 }, structured: { a: 1 } })
      assert.deepStrictEqual(updates, [said("x")])
      const failure = { kind: "limit", retryable: false }
      assert.deepStrictEqual((yield* turn(() => ({ failure }))).outcome, { stopReason: "error", failure })
      const refused = yield* turn(() => ({ stopReason: "refusal", failure }))
      assert.deepStrictEqual(refused, { outcome: { stopReason: "refusal", failure }, updates: [] })
    })
  )

  it.effect("leaves what is no answer to the seam", () =>
    Effect.gen(function* () {
      const { outcome } = yield* turn(() => 7 as never)
      assert.strictEqual<unknown>(outcome, 7)
    })
  )

  const failures: ReadonlyArray<readonly [thrown: unknown, failure: Omit<SubagentResult.SubagentFailure, "kind">]> = [
    [new Error("broken"), { retryable: false, message: "broken" }],
    ["just text", { retryable: false, message: "just text" }],
    [undefined, { retryable: false, message: "undefined" }],
    [Object.assign(new Error("slow down"), { status: 429 }), { retryable: true, status: 429, message: "slow down" }],
    [Object.assign(new Error("who?"), { statusCode: 401 }), { retryable: false, status: 401, message: "who?" }],
    [Object.assign(new Error("late"), { status: 408 }), { retryable: true, status: 408, message: "late" }],
    [Object.assign(new Error("down"), { status: 503 }), { retryable: true, status: 503, message: "down" }],
    [
      Object.assign(new Error("never"), { status: 503, isRetryable: false }),
      { retryable: false, status: 503, message: "never" }
    ],
    [Object.assign(new Error("odd"), { status: "503" }), { retryable: false, message: "odd" }],
    [
      new Proxy(new Error("x"), {
        get: () => {
          throw new Error("no")
        }
      }),
      { retryable: false, message: "a value that can't be printed" }
    ]
  ]
  for (const [thrown, failure] of failures) {
    it.effect(`tells as data what it threw: ${failure.message}, status ${failure.status} (8)`, () =>
      Effect.gen(function* () {
        const { outcome } = yield* turn(() => Promise.reject(thrown))
        assert.deepStrictEqual(outcome, { stopReason: "error", failure: { kind: "transport", ...failure } })
      })
    )
  }

  const asks = ({ ask }: SubagentProvider.PromiseCall) => ask({ toolCallId: "1", toolName: "rm", input: { all: true } })
  const permission = (outcome?: SubagentUpdate.Permission["outcome"]): SubagentUpdate.UnstampedUpdate => ({
    _tag: "Permission",
    toolCallId: "1",
    ...(outcome && { outcome })
  })

  it.effect("asks whoever there is for an approval, and nobody if there is nobody (19)", () =>
    Effect.gen(function* () {
      const asked: Array<Approvals.ApprovalRequest> = []
      const decide = (request: Approvals.ApprovalRequest) =>
        Effect.sync(() => {
          asked.push(request)
          return "approved" as const
        })
      const alone = yield* turn(asks)
      assert.deepStrictEqual(alone.updates, [permission(), permission("no-approver"), said("no-approver")])
      const { updates } = yield* Effect.provideService(turn(asks), Approvals.Approvals, { decide })
      assert.deepStrictEqual(updates, [permission(), permission("approved"), said("approved")])
      assert.deepStrictEqual(asked, [{ toolCallId: "1", toolName: "rm", input: { all: true } }])
    })
  )

  it.effect("withdraws its question when it is interrupted, and when nobody waits for the answer (19)", () =>
    Effect.gen(function* () {
      for (const waits of [true, false]) {
        const isAsked = yield* Deferred.make<void>()
        const updates: Array<SubagentUpdate.UnstampedUpdate> = []
        const decide = () => Effect.andThen(Deferred.succeed(isAsked, undefined), Effect.never)
        const running = yield* promisedTurn({
          kind: "model",
          agentOptions: {},
          prompt: "",
          lineage: undefined,
          emit: (update) => updates.push(update),
          run: (call) => {
            const asking = asks(call)
            return waits ? asking : undefined
          }
        }).pipe(Effect.provideService(Approvals.Approvals, { decide }), Effect.forkChild({ startImmediately: true }))
        yield* Deferred.await(isAsked)
        if (waits) yield* Fiber.interrupt(running)
        const exit = yield* Fiber.await(running)
        assert.strictEqual(Exit.hasInterrupts(exit), waits)
        assert.deepStrictEqual(updates, [permission(), permission("withdrawn")])
      }
    })
  )
})
