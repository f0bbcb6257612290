import { assert, describe, it } from "@effect/vitest"
import type { SubagentError } from "effect-subagent"
import { OutputSchema } from "effect-subagent/json-schema"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const Person = {
  type: "object",
  properties: { name: { type: "string", minLength: 1 }, age: { type: "integer", minimum: 0 } },
  required: ["name"],
  additionalProperties: false
}

/** Decodes as the seam does: from the JSON form. */
const decode = (schema: Schema.Codec<unknown, unknown>, value: unknown) =>
  Schema.decodeUnknownEffect(Schema.toCodecJson(schema), { errors: "all" })(value)

const issuesOf = (document: unknown, options?: OutputSchema.FromJsonSchemaOptions) =>
  Effect.map(Effect.flip(OutputSchema.fromJsonSchema(document, options)), ({ reason }) => {
    assert.strictEqual(reason._tag, "InvalidRequest")
    return (reason as SubagentError.InvalidRequest).issues.map(String)
  })

describe("fromJsonSchema", () => {
  it.effect("makes a schema that takes what the document takes", () =>
    Effect.gen(function* () {
      const schema = yield* OutputSchema.fromJsonSchema(Person)
      assert.deepStrictEqual(yield* decode(schema, { name: "Ada", age: 36 }), { name: "Ada", age: 36 })
    })
  )

  it.effect("refuses what the document refuses, each with its path, excess properties too", () =>
    Effect.gen(function* () {
      const schema = yield* OutputSchema.fromJsonSchema(Person)
      const error = yield* Effect.flip(decode(schema, { name: "", age: 1.5, extra: true }))
      for (const path of ["name", "age", "extra"]) assert.include(error.message, `["${path}"]`)
    })
  )

  it.effect("keeps the properties that an open object says nothing of", () =>
    Effect.gen(function* () {
      const schema = yield* OutputSchema.fromJsonSchema({ type: "object", properties: { a: { type: "string" } } })
      assert.deepStrictEqual(yield* decode(schema, { a: "x", b: [1] }), { a: "x", b: [1] })
    })
  )

  it.effect("follows local references, recursive ones too", () =>
    Effect.gen(function* () {
      const schema = yield* OutputSchema.fromJsonSchema({
        type: "object",
        properties: { tree: { $ref: "#/$defs/Node" } },
        $defs: {
          Node: {
            type: "object",
            properties: { v: { type: "number" }, next: { $ref: "#/$defs/Node" } },
            required: ["v"]
          }
        }
      })
      yield* decode(schema, { tree: { v: 1, next: { v: 2 } } })
      const error = yield* Effect.flip(decode(schema, { tree: { v: 1, next: { v: "two" } } }))
      assert.include(error.message, '["tree"]["next"]["v"]')
    })
  )

  it.effect("reads draft-07 where the document says that it is one", () =>
    Effect.gen(function* () {
      const schema = yield* OutputSchema.fromJsonSchema({
        $schema: "http://json-schema.org/draft-07/schema#",
        type: "object",
        properties: {
          pair: { type: "array", items: [{ type: "string" }, { type: "number" }] },
          n: { $ref: "#/definitions/N" }
        },
        definitions: { N: { type: "number" } }
      })
      yield* decode(schema, { pair: ["a", 1], n: 1 })
      yield* Effect.flip(decode(schema, { pair: [1, "a"] }))
      yield* Effect.flip(decode(schema, { n: "one" }))
    })
  )

  it.effect("is not changed by what its host does to the document later", () =>
    Effect.gen(function* () {
      const document = structuredClone(Person)
      const schema = yield* OutputSchema.fromJsonSchema(document)
      document.required.push("age")
      yield* decode(schema, { name: "Ada" })
      assert.deepStrictEqual((yield* OutputSchema.toJsonSchema(schema)).schema, Person)
    })
  )

  const malformed: ReadonlyArray<readonly [string, unknown, string]> = [
    ["something that is no object", "text", "outputSchema"],
    ["nothing", undefined, "outputSchema: Not JSON"],
    ["a bigint", { type: "object", const: 1n }, "outputSchema: Not JSON"],
    ["a root that is no object", { type: "array" }, "outputSchema.type"],
    ["a root without a type", {}, "outputSchema.type"],
    ["a misspelt type", { type: "object", properties: { a: { type: "strin" } } }, "outputSchema.properties.a"],
    ["properties that are none", { type: "object", properties: "x" }, "outputSchema.properties"],
    ["required that is no list", { type: "object", required: "a" }, "outputSchema.required"],
    ["a negative length", { type: "object", properties: { a: { minLength: -1 } } }, "outputSchema.properties.a"]
  ]
  for (const [what, document, path] of malformed) {
    it.effect(`refuses ${what}, with its path`, () =>
      Effect.gen(function* () {
        const issues = yield* issuesOf(document)
        assert.isTrue(
          issues.some((issue) => issue.startsWith(path)),
          issues.join("\n")
        )
      })
    )
  }

  const unsupported: ReadonlyArray<readonly [string, object]> = [
    ["not", { not: { required: ["a"] } }],
    ["if", { if: { required: ["a"] }, else: { required: ["b"] } }],
    ["dependentRequired", { dependentRequired: { a: ["b"] } }],
    ["unevaluatedProperties", { unevaluatedProperties: false }],
    ["contains", { properties: { a: { type: "array", contains: { const: 1 } } } }],
    ["$ref", { properties: { a: { $ref: "https://example.com/schema.json" } } }],
    ["missing", { properties: { a: { $ref: "#/$defs/missing" } } }]
  ]
  for (const [keyword, keywords] of unsupported) {
    it.effect(`refuses what can't be enforced rather than leave it out: ${keyword}`, () =>
      Effect.gen(function* () {
        const issues = yield* issuesOf({ type: "object", ...keywords })
        assert.include(issues.join("\n"), keyword)
      })
    )
  }

  it.effect("refuses patterns unless the host trusts the document", () =>
    Effect.gen(function* () {
      const document = { type: "object", properties: { code: { type: "string", pattern: "^[A-Z]+$" } } }
      assert.include((yield* issuesOf(document)).join(), "attern")
      const schema = yield* OutputSchema.fromJsonSchema(document, { patterns: "apply" })
      yield* decode(schema, { code: "ABC" })
      yield* Effect.flip(decode(schema, { code: "abc" }))
    })
  )
})

