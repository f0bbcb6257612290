/**
 * One agent of the loop: its history, and the turns that extend it.
 *
 * @since 0.1.0
 */
import type * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import type { Concurrency } from "effect/Types"
import type { Agent } from "../../Agent.ts"
import type { ContentBlock } from "../../Content.ts"
import { CurrentAgent } from "../../CurrentAgent.ts"
import { makeId } from "../../internal/id.ts"
import { fromReason, RunSettled, type SubagentError } from "../../SubagentError.ts"
import type { ChildMessage, ChildOutcome, Policy } from "../../SubagentProvider.ts"
import type { SchemaSpec } from "../../SubagentRequest.ts"
import { allowsTool } from "../../SubagentRequest.ts"
import type { SubagentFailure, SubagentUsage } from "../../SubagentResult.ts"
import type { AgentSpec } from "../AgentRuntime.ts"
import { systemMessages, toolMessages, userMessage, withSystem } from "./history.ts"
import { noticeOf, refusalOf } from "./limit.ts"
import type { ModelCall, RetrySchedule } from "./modelCall.ts"
import { callModel } from "./modelCall.ts"
import { outcomeOfCause, outcomeOfError, outcomeOfReply, sumOf } from "./outcome.ts"
import { permit } from "./permission.ts"
import type { Reply, ToolCall } from "./reply.ts"
import type { SubmitTool } from "./submission.ts"
import { Submission } from "./submission.ts"
import { listed } from "./toolNames.ts"
import type { BoundToolkit, Caller, ExecutableTool, ToolResult } from "./tools.ts"
import { failedResult, unexecutedResult } from "./tools.ts"

/** What the agents of one runtime share: how they are run. */
export interface Loop {
  readonly kit: BoundToolkit
  readonly tools: ReadonlyMap<string, ExecutableTool>
  /** The tools that are not for every agent. */
  readonly restricted: ReadonlyMap<string, (agent: Agent, policy: Policy) => boolean>
  readonly submitTool: (schema: SchemaSpec) => Effect.Effect<SubmitTool, SubagentError>
  readonly maxTurns: number
  readonly wrapUp: boolean
  readonly systemPrompt: string
  readonly streaming: boolean
  readonly concurrency: Concurrency
  readonly repairs: number
  readonly retry: RetrySchedule
}

/** What an agent is made from, looked up. */
export interface Parts {
  readonly model: LanguageModel.LanguageModel
  /** Whether and how it is to submit a value. */
  readonly submitTool: SubmitTool | undefined
  /** What it remembers from the start. */
  readonly memory: ReadonlyArray<Prompt.Message>
}

/** An open agent, from the inside. */
export interface LoopAgent {
  readonly loop: Loop
  readonly spec: AgentSpec
  readonly scope: Scope.Scope
  readonly model: LanguageModel.LanguageModel
  readonly submitTool: SubmitTool | undefined
  readonly toolChoice: LanguageModel.ToolChoice<string>
  /** Every tool call in it has its result: replaced whole, step by step. */
  history: ReadonlyArray<Prompt.Message>
  /** The history as it was when the last turn ended; empty if there was none. */
  ended: ReadonlyArray<Prompt.Message>
  /** What was sent to the turn at work and is not in the history yet. Without an inbox, nothing is taken in. */
  inbox: Array<{ readonly messageId: string; readonly message: Prompt.UserMessage }> | undefined
  /** Made for the first tool that is called. */
  caller: Caller | undefined
  /** Over when the turn at work is. */
  atWork: Deferred.Deferred<void> | undefined
}

/** Makes an agent, whose tools find `scope` as theirs. */
export const makeAgent = (loop: Loop, spec: AgentSpec, scope: Scope.Scope, parts: Parts): LoopAgent => {
  const { model, submitTool } = parts
  const memory = withSystem(parts.memory, spec.options.systemPrompt)
  const isKnown = parts.memory.length > 0
  return {
    loop,
    spec,
    scope,
    model,
    submitTool,
    toolChoice: toolChoiceOf(loop, spec, submitTool),
    history: isKnown ? memory : systemMessages(spec.options.systemPrompt ?? loop.systemPrompt),
    ended: isKnown ? memory : [],
    inbox: undefined,
    caller: undefined,
    atWork: undefined
  }
}

/** A prompt for an agent, and its answer. */
export const turnOf = (agent: LoopAgent, prompt: ReadonlyArray<ContentBlock>): Effect.Effect<ChildOutcome> =>
  Effect.withFiber((fiber) => inTurn(agent, runTurn(agent, prompt, fiber.getRef(Random.Random))))

/** Takes a message in for the turn at work. Fails with `RunSettled` if there is none, or if it has decided to end. */
export const steer = (agent: LoopAgent, { content, messageId }: ChildMessage): Effect.Effect<void, SubagentError> =>
  Effect.suspend(() => {
    const { agent: self, lineage } = agent.spec
    if (agent.inbox === undefined) return Effect.fail(fromReason(new RunSettled({ runId: lineage?.runId ?? self.id })))
    agent.inbox.push({ messageId, message: userMessage(content) })
    return Effect.void
  })

