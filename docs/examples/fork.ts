/** A fork knows the conversation, a spawn does not. The model is a stand-in that repeats all that it was told. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Agent, Content, Subagents } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { ForkProvider, SpawnProvider } from "effect-subagent/providers"
import { ScriptedModel } from "effect-subagent/testing"

const Model = ScriptedModel.layer(({ prompt }) => ({
  text: prompt.content
    .flatMap(({ content, role }) => (role === "user" ? content : []))
    .map((part) => (part.type === "text" ? part.text : ""))
    .join(" ")
}))

const Agents = Layer.mergeAll(SpawnProvider.layer(), ForkProvider.layer()).pipe(
  Layer.provideMerge(AgentRuntime.layer()),
  Layer.provideMerge(Subagents.layer),
  Layer.provide(Model)
)

const program = Effect.gen(function* () {
  const runtime = yield* AgentRuntime.AgentRuntime
  const subagents = yield* Subagents.Subagents
  const parent = yield* Agent.root()
  // the host opens its own agent with the same runtime, which therefore knows what was said
  const root = yield* runtime.open({ agent: parent, options: {}, policy: AgentRuntime.openPolicy, emit: () => {} })
  yield* root.turn([Content.text("The word is swordfish.")])
  for (const provider of ["spawn", "fork"]) {
    const { output } = yield* subagents.run(provider, { parent, prompt: "What is the word?" })
    yield* Console.log(`${provider} was told: ${Content.toText(output)}`)
  }
})

NodeRuntime.runMain(Effect.scoped(Effect.provide(program, Agents)))
