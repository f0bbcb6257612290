/**
 * The default way of running an agent: a loop of our own on `effect/ai`.
 *
 * One model call after another, the tools executed here, until the model has no more tools to call. A tool that does
 * not exist, is not allowed, gets bad arguments, fails or dies answers the model with a failed result and never ends
 * the agent. A step enters the history whole: what the model said together with the results of every tool it called,
 * so that an interrupted turn leaves a history that a model takes back.
 *
 * @since 0.1.0
 */
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Concurrency } from "effect/Types"
import type { Capabilities } from "../Capabilities.ts"
import type { CurrentAgent } from "../CurrentAgent.ts"
import type { SubagentError } from "../SubagentError.ts"
import { fromReason, InvalidRequest } from "../SubagentError.ts"
import type { AgentHandle, AgentRuntime, AgentSpec } from "./AgentRuntime.ts"
import type { Loop } from "./internal/loopAgent.ts"
import { makeAgent } from "./internal/loopAgent.ts"
import { unknownNames } from "./internal/toolNames.ts"
import type { BoundToolkit } from "./internal/tools.ts"
import { executableTools } from "./internal/tools.ts"

/**
 * A toolkit: with its handlers, or an effect that gives one. A `Toolkit` is such an effect itself, and takes its
 * handlers from the context.
 *
 * @category models
 * @since 0.1.0
 */
export type ToolkitOption<Tools extends Record<string, Tool.Any>, E, R> =
  | Toolkit.WithHandler<Tools>
  | Effect.Effect<Toolkit.WithHandler<Tools>, E, R>

/**
 * The services that the tools of a toolkit ask for when they are executed. The loop gives them `CurrentAgent`, and the
 * scope of the agent as `Scope`.
 *
 * @category type-level
 * @since 0.1.0
 */
export type ToolServices<Tools extends Record<string, Tool.Any>> = Exclude<
  Tool.HandlerServices<Tools[keyof Tools]>,
  CurrentAgent | Scope.Scope
>

/**
 * How agents are run.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options<Tools extends Record<string, Tool.Any> = {}, E = never, R = never> {
  /** The tools there are. A filter takes some of them away from an agent. */
  readonly toolkit?: ToolkitOption<Tools, E, R> | undefined
  /**
   * The most model calls for one prompt.
   *
   * @default 50
   */
  readonly maxTurns?: number | undefined
  /** For agents that come without one of their own. */
  readonly systemPrompt?: string | undefined
  /**
   * Whether updates come while the model speaks, rather than when it has spoken.
   *
   * @default false
   */
  readonly streaming?: boolean | undefined
  /**
   * How many tool calls of one reply are executed at the same time.
   *
   * @default "unbounded"
   */
  readonly concurrency?: Concurrency | undefined
}

const capabilities: Capabilities = Object.freeze({
  outputSchema: false,
  depthLimit: true,
  toolFilter: true,
  systemPrompt: true,
  usage: true,
  content: Object.freeze(["image", "audio", "resource_link", "resource"] as const)
})

/**
 * A runtime whose agents are run by the loop, all of them on the `LanguageModel` in the context.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <Tools extends Record<string, Tool.Any> = {}, E = never, R = never>(
  options: Options<Tools, E, R> = {}
): Effect.Effect<AgentRuntime["Service"], E, LanguageModel.LanguageModel | R | ToolServices<Tools>> =>
  Effect.gen(function* () {
    const kit: BoundToolkit = yield* bound(options.toolkit)
    const context = yield* Effect.context<LanguageModel.LanguageModel | R | ToolServices<Tools>>()
    const loop: Loop = {
      kit,
      tools: executableTools(kit, context),
      model: Context.get(context, LanguageModel.LanguageModel),
      maxTurns: options.maxTurns ?? 50,
      systemPrompt: options.systemPrompt ?? "",
      streaming: options.streaming ?? false,
      concurrency: options.concurrency ?? "unbounded"
    }
    return { capabilities, open: (spec) => Effect.flatMap(Effect.scope, (scope) => open(loop, spec, scope)) }
  })

const bound = <Tools extends Record<string, Tool.Any>, E, R>(
  toolkit: ToolkitOption<Tools, E, R> | undefined
): Effect.Effect<BoundToolkit, E, R> =>
  // what is asked of the tools by name at run time is less than what their types know of each
  (toolkit === undefined
    ? Toolkit.empty
    : Effect.isEffect(toolkit)
      ? toolkit
      : Effect.succeed(toolkit)) as Effect.Effect<unknown, E, R> as Effect.Effect<BoundToolkit, E, R>

const open = (loop: Loop, spec: AgentSpec, scope: Scope.Scope): Effect.Effect<AgentHandle, SubagentError> => {
  const issues = unknownNames(spec.toolFilters.at(-1), Object.keys(loop.kit.tools))
  return issues.length > 0
    ? Effect.fail(fromReason(new InvalidRequest({ issues })))
    : Effect.sync(() => makeAgent(loop, spec, scope))
}
