/**
 * The tool through which a model delegates.
 *
 * A binding is bound to one provider by its host's configuration; the model sees a description and a prompt and chooses
 * nothing else. Each call is one run, started on behalf of the calling agent and always released: its answer is what
 * the child said, and anything but a completed run is an error result that says how it ended.
 *
 * `effect/ai` keeps the last of two tools with one name, in silence: compose with `toolkit`, which refuses.
 *
 * @since 0.1.0
 */
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { AvailableTo } from "../agent/AvailableTo.ts"
import type { Agent, AgentOptions } from "../Agent.ts"
import { CurrentAgent } from "../CurrentAgent.ts"
import type { RunLimits } from "../Limits.ts"
import type { SubagentError } from "../SubagentError.ts"
import { DuplicateTool, fromReason } from "../SubagentError.ts"
import type { Policy } from "../SubagentProvider.ts"
import type { SchemaSpec, ToolFilter } from "../SubagentRequest.ts"
import { Subagents } from "../Subagents.ts"
import { answerFor, explain } from "./internal/answer.ts"
import * as Binding from "./internal/binding.ts"

/**
 * What a binding is bound to, and the limits of each of its runs. None of it is shown to the model.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options<Name extends string = string> extends RunLimits {
  /** The provider that runs the children. Looked up at each call. */
  readonly provider: string
  /**
   * What the model calls it.
   *
   * @default "subagent"
   */
  readonly toolName?: Name | undefined
  /**
   * Whether the provider's children know the conversation: what its `inheritsContext` says. The description tells the
   * model.
   *
   * @default false
   */
  readonly inheritsContext?: boolean | undefined
  readonly agentOptions?: AgentOptions | undefined
  readonly toolFilter?: ToolFilter | undefined
  readonly maxDepth?: number | undefined
  /** The child is to end with a value of this schema, which is then the answer, as JSON. */
  readonly outputSchema?: SchemaSpec | undefined
  /**
   * The most that an answer may have, in bytes of UTF-8. What is cut off is announced at its end.
   *
   * @default 65536
   */
  readonly maxResultBytes?: number | undefined
}

/**
 * The arguments the model gives.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Input: Schema.Codec<{ readonly description: string; readonly prompt: string }> = Binding.Input

/**
 * The JSON Schema of the arguments, the same for every provider.
 *
 * @category schemas
 * @since 0.1.0
 */
export const inputSchema: typeof Binding.inputSchema = Binding.inputSchema

/**
 * The tool of a binding, as `effect/ai` knows it.
 *
 * @category models
 * @since 0.1.0
 */
export type SubagentTool<Name extends string> = Tool.Dynamic<
  Name,
  {
    readonly parameters: typeof inputSchema
    readonly success: Schema.String
    readonly failure: Schema.String
    readonly failureMode: "return"
  }
>

/**
 * A binding, as a tool to put into a toolkit. Its handler comes from `layer`, given the same options.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <const Name extends string = "subagent">(options: Options<Name>): SubagentTool<Name> =>
  Tool.dynamic(Binding.nameOf(options), {
    description: Binding.describe(options),
    parameters: inputSchema,
    success: Schema.String,
    failure: Schema.String,
    failureMode: "return"
  }).annotate(AvailableTo, isUsable(options)) as SubagentTool<Name> // annotating leaves a tool the kind it is

/** An agent that is too deep to delegate is not offered the tool. */
const isUsable =
  ({ maxDepth = Number.POSITIVE_INFINITY }: Options) =>
  ({ session }: Agent, policy: Policy): boolean =>
    (session.header.delegationDepth ?? 0) < Math.min(maxDepth, policy.maxDepth)

/**
 * The handler of a binding. Fails with `InvalidRequest` for options that are not well formed, a misspelt key among them.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <const Name extends string = "subagent">(
  options: Options<Name>
): Layer.Layer<Tool.Handler<Name>, SubagentError, Subagents> =>
  Layer.unwrap(
    Effect.map(
      Effect.andThen(Effect.fromResult(Binding.check(options)), Effect.service(Subagents)),
      (subagents) =>
        // the handler record has the one key that the tool's name is, which TypeScript can't see of a generic name
        Toolkit.make(make(options as Options)).toLayer({
          [Binding.nameOf(options)]: (input: unknown) => call(subagents, options, input)
        }) as Layer.Layer<Tool.Handler<Name>>
    )
  )

/**
 * Tools by their names.
 *
 * @category type-level
 * @since 0.1.0
 */
export type ToolsByName<Tools extends ReadonlyArray<Tool.Any>> = {
  readonly [T in Tools[number] as T["name"]]: T
}

/**
 * A toolkit of several bindings, with the host's own tools beside. Two tools with one name are refused.
 *
 * @category constructors
 * @since 0.1.0
 */
export const toolkit = <const Bindings extends ReadonlyArray<Tool.Any>, With extends Record<string, Tool.Any> = {}>(
  bindings: Bindings,
  options: { readonly with?: Toolkit.Toolkit<With> | undefined } = {}
): Effect.Effect<
  Toolkit.WithHandler<With & ToolsByName<Bindings>>,
  SubagentError,
  Tool.HandlersFor<With & ToolsByName<Bindings>>
> => {
  const names = new Set(Object.keys(options.with?.tools ?? {}))
  for (const { name } of bindings) {
    if (names.has(name)) return Effect.fail(fromReason(new DuplicateTool({ name })))
    names.add(name)
  }
  const tools = [...Object.values<Tool.Any>(options.with?.tools ?? {}), ...bindings]
  // the record that `Toolkit.make` builds of a list whose names are known to differ
  return Toolkit.make(...tools) as unknown as Toolkit.Toolkit<With & ToolsByName<Bindings>>
}

const call = (subagents: Subagents["Service"], options: Options, input: unknown): Effect.Effect<string, string> =>
  Effect.flatMap(Effect.serviceOption(CurrentAgent), (parent) => {
    const request = Binding.requestOf(options, input, Option.getOrUndefined(parent))
    if (Result.isFailure(request)) return Effect.fail(request.failure.text)
    return Effect.matchEffect(subagents.run(options.provider, request.success), {
      onFailure: (error) => Effect.fail(explain(error)),
      onSuccess: (result) =>
        Effect.flatMap(answerFor(options, result), ({ isError, text }) =>
          isError ? Effect.fail(text) : Effect.succeed(text)
        )
    })
  })
