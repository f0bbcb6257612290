/**
 * How an agent ends with a value: it submits one through a tool that is made for the purpose.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { describeCause } from "../../internal/describe.ts"
import { issueAt, issuesOf } from "../../internal/issues.ts"
import { toJsonSchema } from "../../json-schema/OutputSchema.ts"
import type { RequestIssue, SubagentError } from "../../SubagentError.ts"
import type { ChildOutcome, OutputSpec } from "../../SubagentProvider.ts"
import type { SchemaSpec } from "../../SubagentRequest.ts"
import type { SubagentFailure } from "../../SubagentResult.ts"
import { jsonCopy } from "./jsonCopy.ts"
import type { ToolCall } from "./reply.ts"
import type { BoundToolkit, ToolResult } from "./tools.ts"
import { failedResult } from "./tools.ts"

/** A toolkit with the tool in it through which a value of one schema is submitted. */
export interface SubmitTool {
  readonly name: string
  readonly kit: BoundToolkit
  /** Whether the value is submitted as the property `value` of the arguments. */
  readonly isWrapped: boolean
}

/**
 * The submit tools of a toolkit, one per schema: a model keeps its decoder for as long as it is given the same tools.
 * Fails with `InvalidRequest` for a schema that can't be shown to a model.
 */
export const submitTools = (kit: BoundToolkit): ((schema: SchemaSpec) => Effect.Effect<SubmitTool, SubagentError>) => {
  const made = new WeakMap<SchemaSpec, SubmitTool>()
  let name = "submit_result"
  while (Object.hasOwn(kit.tools, name)) name += "_"
  return (schema) => {
    const known = made.get(schema)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.map(toJsonSchema(schema), ({ isWrapped, schema: parameters }) => {
      const tool = Tool.dynamic(name, { description, parameters, success: Schema.String, failure: Schema.String })
      const submit: SubmitTool = { name, isWrapped, kit: { ...kit, tools: { ...kit.tools, [name]: tool } } }
      made.set(schema, submit)
      return submit
    })
  }
}

const description =
  "Submits the result of your task and ends it. Call it once, alone, when everything else is done. " +
  "A value that does not fit is refused with the reasons, and can be submitted again."

const accepted = ({ id, name }: ToolCall): ToolResult =>
  Prompt.makePart("tool-result", { id, name, isFailure: false, result: "Accepted.", providerExecuted: false })

/** The values that an agent submits in one turn. */
export class Submission {
  private readonly tool: SubmitTool
  private readonly output: OutputSpec
  private readonly repairs: number
  /** Of several values in one reply, the first that fits is taken. */
  private readonly oneAtATime = Semaphore.makeUnsafe(1)
  private committed: { readonly value: unknown } | undefined
  /** What was wrong with the last value. */
  private problem: string | undefined
  /** The replies that should have brought a value and did not. */
  private misses = 0

  constructor(tool: SubmitTool, output: OutputSpec, repairs: number) {
    this.tool = tool
    this.output = output
    this.repairs = repairs
  }

  /** What the agent is told with its prompt. */
  get instruction(): Prompt.TextPart {
    return Prompt.makePart("text", { text: `When you are done, submit the result with the tool ${this.tool.name}.` })
  }

  /** What the agent is told when it has ended its turn in words. */
  get reminder(): Prompt.UserMessage {
    const text = `There is no result yet: it counts only if it is submitted with the tool ${this.tool.name}.`
    return Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] })
  }

  isOne({ name }: ToolCall): boolean {
    return name === this.tool.name
  }

  /** Takes a value, or says what is wrong with it. */
  answer(call: ToolCall): Effect.Effect<ToolResult> {
    return this.oneAtATime.withPermit(
      Effect.suspend(() => {
        if (this.committed !== undefined) return Effect.succeed(failedResult(call, "A result was submitted already."))
        // a copy: what a caller does with the value changes nothing of what the agent remembers
        return Effect.match(this.valueOf(jsonCopy(call.params)), {
          onFailure: (issues) => {
            this.problem = issues.join("; ")
            return failedResult(call, `Invalid result: ${this.problem}`)
          },
          onSuccess: (value) => {
            this.committed = { value }
            return accepted(call)
          }
        })
      })
    )
  }

  /** How the turn ends after a reply that should have brought a value; nothing, if the agent may try again. */
  end(): ChildOutcome | undefined {
    if (this.committed !== undefined) return { stopReason: "completed", structured: this.committed.value }
    if (this.misses++ < this.repairs) return undefined
    return { stopReason: "error", failure: this.failure }
  }

  private get failure(): SubagentFailure {
    return this.problem === undefined
      ? { kind: "schema-missing", retryable: true, message: "The agent submitted no result" }
      : { kind: "schema-invalid", retryable: true, message: this.problem }
  }

  /** The value among the arguments, as it was submitted, if it fits. */
  private valueOf(params: unknown): Effect.Effect<unknown, ReadonlyArray<RequestIssue | string>> {
    const { isWrapped } = this.tool
    return Effect.flatMap(isWrapped ? unwrapped(params) : Effect.succeed(params), (value) =>
      this.output.decode(value).pipe(
        Effect.as(value),
        Effect.mapError((issues) =>
          isWrapped ? issues.map(({ message, path }) => issueAt(["value", ...path], message)) : issues
        ),
        // a schema whose own code dies has not been satisfied
        Effect.catchDefect((defect) => Effect.fail([describeCause(Cause.die(defect))]))
      )
    )
  }
}

const decodeWrapped = Schema.decodeUnknownEffect(Schema.Struct({ value: Schema.Unknown }), {
  errors: "all",
  onExcessProperty: "error"
})

const unwrapped = (params: unknown): Effect.Effect<unknown, ReadonlyArray<RequestIssue>> =>
  Effect.mapBoth(decodeWrapped(params), { onFailure: (error) => issuesOf(error), onSuccess: ({ value }) => value })
