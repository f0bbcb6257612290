/**
 * The limits of a turn: the loop's own cap of model calls, and what the seam allows.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import type { TurnRefused } from "../../SubagentProvider.ts"
import type { SubagentFailure } from "../../SubagentResult.ts"
import type { AgentSpec } from "../AgentRuntime.ts"

/** The cap of a loop, for one prompt. */
export interface Cap {
  readonly maxTurns: number
  /** Whether an agent that has met it gets a last call to wrap up. */
  readonly wrapUp: boolean
}

/**
 * Why there is no further model call after so many, if there is none. A last call to wrap up at the cap is one that the
 * seam has counted, too.
 */
export const refusalOf = (cap: Cap, nextTurn: AgentSpec["nextTurn"], calls: number): TurnRefused | undefined => {
  const { maxTurns, wrapUp } = cap
  if (calls < maxTurns) return nextTurn?.()
  const capped = { failure: failureOf(maxTurns), wrapUp }
  return wrapUp ? (nextTurn?.() ?? capped) : capped
}

const failureOf = (maxTurns: number): SubagentFailure => ({
  kind: "limit",
  retryable: false,
  name: "maxTurns",
  limit: maxTurns,
  used: maxTurns,
  message: `The agent has used its ${maxTurns} model calls for one prompt and was not done`
})

/** What an agent is told that has met a limit and may wrap up. */
export const noticeOf = ({ limit, name = "a limit" }: SubagentFailure): Prompt.UserMessage => {
  const which = limit === undefined ? name : `${name} ${limit}`
  const text =
    `You have to stop here, for a limit is reached: ${which}. No tool can be called in this reply, which is your last. ` +
    "Say what you have got so far, and what is missing."
  return Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] })
}
