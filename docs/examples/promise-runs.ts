/** A run in one's hand: what it reports, an approver, an abort, errors. Run it as it is: the child is a stand-in. */
import { SubagentError, SubagentProvider } from "effect-subagent"
import { PromiseSubagents } from "effect-subagent/promise"

const child = SubagentProvider.fromPromise({
  name: "child",
  run: async ({ ask, emit, onText, signal }) => {
    onText("I should clean up. ")
    emit({ _tag: "ToolCall", id: "1", name: "rm", status: "running", input: { path: "build" } })
    const outcome = await ask({ toolCallId: "1", toolName: "rm", input: { path: "build" } })
    emit({ _tag: "ToolCall", id: "1", status: outcome === "approved" ? "completed" : "failed" })
    await new Promise((_, reject) => signal.addEventListener("abort", reject))
  }
})

// #region runs
const subagents = PromiseSubagents.fromProviders([child], {
  approve: async ({ lineage, toolName }) => (toolName === "rm" && lineage?.depth === 1 ? "approved" : "denied")
})
try {
  const controller = new AbortController()
  const parent = subagents.root()
  const run = await subagents.start("child", { parent, prompt: "tidy up", signal: controller.signal })
  for await (const update of run.updates) {
    if (update._tag === "Permission" && update.outcome !== undefined) {
      console.log(update.outcome) // approved
      controller.abort()
    }
  }
  const { cause, stopReason } = await run.result // an abort resolves, once the run was accepted
  console.log(stopReason, cause?._tag) // aborted Signal
  await subagents.start("nobody", { parent, prompt: "hello" })
} catch (error) {
  if (!(error instanceof SubagentError.SubagentError)) throw error
  console.log(error.code, error.message) // NO_PROVIDER There is no provider "nobody"; available: "child"
} finally {
  await subagents.dispose() // releases every run
}
// #endregion
