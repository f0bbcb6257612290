/** Delegation without Effect: promises, an async loop of one's own, an abort. Run it as it is: the loop is a stand-in for any. */
import { Content, SubagentProvider } from "effect-subagent"
import { PromiseSubagents } from "effect-subagent/promise"

/** Any async function will do: one that calls a model and tools, or a remote agent. This one counts words. */
const countWords = async (prompt: string, signal: AbortSignal): Promise<string> => {
  signal.throwIfAborted()
  return `${prompt.split(/\s+/).length} words`
}

// #region example
const counter = SubagentProvider.fromPromise({
  name: "counter",
  run: ({ prompt, signal }) => countWords(prompt, signal)
})
const subagents = PromiseSubagents.fromProviders([counter])
const parent = subagents.root({ cwd: process.cwd() })
const { output, stopReason } = await subagents.run("counter", { parent, prompt: "how many words are these" })
console.log(stopReason, Content.toText(output)) // completed 5 words
await subagents.dispose()
// #endregion
