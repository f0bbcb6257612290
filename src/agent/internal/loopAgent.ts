/**
 * One agent of the loop: its history, and the turns that extend it.
 *
 * @since 0.1.0
 */
import type * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Concurrency } from "effect/Types"
import type { ContentBlock } from "../../Content.ts"
import { CurrentAgent } from "../../CurrentAgent.ts"
import { makeId } from "../../internal/id.ts"
import type { ChildOutcome } from "../../SubagentProvider.ts"
import { allowsTool } from "../../SubagentRequest.ts"
import type { SubagentUsage } from "../../SubagentResult.ts"
import type { AgentHandle, AgentSpec } from "../AgentRuntime.ts"
import { systemMessages, toolMessages, userMessage } from "./history.ts"
import { outcomeOfCap, outcomeOfCause, outcomeOfError, outcomeOfReply, sumOf } from "./outcome.ts"
import { permit } from "./permission.ts"
import type { Reply, ToolCall } from "./reply.ts"
import { ReplyFold } from "./reply.ts"
import { listed } from "./toolNames.ts"
import type { BoundToolkit, Caller, ExecutableTool, ToolResult } from "./tools.ts"
import { failedResult, unexecutedResult } from "./tools.ts"

/** What the agents of one runtime share: how they are run. */
export interface Loop {
  readonly kit: BoundToolkit
  readonly tools: ReadonlyMap<string, ExecutableTool>
  readonly model: LanguageModel.LanguageModel
  readonly maxTurns: number
  readonly systemPrompt: string
  readonly streaming: boolean
  readonly concurrency: Concurrency
}

/** An open agent, from the inside. */
interface OpenAgent {
  readonly loop: Loop
  readonly spec: AgentSpec
  readonly scope: Scope.Scope
  readonly toolChoice: LanguageModel.ToolChoice<string>
  /** Every tool call in it has its result: replaced whole, step by step. */
  history: ReadonlyArray<Prompt.Message>
  /** Made for the first tool that is called. */
  caller: Caller | undefined
  /** Over when the turn at work is. */
  atWork: Deferred.Deferred<void> | undefined
}

/** Makes an agent, whose tools find `scope` as theirs. */
export const makeAgent = (loop: Loop, spec: AgentSpec, scope: Scope.Scope): AgentHandle => {
  const { options, toolFilters } = spec
  const agent: OpenAgent = {
    loop,
    spec,
    scope,
    // a filtered agent gets the same toolkit as every other, for a model keeps one decoder, and is shown a part of it
    toolChoice:
      toolFilters.length === 0
        ? "auto"
        : { mode: "auto", oneOf: Object.keys(loop.kit.tools).filter((name) => allowsTool(toolFilters, name)) },
    history: systemMessages(options.systemPrompt ?? loop.systemPrompt),
    caller: undefined,
    atWork: undefined
  }
  return { turn: (prompt) => inTurn(agent, runTurn(agent, prompt)) }
}

/** Turns follow one another. Most agents have just one, so waiting must not cost those that have nothing to wait for. */
const inTurn = <A>(agent: OpenAgent, turn: Effect.Effect<A>): Effect.Effect<A> =>
  Effect.suspend(() => {
    const over = Deferred.makeUnsafe<void>()
    const begin: Effect.Effect<A> = Effect.suspend(() => {
      if (agent.atWork !== undefined) return Effect.flatMap(Deferred.await(agent.atWork), () => begin)
      agent.atWork = over
      return turn
    })
    return Effect.onExit(begin, () => {
      if (agent.atWork !== over) return Effect.void
      agent.atWork = undefined
      return Deferred.succeed(over, undefined)
    })
  })

const callerOf = (agent: OpenAgent): Caller => {
  const { scope, spec } = agent
  return (agent.caller ??= {
    services: Context.make(CurrentAgent, spec.agent).pipe(Context.add(Scope.Scope, scope)),
    permit: (needsApproval, call, params) => permit(spec, agent.history, needsApproval, call, params),
    onPreliminary: ({ id }, output) => spec.emit({ _tag: "ToolCall", id, status: "running", output })
  })
}