/**
 * Every agent gives its model the same toolkit, for a model keeps one decoder; one that may not use all of it has the
 * model shown a part. A tool to submit with is no part of what can be filtered.
 */
const toolChoiceOf = (
  { kit, restricted }: Loop,
  { agent, policy }: AgentSpec,
  submitTool: SubmitTool | undefined
): LanguageModel.ToolChoice<string> => {
  const { toolFilters } = policy
  const withheld = withheldFrom(restricted, agent, policy)
  if (toolFilters.length === 0 && withheld === undefined) return "auto"
  const all = Object.keys(kit.tools)
  const shown = all.filter((name) => allowsTool(toolFilters, name) && withheld?.has(name) !== true)
  if (shown.length === all.length) return "auto"
  return { mode: "auto", oneOf: submitTool === undefined ? shown : [...shown, submitTool.name] }
}

/** The tools that are not for this agent, if there are any. */
const withheldFrom = (restricted: Loop["restricted"], agent: Agent, policy: Policy): Set<string> | undefined => {
  let withheld: Set<string> | undefined
  restricted.forEach((isFor, name) => {
    if (!isFor(agent, policy)) withheld = (withheld ?? new Set()).add(name)
  })
  return withheld
}

/** Turns follow one another. Most agents have just one, so waiting must not cost those that have nothing to wait for. */
const inTurn = <A>(agent: LoopAgent, turn: Effect.Effect<A>): Effect.Effect<A> =>
  Effect.suspend(() => {
    const over = Deferred.makeUnsafe<void>()
    const begin: Effect.Effect<A> = Effect.suspend(() => {
      if (agent.atWork !== undefined) return Effect.flatMap(Deferred.await(agent.atWork), () => begin)
      agent.atWork = over
      agent.inbox = []
      return turn
    })
    return Effect.onExit(begin, () => {
      if (agent.atWork !== over) return Effect.void
      agent.atWork = undefined
      agent.inbox = undefined
      agent.ended = agent.history
      return Deferred.succeed(over, undefined)
    })
  })

const callerOf = (agent: LoopAgent): Caller => {
  const { scope, spec } = agent
  return (agent.caller ??= {
    services: Context.make(CurrentAgent, spec.agent).pipe(Context.add(Scope.Scope, scope)),
    permit: (needsApproval, call, params) => permit(spec, agent.history, needsApproval, call, params),
    onPreliminary: ({ id }, output) => spec.emit({ _tag: "ToolCall", id, status: "running", output })
  })
}

const runTurn = Effect.fnUntraced(function* (
  agent: LoopAgent,
  prompt: ReadonlyArray<ContentBlock>,
  random: Random.Random
) {
  const { loop, spec } = agent
  const freshId = () => makeId(random)
  let usage: SubagentUsage = {}
  /** From here on no message is taken in: nothing comes between this and the decision to end. */
  const ended = (outcome: ChildOutcome): ChildOutcome => {
    agent.inbox = undefined
    return isEmpty(usage) ? outcome : { ...outcome, usage }
  }
  const request: ModelCall = {
    model: agent.model,
    kit: agent.submitTool?.kit ?? loop.kit,
    toolChoice: agent.toolChoice,
    streaming: loop.streaming,
    retry: loop.retry,
    messages: () => takeIn(agent),
    emit: spec.emit,
    meter: () => {
      const before = usage
      return (used) => {
        if (isEmpty(used)) return
        usage = sumOf(before, used)
        spec.emit({ _tag: "Usage", usage })
      }
    },
    freshId
  }
  const call = callModel(request)

  const submission = agent.submitTool && spec.output && new Submission(agent.submitTool, spec.output, loop.repairs)
  // it stays there if the turn ends badly, so that the next prompt can refer to it
  agent.history = [...agent.history, submission ? userMessage(prompt, submission.instruction) : userMessage(prompt)]
  /** How the turn ends if there is no further call: it has its answer, and a call would only read what was sent. */
  let done: ChildOutcome | undefined
  let reminder: Prompt.UserMessage | undefined
  for (let calls = 0; ; calls++) {
    const refused = refusalOf(loop, spec.nextTurn, calls)
    if (refused !== undefined) {
      // in the same step: what is waiting is not read any more
      agent.inbox = undefined
      const { failure, wrapUp } = refused
      return ended(done ?? (wrapUp ? yield* wrappingUp(agent, request, failure) : { stopReason: "error", failure }))
    }
    if (reminder !== undefined) agent.history = [...agent.history, reminder]
    done = undefined
    reminder = undefined
    const called = yield* Effect.exit(call)
    if (Exit.isFailure(called)) return ended(outcomeOfCause(called.cause))
    const reply = called.value
    let outcome: ChildOutcome | undefined
    if (goesOn(reply)) {
      remember(agent, reply, yield* answersTo(agent, reply.calls, submission))
      if (submission !== undefined && reply.calls.some((call) => submission.isOne(call))) outcome = submission.end()
    } else {
      outcome = outcomeOf(reply)
      leaveOut(agent, reply, outcome.failure?.message)
      if (outcome.stopReason === "completed" && agent.inbox!.length > 0 && calls + 1 < loop.maxTurns) {
        // what was sent meanwhile is more to do
        if (submission === undefined) done = outcome
        outcome = undefined
      } else if (submission !== undefined && outcome.stopReason === "completed") {
        outcome = submission.end()
        if (outcome === undefined) reminder = submission.reminder
      }
    }
    if (outcome !== undefined) return ended(outcome)
  }
})

