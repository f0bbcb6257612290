/**
 * A provider whose children are agents of any make that speak the Agent Client Protocol, each in a process of its own.
 *
 * A host contributes one per agent, under a name. A run starts the agent's command, opens a session in the parent's
 * working directory and prompts it; what the agent says and does comes as updates, what it wants permitted goes to
 * `Approvals`. The process, and all that it has started, ends with the run. What an agent says of its own end is taken
 * as a hint: a run that was cancelled is aborted, and one that said nothing has not completed. Where the agent takes up
 * sessions of earlier processes, a run has a token.
 *
 * @see https://agentclientprotocol.com
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type * as Redacted from "effect/Redacted"
import { fromReason, InvalidRequest, type SubagentError } from "../SubagentError.ts"
import type { SubagentProvider } from "../SubagentProvider.ts"
import type { Subagents } from "../Subagents.ts"
import { addEffect } from "../Subagents.ts"
import { wrongOptions } from "./internal/acp/options.ts"
import { openSession } from "./internal/acp/session.ts"

/**
 * An MCP server that the agent is to use: a command, or an address.
 *
 * @category options
 * @since 0.1.0
 */
export type McpServer =
  | {
      readonly name: string
      /** Absolute. */
      readonly command: string
      readonly args?: ReadonlyArray<string> | undefined
      readonly env?: { readonly [name: string]: string } | undefined
    }
  | {
      /** An agent that does not advertise it refuses the start. */
      readonly type: "http" | "sse"
      readonly name: string
      readonly url: string
      readonly headers?: { readonly [name: string]: string } | undefined
    }

/**
 * Which files an agent may read and write through its client.
 *
 * @category options
 * @since 0.1.0
 */
export interface FileAccess {
  /**
   * The folders it is kept within, links and `..` followed.
   *
   * @default the child's working directory
   */
  readonly roots?: ReadonlyArray<string> | undefined
  /** @default true */
  readonly read?: boolean | undefined
  /** @default true */
  readonly write?: boolean | undefined
}

/**
 * How long the agent is waited for.
 *
 * @category options
 * @since 0.1.0
 */
export interface Timeouts {
  /**
   * For the answer to each call of a start; then it is refused, with `StartTimeout`. Some agents take ten seconds and
   * more to boot.
   *
   * @default "60 seconds"
   */
  readonly start?: Duration.Input | undefined
  /**
   * For a sign of life in a turn: an update or a request, while nobody is being asked for a permission. Then the run
   * has failed, as `timeout`.
   *
   * @default none
   */
  readonly idle?: Duration.Input | undefined
  /**
   * For the end of a turn that was cancelled, while its run is not released. Then the process is ended.
   *
   * @default "10 seconds"
   */
  readonly cancel?: Duration.Input | undefined
  /**
   * For each step of a release: the end of a cancelled turn, the end of the process at the end of its input, at
   * SIGTERM. Three of them have to be less than `releaseTimeout`.
   *
   * @default "2 seconds"
   */
  readonly close?: Duration.Input | undefined
}

/**
 * How the agent is run.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** The provider's name. */
  readonly name: string
  readonly command: string
  /** @default [] */
  readonly args?: ReadonlyArray<string> | undefined
  /** Variables beside those of this process, from whose environment all that looks like a secret is left out. */
  readonly env?: { readonly [name: string]: string | Redacted.Redacted } | undefined
  /** Names of variables that the agent gets although they look like secrets. */
  readonly passEnv?: ReadonlyArray<string> | undefined
  /**
   * The working directory, absolute.
   *
   * @default the parent's
   */
  readonly cwd?: string | undefined
  /**
   * Who decides what the agent asks permission for: `Approvals`, or the host once and for all.
   *
   * @default "ask"
   */
  readonly permission?: "ask" | "deny" | "allow" | undefined
  /**
   * Files that the agent may read and write through its client. What it does without asking its client is its own.
   *
   * @default none
   */
  readonly fs?: FileAccess | undefined
  /** @default [] */
  readonly mcpServers?: ReadonlyArray<McpServer> | undefined
  /** The mode of every session, by its id. A start fails if the agent does not have it. */
  readonly mode?: string | undefined
  /** The model of every session that asks for none. A start fails if the agent does not have it. */
  readonly model?: string | undefined
  /** How to authenticate. Without it nobody does, and an agent that needs it refuses the start, with `AuthRequired`. */
  readonly authMethod?: string | undefined
  readonly timeouts?: Timeouts | undefined
  /**
   * The longest message that is taken from the agent, in bytes. A longer one ends the run.
   *
   * @default 67108864
   */
  readonly maxMessageBytes?: number | undefined
}

/**
 * The provider, as a value to register. Fails with `InvalidRequest` for options that are not well formed, a misspelt key
 * among them.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  options: Options
): Effect.Effect<SubagentProvider, SubagentError, ChildProcessSpawner | FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const issues = wrongOptions(options)
    if (issues.length > 0) return yield* fromReason(new InvalidRequest({ issues }))
    const context = yield* Effect.context<ChildProcessSpawner | FileSystem.FileSystem | Path.Path>()
    // these and no others: the scope is the run's
    const services = Context.pick(ChildProcessSpawner, FileSystem.FileSystem, Path.Path)(context)
    const {
      args = [],
      maxMessageBytes = 64 * 1024 * 1024,
      mcpServers = [],
      permission = "ask",
      timeouts = {}
    } = options
    const settings = {
      ...options,
      args,
      maxMessageBytes,
      mcpServers,
      permission,
      timeouts: {
        start: Duration.fromInputUnsafe(timeouts.start ?? "60 seconds"),
        idle: Duration.fromInputUnsafe(timeouts.idle ?? Duration.infinity),
        cancel: Duration.fromInputUnsafe(timeouts.cancel ?? "10 seconds"),
        close: Duration.fromInputUnsafe(timeouts.close ?? "2 seconds")
      }
    }
    return {
      name: options.name,
      capabilities: {
        outputSchema: true,
        depthLimit: false,
        toolFilter: false,
        // these depend on the agent: one that lacks what is asked for refuses the start in the same way
        model: true,
        content: ["image", "audio", "resource_link", "resource"]
      },
      inheritsContext: false,
      start: (placed) => Effect.provide(openSession(settings, placed), services),
      resume: (placed, payload) => Effect.provide(openSession(settings, placed, payload), services)
    }
  })

/**
 * Registers the provider for as long as the layer lives. Contribute several to have several agents.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options: Options
): Layer.Layer<never, SubagentError, Subagents | ChildProcessSpawner | FileSystem.FileSystem | Path.Path> =>
  addEffect(make(options))
