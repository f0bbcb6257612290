/** One child agent, one result. Run it as it is: the model is a stand-in that needs no network. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Agent, Content, Subagents } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { SpawnProvider } from "effect-subagent/providers"
import { ScriptedModel } from "effect-subagent/testing"

/** Any `LanguageModel` layer goes here. This one really counts the words it is asked about. */
const Model = ScriptedModel.layer(({ userText }) => ({ text: `${userText.split(/\s+/).length} words` }))

// #region example
const Agents = SpawnProvider.layer().pipe(
  Layer.provide(AgentRuntime.layer({ systemPrompt: "Count the words." })),
  Layer.provideMerge(Subagents.layer),
  Layer.provide(Model)
)

const program = Effect.gen(function* () {
  const subagents = yield* Subagents.Subagents
  const parent = yield* Agent.root({ cwd: process.cwd() })
  const result = yield* subagents.run("spawn", { parent, prompt: "how many words are these" })
  yield* Console.log(result.stopReason, Content.toText(result.output)) // completed 5 words
})

NodeRuntime.runMain(Effect.provide(program, Agents))
// #endregion
