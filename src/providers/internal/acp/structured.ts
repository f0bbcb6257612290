/**
 * A structured value from an agent that can only be asked for one in words.
 *
 * The agent is shown the JSON Schema and told to end with the value. What it says last is searched for it, and what does
 * not satisfy the schema is sent back with what is wrong, a few times at most.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { describeCause } from "../../../internal/describe.ts"
import { toJsonSchema } from "../../../json-schema/OutputSchema.ts"
import type { RequestIssue, SubagentError } from "../../../SubagentError.ts"
import type { OutputSpec } from "../../../SubagentProvider.ts"

/** How often an agent may correct itself. */
export const maxRepairs = 2

/** What an agent's last message came to. */
export type Submission =
  | { readonly _tag: "Valid"; readonly value: unknown }
  /** `value` is there if there was a value at all; `correction` is what to tell the agent. */
  | { readonly _tag: "Invalid"; readonly value?: unknown; readonly correction: string }

/** A structured output, ready to be asked for. */
export interface StructuredOutput {
  /** Added to the prompt. */
  readonly instruction: string
  readonly read: (text: string) => Effect.Effect<Submission>
}

/** Prepares one. Fails if the schema can't be shown as JSON Schema. */
export const prepare = (output: OutputSpec): Effect.Effect<StructuredOutput, SubagentError> =>
  Effect.map(toJsonSchema(output.schema), ({ isWrapped, schema }) => ({
    instruction: [
      "When you are done, end with a message that has nothing in it but one JSON value that satisfies this JSON Schema:",
      JSON.stringify(schema)
    ].join("\n"),
    read: (text) => read(output, isWrapped, text)
  }))

const read = (output: OutputSpec, isWrapped: boolean, text: string): Effect.Effect<Submission> =>
  Effect.gen(function* () {
    let first: Submission = { _tag: "Invalid", correction: correction("there was no JSON in it") }
    for (const [index, found] of candidates(text).entries()) {
      const value = isWrapped && Predicate.isObject(found) ? found["value"] : found
      const submission = yield* Effect.matchCause(output.decode(value), {
        onSuccess: (): Submission => ({ _tag: "Valid", value }),
        onFailure: (cause): Submission => ({ _tag: "Invalid", value, correction: correction(problemsOf(cause)) })
      })
      if (submission._tag === "Valid") return submission
      if (index === 0) first = submission
    }
    return first
  })

/** A schema's own code may die of a value. */
const problemsOf = (cause: Cause.Cause<ReadonlyArray<RequestIssue>>): string =>
  cause.reasons.find(Cause.isFailReason)?.error.join("; ") ?? describeCause(cause)

const correction = (problem: string): string =>
  `Your last message was to be one JSON value that satisfies the JSON Schema above, and is not: ${problem}.\n` +
  "Answer with the corrected JSON value and nothing else."

/** The JSON values in a text: the text itself, its code blocks from the last to the first, what is within braces. */
const candidates = (text: string): ReadonlyArray<unknown> => {
  const blocks = Array.from(text.matchAll(/```[^\n]*\n([\s\S]*?)```/g), ([, block]) => block!)
  const [braces] = /[{[][\s\S]*[}\]]/.exec(text) ?? []
  return [text, ...blocks.toReversed(), ...(braces === undefined ? [] : [braces])].flatMap((each) => {
    const parsed = Result.try(() => JSON.parse(each) as unknown)
    return Result.isSuccess(parsed) ? [parsed.success] : []
  })
}
