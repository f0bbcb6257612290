/**
 * What a start means beside a start of the seam: a JSON Schema for an output schema, an async function for an approver.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { Approvals } from "../../Approvals.ts"
import { fromJsonSchema } from "../../json-schema/OutputSchema.ts"
import type { SubagentError } from "../../SubagentError.ts"
import type { SubagentStartRequest } from "../../SubagentRequest.ts"
import { Subagents } from "../../Subagents.ts"
import type { Approve, PromiseRequest, PromiseRun } from "../PromiseRun.ts"
import { promiseRun } from "./promiseRun.ts"

/** Starts a run. */
export const starting = (
  name: string,
  request: PromiseRequest,
  asking: { readonly approve?: Approve | undefined; readonly approvalTimeout?: Duration.Input | undefined }
): Effect.Effect<PromiseRun, SubagentError, Subagents> => {
  const start = Effect.flatMap(Effect.service(Subagents), (subagents) =>
    Effect.flatMap(withSchema(subagents, name, request), (request) => promiseRun(subagents.start(name, request)))
  )
  const { approvalTimeout: timeout, approve } = asking
  return approve === undefined
    ? start
    : Effect.provideService(start, Approvals, {
        timeout,
        decide: (request) =>
          Effect.tryPromise({ try: async (signal) => approve(request, signal), catch: (thrown) => thrown })
      })
}

/** A JSON Schema is read once the provider is known to be there: like everything else in a request. */
const withSchema = (
  subagents: Subagents["Service"],
  name: string,
  request: PromiseRequest
): Effect.Effect<SubagentStartRequest, SubagentError> => {
  const schema: unknown = Predicate.isObject(request) ? request.outputSchema : undefined
  return !Predicate.isObject(schema) || Schema.isSchema(schema)
    ? // anything else that is no schema is for the seam to refuse
      Effect.succeed(request as SubagentStartRequest)
    : subagents.get(name).pipe(
        Effect.andThen(fromJsonSchema(schema)),
        Effect.map((outputSchema) => ({ ...request, outputSchema }))
      )
}
