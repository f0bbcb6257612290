/** A tool that needs an approval, without an approver and with one. The model is a stand-in that always pays. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Agent, Approvals, Content, Subagents } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { SpawnProvider } from "effect-subagent/providers"
import { ScriptedModel } from "effect-subagent/testing"

const toolkit = Toolkit.make(Tool.make("pay", { needsApproval: true }))
const Handlers = toolkit.toLayer({ pay: () => Console.log("paying") })

const Model = ScriptedModel.layer(({ toolResults: [paid] }) =>
  paid === undefined ? { toolCalls: [{ name: "pay", params: {} }] } : { text: paid.isFailure ? "not paid" : "paid" }
)

const Agents = SpawnProvider.layer().pipe(
  Layer.provide(AgentRuntime.layer({ toolkit }).pipe(Layer.provide([Handlers, Model]))),
  Layer.provideMerge(Subagents.layer)
)

const program = Effect.gen(function* () {
  const subagents = yield* Subagents.Subagents
  const pay = Effect.flatMap(Agent.root(), (parent) => subagents.run("spawn", { parent, prompt: "pay" }))
  // #region example
  const approver: Approvals.Approver = {
    decide: ({ lineage, toolName }) => Effect.as(Console.log(`${toolName}, at depth ${lineage?.depth}?`), "approved"),
    timeout: "1 minute"
  }
  for (const asked of [pay, Effect.provideService(pay, Approvals.Approvals, approver)]) {
    yield* Console.log(Content.toText((yield* asked).output)) // not paid; then: pay, at depth 1? paying, paid
  }
  // #endregion
})

NodeRuntime.runMain(Effect.provide(program, Agents))
