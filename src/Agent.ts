/**
 * Who delegates and who is delegated to: agents, their sessions and their ids.
 *
 * A host hands in its own agent objects as `parent`; the seam takes them by identity and reads only the fields named
 * here, once. What the seam makes (the child's header, every id) is a fresh value that nobody shares.
 *
 * @since 0.1.0
 */
import type * as Brand from "effect/Brand"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { makeId } from "./internal/id.ts"

/**
 * Names one agent.
 *
 * @category models
 * @since 0.1.0
 */
export type AgentId = string & Brand.Brand<"effect-subagent/AgentId">

/**
 * Names one session of an agent, the thing its history belongs to.
 *
 * @category models
 * @since 0.1.0
 */
export type SessionId = string & Brand.Brand<"effect-subagent/SessionId">

/**
 * Names one accepted delegation.
 *
 * @category models
 * @since 0.1.0
 */
export type RunId = string & Brand.Brand<"effect-subagent/RunId">

/**
 * What a host may say of how an agent works. Merge your own keys in by declaration merging, together with the same
 * key in `Capabilities`.
 *
 * @category models
 * @since 0.1.0
 */
export interface AgentOptions {
  /** The name of a model, in the host's own terms. */
  readonly model?: string | undefined
  readonly systemPrompt?: string | undefined
}

/**
 * Where an agent stands: its session, its folder, its parent's session and its depth.
 *
 * @category models
 * @since 0.1.0
 */
export interface SessionHeader {
  readonly id: string
  /** The working directory, absolute. */
  readonly cwd?: string | undefined
  /** The session id of the agent that delegated to this one. */
  readonly parentSession?: string | undefined
  /** 0 for an agent nobody delegated to, which is also what absence means. */
  readonly delegationDepth?: number | undefined
}

/**
 * What a host hands in as `parent`. A class of the host's own with more fields, private ones too, just works.
 *
 * @category models
 * @since 0.1.0
 */
export interface Agent {
  readonly id: string
  readonly session: { readonly header: SessionHeader }
  readonly options?: AgentOptions | undefined
}

/**
 * The header of a child. It stays the same when the child is resumed.
 *
 * @category models
 * @since 0.1.0
 */
export interface ChildHeader extends SessionHeader {
  readonly id: SessionId
  readonly parentSession: SessionId
  readonly delegationDepth: number
}

/**
 * An agent that nobody delegated to, with fresh ids from `Random`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const root = (
  options: { readonly cwd?: string | undefined; readonly options?: AgentOptions | undefined } = {}
): Effect.Effect<Agent> =>
  Effect.map(Effect.service(Random.Random), (random) => {
    const name = makeId(random)
    return {
      id: `agent_${name}`,
      session: {
        header: Object.freeze({
          id: `session_${name}`,
          ...(options.cwd === undefined ? undefined : { cwd: options.cwd }),
          delegationDepth: 0
        })
      },
      ...(options.options === undefined ? undefined : { options: Object.freeze({ ...options.options }) })
    }
  })
