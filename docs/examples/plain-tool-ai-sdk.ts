/** Delegation in the loop of the Vercel AI SDK: the parent's loop is theirs, and the child runs on it too. */
import { generateText, isStepCount, jsonSchema, type LanguageModel, tool } from "ai"
import { MockLanguageModelV4 } from "ai/test"
import { AgentRuntime } from "effect-subagent/agent"
import { PromiseSubagents } from "effect-subagent/promise"
import { SpawnProvider } from "effect-subagent/providers"
import { calls, says } from "./models/aiSdk.ts"

export const host = (models: { readonly parent: LanguageModel; readonly child: LanguageModel }) => {
  // #region glue
  const runtime = AgentRuntime.fromPromise({
    run: async ({ prompt, signal }) => (await generateText({ model: models.child, prompt, abortSignal: signal })).text
  })
  const subagents = PromiseSubagents.fromProviders([SpawnProvider.fromRuntime(runtime)])
  const parent = subagents.root()
  const { description, executeOrThrow, inputSchema } = subagents.tool({ provider: "spawn" })
  const subagent = tool({
    description,
    inputSchema: jsonSchema(inputSchema),
    execute: async (input, { abortSignal: signal }) => (await executeOrThrow(input, { parent, signal })).text
  })
  // #endregion
  const ask = (prompt: string, abortSignal = new AbortController().signal) =>
    generateText({ model: models.parent, prompt, tools: { subagent }, stopWhen: isStepCount(5), abortSignal })
  return { ask, subagents }
}

if (import.meta.main) {
  const { ask, subagents } = host({
    parent: new MockLanguageModelV4({
      doGenerate: [calls("subagent", { description: "Count", prompt: "How many words are these?" }), says("It says: 5")]
    }),
    child: new MockLanguageModelV4({ doGenerate: says("5") })
  })
  console.log((await ask("Have somebody count the words.")).text)
  await subagents.dispose()
}
