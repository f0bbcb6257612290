/**
 * Why the seam could not get a verdict.
 *
 * One tagged error with a `reason`: branch with `Effect.catchReason("SubagentError", "ProviderNotFound", …)`, or on
 * `code` in plain TypeScript. A child's own failure is never one of these: that is a `SubagentResult`.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * One thing that is wrong with a request, and where.
 *
 * @category schemas
 * @since 0.1.0
 */
export class RequestIssue extends Schema.Class<RequestIssue>("effect-subagent/RequestIssue")({
  path: Schema.Array(Schema.Union([Schema.String, Schema.Finite])),
  message: Schema.String
}) {
  override toString(): string {
    return this.path.length === 0 ? this.message : `${this.path.join(".")}: ${this.message}`
  }
}

const quoted = (names: ReadonlyArray<string>): string =>
  names.length === 0 ? "none" : names.map((name) => JSON.stringify(name)).join(", ")

/**
 * No provider has this name. `available` lists the ones there are, in order of registration.
 *
 * @category errors
 * @since 0.1.0
 */
export class ProviderNotFound extends Schema.TaggedError<ProviderNotFound>()("ProviderNotFound", {
  name: Schema.String,
  available: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `There is no provider ${JSON.stringify(this.name)}; available: ${quoted(this.available)}`
  }
}

/**
 * A provider of this name is registered already, and stays.
 *
 * @category errors
 * @since 0.1.0
 */
export class DuplicateProvider extends Schema.TaggedError<DuplicateProvider>()("DuplicateProvider", {
  name: Schema.String
}) {
  override get message(): string {
    return `A provider ${JSON.stringify(this.name)} is registered already`
  }
}

/**
 * What was registered is not a provider: a blank name, a missing member, a capability that is not declared.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidProvider extends Schema.TaggedError<InvalidProvider>()("InvalidProvider", {
  issues: Schema.Array(RequestIssue)
}) {
  override get message(): string {
    return `Not a provider: ${this.issues.join("; ")}`
  }
}

/**
 * The request asks for what the provider does not offer. `capability` is the first one that is missing, `missing` has
 * them all.
 *
 * @category errors
 * @since 0.1.0
 */
export class UnsupportedCapability extends Schema.TaggedError<UnsupportedCapability>()("UnsupportedCapability", {
  provider: Schema.String,
  capability: Schema.String,
  missing: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `Provider ${JSON.stringify(this.provider)} does not support ${this.missing.join(", ")}`
  }
}

/**
 * The request is not well formed. Each issue has its path.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidRequest extends Schema.TaggedError<InvalidRequest>()("InvalidRequest", {
  issues: Schema.Array(RequestIssue)
}) {
  override get message(): string {
    return `Invalid request: ${this.issues.join("; ")}`
  }
}

/**
 * The child would be deeper than something above it allows. `asked` is what the request, or the run that delegates, had
 * asked for, where something tighter holds.
 *
 * @category errors
 * @since 0.1.0
 */
export class DepthExceeded extends Schema.TaggedError<DepthExceeded>()("DepthExceeded", {
  depth: Schema.Finite,
  maxDepth: Schema.Finite,
  asked: Schema.optionalKey(Schema.Finite)
}) {
  override get message(): string {
    const asked = this.asked === undefined ? "" : `; ${this.asked} asked for`
    return `Delegation depth ${this.depth} exceeds the limit of ${this.maxDepth}${asked}`
  }
}

/**
 * One more run is more than a limit allows. `name` is the limit's, as it is asked for; `of` says whose it is: a run's, a
 * root's, a budget's, or the host's. `asked` is what the request, or the run that delegates, had asked for beside it.
 *
 * @category errors
 * @since 0.1.0
 */
export class LimitReached extends Schema.TaggedError<LimitReached>()("LimitReached", {
  name: Schema.String,
  of: Schema.String,
  limit: Schema.Finite,
  used: Schema.Finite,
  reserved: Schema.optionalKey(Schema.Finite),
  asked: Schema.optionalKey(Schema.Finite)
}) {
  override get message(): string {
    const reserved = this.reserved === undefined ? "" : `, ${this.reserved} reserved`
    const asked = this.asked === undefined ? "" : `; ${this.asked} asked for`
    return `The limit ${this.name} of ${this.of} is reached: ${this.limit}, of which ${this.used} used${reserved}${asked}`
  }
}

/**
 * The agent that delegates is a child whose own run has settled.
 *
 * @category errors
 * @since 0.1.0
 */
