/**
 * Whether a tool call may be executed: no tool that needs an approval is executed without one.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import type { ApprovalOutcome } from "../../Approvals.ts"
import { ask } from "../../Approvals.ts"
import { describeCause } from "../../internal/describe.ts"
import { frozen } from "../../internal/frozen.ts"
import type { AgentSpec } from "../AgentRuntime.ts"
import type { ToolCall } from "./reply.ts"
import type { NeedsApproval, ToolResult } from "./tools.ts"
import { unexecutedResult } from "./tools.ts"

/**
 * Settles it: gives nothing if the call may be executed, else the result that answers it. A tool that can't tell
 * whether it needs an approval is not executed.
 */
export const permit = (
  { emit, lineage }: AgentSpec,
  messages: ReadonlyArray<Prompt.Message>,
  needsApproval: NeedsApproval,
  call: ToolCall,
  input: unknown
): Effect.Effect<ToolResult | undefined> => {
  const { id: toolCallId, name: toolName } = call
  const asking = Effect.suspend(() => {
    emit({ _tag: "Permission", toolCallId })
    // a copy: what is approved is what is executed
    return ask({ toolCallId, toolName, input: frozen(input), ...(lineage === undefined ? undefined : { lineage }) })
  }).pipe(
    Effect.onInterrupt(() => Effect.sync(() => emit({ _tag: "Permission", toolCallId, outcome: "withdrawn" }))),
    Effect.map((outcome) => {
      emit({ _tag: "Permission", toolCallId, outcome })
      return outcome === "approved" ? undefined : refusal(call, `${outcome}: ${explanations[outcome]}`)
    })
  )
  return isNeeded(needsApproval, input, { toolCallId, messages }).pipe(
    Effect.matchCauseEffect({
      onFailure: (cause) =>
        Effect.succeed(refusal(call, `Whether it needs an approval could not be told: ${describeCause(cause)}`)),
      onSuccess: (isNeeded) => (isNeeded ? asking : Effect.undefined)
    })
  )
}

const refusal = (call: ToolCall, reason: string): ToolResult =>
  unexecutedResult(call, "execution-denied", `The tool was not executed. ${reason}`)

/** Said to the model: never that somebody decided who did not. */
const explanations: Record<Exclude<ApprovalOutcome, "approved">, string> = {
  denied: "the approver denied this call",
  "no-approver":
    "it needs an approval and there is nobody here who could give one; nobody was asked. If it matters, say in your answer what you would have done",
  "approver-failed": "it needs an approval and asking for one failed; nobody decided",
  "timed-out": "it needs an approval and no answer came in time; nobody decided"
}

/** Anything but a plain no counts as a yes. */
const isNeeded = (
  needsApproval: NeedsApproval,
  params: unknown,
  context: Parameters<Exclude<NeedsApproval, true>>[1]
): Effect.Effect<boolean> => {
  if (needsApproval === true) return Effect.succeed(true)
  return Effect.suspend(() => {
    const answer = needsApproval(params, context)
    return Effect.isEffect(answer) ? answer : Effect.succeed(answer)
  }).pipe(Effect.map((answer: unknown) => answer !== false))
}
