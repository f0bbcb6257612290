/**
 * A language model that plays a script: for tests of agents, and of whatever runs them.
 *
 * Its script says, call by call, what the model answers: text, tool calls, figures of usage, a finish reason, a delay,
 * a failure. Time passes by the `Clock` service, so that a test moves it. Like a real API it refuses a conversation
 * that is out of balance, which is where loops of one's own go wrong; and it keeps every call it got, to assert on.
 *
 * @since 0.1.0
 */
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { SubagentUsage } from "../SubagentResult.ts"
import { fault } from "./internal/conversation.ts"

/**
 * A tool call that the model makes.
 *
 * @category models
 * @since 0.1.0
 */
export interface ScriptedToolCall {
  readonly name: string
  readonly params: unknown
  /**
   * Its id.
   *
   * @default "call-<number of the model call>-<place in it>", both from 0
   */
  readonly id?: string | undefined
  /** Whether the model's provider has executed it itself. */
  readonly providerExecuted?: boolean | undefined
}

/**
 * One answer of the model, in the order of the fields: it waits, thinks, says something, calls tools and finishes, or
 * fails, dies or hangs instead of finishing.
 *
 * @category models
 * @since 0.1.0
 */
export interface Step {
  readonly delay?: Duration.Input | undefined
  /** Several strings are the deltas of one thought. */
  readonly reasoning?: string | ReadonlyArray<string> | undefined
  /** Several strings are the deltas of one text. */
  readonly text?: string | ReadonlyArray<string> | undefined
  readonly toolCalls?: ReadonlyArray<ScriptedToolCall> | undefined
  /** Whatever else a provider may answer, as it encodes it. */
  readonly parts?: ReadonlyArray<Response.PartEncoded> | undefined
  readonly usage?: Omit<SubagentUsage, "total"> | undefined
  /**
   * Any string, as providers have their own; `none` leaves the finish out altogether.
   *
   * @default "tool-calls" with tool calls of the loop's, else "stop"
   */
  readonly finishReason?: Response.FinishReason | "none" | (string & {}) | undefined
  /** Fails for this reason. What came before it was streamed; without streaming it is lost. */
  readonly fail?: AiError.AiErrorReason | undefined
  /** Dies with this, likewise. */
  readonly die?: unknown
  /** Never finishes, likewise. */
  readonly hang?: boolean | undefined
}

/**
 * A call that the model got.
 *
 * @category models
 * @since 0.1.0
 */
export interface ScriptedCall {
  /** How many calls came before it. */
  readonly index: number
  readonly prompt: Prompt.Prompt
  /** The text of the user's last message, each part of it on a line of its own. */
  readonly userText: string
  /** The results that the model has not answered yet: those after its own last message. */
  readonly toolResults: ReadonlyArray<Prompt.ToolResultPart>
  /** The names of the tools it was offered. */
  readonly tools: ReadonlyArray<string>
  readonly toolChoice: LanguageModel.ToolChoice<string>
  readonly streaming: boolean
}

/**
 * What the model answers to a call, worked out from what it got: so one model serves many agents, whatever the order
 * of their calls.
 *
 * @category models
 * @since 0.1.0
 */
export type Rule = (call: ScriptedCall) => Step

/**
 * A rule for every call, or a list of steps and rules that the calls consume in order. A call past the end of the list
 * dies.
 *
 * @category models
 * @since 0.1.0
 */
export type Script = Rule | ReadonlyArray<Step | Rule>

/**
 * The scripted model's own side: what it was asked.
 *
 * @category services
 * @since 0.1.0
 */
export class ScriptedModel extends Context.Service<
  ScriptedModel,
  {
    /** The calls so far, those it refused too. */
    readonly calls: Effect.Effect<ReadonlyArray<ScriptedCall>>
    readonly model: LanguageModel.LanguageModel
  }
>()("effect-subagent/ScriptedModel") {}

