/** A host with limits, and a tenant with a budget. The model is a stand-in that says what it has used. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Agent, Budget, Limits, Subagents } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { SpawnProvider } from "effect-subagent/providers"
import { ScriptedModel } from "effect-subagent/testing"

const Model = ScriptedModel.layer(() => ({ text: "hello", usage: { input: 200, output: 100 } }))

// #region host
const HostLimits = Limits.layer({
  maxDepth: 2,
  maxRuns: 100,
  maxConcurrent: { overall: 4 },
  timeout: "10 minutes",
  idleTimeout: "1 minute"
})

const Agents = SpawnProvider.layer().pipe(
  Layer.provide(AgentRuntime.layer()),
  Layer.provideMerge(Subagents.layer),
  Layer.provide([HostLimits, Model]) // to the seam
)
// #endregion

const program = Effect.gen(function* () {
  const subagents = yield* Subagents.Subagents
  const parent = yield* Agent.root()
  // #region budget
  const overall = yield* Budget.make({ name: "overall", maxTokens: 1_000_000 })
  const acme = yield* Budget.make({ name: "acme", maxTokens: 1_000, maxRuns: 5, parent: overall })
  const asked = subagents.run("spawn", { parent, prompt: "say hello", maxTokens: 400 })
  const { usage } = yield* Effect.provideService(asked, Budget.Current, acme)
  yield* Console.log(usage, yield* acme.spent) // { input: 200, … } { tokens: 300, reserved: 0, runs: 1 }
  // #endregion
  // 300 of 1,000 are used: 800 more can't be reserved
  const refused = subagents.run("spawn", { parent, prompt: "say more", maxTokens: 800 })
  const { message } = yield* Effect.flip(Effect.provideService(refused, Budget.Current, acme))
  yield* Console.log(message)
})

NodeRuntime.runMain(Effect.provide(program, Agents))