export class ParentSettled extends Schema.TaggedError<ParentSettled>()("ParentSettled", {
  parentId: Schema.String,
  parentRunId: Schema.String
}) {
  override get message(): string {
    return `The run of parent ${JSON.stringify(this.parentId)} has settled; it can't start subagents any more`
  }
}

/**
 * The request's signal was aborted before the run was accepted. Nothing is left of it.
 *
 * @category errors
 * @since 0.1.0
 */
export class AbortedBeforeStart extends Schema.TaggedError<AbortedBeforeStart>()("AbortedBeforeStart", {
  provider: Schema.String
}) {
  override get message(): string {
    return `The signal was aborted before provider ${JSON.stringify(this.provider)} had started a run`
  }
}

/**
 * The provider could not start a child. `detail` says why, in a line.
 *
 * @category errors
 * @since 0.1.0
 */
export class StartFailed extends Schema.TaggedError<StartFailed>()("StartFailed", {
  provider: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `Provider ${JSON.stringify(this.provider)} could not start a run: ${this.detail}`
  }
}

/**
 * What the provider has to wait for did not come in time, so there is no child. `timeout` is how long it has waited, in
 * milliseconds; `step` names what it has waited for, `detail` has what was heard last, `asked` what was asked for where
 * something tighter holds.
 *
 * @category errors
 * @since 0.1.0
 */
export class StartTimeout extends Schema.TaggedError<StartTimeout>()("StartTimeout", {
  provider: Schema.String,
  timeout: Schema.Finite,
  step: Schema.optionalKey(Schema.String),
  detail: Schema.optionalKey(Schema.String),
  asked: Schema.optionalKey(Schema.Finite)
}) {
  override get message(): string {
    const waitedFor = this.step === undefined ? "" : ` to ${this.step}`
    const heard = this.detail === undefined ? "" : `\n${this.detail}`
    const asked = this.asked === undefined ? "" : `; ${this.asked} asked for`
    return `Provider ${JSON.stringify(this.provider)} had no answer${waitedFor} within ${this.timeout} ms${asked}${heard}`
  }
}

/**
 * Whoever is to run the child wants to be authenticated first. `methods` are the ways that it knows of, none if it names
 * none; `detail` is how it said so.
 *
 * @category errors
 * @since 0.1.0
 */
export class AuthRequired extends Schema.TaggedError<AuthRequired>()("AuthRequired", {
  provider: Schema.String,
  methods: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      name: Schema.optionalKey(Schema.String),
      description: Schema.optionalKey(Schema.String)
    })
  ),
  detail: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    const said = this.detail === undefined ? "" : `: ${this.detail}`
    const methods = quoted(this.methods.map(({ id }) => id))
    return `Provider ${JSON.stringify(this.provider)} needs to be authenticated; its methods: ${methods}${said}`
  }
}

/**
 * The parent's history is not known here, so no child can inherit it.
 *
 * @category errors
 * @since 0.1.0
 */
export class HistoryUnavailable extends Schema.TaggedError<HistoryUnavailable>()("HistoryUnavailable", {
  agentId: Schema.String
}) {
  override get message(): string {
    return `The history of agent ${JSON.stringify(this.agentId)} is not known here`
  }
}

/**
 * The provider broke its contract: a defect, a turn that interrupted itself, an outcome that is none. `detail` is
 * bounded text.
 *
 * @category errors
 * @since 0.1.0
 */
export class ProviderFault extends Schema.TaggedError<ProviderFault>()("ProviderFault", {
  provider: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `Provider ${JSON.stringify(this.provider)} is at fault: ${this.detail}`
  }
}

/**
 * The run has settled: it takes no more messages.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunSettled extends Schema.TaggedError<RunSettled>()("RunSettled", {
  runId: Schema.String
}) {
  override get message(): string {
    return `Run ${this.runId} has settled`
  }
}

/**
 * The run that holds the child's session has been released, and the child with it.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunReleased extends Schema.TaggedError<RunReleased>()("RunReleased", {
  runId: Schema.String
}) {
  override get message(): string {
    return `Run ${this.runId} has been released, and its child with it`
  }
}

/**
 * The child is at work: it can't be resumed before its run has settled. With a token, it can't be resumed here as long
 * as any run of it is live.
 *
 * @category errors
 * @since 0.1.0
 */
