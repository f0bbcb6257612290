/** Delegates to any agent that speaks the Agent Client Protocol: `node … acp.ts COMMAND ARGS…`, or a stand-in. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Agent, Content, Subagents } from "effect-subagent"
import { AcpProvider } from "effect-subagent/providers"

const [command = process.execPath, ...args] = process.argv.slice(2)
if (args.length === 0 && command === process.execPath) args.push(`${import.meta.dirname}/acp/echoAgent.ts`)

// #region layer
const Agents = AcpProvider.layer({ name: "agent", command, args, permission: "deny" }).pipe(
  Layer.provideMerge(Subagents.layer),
  Layer.provide(NodeServices.layer)
)
// #endregion

const program = Effect.gen(function* () {
  const subagents = yield* Subagents.Subagents
  const parent = yield* Agent.root({ cwd: process.cwd() })
  const { failure, output, stopReason } = yield* subagents.run("agent", { parent, prompt: "Say hello." })
  yield* Console.log(stopReason, failure?.message ?? Content.toText(output)) // the stand-in: completed Say hello.
})

NodeRuntime.runMain(Effect.provide(program, Agents))
