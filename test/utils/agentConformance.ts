/** The default runtime, on a model that does what the conformance suite prompts for. */
import type { SubagentError } from "effect-subagent"
import { AgentModels, AgentRuntime } from "effect-subagent/agent"
import { type ProviderConformance, ScriptedModel } from "effect-subagent/testing"
import * as AiError from "effect/ai/AiError"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"

/** How many tools are at work. */
export class AtWork extends Context.Service<AtWork, { count: number }>()("test/AtWork") {}

const kit = Toolkit.make(
  Tool.make("look", { success: Schema.String }),
  Tool.make("wait"),
  Tool.make("pause"),
  Tool.make("remove", { success: Schema.String, needsApproval: true })
)

const handlers = kit.toLayer(
  Effect.map(Effect.service(AtWork), (atWork) => ({
    look: () => Effect.succeed("seen"),
    pause: () => Effect.sleep("5 millis"),
    remove: () => Effect.succeed("gone"),
    wait: () =>
      Effect.acquireUseRelease(
        Effect.sync(() => atWork.count++),
        () => Effect.never,
        () => Effect.sync(() => atWork.count--)
      )
  }))
)

const call = (name: string, params: object = {}) => [{ name, params }]

const answer: ScriptedModel.Step = { text: ["the ", "answer"], usage: { input: 1, output: 2 } }

const steps: { readonly [prompt: string]: ScriptedModel.Step } = {
  go: answer,
  hang: { toolCalls: call("wait") },
  stream: { text: "so far", toolCalls: call("wait") },
  fail: { fail: new AiError.RateLimitError({}) },
  listen: { toolCalls: call("pause") },
  look: { text: "let me look", toolCalls: call("look") },
  remove: { text: "let me tidy up", toolCalls: call("remove") },
  submit: { toolCalls: call("submit_result", { count: "3" }) },
  "submit wrongly": { toolCalls: call("submit_result", { count: 3 }) }
}

const rule: ScriptedModel.Rule = ({ prompt, toolResults }) => {
  // what a child is told beside its prompt comes after it, and is none of the prompts
  const texts = prompt.content.flatMap(({ content, role }) =>
    role === "user" ? content.flatMap((part) => (part.type === "text" ? [part.text] : [])) : []
  )
  const step = steps[texts.findLast((text) => text in steps) ?? "go"]!
  if (step === steps["listen"]) return texts.at(-1) === "listen" ? step : answer
  const isSubmitting = step.toolCalls?.[0]?.name === "submit_result"
  return toolResults.length === 0 || isSubmitting ? step : answer
}

/** The runtime, with one model beside that has a name. */
export const runtime = (options: {
  readonly streaming: boolean
}): Layer.Layer<AgentRuntime.AgentRuntime | AtWork, SubagentError.SubagentError> =>
  AgentRuntime.layer({ toolkit: kit, retry: Schedule.recurs(1), ...options }).pipe(
    Layer.provide(handlers),
    Layer.provide([ScriptedModel.layer(rule), AgentModels.layer({ other: ScriptedModel.layer(rule) })]),
    Layer.provideMerge(
      Layer.effect(
        AtWork,
        Effect.sync(() => ({ count: 0 }))
      )
    )
  )

/** What the suite is told of providers on it. */
export const conformance = {
  prompts: {
    complete: "go",
    hang: "hang",
    fail: "fail",
    stream: "stream",
    callTool: "look",
    ask: "remove",
    submit: "submit",
    submitInvalid: "submit wrongly",
    steer: "listen",
    resume: "go"
  },
  capabilities: {
    outputSchema: true,
    depthLimit: true,
    toolFilter: true,
    model: true,
    systemPrompt: true,
    usage: true,
    turns: true,
    content: true
  },
  world: Effect.map(Effect.service(AtWork), ({ count }) => ({ sessions: 0, turns: count })),
  print: () => {}
} satisfies Omit<ProviderConformance.Options<AtWork>, "describe" | "it">
