import { assert, describe, it } from "@effect/vitest"
import { SubagentError } from "effect-subagent"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { prepare } from "../../../../src/providers/internal/acp/structured.ts"

const Person = Schema.Struct({ name: Schema.String })

const specOf = <A, I>(schema: Schema.Codec<A, I>) => ({
  schema: schema as Schema.Codec<unknown, unknown>,
  decode: (value: unknown) =>
    Effect.mapError(Schema.decodeUnknownEffect(schema)(value), (error) => [
      new SubagentError.RequestIssue({ path: [], message: error.message })
    ])
})

const read = <A, I>(schema: Schema.Codec<A, I>, text: string) =>
  Effect.flatMap(prepare(specOf(schema)), (output) => output.read(text))

describe("a structured value", () => {
  it.effect("is asked for with its JSON Schema", () =>
    Effect.gen(function* () {
      const { instruction } = yield* prepare(specOf(Person))
      assert.include(instruction, '"required":["name"]')
    })
  )

  it.effect("is found in what the agent says", () =>
    Effect.gen(function* () {
      for (const text of [
        '{"name":"Ada"}',
        ' \n{"name":"Ada"}\n',
        'Here you are:\n```json\n{"name":"Ada"}\n```\nAnything else?',
        'First I had\n```json\n{"name":"Bob"}\n```\nbut it is\n```\n{"name":"Ada"}\n```',
        'The answer is {"name":"Ada"}, as you can see.',
        // an agent without message ids, whose own warning can't be told from its answer
        'Model metadata for `m` not found. Defaulting to fallback metadata.{"name":"Ada"}'
      ]) {
        assert.deepStrictEqual(yield* read(Person, text), { _tag: "Valid", value: { name: "Ada" } }, text)
      }
    })
  )

  it.effect("is unwrapped if its schema is no object", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* read(Schema.Array(Schema.Number), '{"value":[1,2]}'), {
        _tag: "Valid",
        value: [1, 2]
      })
      assert.deepStrictEqual(yield* read(Schema.Array(Schema.Number), "[1,2]"), { _tag: "Valid", value: [1, 2] })
    })
  )

  it.effect("that is not there is asked for again", () =>
    Effect.gen(function* () {
      const submission = yield* read(Person, "I would rather not.")
      assert.isFalse("value" in submission)
      assert.include(submission._tag === "Invalid" ? submission.correction : "", "there was no JSON in it")
    })
  )

  it.effect("that does not satisfy the schema is sent back with what is wrong", () =>
    Effect.gen(function* () {
      const submission = yield* read(Person, '{"name":7}')
      assert.deepStrictEqual("value" in submission ? submission.value : undefined, { name: 7 })
      assert.include(submission._tag === "Invalid" ? submission.correction : "", "name")
    })
  )

  it.effect("that a schema's own code dies of does not satisfy it", () =>
    Effect.gen(function* () {
      const output = yield* prepare({ ...specOf(Person), decode: () => Effect.die(new Error("dead")) })
      const submission = yield* output.read("{}")
      assert.include(submission._tag === "Invalid" ? submission.correction : "", "dead")
    })
  )
})
