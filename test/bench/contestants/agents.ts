/** Ours on `effect/ai`: parent and children are agents of the default runtime, on one model and one toolkit. */
import { Agent, Content, type Limits, Subagents, type SubagentUpdate } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { SpawnProvider } from "effect-subagent/providers"
import { SubagentTool } from "effect-subagent/tool"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { MakeContestant } from "../Contestant.ts"
import { childSystem, type Gate, parentSystem } from "../gate.ts"
import { makeSharedModel } from "./models.ts"
import { allLimits, childOf, makeSeam } from "./seam.ts"

const Echo = Tool.make("echo", { parameters: Schema.Struct({ text: Schema.String }), success: Schema.String })
const kit = Toolkit.make(Echo)
const handlers = kit.toLayer({ echo: ({ text }) => Effect.succeed(text) })
const binding = { provider: "spawn", agentOptions: { systemPrompt: childSystem } } as const

/** The default runtime, whose agents have these tools and the one that delegates. */
export const makeRuntime = <Tools extends Record<string, Tool.Any>>(
  seam: Subagents.Subagents["Service"],
  gate: Gate,
  toolkit: Toolkit.Toolkit<Tools>,
  handlers: Layer.Layer<Tool.HandlersFor<Tools>>
) =>
  Effect.map(
    Layer.build(
      AgentRuntime.layer({
        toolkit: SubagentTool.toolkit([SubagentTool.make(binding)], { with: toolkit }),
        systemPrompt: childSystem
      }).pipe(
        Layer.provide([SubagentTool.layer(binding), handlers]),
        Layer.provide(Layer.effect(LanguageModel.LanguageModel, makeSharedModel(gate))),
        Layer.provide(Layer.succeed(Subagents.Subagents, seam))
      )
    ),
    (context) => Context.get(context, AgentRuntime.AgentRuntime)
  )

const make = (limits: Partial<Limits.LimitsOptions>): MakeContestant =>
  Effect.fnUntraced(function* (gate) {
    const { heard, parent, seam } = yield* makeSeam(limits)
    const runtime = yield* makeRuntime(seam, gate, kit, handlers)
    yield* seam.register(SpawnProvider.fromRuntime(runtime))
    const delegation = (prompt: string) =>
      Effect.scoped(
        Effect.gen(function* () {
          const agent = yield* Agent.root({ cwd: process.cwd() })
          let text = ""
          const handle = yield* runtime.open({
            agent,
            options: { systemPrompt: parentSystem },
            policy: AgentRuntime.openPolicy,
            emit: (update: SubagentUpdate.UnstampedUpdate) => {
              if (update._tag === "Content" && update.block.type === "text") text += update.block.text
            }
          })
          yield* handle.turn([Content.text(prompt)])
          return text
        })
      )
    return { child: childOf(seam, "spawn", parent), delegation, heard }
  })

export const makeAgents = make({})

/** The same with every limit set. */
export const makeLimitedAgents = make(allLimits)
