import { assert, describe, it } from "@effect/vitest"
import { onAbort } from "../../src/internal/abortSignal.ts"
import { makeSignal } from "../utils/seam.ts"

describe("onAbort", () => {
  it("puts one listener on a signal however many wait for it, and takes it off with the last of them", () => {
    const { added, listeners, signal } = makeSignal()
    const undo = Array.from({ length: 10_000 }, () => onAbort(signal, () => assert.fail("called")))
    assert.deepStrictEqual([added(), listeners()], [1, 1])
    for (const each of undo.slice(1)) each()
    assert.deepStrictEqual([added(), listeners()], [1, 1])
    undo[0]!()
    assert.deepStrictEqual([added(), listeners()], [1, 0])
  })

  it("calls everybody once, in the order in which they came, and lets go of the signal", () => {
    const { abort, listeners, signal } = makeSignal()
    const called: Array<string> = []
    onAbort(signal, () => called.push(`a, listeners ${listeners()}`))
    const undo = onAbort(signal, () => called.push("b"))
    abort()
    abort()
    undo()
    assert.deepStrictEqual(called, ["a, listeners 0", "b"])
    assert.strictEqual(listeners(), 0)
  })

  it("does not call whoever has left, and leaving twice is leaving once", () => {
    const { abort, listeners, signal } = makeSignal()
    const called: Array<string> = []
    const same = () => called.push("same")
    const undo = onAbort(signal, same)
    onAbort(signal, same)
    undo()
    undo()
    assert.strictEqual(listeners(), 1)
    abort()
    assert.deepStrictEqual(called, ["same"])
  })

  it("takes a signal of the platform", () => {
    const controller = new AbortController()
    let calls = 0
    onAbort(controller.signal, () => calls++)
    controller.abort()
    assert.strictEqual(calls, 1)
  })

  it("starts afresh with a signal that everybody has left", () => {
    const { abort, added, signal } = makeSignal()
    onAbort(signal, () => assert.fail("called"))()
    let calls = 0
    onAbort(signal, () => calls++)
    abort()
    assert.deepStrictEqual([calls, added()], [1, 2])
  })

  it("keeps nothing of a signal that would not take a listener", () => {
    const { abort, signal } = makeSignal()
    const broken = {
      ...signal,
      addEventListener: (_type: "abort", _listener: () => void): void => {
        throw new Error("no")
      }
    }
    assert.throws(() => onAbort(broken, () => assert.fail("called")), "no")
    broken.addEventListener = signal.addEventListener
    let calls = 0
    onAbort(broken, () => calls++)
    abort()
    assert.strictEqual(calls, 1)
  })

  it("survives a signal that does not let go of its listener", () => {
    const { abort, signal } = makeSignal()
    const clinging = {
      ...signal,
      removeEventListener: (): void => {
        throw new Error("no")
      }
    }
    let calls = 0
    onAbort(clinging, () => calls++)()
    onAbort(clinging, () => calls++)
    abort()
    abort()
    assert.strictEqual(calls, 1)
  })
})
