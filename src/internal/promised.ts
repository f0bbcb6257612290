/**
 * Between the async functions of a host and the turns of the seam.
 *
 * An async function is told to stop by its signal and may take no notice. So an interrupted turn waits until its
 * function has settled: the seam then says of a run that is still at work that it is, instead of forgetting it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { constVoid } from "effect/Function"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { ApprovalOutcome } from "../Approvals.ts"
import { ask } from "../Approvals.ts"
import { isBlank, text as textBlock } from "../Content.ts"
import type { AgentOptions } from "../Agent.ts"
import type { ChildOutcome, Lineage, PromiseAnswer, PromiseCall } from "../SubagentProvider.ts"
import type { SubagentFailure } from "../SubagentResult.ts"
import type { UnstampedUpdate } from "../SubagentUpdate.ts"
import { describeUnknown } from "./describe.ts"

/**
 * Calls a function that may be async. Fails with what it throws or rejects with; interrupted, it aborts the signal and
 * ends when the function has.
 */
export const promised = <A>(call: (signal: AbortSignal) => PromiseLike<A> | A): Effect.Effect<A, unknown> =>
  Effect.callback((resume, signal) => {
    // what throws before it gives a promise rejects all the same
    const promise = new Promise<A>((resolve) => resolve(call(signal)))
    promise.then(
      (value) => resume(Effect.succeed(value)),
      (thrown) => resume(Effect.fail(thrown))
    )
    return Effect.promise(() => promise.then(constVoid, constVoid))
  })

/** One turn of an async function. What it throws is an outcome of this kind, and never a defect. */
export const promisedTurn = (options: {
  readonly kind: SubagentFailure["kind"]
  readonly agentOptions: AgentOptions
  readonly prompt: string
  readonly lineage: Lineage | undefined
  readonly emit: (update: UnstampedUpdate) => void
  readonly run: (call: PromiseCall) => PromiseLike<PromiseAnswer> | PromiseAnswer
}): Effect.Effect<ChildOutcome> =>
  Effect.flatMap(Effect.context(), (context) => {
    const { emit, kind, lineage, prompt } = options
    const { model, systemPrompt } = options.agentOptions
    const questions: Array<Fiber.Fiber<ApprovalOutcome>> = []
    let streamed = ""
    const say = (text: string): void => {
      // a loop that streams its answer may well give it once more at the end
      if (text !== streamed && !isBlank([textBlock(text)])) {
        emit({ _tag: "Content", messageId: "answer", block: textBlock(text) })
      }
    }
    const asking = (call: Parameters<PromiseCall["ask"]>[0]): Effect.Effect<ApprovalOutcome> => {
      const { toolCallId } = call
      emit({ _tag: "Permission", toolCallId })
      return ask({ ...call, ...(lineage && { lineage }) }).pipe(
        Effect.tap((outcome) => Effect.sync(() => emit({ _tag: "Permission", toolCallId, outcome }))),
        Effect.onInterrupt(() => Effect.sync(() => emit({ _tag: "Permission", toolCallId, outcome: "withdrawn" })))
      )
    }
    return promised((signal) =>
      options.run({
        prompt,
        ...(systemPrompt !== undefined && { system: systemPrompt }),
        ...(model !== undefined && { model }),
        signal,
        emit,
        onText: (delta) => {
          streamed += delta
          emit({ _tag: "Content", block: textBlock(delta) })
        },
        ask: (call) => {
          const fiber = Effect.runForkWith(context)(asking(call), { signal })
          questions.push(fiber)
          const answered = Effect.runPromise(Fiber.join(fiber))
          // a function that has stopped waiting must not take the process down
          answered.catch(constVoid)
          return answered
        }
      })
    ).pipe(
      Effect.ensuring(Effect.suspend(() => Fiber.interruptAll(questions))),
      Effect.map((answer) => outcomeOf(answer, say)),
      Effect.catch((thrown) => Effect.succeed({ stopReason: "error", failure: failureOf(thrown, kind) }))
    )
  })

const outcomeOf = (answer: PromiseAnswer, say: (text: string) => void): ChildOutcome => {
  if (answer === undefined) return { stopReason: "completed" }
  if (Predicate.isString(answer)) {
    say(answer)
    return { stopReason: "completed" }
  }
  // what is no answer is for the seam to find out
  if (!Predicate.isObject(answer)) return answer
  const { text = "", ...outcome } = answer
  say(text)
  return { ...outcome, stopReason: outcome.stopReason ?? (outcome.failure === undefined ? "completed" : "error") }
}

/** What can be told of anything that was thrown. The clients of HTTP services put a status on their errors. */
const failureOf = (thrown: unknown, kind: SubagentFailure["kind"]): SubagentFailure => {
  const status = field(thrown, "status", Predicate.isNumber) ?? field(thrown, "statusCode", Predicate.isNumber)
  return {
    kind,
    retryable:
      field(thrown, "isRetryable", Predicate.isBoolean) ??
      (status !== undefined && (status === 408 || status === 429 || status >= 500)),
    ...(status !== undefined && { status }),
    message: describeUnknown(thrown)
  }
}

const field = <A>(thrown: unknown, name: string, is: (value: unknown) => value is A): A | undefined =>
  Result.getOrUndefined(
    Result.try(() => {
      const value = (thrown as Record<string, unknown>)[name]
      return is(value) ? value : undefined
    })
  )
