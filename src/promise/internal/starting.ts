/**
 * What a start means beside a start of the seam: a JSON Schema for an output schema, an async function for an approver.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Approvals } from "../../Approvals.ts"
import { type Budget, Current } from "../../Budget.ts"
import type { ContentBlock } from "../../Content.ts"
import { isBudget } from "../../internal/account.ts"
import { issuesOf } from "../../internal/issues.ts"
import { ownCopy } from "../../internal/ownCopy.ts"
import { requestKeys } from "../../internal/readRequest.ts"
import { fromJsonSchema } from "../../json-schema/OutputSchema.ts"
import type { ResumeToken } from "../../ResumeToken.ts"
import { fromReason, InvalidRequest, type SubagentError } from "../../SubagentError.ts"
import type { SubagentResumeRequest, SubagentStartRequest } from "../../SubagentRequest.ts"
import { Subagents } from "../../Subagents.ts"
import type { Approve, PromiseRequest, PromiseResumeRequest, PromiseRun } from "../PromiseRun.ts"
import { promiseRun } from "./promiseRun.ts"

/** What a caller may say beside a request. */
interface Asking {
  readonly approve?: Approve | undefined
  readonly approvalTimeout?: Duration.Input | undefined
  readonly budget?: Budget | undefined
}

const Fields = Schema.Struct({
  approve: Schema.optional(Schema.declare(Predicate.isFunction, { expected: "a function" })),
  approvalTimeout: Schema.optional(
    Schema.declare((u): u is Duration.Input => Option.isSome(Duration.fromInput(u as Duration.Input)), {
      expected: "a duration"
    })
  ),
  budget: Schema.optional(Schema.declare(isBudget, { expected: "a Budget" }))
})

const decodeAsking = Schema.decodeUnknownResult(Fields, { errors: "all", onExcessProperty: "error" })

const askingKeys = Object.keys(Fields.fields)

/** What is said beside one request, and what is said for all of them where that says nothing. */
export const askingOf = (all: Asking, asking: Asking | undefined): Asking => {
  const said = Object.entries({ ...ownCopy(asking, askingKeys) }).filter(([, value]) => value !== undefined)
  return { ...ownCopy(all, askingKeys), ...Object.fromEntries(said) }
}

/** Checks what is said beside a request: a misspelt approver is nobody, and a misspelt budget does not pay. */
export const checkAsking = (asking: Asking): Result.Result<Asking, SubagentError> =>
  Result.mapBoth(decodeAsking(asking), {
    onFailure: (error) => fromReason(new InvalidRequest({ issues: issuesOf(error, ["options"]) })),
    onSuccess: () => asking
  })

type Accepted = Effect.Effect<PromiseRun, SubagentError, Subagents>

/** Starts a run. A JSON Schema is read once the provider is known to be there: like everything else in a request. */
export const starting = (name: string, request: PromiseRequest, asking: Asking): Accepted =>
  Effect.flatMap(Effect.service(Subagents), (subagents) =>
    withSchema(request, subagents.get(name)).pipe(
      Effect.flatMap((request) => promiseRun(subagents.start(name, request as SubagentStartRequest))),
      asked(asking)
    )
  )

/** Goes on with a child of an earlier process. */
export const resuming = (
  token: ResumeToken,
  content: string | ReadonlyArray<ContentBlock>,
  request: PromiseResumeRequest,
  asking: Asking
): Accepted =>
  Effect.flatMap(Effect.service(Subagents), (subagents) =>
    withSchema(request, Effect.void).pipe(
      Effect.flatMap((request) => promiseRun(subagents.resume(token, content, request as SubagentResumeRequest))),
      asked(asking)
    )
  )

/** With what is said beside the request: nothing of it is asked for where it is absent. */
const asked =
  (asking: Asking) =>
  <A, R>(start: Effect.Effect<A, SubagentError, R>): Effect.Effect<A, SubagentError, R> =>
    Effect.flatMap(Effect.fromResult(checkAsking(asking)), ({ approvalTimeout: timeout, approve, budget }) => {
      const paid = budget === undefined ? start : Effect.provideService(start, Current, budget)
      return approve === undefined
        ? paid
        : Effect.provideService(paid, Approvals, {
            timeout,
            decide: (request) =>
              Effect.tryPromise({ try: async (signal) => approve(request, signal), catch: (thrown) => thrown })
          })
    })

const withSchema = (
  request: PromiseRequest | PromiseResumeRequest,
  first: Effect.Effect<unknown, SubagentError>
): Effect.Effect<unknown, SubagentError> => {
  // what can't be read, and what is no schema, is for the seam to refuse
  const schema = Result.getOrUndefined(Result.try((): unknown => request.outputSchema))
  return !Predicate.isObject(schema) || Schema.isSchema(schema)
    ? Effect.succeed(request)
    : first.pipe(
        Effect.andThen(fromJsonSchema(schema)),
        Effect.map((outputSchema) => ({ ...ownCopy(request, requestKeys), outputSchema }))
      )
}
