/**
 * One agent of the loop: its history, and the turns that extend it.
 *
 * @since 0.1.0
 */
import type * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
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

/** Makes an agent, whose tools find `scope` as theirs. */
export const makeAgent = (loop: Loop, spec: AgentSpec, scope: Scope.Scope): AgentHandle => {
  const { emit, toolFilters } = spec
  const isAllowed = (name: string): boolean => allowsTool(toolFilters, name)
  const caller: Caller = {
    services: Context.make(CurrentAgent, spec.agent).pipe(Context.add(Scope.Scope, scope)),
    permit: (needsApproval, call, params) => permit(spec, history, needsApproval, call, params),
    onPreliminary: ({ id }, output) => emit({ _tag: "ToolCall", id, status: "running", output })
  }
  const call = callModel(
    loop,
    toolFilters.length === 0 ? "auto" : oneOf(Object.keys(loop.kit.tools).filter(isAllowed)),
    emit
  )

  /** Every tool call in it has its result: replaced whole, step by step. */
  let history = systemMessages(spec.options.systemPrompt ?? loop.systemPrompt)

  const remember = (reply: Reply, results: ReadonlyArray<ToolResult>): void => {
    history = [...history, ...reply.messages, ...toolMessages(results)]
  }

  const answered = (result: ToolResult): ToolResult => {
    emit({ _tag: "ToolCall", id: result.id, status: result.isFailure ? "failed" : "completed", output: result.result })
    return result
  }

  const answer = (call: ToolCall): Effect.Effect<ToolResult> =>
    Effect.suspend(() => {
      emit({ _tag: "ToolCall", id: call.id, status: "running" })
      const tool = isAllowed(call.name) ? loop.tools.get(call.name) : undefined
      return tool === undefined ? Effect.succeed(noSuchTool(call)) : tool(call, caller)
    }).pipe(Effect.map(answered))

  const noSuchTool = (call: ToolCall): ToolResult => {
    const names = listed([...loop.tools.keys()].filter(isAllowed))
    return failedResult(call, `There is no tool ${JSON.stringify(call.name)}; the tools there are: ${names}`)
  }

  const turn = Effect.fnUntraced(function* (prompt: ReadonlyArray<ContentBlock>) {
    const random = yield* Effect.service(Random.Random)
    const freshId = () => makeId(random)
    let usage: SubagentUsage = {}
    const ended = (outcome: ChildOutcome): ChildOutcome => (isEmpty(usage) ? outcome : { ...outcome, usage })

    history = [...history, userMessage(prompt)]
    for (let calls = 1; ; calls++) {
      const called = yield* Effect.exit(call(history, freshId))
      if (Exit.isFailure(called)) return ended(outcomeOfCause(called.cause))
      const reply = called.value
      if (!isEmpty(reply.usage)) {
        usage = sumOf(usage, reply.usage)
        emit({ _tag: "Usage", usage })
      }
      if (goesOn(reply) && calls < loop.maxTurns) {
        // one call alone needs no fiber of its own
        const concurrency = reply.calls.length === 1 ? 1 : loop.concurrency
        remember(reply, yield* Effect.forEach(reply.calls, answer, { concurrency }))
      } else {
        const outcome = outcomeOf(reply, loop.maxTurns)
        remember(
          reply,
          reply.calls.map((call) => answered(leftOut(call, outcome)))
        )
        return ended(outcome)
      }
    }
  })

  const oneTurn = Semaphore.makeUnsafe(1)
  return { turn: (prompt) => oneTurn.withPermit(turn(prompt)) }
}

/** A filtered agent gets the same toolkit as every other, for a model keeps one decoder, and is shown a part of it. */
const oneOf = (names: ReadonlyArray<string>): LanguageModel.ToolChoice<string> => ({ mode: "auto", oneOf: names })

/** One model call: what the model says is reported while it comes, or when it has come. */
const callModel =
  (loop: Loop, toolChoice: LanguageModel.ToolChoice<string>, emit: AgentSpec["emit"]) =>
  (history: ReadonlyArray<Prompt.Message>, freshId: () => string): Effect.Effect<Reply, AiError.AiError> => {
    const request = {
      prompt: Prompt.fromMessages(history),
      toolkit: loop.kit,
      toolChoice,
      disableToolCallResolution: true,
      toolCallValidation: "deferred"
    } as const
    return loop.streaming
      ? Effect.suspend(() => {
          const fold = new ReplyFold(emit, freshId)
          return Effect.map(
            Stream.runForEach(loop.model.streamText(request), (part) => Effect.sync(() => fold.add(part))),
            () => fold.end()
          )
        })
      : Effect.map(loop.model.generateText(request), ({ content }) => {
          const fold = new ReplyFold(emit, freshId)
          for (const part of content) fold.add(part)
          return fold.end()
        })
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
