import { assert, describe, it } from "@effect/vitest"
import { ownCopy } from "../../src/internal/ownCopy.ts"

describe("ownCopy", () => {
  it("has what is an object's own, whatever its name, and what it inherits of these names", () => {
    class Asked {
      own = 1
      get inherited() {
        return 2
      }
      get other() {
        return 3
      }
    }
    assert.deepStrictEqual<object>(ownCopy(new Asked(), ["own", "inherited", "absent"]), { own: 1, inherited: 2 })
    assert.deepStrictEqual<object>(
      ownCopy(Object.create({ inherited: 2, own: 3 }, { own: { value: 1 } }), ["inherited", "own"]),
      {
        inherited: 2,
        own: 1
      }
    )
  })

  it("reads each field once", () => {
    let reads = 0
    const copy = ownCopy(
      {
        get own() {
          return ++reads
        }
      },
      ["own"]
    )
    assert.deepStrictEqual([copy.own, copy.own, reads], [1, 1, 1])
  })

  it("is no copy of what is no object", () => {
    for (const given of [undefined, null, 5, "text"]) assert.strictEqual(ownCopy(given, ["length"]), given)
  })
})
