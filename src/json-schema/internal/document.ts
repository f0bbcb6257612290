/**
 * What makes a JSON Schema well formed, as far as its keywords are read. The importer takes this for granted: without
 * it a misspelt `type` would let everything through.
 *
 * @since 0.1.0
 */
import type * as JsonSchema from "effect/JsonSchema"
import * as Schema from "effect/Schema"

const TypeName = Schema.Literals(["object", "array", "string", "number", "integer", "boolean", "null"])
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Node: Schema.Codec<unknown> = Schema.suspend(() => Schema.Union([Schema.Boolean, Keywords]))
const Nodes = Schema.Record(Schema.String, Node)
const Branches = Schema.NonEmptyArray(Node)
const optional = Schema.optionalKey

const fields = {
  $schema: optional(Schema.String),
  $ref: optional(Schema.String),
  $defs: optional(Nodes),
  definitions: optional(Nodes),
  enum: optional(Schema.NonEmptyArray(Schema.Unknown)),
  properties: optional(Nodes),
  patternProperties: optional(Nodes),
  additionalProperties: optional(Node),
  propertyNames: optional(Node),
  required: optional(Schema.Array(Schema.String)),
  minProperties: optional(Count),
  maxProperties: optional(Count),
  items: optional(Schema.Union([Node, Schema.Array(Node)])),
  prefixItems: optional(Schema.Array(Node)),
  minItems: optional(Count),
  maxItems: optional(Count),
  uniqueItems: optional(Schema.Boolean),
  minLength: optional(Count),
  maxLength: optional(Count),
  pattern: optional(Schema.String),
  format: optional(Schema.String),
  minimum: optional(Schema.Finite),
  maximum: optional(Schema.Finite),
  exclusiveMinimum: optional(Schema.Finite),
  exclusiveMaximum: optional(Schema.Finite),
  multipleOf: optional(Schema.Finite.check(Schema.isGreaterThan(0))),
  allOf: optional(Branches),
  anyOf: optional(Branches),
  oneOf: optional(Branches)
}

const rest = [Schema.Record(Schema.String, Schema.Unknown)] as const

const Keywords = Schema.StructWithRest(
  Schema.Struct({ type: optional(Schema.Union([TypeName, Schema.NonEmptyArray(TypeName)])), ...fields }),
  rest
)

/** A whole schema, whose root is an object. Keywords it does not know are kept. */
export const Document: Schema.Codec<JsonSchema.JsonSchema> = Schema.StructWithRest(
  Schema.Struct({ type: Schema.Literal("object"), ...fields }),
  rest
)
