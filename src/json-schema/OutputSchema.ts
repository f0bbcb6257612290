/**
 * Between JSON Schema and the schemas of `outputSchema`.
 *
 * A host that has a JSON Schema makes an output schema of it with `fromJsonSchema`; whoever shows an output schema to a
 * model gets its JSON Schema with `toJsonSchema`. Kept off the core, which needs neither, since the conversions are
 * most of a bundle's size.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as JsonSchema from "effect/JsonSchema"
import * as Schema from "effect/Schema"
import * as SchemaParser from "effect/SchemaParser"
import * as SchemaRepresentation from "effect/SchemaRepresentation"
import { describeUnknown } from "../internal/describe.ts"
import { issueAt, issuesOf } from "../internal/issues.ts"
import type { RequestIssue } from "../SubagentError.ts"
import { fromReason, InvalidRequest, type SubagentError } from "../SubagentError.ts"
import type { SchemaSpec } from "../SubagentRequest.ts"
import { Document } from "./internal/document.ts"

/**
 * How a JSON Schema is read.
 *
 * @category options
 * @since 0.1.0
 */
export interface FromJsonSchemaOptions {
  /**
   * What to do with `pattern` and `patternProperties`. A regular expression of a stranger's may block the process, so
   * they are refused unless the host says that it trusts the schema.
   *
   * @default "refuse"
   */
  readonly patterns?: "refuse" | "apply" | undefined
}

/** The JSON Schemas that output schemas were made of. */
const documents = new WeakMap<SchemaSpec, JsonSchema.JsonSchema>()

const invalid = (issues: ReadonlyArray<RequestIssue>): Effect.Effect<never, SubagentError> =>
  Effect.fail(fromReason(new InvalidRequest({ issues })))

const decodeDocument = Schema.decodeUnknownEffect(Document, { errors: "all" })

/**
 * An output schema of a JSON Schema (draft 2020-12, or draft-07 if its `$schema` says so) whose root is an object. Its
 * values are `unknown`. Fails with `InvalidRequest` for what is malformed, and for what could not be enforced, such as
 * `not`, `if` or a remote `$ref`: no constraint is left out in silence. `format` is a note to the model, as JSON Schema
 * has it, and keywords that nobody knows are kept and mean nothing.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromJsonSchema = (
  document: unknown,
  options: FromJsonSchemaOptions = {}
): Effect.Effect<Schema.Codec<unknown>, SubagentError> =>
  Effect.gen(function* () {
    // a copy, so that a later change of the host's object changes nothing here
    const copy = yield* Effect.catch(
      Effect.try({ try: () => JSON.parse(JSON.stringify(document)) as unknown, catch: describeUnknown }),
      (message) => invalid([issueAt(["outputSchema"], `Not JSON: ${message}`)])
    )
    const checked = yield* Effect.catch(decodeDocument(copy), (error) => invalid(issuesOf(error, ["outputSchema"])))
    const inner = yield* Effect.catch(
      Effect.try({
        try: () =>
          SchemaRepresentation.fromJsonSchemaDocument(
            isDraft07(checked) ? JsonSchema.fromSchemaDraft07(checked) : JsonSchema.fromSchemaDraft2020_12(checked),
            { patterns: options.patterns === "apply" ? "apply" : "error" }
          ),
        catch: describeUnknown
      }),
      (message) => invalid([issueAt(["outputSchema"], message)])
    )
    const schema = closed(inner)
    documents.set(schema, checked)
    return schema
  })

const isDraft07 = (document: JsonSchema.JsonSchema): boolean =>
  typeof document["$schema"] === "string" && document["$schema"].includes("draft-07")

/** `additionalProperties: false` holds only where excess properties are errors, whatever the decoder's own options. */
const closed = (inner: Schema.Top): Schema.Codec<unknown> => {
  // what the importer makes needs no services
  const decode = SchemaParser.decodeUnknownEffect(inner as Schema.Codec<unknown>)
  return Schema.declareConstructor<unknown>()(
    [],
    () => (value, _ast, options) => decode(value, { ...options, onExcessProperty: "error" }),
    { toCodecJson: () => undefined }
  )
}

/**
 * The JSON Schema (draft 2020-12) of what a child is to submit for an output schema. Its root is an object, or the
 * schema is wrapped in one that has it as its property `value`: model APIs take nothing else for a tool's arguments.
 *
 * @category combinators
 * @since 0.1.0
 */
export const toJsonSchema = (
  schema: SchemaSpec
): Effect.Effect<{ readonly schema: JsonSchema.JsonSchema; readonly isWrapped: boolean }, SubagentError> => {
  const known = documents.get(schema)
  if (known !== undefined) return Effect.succeed({ schema: known, isWrapped: false })
  return Effect.matchEffect(Effect.try({ try: () => Schema.toJsonSchemaDocument(schema), catch: describeUnknown }), {
    onFailure: (message) => invalid([issueAt(["outputSchema"], `It has no JSON Schema: ${message}`)]),
    onSuccess: (document) => Effect.succeed(objectRooted(document))
  })
}

const objectRooted = ({ definitions, schema }: JsonSchema.Document<"draft-2020-12">) => {
  const $defs = Object.keys(definitions).length > 0 ? { $defs: definitions } : undefined
  const root = dereferenced(schema, definitions)
  return root["type"] === "object"
    ? { schema: { ...root, ...$defs }, isWrapped: false }
    : {
        schema: {
          type: "object",
          properties: { value: schema },
          required: ["value"],
          additionalProperties: false,
          ...$defs
        },
        isWrapped: true
      }
}

/** A named schema's root is a reference to it. */
const dereferenced = (schema: JsonSchema.JsonSchema, definitions: JsonSchema.Definitions): JsonSchema.JsonSchema => {
  const name = typeof schema["$ref"] === "string" ? schema["$ref"].replace("#/$defs/", "") : undefined
  return (name !== undefined && definitions[name]) || schema
}
