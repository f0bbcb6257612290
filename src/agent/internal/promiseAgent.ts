/**
 * Agents whose loop is an async function of the host's.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { none } from "../../Capabilities.ts"
import { toText } from "../../Content.ts"
import { promisedTurn } from "../../internal/promised.ts"
import { issueAt } from "../../internal/issues.ts"
import type { SubagentError } from "../../SubagentError.ts"
import { fromReason, InvalidRequest } from "../../SubagentError.ts"
import { allowsTool } from "../../SubagentRequest.ts"
import type { AgentHandle, AgentRuntime, AgentSpec, PromiseOptions } from "../AgentRuntime.ts"
import { unknownTools } from "./toolNames.ts"

/** The runtime. */
export const makeRuntime = <Tools extends object>(options: PromiseOptions<Tools>): AgentRuntime["Service"] => ({
  capabilities: {
    ...none,
    depthLimit: true,
    toolFilter: options.tools !== undefined,
    ...options.capabilities
  },
  open: (spec) => Effect.suspend(() => open(options, spec))
})

const open = <Tools extends object>(
  options: PromiseOptions<Tools>,
  spec: AgentSpec
): Effect.Effect<AgentHandle, SubagentError> => {
  const { agent, emit, lineage, nextTurn = unlimited } = spec
  const all = Object.entries(typeof options.tools === "function" ? options.tools(agent) : (options.tools ?? {}))
  const names = all.map(([name]) => name)
  const issues = [...unknownTools(spec, names), ...(spec.seed === undefined ? [] : [noMemory])]
  if (issues.length > 0) return Effect.fail(fromReason(new InvalidRequest({ issues })))
  // what an agent may not use it does not get: nothing else keeps a loop that we don't know from executing it
  const tools = Object.fromEntries(all.filter(([name]) => allowsTool(spec.policy.toolFilters, name))) as Partial<Tools>
  const turns = Semaphore.makeUnsafe(1)
  return Effect.succeed({
    turn: (content) =>
      turns.withPermits(1)(
        promisedTurn({
          kind: "model",
          agentOptions: spec.options,
          prompt: toText(content),
          lineage,
          emit,
          run: (call) => options.run({ ...call, content, agent, tools, nextTurn })
        })
      )
  })
}

const unlimited = (): undefined => undefined

const noMemory = issueAt(["seed"], "This runtime makes no seeds and takes none")
