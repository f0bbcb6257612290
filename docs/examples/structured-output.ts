/** A child that ends with a value. The model is a stand-in that gets it wrong once. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { Agent, Subagents } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { SpawnProvider } from "effect-subagent/providers"
import { ScriptedModel } from "effect-subagent/testing"

const submit = (params: unknown): ScriptedModel.Step => ({ toolCalls: [{ name: "submit_result", params }] })
const Model = ScriptedModel.layer([
  submit({ title: "Launch", day: "soon" }),
  ({ toolResults }) => {
    console.log("the model is told:", toolResults[0]?.result)
    return submit({ title: "Launch", day: "2026-12-01T00:00:00.000Z" })
  }
])

const Agents = SpawnProvider.layer().pipe(
  Layer.provide(AgentRuntime.layer()),
  Layer.provideMerge(Subagents.layer),
  Layer.provide(Model)
)

// #region example
const Event = Schema.Struct({ title: Schema.String, day: Schema.Date })

const program = Effect.gen(function* () {
  const subagents = yield* Subagents.Subagents
  const parent = yield* Agent.root()
  const result = yield* subagents.run("spawn", { parent, prompt: "When is the launch?", outputSchema: Event })
  yield* Console.log(result.stopReason, result.structured?.day.getUTCFullYear()) // completed 2026
})
// #endregion

NodeRuntime.runMain(Effect.provide(program, Agents))
