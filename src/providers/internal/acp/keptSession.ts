/**
 * What of a session goes into a token, and comes back.
 *
 * The agent keeps the session, under its id, on its own side. The folder and the agent's own name are kept beside it to
 * tell a token that was made for another folder, or by another agent, before that one is told to go on.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { issueAt, issuesOf } from "../../../internal/issues.ts"
import type { SubagentError } from "../../../SubagentError.ts"
import { fromReason, InvalidRequest } from "../../../SubagentError.ts"
import type { Initialized } from "./handshake.ts"

const Kept = Schema.Struct({
  sessionId: Schema.NonEmptyString,
  cwd: Schema.NonEmptyString,
  /** What the agent calls itself, if it says so. */
  agent: Schema.optionalKey(Schema.String)
})

/** A session that was kept. */
export type KeptSession = typeof Kept.Type

const decode = Schema.decodeUnknownEffect(Kept, { errors: "all", onExcessProperty: "error" })

const path = ["token", "payload"]

const misplaced = (key: keyof KeptSession, message: string): SubagentError =>
  fromReason(new InvalidRequest({ issues: [issueAt([...path, key], message)] }))

/** Reads what a token has for the child that is to go on in this folder. */
export const readKept = (payload: Schema.Json, cwd: string): Effect.Effect<KeptSession, SubagentError> =>
  decode(payload).pipe(
    Effect.mapError((error) => fromReason(new InvalidRequest({ issues: issuesOf(error, path) }))),
    Effect.filterOrFail(
      (kept) => kept.cwd === cwd,
      (kept) => misplaced("cwd", `Expected a session in ${cwd}, not in ${kept.cwd}`)
    )
  )

/** Holds what was kept against the agent that is there. */
export const checkAgent = ({ agent }: KeptSession, { agentInfo }: Initialized): Effect.Effect<void, SubagentError> =>
  agent === undefined || agentInfo === undefined || agent === agentInfo.name
    ? Effect.void
    : Effect.fail(misplaced("agent", `Expected a session of ${agentInfo.name}, not of ${agent}`))

/** What to keep of a session. */
export const keep = (sessionId: string, cwd: string, { agentInfo }: Initialized): KeptSession => ({
  sessionId,
  cwd,
  ...(agentInfo && { agent: agentInfo.name })
})
