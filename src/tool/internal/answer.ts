/**
 * What a model is told of a run that is over.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { ContentBlock } from "../../Content.ts"
import type { AbortCause, SubagentResult } from "../../SubagentResult.ts"

const causes: { readonly [K in AbortCause["_tag"]]: string } = {
  Caller: "it was cancelled",
  Signal: "the call was aborted",
  Release: "its run was released",
  Interrupt: "the call was interrupted",
  Parent: "its parent was stopped",
  Child: "it was stopped on its own side"
}

const headline = ({ cause, stopReason }: SubagentResult): string => {
  switch (stopReason) {
    case "aborted":
      return `The subagent was stopped before it was done (aborted${cause ? `: ${causes[cause._tag]}` : ""}).`
    case "error":
      return "The subagent failed (error)."
    case "max-tokens":
      return "The subagent was cut short by its model's output limit (max-tokens)."
    case "refusal":
      return "The subagent declined the task (refusal)."
    default:
      return `The subagent did not complete: it stopped for a reason not known here (${stopReason}).`
  }
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

/** The output of a completed run. Anything else fails with what to tell the model: never partial output as success. */
export const answerOf = (result: SubagentResult): Effect.Effect<string, string> => {
  const output = textOf(result.output)
  if (result.stopReason === "completed") return Effect.succeed(output)
  const { diagnostic, failure } = result
  return Effect.fail(
    [
      headline(result),
      failure && `${failure.kind}${failure.message === undefined ? "" : `: ${failure.message}`}`,
      diagnostic,
      output !== "" && `Partial output, not a finished answer:\n${output}`
    ]
      .filter((part): part is string => typeof part === "string")
      .join("\n\n")
  )
}
