/**
 * What a model is told of a run that is over.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { ContentBlock } from "../../Content.ts"
import { text as textBlock } from "../../Content.ts"
import { bound, describeCause } from "../../internal/describe.ts"
import type { SubagentError } from "../../SubagentError.ts"
import type { AbortCause, SubagentFailure, SubagentResult } from "../../SubagentResult.ts"
import type { Options } from "../SubagentTool.ts"

const causes: { readonly [K in AbortCause["_tag"]]: string } = {
  Caller: "it was cancelled",
  Signal: "the call was aborted",
  Release: "its run was released",
  Interrupt: "the call was interrupted",
  Parent: "its parent was stopped",
  Child: "it was stopped on its own side"
}

const headline = ({ cause, failure, stopReason }: SubagentResult): string => {
  switch (stopReason) {
    case "aborted":
      return `The subagent was stopped before it was done (aborted${cause ? `: ${causes[cause._tag]}` : ""}).`
    case "error":
      return failure?.kind === "limit" || failure?.kind === "timeout" ? cutAt(failure) : "The subagent failed (error)."
    case "max-tokens":
      return "The subagent was cut short by its model's output limit (max-tokens)."
    case "refusal":
      return "The subagent declined the task (refusal)."
    default:
      return `The subagent did not complete: it stopped for a reason not known here (${stopReason}).`
  }
}

/** It was not its fault: it may well do the rest if it is asked for less, or for what is missing. */
const cutAt = ({ kind, limit, name = kind, used }: SubagentFailure): string => {
  const unit = kind === "timeout" ? " ms" : ""
  const figures = limit === undefined ? "" : ` ${limit}${unit}${used === undefined ? "" : `, ${used}${unit} used`}`
  return `The subagent was stopped at its limit (error): ${name}${figures}.`
}

/** A block as text: other kinds than text are named, since a text result can't carry them. */
const show = (block: ContentBlock): string => {
  switch (block.type) {
    case "text":
      return block.text
    case "image":
    case "audio":
      return `[${block.type}: ${block.mimeType}]`
    case "resource_link":
      return `[resource: ${block.name} ${block.uri}]`
    case "resource":
      return "text" in block.resource ? block.resource.text : `[resource: ${block.resource.uri}]`
  }
}

const textOf = (blocks: ReadonlyArray<ContentBlock>): string => blocks.map(show).join("")

/** What the model is told instead of a result. */
export const explain = (error: SubagentError): string => `The subagent could not be run: ${error.message}`

/** An answer: in blocks, for a host that carries them, and as a text that names what a text can't carry. */
export interface Answer {
  /** Anything but a completed run: never partial output as success. */
  readonly isError: boolean
  readonly content: ReadonlyArray<ContentBlock>
  readonly text: string
}

/** An answer that is a text alone. */
export const errorAnswer = (text: string): Answer => ({ isError: true, content: [textBlock(text)], text })

/** A text of at most so many bytes, and if it had more, a notice that says so. */
const capped = (text: string, bytes: number): string => {
  const kept = bound(text, bytes)
  return kept === text ? text : `${kept}\n\n[This answer was longer than ${bytes} bytes; the rest was cut off.]`
}

/** What a call answers for a result: the output of a completed run, else how it ended and what there is of it. */
export const answerOf = (result: SubagentResult, maxBytes: number = 65_536): Answer => {
  const isError = result.stopReason !== "completed"
  const said = textOf(result.output)
  const text = capped(isError ? account(result, said) : said, maxBytes)
  const content =
    text === said ? result.output : [textBlock(text), ...result.output.filter((block) => block.type !== "text")]
  return { isError, content, text }
}

/** What a call answers for a result of its binding: the value that was asked for, as the JSON it stands for. */
export const answerFor = (
  { maxResultBytes, outputSchema }: Pick<Options, "maxResultBytes" | "outputSchema">,
  result: SubagentResult
): Effect.Effect<Answer> =>
  outputSchema === undefined || result.stopReason !== "completed"
    ? Effect.succeed(answerOf(result, maxResultBytes))
    : Effect.matchCause(Schema.encodeUnknownEffect(Schema.toCodecJson(outputSchema))(result.structured), {
        onFailure: (cause) => errorAnswer(`The subagent's value can't be written as JSON: ${describeCause(cause)}`),
        onSuccess: (json) => answerOf({ ...result, output: [textBlock(JSON.stringify(json))] }, maxResultBytes)
      })

/** How a run ended that did not complete. */
const account = (result: SubagentResult, output: string): string => {
  const { diagnostic, failure } = result
  return [
    headline(result),
    failure && `${failure.kind}${failure.message === undefined ? "" : `: ${failure.message}`}`,
    diagnostic,
    output !== "" && `Partial output, not a finished answer:\n${output}`
  ]
    .filter((part): part is string => typeof part === "string")
    .join("\n\n")
}
