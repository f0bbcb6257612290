import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Schema from "effect/Schema"
import { bound, describeCause, describeUnknown, diagnosticBytes } from "../../src/internal/describe.ts"

const bytes = (text: string) => new TextEncoder().encode(text).length

describe("bound", () => {
  it("leaves alone what fits, to the byte", () => {
    for (const text of ["", "short", "x".repeat(4096), "é".repeat(2048), "€".repeat(1365), "😀".repeat(1024)]) {
      assert.strictEqual(bound(text), text)
    }
    assert.strictEqual(diagnosticBytes, 4096)
  })

  it("cuts what does not fit, with an ellipsis that counts", () => {
    assert.strictEqual(bound("x".repeat(4097)), `${"x".repeat(4093)}…`)
    assert.strictEqual(bound("abcdef", 5), "ab…")
  })

  it("never cuts a character in two", () => {
    assert.strictEqual(bound("a😀😀", 8), "a😀…")
    assert.strictEqual(bound("a😀😀", 7), "a…")
  })

  it.prop("holds for any text and any bound", [Schema.String, Schema.Number], ([text, n]) => {
    const most = 3 + (Number.isFinite(n) ? Math.abs(Math.trunc(n)) % 30 : 0)
    const cut = bound(text, most)
    const whole = text.replaceAll(/[\ud800-\udfff]/g, "?")
    assert.isAtMost(bytes(bound(whole, most)), most)
    assert.isTrue(cut === text || (cut.endsWith("…") && text.startsWith(cut.slice(0, -1))))
    assert.strictEqual(bound(whole, most) === whole, bytes(whole) <= most)
  })
})

describe("describeUnknown", () => {
  it("says what an error says, or what it is called", () => {
    assert.strictEqual(describeUnknown(new Error("boom")), "boom")
    assert.strictEqual(describeUnknown(new TypeError()), "TypeError")
  })

  it("prints other things", () => {
    assert.deepStrictEqual(
      [describeUnknown("text"), describeUnknown(7), describeUnknown(undefined)],
      ["text", "7", "undefined"]
    )
  })

  it("survives what can't be printed (6)", () => {
    const toString = () => {
      throw new Error("no")
    }
    const message = Object.defineProperty(new Error("x"), "message", { get: toString })
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    for (const thrown of [{ toString }, Object.create(null), message, proxy]) {
      assert.strictEqual(describeUnknown(thrown), "a value that can't be printed")
    }
  })

  it("keeps to a kilobyte", () => {
    assert.strictEqual(bytes(describeUnknown(new Error("€".repeat(1000)))), 1023)
    assert.isAtMost(bytes(describeUnknown({ toString: () => "y".repeat(5000) })), 1024)
  })

  it("survives an error whose message is no text", () => {
    assert.isString(describeUnknown(Object.assign(new Error("x"), { message: 7 })))
  })
})

describe("describeCause", () => {
  it("prefers a failure to a defect, and either to an interruption", () => {
    const fail = Cause.fail(new Error("failed"))
    const die = Cause.die(new Error("died"))
    const interrupt = Cause.interrupt(1)
    assert.strictEqual(describeCause(Cause.combine(die, fail)), "failed")
    assert.strictEqual(describeCause(Cause.combine(interrupt, die)), "died")
    assert.strictEqual(describeCause(interrupt), "it was interrupted")
  })
})
