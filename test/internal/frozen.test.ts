import { assert, describe, it } from "@effect/vitest"
import { frozen } from "../../src/internal/frozen.ts"

describe("frozen", () => {
  it("copies plain data all the way down, and nobody can change the copy (17)", () => {
    const given = { list: [1, { deep: ["a"] }], none: undefined, nothing: null, text: "t" }
    const copy = frozen(given)
    assert.deepStrictEqual(copy, given)
    given.list.push(2)
    ;(given.list[1] as { deep: Array<string> }).deep.push("b")
    assert.deepStrictEqual(copy, { list: [1, { deep: ["a"] }], none: undefined, nothing: null, text: "t" })
    assert.throws(() => copy.list.push(3), TypeError)
    assert.throws(() => (copy.list[1] as { deep: Array<string> }).deep.push("c"), TypeError)
    assert.throws(() => (copy.text = "mine"), TypeError)
  })

  it("takes an object without a prototype for plain data", () => {
    const bare: { text: string } = Object.assign(Object.create(null), { text: "t" })
    const copy = frozen(bare)
    bare.text = "changed"
    assert.strictEqual(copy.text, "t")
    assert.isFrozen(copy)
  })

  it("keeps what is no plain data as it is, wherever it stands", () => {
    const date = new Date(0)
    const bytes = new Uint8Array([1])
    const say = () => "hello"
    const copy = frozen({ date, list: [bytes], say })
    assert.strictEqual(copy.date, date)
    assert.strictEqual(copy.list[0], bytes)
    assert.strictEqual(copy.say, say)
    assert.isNotFrozen(date)
    for (const value of ["text", 1, true, null, undefined, say]) assert.strictEqual(frozen(value), value)
  })
})
