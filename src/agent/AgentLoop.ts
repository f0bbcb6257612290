/**
 * The default way of running an agent: a loop of our own on `effect/ai`.
 *
 * One model call after another, the tools executed here, until the model has no more tools to call. A tool that does
 * not exist, is not allowed, gets bad arguments, fails or dies answers the model with a failed result and never ends
 * the agent. A step enters the history whole: what the model said together with the results of every tool it called,
 * so that an interrupted turn leaves a history that a model takes back.
 *
 * @since 0.1.0
 */
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import type { Concurrency } from "effect/Types"
import type { Capabilities } from "../Capabilities.ts"
import type { CurrentAgent } from "../CurrentAgent.ts"
import type { SubagentError } from "../SubagentError.ts"
import { fromReason, HistoryUnavailable, InvalidRequest, RequestIssue } from "../SubagentError.ts"
import { AgentModels } from "./AgentModels.ts"
import type { AgentHandle, AgentRuntime, AgentSpec } from "./AgentRuntime.ts"
import { AvailableTo } from "./AvailableTo.ts"
import { wrongOptions } from "./internal/loopOptions.ts"
import type { Loop, LoopAgent, Parts } from "./internal/loopAgent.ts"
import { makeAgent, steer, turnOf } from "./internal/loopAgent.ts"
import { defaultRetry, forTransient } from "./internal/modelCall.ts"
import type { Models } from "./internal/models.ts"
import { modelOf } from "./internal/models.ts"
import { messagesOf, seedOf } from "./internal/seed.ts"
import { submitTools } from "./internal/submission.ts"
import { unknownTools } from "./internal/toolNames.ts"
import type { BoundToolkit } from "./internal/tools.ts"
import { executableTools } from "./internal/tools.ts"

/**
 * A toolkit: with its handlers, or an effect that gives one. A `Toolkit` is such an effect itself, and takes its
 * handlers from the context.
 *
 * @category models
 * @since 0.1.0
 */
export type ToolkitOption<Tools extends Record<string, Tool.Any>, E, R> =
  | Toolkit.WithHandler<Tools>
  | Effect.Effect<Toolkit.WithHandler<Tools>, E, R>

/**
 * The services that the tools of a toolkit ask for when they are executed. The loop gives them `CurrentAgent`, and the
 * scope of the agent as `Scope`.
 *
 * @category type-level
 * @since 0.1.0
 */
export type ToolServices<Tools extends Record<string, Tool.Any>> = Exclude<
  Tool.HandlerServices<Tools[keyof Tools]>,
  CurrentAgent | Scope.Scope
>

/**
 * How agents are run.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options<Tools extends Record<string, Tool.Any> = {}, E = never, R = never> {
  /** The tools there are. A filter takes some of them away from an agent. */
  readonly toolkit?: ToolkitOption<Tools, E, R> | undefined
  /**
   * The most model calls for one prompt. The tools that the last of them calls are executed.
   *
   * @default 50
   */
  readonly maxTurns?: number | undefined
  /**
   * Whether an agent that has used up its model calls and is not done gets one more, without tools, to say what it has
   * got. What it says is its output; the turn ends as `error` all the same.
   *
   * @default true
   */
  readonly wrapUp?: boolean | undefined
  /** For agents that come without one of their own. */
  readonly systemPrompt?: string | undefined
  /**
   * Whether updates come while the model speaks, rather than when it has spoken.
   *
   * @default false
   */
  readonly streaming?: boolean | undefined
  /**
   * How many tool calls of one reply are executed at the same time.
   *
   * @default "unbounded"
   */
  readonly concurrency?: Concurrency | undefined
  /**
   * How often an agent that is asked for a value may try again: after one that does not fit, and after words instead.
   *
   * @default 2
   */
  readonly repairs?: number | undefined
  /**
   * When a model call that has failed is tried again, with the same conversation. It is asked only about errors that are
   * marked retryable, and waits at least as long as they say. What it gives up on ends the turn as `error`, and the agent
   * can go on from there with its next turn. Attempts do not count as `maxTurns`; `Schedule.recurs(0)` makes none.
   *
   * @default three more attempts, after about 1, 2 and 4 seconds
   */
  readonly retry?: Schedule.Schedule<unknown, AiError.AiError> | undefined
}

const capabilities: Capabilities = Object.freeze({
  outputSchema: true,
  depthLimit: true,
  toolFilter: true,
  systemPrompt: true,
  usage: true,
  turns: true,
  content: Object.freeze(["image", "audio", "resource_link", "resource"] as const)
})

const capabilitiesWithModels: Capabilities = Object.freeze({ ...capabilities, model: true })

