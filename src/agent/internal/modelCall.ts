/**
 * One model call of an agent, and what is done about those that fail for a while only.
 *
 * Whatever comes of an attempt, the next one begins where it did: at the last whole step. What a broken attempt had said
 * stays reported until a later message says something, and a tool call it had announced is reported as failed.
 *
 * @since 0.1.0
 */
import * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { SubagentUsage } from "../../SubagentResult.ts"
import type { UnstampedUpdate } from "../../SubagentUpdate.ts"
import { outcomeOfError, usageOfError } from "./outcome.ts"
import type { Reply } from "./reply.ts"
import { ReplyFold } from "./reply.ts"
import type { BoundToolkit } from "./tools.ts"

/** When a failed model call is tried again. */
export type RetrySchedule = Schedule.Schedule<unknown, AiError.AiError>

/** Unless a host says otherwise: three more attempts, after about 1, 2 and 4 seconds. */
export const defaultRetry: RetrySchedule = Schedule.exponential("1 second").pipe(
  Schedule.jittered,
  Schedule.upTo({ times: 3 })
)

/** For failures that may pass, and no earlier than the model's provider has asked for. */
export const forTransient = (schedule: RetrySchedule): RetrySchedule =>
  schedule.pipe(
    Schedule.while(({ input }) => input.isRetryable),
    Schedule.modifyDelay(({ duration, input }) =>
      Effect.succeed(input.retryAfter === undefined ? duration : Duration.max(duration, input.retryAfter))
    )
  )

/** Reports each attempt that is to come, and why. */
const reporting = (schedule: RetrySchedule, emit: (update: UnstampedUpdate) => void): RetrySchedule =>
  Schedule.tap(schedule, ({ attempt, duration, input }) =>
    Effect.sync(() => {
      const value = { retry: attempt, delay: Duration.toMillis(duration), failure: outcomeOfError(input).failure }
      emit({ _tag: "Raw", kind: "model-retry", value })
    })
  )

/** What is asked of a model. */
export interface ModelCall {
  readonly model: LanguageModel.LanguageModel
  readonly kit: BoundToolkit
  readonly toolChoice: LanguageModel.ToolChoice<string>
  /** Whether what the model says is reported while it comes, or when it has come. */
  readonly streaming: boolean
  readonly retry: RetrySchedule
  /** The conversation, as it is when an attempt begins. */
  readonly messages: () => ReadonlyArray<Prompt.Message>
  readonly emit: (update: UnstampedUpdate) => void
  /** Begins to count an attempt: gives what to tell its figures to, whatever comes of it. */
  readonly meter: () => (usage: SubagentUsage) => void
  readonly freshId: () => string
}

/** Calls the model, as often as the schedule says. Most calls work out, and those have nothing to do with a schedule. */
export const callModel = (call: ModelCall): Effect.Effect<Reply, AiError.AiError> =>
  attempt(call, (error) => again(call, error))

type OnFailure = (error: AiError.AiError) => Effect.Effect<Reply, AiError.AiError>

/** Goes on after a first attempt that has failed. */
const again = (call: ModelCall, error: AiError.AiError): Effect.Effect<Reply, AiError.AiError> => {
  let next: Effect.Effect<Reply, AiError.AiError> = Effect.fail(error)
  return Effect.retry(
    Effect.suspend(() => {
      const current = next
      next = attempt(call, Effect.fail)
      return current
    }),
    reporting(call.retry, call.emit)
  )
}

const attempt = (call: ModelCall, onFailure: OnFailure): Effect.Effect<Reply, AiError.AiError> =>
  Effect.suspend(() => {
    const { emit, freshId, kit, messages, meter, model, streaming, toolChoice } = call
    const spend = meter()
    const fold = new ReplyFold(emit, spend, freshId)
    const request = {
      prompt: Prompt.fromMessages(messages()),
      toolkit: kit,
      toolChoice,
      disableToolCallResolution: true,
      toolCallValidation: "deferred"
    } as const
    if (!streaming) {
      return Effect.matchEffect(model.generateText(request), {
        onFailure: (error) => {
          spend(usageOfError(error))
          return onFailure(error)
        },
        onSuccess: ({ content }) => Effect.succeed(fold.add(content).end())
      })
    }
    return Stream.runForEachArray(model.streamText(request), (parts) => Effect.sync(() => fold.add(parts))).pipe(
      Effect.tapError((error) => Effect.sync(() => spend(usageOfError(error)))),
      Effect.flatMap(() => whole(fold.end())),
      Effect.onError(() => Effect.sync(() => fold.abandon())),
      Effect.catch(onFailure)
    )
  })

/** Some providers report amid the stream what others fail with. */
const whole = (reply: Reply): Effect.Effect<Reply, AiError.AiError> => {
  const error = reply.error?.value
  return AiError.isAiError(error) && error.isRetryable ? Effect.fail(error) : Effect.succeed(reply)
}
