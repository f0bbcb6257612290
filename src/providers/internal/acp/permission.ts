/**
 * What a permission request is answered with.
 *
 * An option is chosen by its kind, and only if it is the only one of that kind: which of two ways to allow something is
 * meant is a question that nobody here can answer. What can't be chosen is answered `cancelled`, which allows nothing.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { ApprovalOutcome, ApprovalRequest } from "../../../Approvals.ts"
import { ask } from "../../../Approvals.ts"
import type { Options as ProviderOptions } from "../../AcpProvider.ts"
import type { PermissionOption } from "./messages.ts"

/** Who decides: the host's approver, or the host once and for all. */
type PermissionPolicy = NonNullable<ProviderOptions["permission"]>

type Options = ReadonlyArray<typeof PermissionOption.Type>

/** An answer to a permission request. */
export interface Answer {
  readonly outcome: { readonly outcome: "cancelled" } | { readonly outcome: "selected"; readonly optionId: string }
}

/** The answer that allows nothing and says nothing of anybody's will. */
export const cancelled: Answer = { outcome: { outcome: "cancelled" } }

const only = (options: Options, kind: string): string | undefined => {
  const [first, ...others] = options.filter((option) => option.kind === kind)
  if (first === undefined || others.length > 0) return undefined
  // an id that stands for something else, too, says nothing: a no could be taken for a yes
  return options.filter(({ optionId }) => optionId === first.optionId).length === 1 ? first.optionId : undefined
}

const selected = (optionId: string | undefined): Answer =>
  optionId === undefined ? cancelled : { outcome: { outcome: "selected", optionId } }

const refusal = (options: Options): Answer => selected(only(options, "reject_once") ?? only(options, "reject_always"))

/** What is said to the agent, and what came of it. */
export interface Decision {
  readonly answer: Answer
  readonly outcome: ApprovalOutcome
}

/** Decides on a request. Never fails. An approver is asked for this one call, so its yes never allows more than that. */
export const decide = (
  policy: PermissionPolicy,
  request: ApprovalRequest,
  options: Options
): Effect.Effect<Decision> => {
  const once = only(options, "allow_once")
  const denied = (outcome: ApprovalOutcome): Decision => ({ answer: refusal(options), outcome })
  switch (policy) {
    case "deny":
      return Effect.succeed(denied("denied"))
    case "allow": {
      const optionId = once ?? only(options, "allow_always")
      return optionId === undefined
        ? unclear(request, denied)
        : Effect.succeed({ answer: selected(optionId), outcome: "approved" })
    }
    case "ask":
      return once === undefined
        ? unclear(request, denied)
        : Effect.map(ask(request), (outcome) =>
            outcome === "approved" ? { answer: selected(once), outcome } : denied(outcome)
          )
  }
}

/** Nobody has denied it: there is nobody who could say which way to allow it. */
const unclear = (
  { toolName }: ApprovalRequest,
  denied: (outcome: ApprovalOutcome) => Decision
): Effect.Effect<Decision> =>
  Effect.as(
    Effect.logWarning(`${toolName} is not permitted: the agent offers no single way to allow it`),
    denied("no-approver")
  )
