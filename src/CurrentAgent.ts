/**
 * The agent whose loop is running.
 *
 * An agent runtime gives it to the tool handlers it runs, so that a tool knows who calls it. Code that may run outside
 * any agent asks for it with `Effect.serviceOption`.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type { Agent } from "./Agent.ts"

/**
 * The running agent.
 *
 * @category services
 * @since 0.1.0
 */
export class CurrentAgent extends Context.Service<CurrentAgent, Agent>()("effect-subagent/CurrentAgent") {}