describe("toJsonSchema", () => {
  it.effect("gives back the document that a schema was made of", () =>
    Effect.gen(function* () {
      const schema = yield* OutputSchema.fromJsonSchema(Person)
      assert.deepStrictEqual(yield* OutputSchema.toJsonSchema(schema), { schema: Person, isWrapped: false })
    })
  )

  it.effect("describes the JSON form of a schema whose values are none: what is decoded is what was described", () =>
    Effect.gen(function* () {
      const Dated = Schema.Struct({ when: Schema.Date, count: Schema.FiniteFromString })
      const { isWrapped, schema } = yield* OutputSchema.toJsonSchema(Dated)
      assert.isFalse(isWrapped)
      assert.deepInclude(schema, {
        type: "object",
        properties: { when: { type: "string" }, count: { type: "string" } }
      })
      const decoded = yield* decode(Dated, { when: "2020-01-02T00:00:00.000Z", count: "3" })
      assert.deepStrictEqual(decoded, { when: new Date("2020-01-02T00:00:00.000Z"), count: 3 })
    })
  )

  it.effect("puts a root that is a reference in its place", () =>
    Effect.gen(function* () {
      interface Node {
        readonly v: number
        readonly next?: Node
      }
      const Node: Schema.Codec<Node> = Schema.Struct({
        v: Schema.Finite,
        next: Schema.optionalKey(Schema.suspend((): Schema.Codec<Node> => Node))
      }).annotate({ identifier: "Node" })
      const { isWrapped, schema } = yield* OutputSchema.toJsonSchema(Node)
      assert.isFalse(isWrapped)
      assert.strictEqual(schema["type"], "object")
      assert.deepStrictEqual(Object.keys(schema["$defs"] as object), ["Node"])
    })
  )

  it.effect("wraps a root that is no object", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* OutputSchema.toJsonSchema(Schema.Array(Schema.String)), {
        isWrapped: true,
        schema: {
          type: "object",
          properties: { value: { type: "array", items: { type: "string" } } },
          required: ["value"],
          additionalProperties: false
        }
      })
    })
  )

  it.effect("refuses a schema that has no JSON Schema", () =>
    Effect.gen(function* () {
      const dies = Schema.suspend((): Schema.Codec<unknown> => {
        throw new Error("not yet")
      })
      const error = yield* Effect.flip(OutputSchema.toJsonSchema(dies))
      assert.strictEqual(error.code, "INVALID_REQUEST")
      assert.include(error.message, "not yet")
    })
  )
})