export class ChildBusy extends Schema.TaggedError<ChildBusy>()("ChildBusy", {
  id: Schema.String,
  runId: Schema.String
}) {
  override get message(): string {
    return `Child ${JSON.stringify(this.id)} is at work in run ${this.runId}`
  }
}

/**
 * The token is of another agent's child: only the agent that delegated can resume it.
 *
 * @category errors
 * @since 0.1.0
 */
export class ForeignToken extends Schema.TaggedError<ForeignToken>()("ForeignToken", {
  id: Schema.String,
  parentId: Schema.String
}) {
  override get message(): string {
    return `Child ${JSON.stringify(this.id)} is not one that ${JSON.stringify(this.parentId)} has delegated to`
  }
}

/**
 * Two tools of one toolkit have this name.
 *
 * @category errors
 * @since 0.1.0
 */
export class DuplicateTool extends Schema.TaggedError<DuplicateTool>()("DuplicateTool", {
  name: Schema.String
}) {
  override get message(): string {
    return `There are two tools named ${JSON.stringify(this.name)}`
  }
}

/**
 * The registry's own layer was disposed of. It takes nothing any more.
 *
 * @category errors
 * @since 0.1.0
 */
export class RegistryClosed extends Schema.TaggedError<RegistryClosed>()("RegistryClosed", {}) {
  override get message(): string {
    return "The Subagents layer has been released; nothing can be registered or started"
  }
}

/**
 * Every reason there is.
 *
 * @category errors
 * @since 0.1.0
 */
export type SubagentErrorReason =
  | ProviderNotFound
  | DuplicateProvider
  | InvalidProvider
  | UnsupportedCapability
  | InvalidRequest
  | DepthExceeded
  | LimitReached
  | ParentSettled
  | AbortedBeforeStart
  | StartFailed
  | StartTimeout
  | AuthRequired
  | HistoryUnavailable
  | ProviderFault
  | RunSettled
  | RunReleased
  | ChildBusy
  | ForeignToken
  | DuplicateTool
  | RegistryClosed

const codes = {
  ProviderNotFound: "NO_PROVIDER",
  DuplicateProvider: "DUPLICATE_PROVIDER",
  InvalidProvider: "INVALID_PROVIDER",
  UnsupportedCapability: "UNSUPPORTED_CAPABILITY",
  InvalidRequest: "INVALID_REQUEST",
  DepthExceeded: "DEPTH_EXCEEDED",
  LimitReached: "LIMIT_REACHED",
  ParentSettled: "PARENT_SETTLED",
  AbortedBeforeStart: "ABORTED_BEFORE_START",
  StartFailed: "START_FAILED",
  StartTimeout: "START_TIMEOUT",
  AuthRequired: "AUTH_REQUIRED",
  HistoryUnavailable: "HISTORY_UNAVAILABLE",
  ProviderFault: "PROVIDER_FAULT",
  RunSettled: "RUN_SETTLED",
  RunReleased: "RUN_RELEASED",
  ChildBusy: "CHILD_BUSY",
  ForeignToken: "FOREIGN_TOKEN",
  DuplicateTool: "DUPLICATE_TOOL",
  RegistryClosed: "REGISTRY_CLOSED"
} as const satisfies Record<SubagentErrorReason["_tag"], string>

/**
 * What plain TypeScript branches on.
 *
 * @category models
 * @since 0.1.0
 */
export type SubagentErrorCode = (typeof codes)[keyof typeof codes]

/**
 * The one error of the library.
 *
 * @category errors
 * @since 0.1.0
 */
export class SubagentError extends Schema.TaggedError<SubagentError>()("SubagentError", {
  reason: Schema.Union([
    ProviderNotFound,
    DuplicateProvider,
    InvalidProvider,
    UnsupportedCapability,
    InvalidRequest,
    DepthExceeded,
    LimitReached,
    ParentSettled,
    AbortedBeforeStart,
    StartFailed,
    StartTimeout,
    AuthRequired,
    HistoryUnavailable,
    ProviderFault,
    RunSettled,
    RunReleased,
    ChildBusy,
    ForeignToken,
    DuplicateTool,
    RegistryClosed
  ])
}) {
  override readonly cause = this.reason

  /** The reason as a constant, one per reason. */
  get code(): SubagentErrorCode {
    return codes[this.reason._tag]
  }

  override get message(): string {
    return this.reason.message
  }
}

/**
 * The error for a reason.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromReason = (reason: SubagentErrorReason): SubagentError => new SubagentError({ reason })
