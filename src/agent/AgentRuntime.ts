/**
 * The second seam: how agents that live in this process are made and run.
 *
 * `SpawnProvider` and `ForkProvider` turn whatever runtime is in the context into providers. The default one, `layer`,
 * is an agent loop on `effect/ai`; a host with agents of its own gives its own `AgentRuntime` and gets the same
 * providers. Hosts open their root agents with it too. An agent belongs to the scope it was opened in.
 *
 * @since 0.1.0
 */
import type * as LanguageModel from "effect/ai/LanguageModel"
import type * as Tool from "effect/ai/Tool"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Agent, AgentOptions } from "../Agent.ts"
import type { Capabilities } from "../Capabilities.ts"
import type { ContentBlock } from "../Content.ts"
import type { SubagentError } from "../SubagentError.ts"
import type {
  ChildMessage,
  ChildOutcome,
  Lineage,
  OutputSpec,
  Policy,
  PromiseAnswer,
  PromiseCall,
  TurnRefused
} from "../SubagentProvider.ts"
import type { CheckedRequest } from "../SubagentRequest.ts"
import type { UnstampedUpdate } from "../SubagentUpdate.ts"
import type { Options, ToolServices } from "./AgentLoop.ts"
import { make } from "./AgentLoop.ts"
import { makeRuntime } from "./internal/promiseAgent.ts"

/**
 * What an agent remembers, as JSON: a snapshot that no later turn changes. Only the runtime that made it can read it.
 *
 * @category models
 * @since 0.1.0
 */
export type AgentSeed = Schema.Json

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
  /**
   * What holds for it. The seam sees to it that what a child starts has no more; for an agent that nobody delegated to, it
   * binds that agent alone. If there is nothing to forbid, it is `openPolicy`.
   */
  readonly policy: Policy
  /**
   * What the request for it asked for itself: the rest of `options` and `policy` is inherited. A name in it that nothing
   * here has is refused at its path in the request.
   */
  readonly request?: Pick<CheckedRequest, "agentOptions" | "toolFilter">
  /** What it remembers from the start: what `completedTurns` gave of another agent. */
  readonly seed?: AgentSeed
  /** Where its run stands. Absent for an agent that nobody delegated to. */
  readonly lineage?: Lineage
  /** The value it is to submit at the end, if one was asked for. */
  readonly output?: OutputSpec
  /** Reports what it does. Never fails, never waits. */
  readonly emit: (update: UnstampedUpdate) => void
  /** Counts a model call before it is made, unless a limit does not allow it. Absent for an agent without limits. */
  readonly nextTurn?: () => TurnRefused | undefined
}

/**
 * A policy that forbids nothing.
 *
 * @category constructors
 * @since 0.1.0
 */
export const openPolicy: Policy = Object.freeze({ maxDepth: Number.POSITIVE_INFINITY, toolFilters: Object.freeze([]) })

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
  /**
   * Takes a message in for the turn at work, in the order of the calls. The agent reads it before its next model call, and
   * a `Receipt` of `consumed` is reported then. Fails with `RunSettled` if there is no turn at work, or if it has decided to
   * end. A runtime whose agents take no messages leaves it out.
   */
  readonly steer?: (message: ChildMessage) => Effect.Effect<void, SubagentError>
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
    /**
     * What an open agent remembers of the turns that have ended, so that another can be opened with it. The turn at work
     * is not part of it. Fails with `HistoryUnavailable` for an agent that is not open here. A runtime that keeps no
     * histories leaves it out, and can't be forked.
     */
    readonly completedTurns?: (agent: Agent) => Effect.Effect<AgentSeed, SubagentError>
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
): Layer.Layer<AgentRuntime, E | SubagentError, LanguageModel.LanguageModel | R | ToolServices<Tools>> =>
  Layer.effect(AgentRuntime, make(options))

/**
 * A runtime as one async function: any loop there is, on tools of its own kind.
 *
 * @category options
 * @since 0.1.0
 */
export interface PromiseOptions<Tools extends object = {}> {
  /** The tools by name, or what makes them for an agent. A loop is given those that the filters let through. */
  readonly tools?: Tools | ((agent: Agent) => Tools) | undefined
  /**
   * What it honours beside a prompt. `toolFilter` follows from `tools`; a loop that uses `system` or `model`, or `content`
   * that is not text, or asks for its turns, has to say so.
   *
   * @default {}
   */
  readonly capabilities?: Partial<Capabilities> | undefined
  /** Runs a turn. What it throws is the child's own failure. The same agent comes again for its next turn. */
  readonly run: (
    call: PromiseCall & {
      /** The prompt, whole. */
      readonly content: ReadonlyArray<ContentBlock>
      /** The agent to be: the `parent` of whatever its tools start. */
      readonly agent: Agent
      readonly tools: Partial<Tools>
      /**
       * Counts a model call before it is made: a loop that asks before each declares `turns`. What it gives is why there is
       * none, and the failure to end with.
       */
      readonly nextTurn: () => TurnRefused | undefined
    }
  ) => PromiseLike<PromiseAnswer> | PromiseAnswer
}

/**
 * A runtime made of an async function.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromPromise = <Tools extends object = {}>(options: PromiseOptions<Tools>): AgentRuntime["Service"] =>
  makeRuntime(options)
