/**
 * What is read of a server's answers. Every server has its own idea of what may be left out or be `null`, and adds fields
 * of its own: nothing is asked for but what can't be done without.
 */
import * as Schema from "effect/Schema"

const maybe = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const Said = Schema.Struct({
  content: maybe(Schema.String),
  refusal: maybe(Schema.String),
  // how a model thinks is told under one of two names; some servers use them for something else than a text
  reasoning_content: maybe(Schema.Unknown),
  reasoning: maybe(Schema.Unknown),
  tool_calls: maybe(
    Schema.Array(
      Schema.Struct({
        index: maybe(Schema.Int),
        id: maybe(Schema.String),
        function: maybe(Schema.Struct({ name: maybe(Schema.String), arguments: maybe(Schema.Unknown) }))
      })
    )
  )
})

/** What a model says: all of it, or the next bit. */
export type Said = typeof Said.Type

const Figures = Schema.Struct({
  prompt_tokens: maybe(Schema.Int),
  completion_tokens: maybe(Schema.Int),
  prompt_tokens_details: maybe(Schema.Struct({ cached_tokens: maybe(Schema.Int) })),
  completion_tokens_details: maybe(Schema.Struct({ reasoning_tokens: maybe(Schema.Int) })),
  prompt_cache_hit_tokens: maybe(Schema.Int)
})

export type Figures = typeof Figures.Type

/** A whole answer. */
export type Completion = typeof Completion.Type
export const Completion = Schema.Struct({
  id: maybe(Schema.String),
  model: maybe(Schema.String),
  choices: Schema.NonEmptyArray(Schema.Struct({ message: Said, finish_reason: maybe(Schema.String) })),
  usage: maybe(Figures)
})

/** A bit of an answer. The last ones often have no choice in them, but the figures. */
export type Chunk = typeof Chunk.Type
export const Chunk = Schema.Struct({
  id: maybe(Schema.String),
  model: maybe(Schema.String),
  choices: maybe(Schema.Array(Schema.Struct({ delta: maybe(Said), finish_reason: maybe(Schema.String) }))),
  usage: maybe(Figures)
})