/**
 * A model that plays the script. Every effect of this kind starts the script anew.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (script: Script): Effect.Effect<ScriptedModel["Service"]> =>
  Effect.suspend(() => {
    const calls: Array<ScriptedCall> = []
    const next = (
      options: LanguageModel.ProviderOptions,
      streaming: boolean
    ): Effect.Effect<Answer, AiError.AiError> => {
      const call = callOf(calls.length, options, streaming)
      calls.push(call)
      const problem = fault(call.prompt.content)
      if (problem !== undefined) return Effect.fail(refusal(call, problem))
      const entry = typeof script === "function" ? script : script[call.index]
      if (entry === undefined) return Effect.die(new Error(`The script has no step for model call ${call.index}`))
      const step = typeof entry === "function" ? entry(call) : entry
      const answer = { call, step }
      return step.delay === undefined ? Effect.succeed(answer) : Effect.as(Effect.sleep(step.delay), answer)
    }
    const model = LanguageModel.make({
      generateText: (options) =>
        Effect.flatMap(next(options, false), (answer) => Effect.andThen(ending(answer), partsOf(answer))),
      streamText: (options) =>
        Stream.unwrap(
          Effect.map(next(options, true), (answer) =>
            Stream.concat(
              Stream.fromIterable(deltasOf(answer)),
              Stream.unwrap(Effect.map(ending(answer), finishing(answer)))
            )
          )
        )
    })
    return Effect.map(model, (model) => ({ model, calls: Effect.sync(() => [...calls]) }))
  })

interface Answer {
  readonly call: ScriptedCall
  readonly step: Step
}

const callOf = (index: number, options: LanguageModel.ProviderOptions, streaming: boolean): ScriptedCall => {
  const messages = options.prompt.content
  const lastUser = messages.findLast((message) => message.role === "user")
  const answered = messages.findLastIndex((message) => message.role === "assistant")
  return {
    index,
    prompt: options.prompt,
    userText: lastUser?.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n") ?? "",
    toolResults: messages
      .slice(answered + 1)
      .flatMap((message) => (message.role === "tool" ? message.content : []))
      .filter((part) => part.type === "tool-result"),
    tools: options.tools.map((tool): string => tool.name),
    toolChoice: options.toolChoice,
    streaming
  }
}

const errorOf = (call: ScriptedCall, reason: AiError.AiErrorReason): AiError.AiError =>
  AiError.make({ module: "ScriptedModel", method: call.streaming ? "streamText" : "generateText", reason })

const refusal = (call: ScriptedCall, description: string): AiError.AiError =>
  errorOf(call, new AiError.InvalidRequestError({ description, http: { response: { status: 400, headers: {} } } }))

/** What comes instead of a finish, if anything does. */
const ending = ({ call, step }: Answer): Effect.Effect<void, AiError.AiError> =>
  step.fail !== undefined
    ? Effect.fail(errorOf(call, step.fail))
    : "die" in step
      ? Effect.die(step.die)
      : step.hang === true
        ? Effect.never
        : Effect.void

const partsOf = (answer: Answer): Effect.Effect<Array<Response.PartEncoded>> => {
  const { reasoning, text } = answer.step
  return Effect.succeed([
    ...(reasoning === undefined ? [] : [{ type: "reasoning" as const, text: deltas(reasoning).join("") }]),
    ...(text === undefined ? [] : [{ type: "text" as const, text: deltas(text).join("") }]),
    ...rest(answer),
    ...finish(answer)
  ])
}

const deltasOf = (answer: Answer): ReadonlyArray<Response.StreamPartEncoded> => {
  const { reasoning, text } = answer.step
  return [
    ...(reasoning === undefined ? [] : streamed("reasoning", deltas(reasoning))),
    ...(text === undefined ? [] : streamed("text", deltas(text))),
    // text and reasoning never come whole in a stream: `parts` is for what has one shape in both
    ...(rest(answer) as ReadonlyArray<Response.StreamPartEncoded>)
  ]
}

const finishing = (answer: Answer) => (): Stream.Stream<Response.StreamPartEncoded> =>
  Stream.fromIterable(finish(answer))

const deltas = (text: string | ReadonlyArray<string>): ReadonlyArray<string> =>
  typeof text === "string" ? [text] : text

const streamed = (
  kind: "text" | "reasoning",
  deltas: ReadonlyArray<string>
): ReadonlyArray<Response.StreamPartEncoded> => [
  { type: `${kind}-start`, id: kind },
  ...deltas.map((delta) => ({ type: `${kind}-delta` as const, id: kind, delta })),
  { type: `${kind}-end`, id: kind }
]

const rest = ({ call, step }: Answer): ReadonlyArray<Response.PartEncoded> => [
  ...(step.toolCalls ?? []).map(({ id, name, params, providerExecuted }, place) => ({
    type: "tool-call" as const,
    id: id ?? `call-${call.index}-${place}`,
    name,
    params,
    ...(providerExecuted === undefined ? undefined : { providerExecuted })
  })),
  ...(step.parts ?? [])
]

const finish = ({ step }: Answer): ReadonlyArray<Response.FinishPartEncoded> => {
  const calls = step.toolCalls?.some((call) => call.providerExecuted !== true) === true
  const reason = step.finishReason ?? (calls ? "tool-calls" : "stop")
  const { cacheRead, cacheWrite, input, output, reasoning } = step.usage ?? {}
  return reason === "none"
    ? []
    : [
        {
          type: "finish",
          // a provider may well answer with a reason that nobody knows
          reason: reason as Response.FinishReason,
          usage: {
            inputTokens: { total: input, cacheRead, cacheWrite },
            outputTokens: { total: output, reasoning }
          }
        }
      ]
}

/**
 * Provides the scripted model as the `LanguageModel`, and `ScriptedModel` to look into it.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (script: Script): Layer.Layer<LanguageModel.LanguageModel | ScriptedModel> =>
  Layer.effectContext(
    Effect.map(make(script), (scripted) =>
      Context.make(ScriptedModel, scripted).pipe(Context.add(LanguageModel.LanguageModel, scripted.model))
    )
  )