/**
 * A runtime whose agents are run by the loop: on the `LanguageModel` in the context, or on one of `AgentModels`, if that
 * is in the context too. Fails with `InvalidRequest` for options that are not well formed, a misspelt key among them.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <Tools extends Record<string, Tool.Any> = {}, E = never, R = never>(
  options: Options<Tools, E, R> = {}
): Effect.Effect<AgentRuntime["Service"], E | SubagentError, LanguageModel.LanguageModel | R | ToolServices<Tools>> =>
  Effect.gen(function* () {
    const issues = wrongOptions(options)
    if (issues.length > 0) return yield* fromReason(new InvalidRequest({ issues }))
    const kit: BoundToolkit = yield* bound(options.toolkit)
    const context = yield* Effect.context<LanguageModel.LanguageModel | R | ToolServices<Tools>>()
    const named = yield* Effect.serviceOption(AgentModels)
    const loop: Loop = {
      kit,
      tools: executableTools(kit, context),
      restricted: restrictedTools(kit),
      submitTool: submitTools(kit),
      maxTurns: options.maxTurns ?? 50,
      wrapUp: options.wrapUp ?? true,
      systemPrompt: options.systemPrompt ?? "",
      streaming: options.streaming ?? false,
      concurrency: options.concurrency ?? "unbounded",
      repairs: options.repairs ?? 2,
      retry: forTransient(options.retry ?? defaultRetry)
    }
    const models: Models = {
      unnamed: Context.get(context, LanguageModel.LanguageModel),
      named: Option.getOrElse(named, () => new Map())
    }
    const agents = new Map<string, LoopAgent>()
    return {
      capabilities: Option.isSome(named) ? capabilitiesWithModels : capabilities,
      open: (spec) => open(loop, models, agents, spec),
      completedTurns: ({ id }) =>
        Effect.suspend(() => {
          const agent = agents.get(id)
          return agent === undefined
            ? Effect.fail(fromReason(new HistoryUnavailable({ agentId: id })))
            : seedOf(id, agent.ended)
        })
    }
  })

const bound = <Tools extends Record<string, Tool.Any>, E, R>(
  toolkit: ToolkitOption<Tools, E, R> | undefined
): Effect.Effect<BoundToolkit, E, R> =>
  // what is asked of the tools by name at run time is less than what their types know of each
  (toolkit === undefined
    ? Toolkit.empty
    : Effect.isEffect(toolkit)
      ? toolkit
      : Effect.succeed(toolkit)) as Effect.Effect<unknown, E, R> as Effect.Effect<BoundToolkit, E, R>

const restrictedTools = (kit: BoundToolkit): Loop["restricted"] =>
  new Map(
    Object.values(kit.tools)
      .filter(({ annotations }) => annotations.mapUnsafe.has(AvailableTo.key))
      .map(({ annotations, name }) => [name, Context.get(annotations, AvailableTo)])
  )

const open = (
  loop: Loop,
  models: Models,
  agents: Map<string, LoopAgent>,
  spec: AgentSpec
): Effect.Effect<AgentHandle, SubagentError, Scope.Scope> =>
  Effect.suspend(() => {
    const model = modelOf(models, spec)
    const issues = unknownTools(spec, Object.keys(loop.kit.tools))
    if (Result.isFailure(model)) return refuse([model.failure, ...issues])
    if (issues.length > 0) return refuse(issues)
    const enter = (parts: Parts) => admit(loop, agents, spec, parts)
    // most agents need nothing that takes an effect to make
    return spec.output === undefined && spec.seed === undefined
      ? enter({ model: model.success, submitTool: undefined, memory: [] })
      : Effect.flatMap(partsOf(loop, model.success, spec), enter)
  })

const refuse = (issues: ReadonlyArray<RequestIssue>): Effect.Effect<never, SubagentError> =>
  Effect.fail(fromReason(new InvalidRequest({ issues })))

const partsOf = Effect.fnUntraced(function* (
  loop: Loop,
  model: LanguageModel.LanguageModel,
  { output, seed }: AgentSpec
) {
  const submitTool = output && (yield* loop.submitTool(output.schema))
  const memory = seed === undefined ? [] : yield* messagesOf(seed)
  return { model, submitTool, memory }
})

/** Takes an agent in, until its scope closes. */
const admit = (
  loop: Loop,
  agents: Map<string, LoopAgent>,
  spec: AgentSpec,
  parts: Parts
): Effect.Effect<AgentHandle, SubagentError, Scope.Scope> =>
  Effect.flatMap(Effect.scope, (scope) => {
    const { id } = spec.agent
    // two agents of one id would answer for each other when somebody asks what one of them remembers
    if (agents.has(id)) {
      return refuse([new RequestIssue({ path: ["agent", "id"], message: "An agent of this id is open already" })])
    }
    const agent = makeAgent(loop, spec, scope, parts)
    agents.set(id, agent)
    const handle: AgentHandle = {
      turn: (prompt) => turnOf(agent, prompt),
      steer: (message) => steer(agent, message)
    }
    const leave = Effect.sync(() => agents.delete(id))
    return Effect.as(Scope.addFinalizer(scope, leave), handle)
  })
