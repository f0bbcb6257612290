/** Delegation in the loop of OpenAI Agents JS: the parent's loop is theirs, and the child runs on it too. */
import { Agent, type Model, run, setTracingDisabled, tool } from "@openai/agents"
import { assistantMessage, functionCall, ScriptedModel } from "@openai/agents/testing"
import { AgentRuntime } from "effect-subagent/agent"
import { PromiseSubagents } from "effect-subagent/promise"
import { SpawnProvider } from "effect-subagent/providers"

export const host = (models: { readonly parent: Model; readonly child: Model }) => {
  // #region glue
  const child = new Agent({ name: "child", model: models.child })
  const runtime = AgentRuntime.fromPromise({
    run: async ({ prompt, signal }) => (await run(child, prompt, { signal })).finalOutput
  })
  const subagents = PromiseSubagents.fromProviders([SpawnProvider.fromRuntime(runtime)])
  const parent = subagents.root()
  const { executeOrThrow, inputSchema, ...named } = subagents.tool({ provider: "spawn" })
  const subagent = tool({
    ...named,
    parameters: inputSchema,
    execute: async (input, _, call) => (await executeOrThrow(input, { parent, signal: call?.signal })).text,
    errorFunction: (_, error) => String(error)
  })
  // #endregion
  const asking = new Agent({ name: "parent", model: models.parent, tools: [subagent] })
  const ask = (prompt: string, signal = new AbortController().signal) => run(asking, prompt, { signal })
  return { ask, subagents }
}

if (import.meta.main) {
  setTracingDisabled(true)
  const input = { description: "Count", prompt: "How many words are these?" }
  const { ask, subagents } = host({
    parent: new ScriptedModel([[functionCall("subagent", input, { callId: "1" })], [assistantMessage("It says: 5")]]),
    child: new ScriptedModel([[assistantMessage("5")]])
  })
  console.log((await ask("Have somebody count the words.")).finalOutput)
  await subagents.dispose()
}