/** The end of a turn at a limit: a last reply, in which no tool is called, to say what there is. */
const wrappingUp = Effect.fnUntraced(function* (agent: LoopAgent, request: ModelCall, failure: SubagentFailure) {
  // it stays there: whoever goes on knows why it has stopped
  agent.history = [...agent.history, noticeOf(failure)]
  const toolChoice = { mode: "auto", oneOf: [] } as const
  const called = yield* Effect.exit(callModel({ ...request, toolChoice, messages: () => agent.history }))
  if (Exit.isSuccess(called)) leaveOut(agent, called.value, "None can be once a limit is reached")
  const problem = Exit.isFailure(called)
    ? outcomeOfCause(called.cause)
    : called.value.error && outcomeOfError(called.value.error.value)
  const outcome: ChildOutcome = { stopReason: "error", failure }
  return problem === undefined
    ? outcome
    : { ...outcome, diagnostic: `Its last reply, to wrap up, failed: ${problem.failure?.message}` }
})

/** The conversation as the next model call gets it: with what was sent since the last one, in the order of sending. */
const takeIn = (agent: LoopAgent): ReadonlyArray<Prompt.Message> => {
  const messages = agent.inbox!.splice(0)
  if (messages.length > 0) agent.history = [...agent.history, ...messages.map(({ message }) => message)]
  for (const { messageId } of messages) agent.spec.emit({ _tag: "Receipt", messageId, state: "consumed" })
  return agent.history
}

/** One call alone needs no fiber of its own. */
const answersTo = (
  agent: LoopAgent,
  calls: Reply["calls"],
  submission: Submission | undefined
): Effect.Effect<ReadonlyArray<ToolResult>> =>
  calls.length === 1
    ? Effect.map(answer(agent, calls[0]!, submission), (result) => [result])
    : Effect.forEach(calls, (call) => answer(agent, call, submission), { concurrency: agent.loop.concurrency })

const answer = (agent: LoopAgent, call: ToolCall, submission: Submission | undefined): Effect.Effect<ToolResult> =>
  Effect.suspend(() => {
    agent.spec.emit({ _tag: "ToolCall", id: call.id, status: "running" })
    return Effect.map(submission?.isOne(call) === true ? submission.answer(call) : execute(agent, call), (result) =>
      answered(agent, result)
    )
  })

const execute = (agent: LoopAgent, call: ToolCall): Effect.Effect<ToolResult> => {
  const { loop, spec, submitTool } = agent
  const isAllowed = (name: string) => allowsTool(spec.policy.toolFilters, name)
  const tool = loop.tools.get(call.name)
  if (tool !== undefined && isAllowed(call.name)) return tool(call, callerOf(agent))
  const names = [...loop.tools.keys()].filter(isAllowed)
  const usable = listed(submitTool === undefined ? names : [...names, submitTool.name])
  const problem = tool === undefined ? "There is no tool" : "A tool filter denies"
  return Effect.succeed(failedResult(call, `${problem} ${JSON.stringify(call.name)}; the tools there are: ${usable}`))
}

const answered = ({ spec }: LoopAgent, result: ToolResult): ToolResult => {
  const status = result.isFailure ? "failed" : "completed"
  spec.emit({ _tag: "ToolCall", id: result.id, status, output: result.result })
  return result
}

const remember = (agent: LoopAgent, reply: Reply, results: ReadonlyArray<ToolResult>): void => {
  agent.history = [...agent.history, ...reply.messages, ...toolMessages(results)]
}

/** The same for a reply with which the turn ends: its tools are not executed. */
const leaveOut = (agent: LoopAgent, reply: Reply, why: string | undefined): void => {
  const reason = `The tool was not executed. ${why}`
  const leftOut = (call: ToolCall) => answered(agent, unexecutedResult(call, "execution-interrupted", reason))
  remember(agent, reply, reply.calls.map(leftOut))
}

const isEmpty = (usage: SubagentUsage): boolean => Object.keys(usage).length === 0

/** Whether there are tool calls to run, and the model meant to be done when it made them. */
const goesOn = ({ calls, error, finishReason }: Reply): boolean =>
  error === undefined && calls.length > 0 && (finishReason === "tool-calls" || finishReason === "stop")

const outcomeOf = (reply: Reply): ChildOutcome =>
  reply.error !== undefined ? outcomeOfError(reply.error.value) : outcomeOfReply(reply.finishReason)
