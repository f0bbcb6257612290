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
 * A toolkit, or one that has its handlers with it, whatever its tools.
 *
 * @category models
 * @since 0.1.0
 */
export type AnyToolkit =
  | Toolkit.Any
  | { readonly tools: Record<string, Tool.Any>; readonly handle: (...args: never) => unknown }

/**
 * What the tools of a toolkit need: their handlers, unless the toolkit has them with it, and the services they ask
 * for. The loop gives them `CurrentAgent`, and the scope of the agent as `Scope`.
 *
 * @category type-level
 * @since 0.1.0
 */
export type ToolServices<Kit extends AnyToolkit> =
  | (Kit extends Toolkit.Any ? Tool.HandlersFor<Kit["tools"]> : never)
  | Exclude<Tool.HandlerServices<Kit["tools"][keyof Kit["tools"]]>, CurrentAgent | Scope.Scope>

/**
 * How agents are run.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options<Kit extends AnyToolkit = Toolkit.Toolkit<{}>> {
  /** The tools there are. A filter takes some of them away from an agent. */
  readonly toolkit?: Kit | undefined
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
export const make = <Kit extends AnyToolkit = Toolkit.Toolkit<{}>>(
  options: Options<Kit> = {}
): Effect.Effect<AgentRuntime["Service"], never, LanguageModel.LanguageModel | ToolServices<Kit>> =>
  Effect.gen(function* () {
    const context = yield* Effect.context<LanguageModel.LanguageModel | ToolServices<Kit>>()
    const kit = yield* bound(options.toolkit ?? Toolkit.empty)
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

/** A toolkit without its handlers is an effect that takes them from the context. */
const bound = (toolkit: AnyToolkit): Effect.Effect<BoundToolkit> =>
  (Effect.isEffect(toolkit) ? toolkit : Effect.succeed(toolkit)) as Effect.Effect<BoundToolkit>

const open = (loop: Loop, spec: AgentSpec, scope: Scope.Scope): Effect.Effect<AgentHandle, SubagentError> => {
  const issues = unknownNames(spec.toolFilters.at(-1), Object.keys(loop.kit.tools))
  return issues.length > 0
    ? Effect.fail(fromReason(new InvalidRequest({ issues })))
    : Effect.sync(() => makeAgent(loop, spec, scope))
}
