/**
 * The second seam: how agents that live in this process are made and run.
 *
 * `SpawnProvider` turns whatever runtime is in the context into a provider. The default one, `layer`, is an agent loop
 * on `effect/ai`; a host with agents of its own gives its own `AgentRuntime` and gets the same providers. Hosts open
 * their root agents with it too. An agent belongs to the scope it was opened in.
 *
 * @since 0.1.0
 */
import type * as LanguageModel from "effect/ai/LanguageModel"
import type * as Tool from "effect/ai/Tool"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Agent, AgentOptions } from "../Agent.ts"
import type { Capabilities } from "../Capabilities.ts"
import type { ContentBlock } from "../Content.ts"
import type { SubagentError } from "../SubagentError.ts"
import type { ChildOutcome, Lineage, OutputSpec } from "../SubagentProvider.ts"
import type { ToolFilter } from "../SubagentRequest.ts"
import type { UnstampedUpdate } from "../SubagentUpdate.ts"
import type { Options, ToolServices } from "./AgentLoop.ts"
import { make } from "./AgentLoop.ts"

/**
 * What an agent is made from.
 *
 * @category models
 * @since 0.1.0
 */
export interface AgentSpec {
  /** Who it is: what its tools see as `CurrentAgent`. */
  readonly agent: Agent
  /** How it works: resolved, so that nothing is left to inherit. */
  readonly options: AgentOptions
  /** The filters in force, the outermost first. */
  readonly toolFilters: ReadonlyArray<ToolFilter>
  /** Where its run stands. Absent for an agent that nobody delegated to. */
  readonly lineage?: Lineage
  /** The value it is to submit at the end, if one was asked for. */
  readonly output?: OutputSpec
  /** Reports what it does. Never fails, never waits. */
  readonly emit: (update: UnstampedUpdate) => void
}

/**
 * An open agent.
 *
 * @category models
 * @since 0.1.0
 */
export interface AgentHandle {
  /**
   * Gives the agent a prompt and runs it until it has answered. Turns of one agent follow one another and share its
   * history. Interrupting a turn stops it and whatever it was doing.
   */
  readonly turn: (prompt: ReadonlyArray<ContentBlock>) => Effect.Effect<ChildOutcome, SubagentError>
}

/**
 * Makes agents.
 *
 * @category services
 * @since 0.1.0
 */
export class AgentRuntime extends Context.Service<
  AgentRuntime,
  {
    /** What its agents honour: the providers built on it declare the same. */
    readonly capabilities: Capabilities
    readonly open: (spec: AgentSpec) => Effect.Effect<AgentHandle, SubagentError, Scope.Scope>
  }
>()("effect-subagent/AgentRuntime") {}

/**
 * The default runtime: agents that `AgentLoop` runs on the `LanguageModel` in the context, with these tools.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <Tools extends Record<string, Tool.Any> = {}, E = never, R = never>(
  options: Options<Tools, E, R> = {}
): Layer.Layer<AgentRuntime, E, LanguageModel.LanguageModel | R | ToolServices<Tools>> =>
  Layer.effect(AgentRuntime, make(options))
