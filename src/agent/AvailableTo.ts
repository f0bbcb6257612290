/**
 * Which agents a tool is offered to.
 *
 * An annotation of a tool, for one that some agents could not use: the loop does not show it to them. It is no barrier:
 * a call of it is executed like any other, and the tool itself says why it can't be done.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type { Agent } from "../Agent.ts"
import type { Policy } from "../SubagentProvider.ts"

/**
 * Whether an agent under this policy is offered the tool: `tool.annotate(AvailableTo, (agent, policy) => …)`.
 *
 * @category annotations
 * @since 0.1.0
 */
export const AvailableTo: Context.Reference<(agent: Agent, policy: Policy) => boolean> = Context.Reference<
  (agent: Agent, policy: Policy) => boolean
>("effect-subagent/AvailableTo", { defaultValue: () => () => true })
