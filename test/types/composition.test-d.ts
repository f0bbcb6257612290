import type { SubagentError } from "effect-subagent"
import { Subagents } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { SpawnProvider } from "effect-subagent/providers"
import { SubagentTool } from "effect-subagent/tool"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { expectTypeOf } from "vitest"

const Host = Toolkit.make(Tool.make("clock", { success: Schema.String }))
const Agents = AgentRuntime.layer({
  toolkit: SubagentTool.toolkit([SubagentTool.make({ provider: "spawn" })], { with: Host })
}).pipe(
  Layer.provide([Host.toLayer({ clock: () => Effect.succeed("noon") }), SubagentTool.layer({ provider: "spawn" })])
)
const Main = SpawnProvider.layer().pipe(Layer.provideMerge(Agents), Layer.provideMerge(Subagents.layer))

// what the design composes needs a model and nothing else, and says how it can fail
expectTypeOf<Layer.Services<typeof Main>>().toEqualTypeOf<LanguageModel.LanguageModel>()
expectTypeOf<Layer.Error<typeof Main>>().toEqualTypeOf<SubagentError.SubagentError>()
expectTypeOf<Layer.Success<typeof Main>>().toEqualTypeOf<Subagents.Subagents | AgentRuntime.AgentRuntime>()

// a toolkit's handlers are asked for when it is handed in without them
export const plain = AgentRuntime.layer({ toolkit: Host })
expectTypeOf<Layer.Services<typeof plain>>().toEqualTypeOf<LanguageModel.LanguageModel | Tool.Handler<"clock">>()
export const none = AgentRuntime.layer()
expectTypeOf<Layer.Services<typeof none>>().toEqualTypeOf<LanguageModel.LanguageModel>()