const runTurn = Effect.fnUntraced(function* (agent: OpenAgent, prompt: ReadonlyArray<ContentBlock>) {
  const { loop, spec } = agent
  const random = yield* Effect.service(Random.Random)
  const freshId = () => makeId(random)
  let usage: SubagentUsage = {}
  const ended = (outcome: ChildOutcome): ChildOutcome => (isEmpty(usage) ? outcome : { ...outcome, usage })

  // it stays there if the turn ends badly, so that the next prompt can refer to it
  agent.history = [...agent.history, userMessage(prompt)]
  for (let calls = 1; ; calls++) {
    const called = yield* Effect.exit(Effect.suspend(() => callModel(agent, freshId)))
    if (Exit.isFailure(called)) return ended(outcomeOfCause(called.cause))
    const reply = called.value
    if (!isEmpty(reply.usage)) {
      usage = sumOf(usage, reply.usage)
      spec.emit({ _tag: "Usage", usage })
    }
    if (goesOn(reply) && calls < loop.maxTurns) {
      // one call alone needs no fiber of its own
      const concurrency = reply.calls.length === 1 ? 1 : loop.concurrency
      remember(agent, reply, yield* Effect.forEach(reply.calls, (call) => answer(agent, call), { concurrency }))
    } else {
      const outcome = outcomeOf(reply, loop.maxTurns)
      const results = reply.calls.map((call) => answered(agent, leftOut(call, outcome)))
      remember(agent, reply, results)
      return ended(outcome)
    }
  }
})

/** One model call: what the model says is reported while it comes, or when it has come. */
const callModel = (
  { history, loop, spec, toolChoice }: OpenAgent,
  freshId: () => string
): Effect.Effect<Reply, AiError.AiError> => {
  const request = {
    prompt: Prompt.fromMessages(history),
    toolkit: loop.kit,
    toolChoice,
    disableToolCallResolution: true,
    toolCallValidation: "deferred"
  } as const
  return loop.streaming
    ? Effect.suspend(() => {
        const fold = new ReplyFold(spec.emit, freshId)
        return Effect.map(
          Stream.runForEachArray(loop.model.streamText(request), (parts) => Effect.sync(() => fold.add(parts))),
          () => fold.end()
        )
      })
    : Effect.map(loop.model.generateText(request), ({ content }) =>
        new ReplyFold(spec.emit, freshId).add(content).end()
      )
}

const answer = (agent: OpenAgent, call: ToolCall): Effect.Effect<ToolResult> =>
  Effect.suspend(() => {
    const { loop, spec } = agent
    spec.emit({ _tag: "ToolCall", id: call.id, status: "running" })
    const tool = allowsTool(spec.toolFilters, call.name) ? loop.tools.get(call.name) : undefined
    return tool === undefined
      ? Effect.succeed(answered(agent, noSuchTool(agent, call)))
      : Effect.map(tool(call, callerOf(agent)), (result) => answered(agent, result))
  })

const noSuchTool = ({ loop, spec }: OpenAgent, call: ToolCall): ToolResult => {
  const names = listed([...loop.tools.keys()].filter((name) => allowsTool(spec.toolFilters, name)))
  return failedResult(call, `There is no tool ${JSON.stringify(call.name)}; the tools there are: ${names}`)
}

const answered = ({ spec }: OpenAgent, result: ToolResult): ToolResult => {
  const status = result.isFailure ? "failed" : "completed"
  spec.emit({ _tag: "ToolCall", id: result.id, status, output: result.result })
  return result
}

const remember = (agent: OpenAgent, reply: Reply, results: ReadonlyArray<ToolResult>): void => {
  agent.history = [...agent.history, ...reply.messages, ...toolMessages(results)]
}

const isEmpty = (usage: SubagentUsage): boolean => Object.keys(usage).length === 0

/** Whether there are tool calls to run, and the model meant to be done when it made them. */
const goesOn = ({ calls, error, finishReason }: Reply): boolean =>
  error === undefined && calls.length > 0 && (finishReason === "tool-calls" || finishReason === "stop")

const outcomeOf = (reply: Reply, maxTurns: number): ChildOutcome =>
  reply.error !== undefined
    ? outcomeOfError(reply.error.value)
    : goesOn(reply)
      ? outcomeOfCap(maxTurns)
      : outcomeOfReply(reply.finishReason)

/** The result of a call that the end of the turn came before. */
const leftOut = (call: ToolCall, { failure }: ChildOutcome): ToolResult =>
  unexecutedResult(call, "execution-interrupted", `The tool was not executed. ${failure?.message}`)
