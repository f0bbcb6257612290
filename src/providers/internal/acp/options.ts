/**
 * Checks how an agent is to be run: what is misspelt would otherwise be taken for what was left out.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { countFrom } from "../../../internal/figures.ts"
import { issuesOf } from "../../../internal/issues.ts"
import type { RequestIssue } from "../../../SubagentError.ts"

const Texts = Schema.Array(Schema.String)

const Variables = Schema.Record(Schema.String, Schema.String)

/** Also one that never ends. */
const Timeout = Schema.optional(
  Schema.declare((u): u is Duration.Input => Option.isSome(Duration.fromInput(u as Duration.Input)), {
    expected: "a duration"
  })
)

const McpServer = Schema.Union([
  Schema.Struct({
    name: Schema.String,
    command: Schema.String,
    args: Schema.optional(Texts),
    env: Schema.optional(Variables)
  }),
  Schema.Struct({
    type: Schema.Literals(["http", "sse"]),
    name: Schema.String,
    url: Schema.String,
    headers: Schema.optional(Variables)
  })
])

const decode = Schema.decodeUnknownResult(
  Schema.Struct({
    name: Schema.String,
    command: Schema.String,
    args: Schema.optional(Texts),
    env: Schema.optional(
      Schema.Record(
        Schema.String,
        Schema.Union([Schema.String, Schema.declare(Redacted.isRedacted, { expected: "a redacted string" })])
      )
    ),
    passEnv: Schema.optional(Texts),
    cwd: Schema.optional(Schema.String),
    permission: Schema.optional(Schema.Literals(["ask", "deny", "allow"])),
    fs: Schema.optional(
      Schema.Struct({
        roots: Schema.optional(Texts),
        read: Schema.optional(Schema.Boolean),
        write: Schema.optional(Schema.Boolean)
      })
    ),
    mcpServers: Schema.optional(Schema.Array(McpServer)),
    mode: Schema.optional(Schema.String),
    model: Schema.optional(Schema.String),
    authMethod: Schema.optional(Schema.String),
    timeouts: Schema.optional(Schema.Struct({ start: Timeout, idle: Timeout, cancel: Timeout, close: Timeout })),
    maxMessageBytes: Schema.optional(countFrom(1))
  }),
  { errors: "all", onExcessProperty: "error" }
)

/** What is wrong with the options of a provider, if anything. */
export const wrongOptions = (options: unknown): ReadonlyArray<RequestIssue> =>
  Result.match(decode(options), { onFailure: (error) => issuesOf(error), onSuccess: () => [] })
