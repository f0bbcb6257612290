import { assert, describe, it } from "@effect/vitest"
import { SubagentError } from "effect-subagent"
import { reasonOf, signalOf, untilAborted } from "../../../src/promise/internal/aborting.ts"
import { gate } from "../../fixtures/promiseProvider.ts"
import { makeSignal, root } from "../../utils/seam.ts"

const aborted = SubagentError.fromReason(new SubagentError.AbortedBeforeStart({ provider: "p" }))

describe("the signal of a request", () => {
  it("is one that can be listened to, or none", () => {
    const { signal } = makeSignal()
    assert.strictEqual(signalOf({ prompt: "x", parent: root, signal }), signal)
    for (const request of [undefined, null, 1, {}, { signal: 1 }, { signal: null }, { signal: {} }]) {
      assert.isUndefined(signalOf(request as never))
    }
  })
})

describe("waiting for a promise", () => {
  const outcome = (promise: Promise<unknown>) =>
    promise.then(
      () => "resolved",
      (error: unknown) => error
    )

  it("ends with the promise, and leaves no listener", async () => {
    for (const settle of [Promise.resolve(1), Promise.reject(aborted)]) {
      const { listeners, signal } = makeSignal()
      const expected = await outcome(settle)
      assert.strictEqual(await outcome(untilAborted(settle, "p", signal)), expected)
      assert.strictEqual(listeners(), 0)
      assert.strictEqual(await outcome(untilAborted(settle, "p", undefined)), expected)
    }
  })

  it("ends with an abort, also one that has been before, and leaves no listener", async () => {
    const { promise, resolve } = gate<void>()
    const late = makeSignal()
    const waiting = outcome(untilAborted(promise, "p", late.signal))
    assert.strictEqual(late.listeners(), 1)
    late.abort()
    assert.deepStrictEqual(await waiting, aborted)
    assert.strictEqual(late.listeners(), 0)
    const early = makeSignal(true)
    assert.deepStrictEqual(await outcome(untilAborted(promise, "p", early.signal)), aborted)
    assert.strictEqual(early.added(), 0)
    resolve()
  })
})

describe("what a start rejects with", () => {
  it("is the caller's own reason for an abort, and else the error", () => {
    const other = new Error("x")
    assert.strictEqual(reasonOf(aborted, AbortSignal.abort(7)), 7)
    assert.strictEqual(reasonOf(aborted, makeSignal(true).signal), aborted)
    assert.strictEqual(reasonOf(aborted, undefined), aborted)
    assert.strictEqual(reasonOf(other, AbortSignal.abort(7)), other)
    const closed = SubagentError.fromReason(new SubagentError.RegistryClosed())
    assert.strictEqual(reasonOf(closed, AbortSignal.abort(7)), closed)
  })
})
