/**
 * A host that delegates one prompt to an agent and waits, for the scenarios in which it is ended meanwhile. Its argument is the provider's options
 * and the prompt, as JSON. It ends with the process that started it, whose end closes its input.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Agent, Subagents } from "effect-subagent"
import { AcpProvider } from "effect-subagent/providers"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

const { options, prompt } = JSON.parse(process.argv[2] ?? "") as {
  readonly options: AcpProvider.Options
  readonly prompt: string
}

const inputEnds = Effect.callback<void>((resume) => {
  process.stdin.resume().once("close", () => resume(Effect.void))
})

Effect.gen(function* () {
  const subagents = yield* Subagents.Subagents
  const parent = yield* Agent.root()
  yield* Effect.raceFirst(subagents.run(options.name, { prompt, parent }), inputEnds)
}).pipe(
  Effect.provide(
    AcpProvider.layer(options).pipe(Layer.provideMerge(Subagents.layer), Layer.provide(NodeServices.layer))
  ),
  NodeRuntime.runMain
)
