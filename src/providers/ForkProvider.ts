/**
 * `fork`: a child in this process that knows the conversation, made by the `AgentRuntime` in the context.
 *
 * The child begins with a snapshot of what the parent remembers of the turns that have ended: the turn that delegates,
 * with its unanswered tool calls, is not part of it. It inherits what a `spawn` does beside, and the parent's system
 * prompt with the history, unless the request brings another. A parent that the runtime does not know can't be forked,
 * which is never a fresh child instead; one that has not ended a turn has a history with nothing in it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { AgentRuntime } from "../agent/AgentRuntime.ts"
import { fromReason, InvalidProvider, RequestIssue, type SubagentError } from "../SubagentError.ts"
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
  /** @default "fork" */
  readonly name?: string | undefined
}

/**
 * The provider on a given runtime, as a value to register. Fails with `InvalidProvider` if the runtime has no
 * `completedTurns`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromRuntime = (
  runtime: AgentRuntime["Service"],
  options: Options = {}
): Effect.Effect<SubagentProvider, SubagentError> => {
  const { capabilities, completedTurns } = runtime
  return completedTurns === undefined
    ? Effect.fail(fromReason(new InvalidProvider({ issues: [noHistories] })))
    : Effect.succeed({
        name: options.name ?? "fork",
        capabilities,
        inheritsContext: true,
        start: (placed) => Effect.flatMap(completedTurns(placed.parent), (seed) => openChild(runtime, placed, seed)),
        ...resuming(runtime)
      })
}

const noHistories = new RequestIssue({
  path: ["completedTurns"],
  message: "The agent runtime keeps no histories, so its agents can't be forked"
})

/**
 * The provider on the runtime in the context. Fails with `InvalidProvider` if the runtime has no `completedTurns`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Effect.Effect<SubagentProvider, SubagentError, AgentRuntime> =>
  Effect.flatMap(Effect.service(AgentRuntime), (runtime) => fromRuntime(runtime, options))

/**
 * Registers the provider for as long as the layer lives.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options = {}): Layer.Layer<never, SubagentError, Subagents | AgentRuntime> =>
  addEffect(make(options))
