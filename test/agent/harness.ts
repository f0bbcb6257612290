/** Opens an agent on a scripted model, and keeps what it reports. */
import { Agent, type SubagentError, Content, type SubagentUpdate } from "effect-subagent"
import { type AgentLoop, AgentRuntime } from "effect-subagent/agent"
import { ScriptedModel } from "effect-subagent/testing"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

/** Two tools that never fail. */
export const Add = Tool.make("add", {
  parameters: Schema.Struct({ a: Schema.Number, b: Schema.Number }),
  success: Schema.Number
})
export const Shout = Tool.make("shout", { parameters: Schema.Struct({ text: Schema.String }), success: Schema.String })
export const kit = Toolkit.make(Add, Shout)
export const handlers = kit.toLayer({
  add: ({ a, b }) => Effect.succeed(a + b),
  shout: ({ text }) => Effect.succeed(`${text.toUpperCase()}!`)
})

type Runtime = AgentRuntime.AgentRuntime | ScriptedModel.ScriptedModel

/** A runtime with these two tools. */
export const calculator = (
  script: ScriptedModel.Script,
  options: Pick<AgentLoop.Options, "maxTurns" | "wrapUp" | "streaming" | "concurrency" | "retry"> = {}
): Layer.Layer<Runtime, SubagentError.SubagentError> =>
  AgentRuntime.layer({ toolkit: kit, ...options }).pipe(
    Layer.provide(handlers),
    Layer.provideMerge(ScriptedModel.layer(script))
  )

/** Opens an agent of a runtime, in the scope of the test. */
export const open = Effect.fnUntraced(function* (
  runtime: Layer.Layer<Runtime, SubagentError.SubagentError>,
  spec: Partial<AgentRuntime.AgentSpec> = {}
) {
  const context = yield* Layer.build(runtime)
  const updates: Array<SubagentUpdate.UnstampedUpdate> = []
  const agent = spec.agent ?? (yield* Agent.root())
  const handle = yield* Context.get(context, AgentRuntime.AgentRuntime).open({
    agent,
    options: {},
    policy: AgentRuntime.openPolicy,
    emit: (update) => updates.push(update),
    ...spec
  })
  return {
    agent,
    updates,
    turn: (prompt: string) => handle.turn([Content.text(prompt)]),
    prompt: handle.turn,
    send: handle.steer!,
    steer: (text: string) => handle.steer!({ messageId: text, content: [Content.text(text)] }),
    calls: Context.get(context, ScriptedModel.ScriptedModel).calls
  }
})

/** The policy of an agent with these filters. */
export const filtered = (
  ...toolFilters: AgentRuntime.AgentSpec["policy"]["toolFilters"]
): AgentRuntime.AgentSpec["policy"] => ({ ...AgentRuntime.openPolicy, toolFilters })

/** The results that the model got in one of its calls, as it got them. */
export const resultsOf = (call: ScriptedModel.ScriptedCall | undefined) =>
  call?.toolResults.map(({ id, isFailure, name, result }) => ({ id, name, isFailure, result }))

/** A conversation in short: who said what. */
export const outline = (
  call: ScriptedModel.ScriptedCall | undefined
): ReadonlyArray<{ readonly role: string; readonly content: string | ReadonlyArray<string> }> | undefined =>
  call?.prompt.content.map((message) => ({
    role: message.role,
    content:
      typeof message.content === "string"
        ? message.content
        : message.content.map((part) =>
            part.type === "text" || part.type === "reasoning"
              ? part.text
              : part.type === "tool-call"
                ? `${part.id} ${part.name}`
                : part.type === "tool-result"
                  ? `${part.id} ${part.isFailure ? "failed" : "gave"} ${JSON.stringify(part.result)}`
                  : part.type
          )
  }))
