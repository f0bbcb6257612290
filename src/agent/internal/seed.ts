/**
 * What an agent remembers, as JSON: so that nothing of it is shared with whoever is opened with it.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { issueAt } from "../../internal/issues.ts"
import { fromReason, HistoryUnavailable, InvalidRequest, type SubagentError } from "../../SubagentError.ts"
import type { AgentSeed } from "../AgentRuntime.ts"
import { isBalanced } from "./history.ts"

const Memory = Schema.fromJsonString(Prompt.Prompt)
const encode = Schema.encodeEffect(Memory)
const decode = Schema.decodeUnknownEffect(Memory)

/** The seed of these messages. A history that is no JSON, such as a model's own objects make it, can't be inherited. */
export const seedOf = (
  agentId: string,
  messages: ReadonlyArray<Prompt.Message>
): Effect.Effect<AgentSeed, SubagentError> =>
  Effect.catchCause(encode(Prompt.fromMessages(messages)), () =>
    Effect.fail(fromReason(new HistoryUnavailable({ agentId })))
  )

/** The messages of a seed. Fails with `InvalidRequest` for anything else, and for a conversation out of balance. */
export const messagesOf = (seed: AgentSeed): Effect.Effect<ReadonlyArray<Prompt.Message>, SubagentError> =>
  decode(seed).pipe(
    Effect.map(({ content }) => content),
    Effect.filterOrFail(isBalanced),
    Effect.mapError(() => fromReason(new InvalidRequest({ issues: [foreign] })))
  )

const foreign = issueAt(["seed"], "Expected what completedTurns of this runtime has given")
