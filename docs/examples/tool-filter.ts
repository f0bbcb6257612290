/** A child that may not write. The model is a stand-in that tries it all the same. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Agent, Content, Subagents } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { SpawnProvider } from "effect-subagent/providers"
import { ScriptedModel } from "effect-subagent/testing"

const toolkit = Toolkit.make(Tool.make("read"), Tool.make("write"))
const Handlers = toolkit.toLayer({ read: () => Console.log("reading"), write: () => Console.log("writing") })

const Model = ScriptedModel.layer(({ toolResults, tools }) =>
  toolResults.length === 0
    ? { toolCalls: ["read", "write"].map((name) => ({ name, params: {} })) }
    : { text: `I was shown ${tools.join()}, and then told: ${String(toolResults[1]?.result)}` }
)

const Agents = SpawnProvider.layer().pipe(
  Layer.provide(AgentRuntime.layer({ toolkit }).pipe(Layer.provide([Handlers, Model]))),
  Layer.provideMerge(Subagents.layer)
)

const program = Effect.gen(function* () {
  const subagents = yield* Subagents.Subagents
  const parent = yield* Agent.root()
  // #region example
  const { output } = yield* subagents.run("spawn", { parent, prompt: "tidy up", toolFilter: { deny: ["write"] } })
  // #endregion
  yield* Console.log(Content.toText(output))
})

NodeRuntime.runMain(Effect.provide(program, Agents))
