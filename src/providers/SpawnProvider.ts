/**
 * `spawn`: a fresh child in this process, made by the `AgentRuntime` in the context.
 *
 * The child starts with an empty history. It inherits the parent's working directory, its place in the tree and its
 * model, unless the request names another; not the parent's system prompt.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { AgentRuntime } from "../agent/AgentRuntime.ts"
import type { SubagentError } from "../SubagentError.ts"
import type { SubagentProvider } from "../SubagentProvider.ts"
import type { Subagents } from "../Subagents.ts"
import { addEffect } from "../Subagents.ts"
import { openChild, resuming } from "./internal/childAgent.ts"

/**
 * How the provider is named.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** @default "spawn" */
  readonly name?: string | undefined
}

/**
 * The provider on a given runtime, as a value to register.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromRuntime = (runtime: AgentRuntime["Service"], options: Options = {}): SubagentProvider => ({
  name: options.name ?? "spawn",
  capabilities: runtime.capabilities,
  inheritsContext: false,
  start: (placed) => openChild(runtime, placed),
  ...resuming(runtime)
})

/**
 * The provider on the runtime in the context.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Effect.Effect<SubagentProvider, never, AgentRuntime> =>
  Effect.map(Effect.service(AgentRuntime), (runtime) => fromRuntime(runtime, options))

/**
 * Registers the provider for as long as the layer lives.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options = {}): Layer.Layer<never, SubagentError, Subagents | AgentRuntime> =>
  addEffect(make(options))
