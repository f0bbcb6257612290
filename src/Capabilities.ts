/**
 * What a provider can honour.
 *
 * A provider declares its capabilities once, as a value; the seam holds every request against them before a run
 * exists and refuses what is asked for and not declared. Nothing a caller asks for is ever accepted and then ignored.
 *
 * @since 0.1.0
 */
import type { ContentKind } from "./Content.ts"

/**
 * The features of a start that a provider honours. The first three must be answered; of the others, absence means
 * refused. A host that merges its own key into `AgentOptions` merges the same key in here: a request that carries
 * the option is accepted by the providers that declare it `true`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Capabilities {
  /** Produces a structured value for `outputSchema`. */
  readonly outputSchema: boolean
  /** Keeps what its child starts within `maxDepth`. */
  readonly depthLimit: boolean
  /** Enforces `toolFilter`, asked for or inherited, when a tool is executed. */
  readonly toolFilter: boolean
  /** Runs the child on `agentOptions.model`. */
  readonly model?: boolean
  /** Gives the child `agentOptions.systemPrompt`. */
  readonly systemPrompt?: boolean
  /** The kinds of block it accepts in a prompt beside text. */
  readonly content?: ReadonlyArray<ContentKind>
  /** Reports token usage while the child is at work, so that a limit on tokens can hold. */
  readonly usage?: boolean
  /** Calls `nextTurn` before each model call, so that a limit on turns can hold. */
  readonly turns?: boolean
}

/**
 * A provider that honours nothing beyond a prompt: what to spread a new provider's declaration over.
 *
 * @category constructors
 * @since 0.1.0
 */
export const none: Capabilities = Object.freeze({ outputSchema: false, depthLimit: false, toolFilter: false })
