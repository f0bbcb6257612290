/** What a runtime asks for, by its toolkit. */
import type { CurrentAgent, SubagentError, Subagents } from "effect-subagent"
import { AgentModels, AgentRuntime } from "effect-subagent/agent"
import { ForkProvider } from "effect-subagent/providers"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import type * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { expectTypeOf } from "vitest"

declare class Lamp extends Context.Service<Lamp, string>()("test/Lamp") {}
declare const current: Context.Key<CurrentAgent.CurrentAgent, CurrentAgent.CurrentAgent["Service"]>
declare const scope: Context.Key<Scope.Scope, Scope.Scope>
declare const lamp: Context.Key<Lamp, string>

type Runtime<R> = Layer.Layer<AgentRuntime.AgentRuntime, SubagentError.SubagentError, R>

expectTypeOf(AgentRuntime.layer()).toEqualTypeOf<Runtime<LanguageModel.LanguageModel>>()
expectTypeOf(AgentRuntime.layer({ toolkit: Toolkit.empty })).toEqualTypeOf<Runtime<LanguageModel.LanguageModel>>()

const Look = Tool.make("look", { dependencies: [current, scope, lamp] })
const kit = Toolkit.make(Look, Tool.make("nod"))
expectTypeOf(AgentRuntime.layer({ toolkit: kit })).toEqualTypeOf<
  Runtime<LanguageModel.LanguageModel | Tool.Handler<"look"> | Tool.Handler<"nod"> | Lamp>
>()

declare const bound: Effect.Success<typeof kit>
expectTypeOf(AgentRuntime.layer({ toolkit: bound, maxTurns: 3 })).toEqualTypeOf<
  Runtime<LanguageModel.LanguageModel | Lamp>
>()

// @ts-expect-error: not a toolkit
AgentRuntime.layer({ toolkit: { tools: {} } })
// @ts-expect-error: a misspelt option
AgentRuntime.layer({ maxTurn: 3 })

/** Models of several kinds: what each of them may fail with and needs is kept. */
declare const fast: Layer.Layer<LanguageModel.LanguageModel, "no key", Lamp>
declare const deep: Layer.Layer<LanguageModel.LanguageModel, "no host">
expectTypeOf(AgentModels.layer({ fast, deep })).toEqualTypeOf<
  Layer.Layer<AgentModels.AgentModels, "no key" | "no host", Lamp>
>()
declare const Lights: Layer.Layer<Lamp>
// @ts-expect-error: a layer that gives no model
AgentModels.layer({ fast: Lights })

expectTypeOf(ForkProvider.layer()).toEqualTypeOf<
  Layer.Layer<never, SubagentError.SubagentError, Subagents.Subagents | AgentRuntime.AgentRuntime>
>()
