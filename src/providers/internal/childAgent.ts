/**
 * From a placed request to an agent of a runtime: what `spawn` and `fork` have in common.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { AgentRuntime, AgentSeed } from "../../agent/AgentRuntime.ts"
import type { AgentOptions } from "../../Agent.ts"
import { issueAt, issuesOf } from "../../internal/issues.ts"
import { NonBlank } from "../../internal/nonBlank.ts"
import { fromReason, InvalidRequest, type SubagentError } from "../../SubagentError.ts"
import type { ChildSession, PlacedRequest, SubagentProvider } from "../../SubagentProvider.ts"

type Runtime = AgentRuntime["Service"]

/** Opens a new child. It inherits the parent's model, where the runtime has models, and what the seed remembers. */
export const openChild = (
  runtime: Runtime,
  placed: PlacedRequest,
  seed?: AgentSeed
): Effect.Effect<ChildSession, SubagentError, Scope.Scope> => {
  const { agentOptions, parentOptions } = placed
  const inherited = runtime.capabilities.model === true && parentOptions
  return open(runtime, placed, Object.freeze({ ...inherited, ...agentOptions }), seed)
}

/** `resume` of a provider, on a runtime that can tell what its agents remember. */
export const resuming = (runtime: Runtime): Pick<SubagentProvider, "resume"> => {
  if (runtime.completedTurns === undefined) return {}
  return {
    resume: (placed, payload) =>
      decodeKept(payload).pipe(
        Effect.mapError((error) => fromReason(new InvalidRequest({ issues: issuesOf(error) }))),
        Effect.flatMap(({ agentOptions, seed }) => {
          const options = Object.freeze({ ...placed.agentOptions, ...agentOptions })
          return open(runtime, { ...placed, agentOptions: options }, options, seed)
        }),
        Effect.mapError(inToken)
      )
  }
}

/** What is wrong with a payload, by its place in the token. */
const inToken = (error: SubagentError): SubagentError =>
  error.reason._tag === "InvalidRequest"
    ? fromReason(
        new InvalidRequest({
          issues: error.reason.issues.map(({ message, path }) => issueAt(["token", "payload", ...path], message))
        })
      )
    : error

const open = (
  runtime: Runtime,
  placed: PlacedRequest,
  options: AgentOptions,
  seed: AgentSeed | undefined
): Effect.Effect<ChildSession, SubagentError, Scope.Scope> => {
  const { completedTurns } = runtime
  const { emit, header, lineage, nextTurn, output, policy, prompt } = placed
  const agent = Object.freeze({ id: lineage.id, session: Object.freeze({ header }), options })
  return Effect.map(
    runtime.open({
      agent,
      options,
      policy,
      request: placed,
      lineage,
      emit,
      nextTurn,
      ...(output && { output }),
      ...(seed !== undefined && { seed })
    }),
    (handle) => ({
      turn: handle.turn(prompt),
      resumeTurn: (prompt) => handle.turn(prompt),
      ...(handle.steer !== undefined && { sendMessage: (message) => handle.steer!(message) }),
      ...(completedTurns !== undefined && { token: kept(completedTurns(agent), options) })
    })
  )
}

/**
 * What is kept of a child: what it remembers of the turns that have ended, and the model that it may have inherited.
 * What else it was started with is in the token itself.
 */
const Kept = Schema.Struct({
  agentOptions: Schema.Struct({ model: Schema.optionalKey(NonBlank) }),
  seed: Schema.Json
})

const decodeKept = Schema.decodeUnknownEffect(Kept, { errors: "all", onExcessProperty: "error" })

const kept = (
  seed: Effect.Effect<AgentSeed, SubagentError>,
  { model }: AgentOptions
): Effect.Effect<typeof Kept.Type, SubagentError> =>
  Effect.map(seed, (seed) => ({ agentOptions: model === undefined ? {} : { model }, seed }))
