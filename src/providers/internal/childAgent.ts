/**
 * From a placed request to an agent of a runtime: what `spawn` and `fork` have in common.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { AgentRuntime, AgentSeed } from "../../agent/AgentRuntime.ts"
import type { SubagentError } from "../../SubagentError.ts"
import type { ChildSession, PlacedRequest } from "../../SubagentProvider.ts"

/** Opens the child. It inherits the parent's model, where the runtime has models, and what the seed remembers. */
export const openChild = (
  { capabilities, open }: AgentRuntime["Service"],
  placed: PlacedRequest,
  seed?: AgentSeed
): Effect.Effect<ChildSession, SubagentError, Scope.Scope> => {
  const { agentOptions, emit, header, lineage, output, parentOptions, policy, prompt } = placed
  const options = Object.freeze({ ...(capabilities.model === true && parentOptions), ...agentOptions })
  return Effect.map(
    open({
      agent: Object.freeze({ id: lineage.id, session: Object.freeze({ header }), options }),
      options,
      policy,
      request: placed,
      lineage,
      emit,
      ...(output && { output }),
      ...(seed !== undefined && { seed })
    }),
    (agent) => ({
      turn: agent.turn(prompt),
      resumeTurn: (prompt) => agent.turn(prompt),
      ...(agent.steer !== undefined && { sendMessage: (message) => agent.steer!(message) })
    })
  )
}
