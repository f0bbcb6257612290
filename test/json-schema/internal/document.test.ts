import { assert, describe, it } from "@effect/vitest"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { Document } from "../../../src/json-schema/internal/document.ts"

const accepts = (document: unknown) => Exit.isSuccess(Schema.decodeUnknownExit(Document)(document))

describe("a well-formed JSON Schema", () => {
  it("may have keywords that are not known here, and keeps them", () => {
    const document = { type: "object", title: "T", "x-mine": { a: 1 } }
    assert.deepStrictEqual(Schema.decodeUnknownSync(Document)(document), document)
  })

  it("may have true and false for schemas, and several types", () => {
    assert.isTrue(accepts({ type: "object", properties: { a: true, b: false, c: { type: ["string", "null"] } } }))
  })

  it("has no empty choice, no empty list of types and no unknown type, however deep", () => {
    const inside = (schema: unknown) => ({ type: "object", properties: { a: { type: "array", items: schema } } })
    assert.isTrue(accepts(inside({ anyOf: [{ type: "string" }] })))
    for (const wrong of [{ anyOf: [] }, { type: [] }, { type: "text" }, { allOf: [{ oneOf: [] }] }, 1, null]) {
      assert.isFalse(accepts(inside(wrong)), JSON.stringify(wrong))
    }
  })
})
