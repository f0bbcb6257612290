/**
 * The messages of the Agent Client Protocol, stable version 1, as far as they are read here.
 *
 * Reading is lenient, as agents are: unknown members are ignored, and a member that is null or not what it should be
 * counts as absent. Only what nothing can be done without is required. test/providers/internal/acp/messages.test.ts
 * holds these schemas against the protocol's own.
 *
 * @see https://agentclientprotocol.com/protocol
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { ContentBlock } from "../../../Content.ts"

/** The one version that is spoken. Some agents would agree to any that they are offered. */
export const protocolVersion = 1

const orAbsent = <S extends Schema.Codec<unknown, unknown>>(schema: S) =>
  Schema.UndefinedOr(schema).pipe(Schema.catchDecoding(() => Effect.succeed(Option.some(undefined))))

const optional = <S extends Schema.Codec<unknown, unknown>>(schema: S) => Schema.optionalKey(orAbsent(schema))

/** A list without the items that are not what they should be. */
const list = <S extends Schema.Codec<unknown, unknown>>(schema: S) => optional(Schema.Array(orAbsent(schema)))

/** The items of such a list. */
export const items = <A>(list: ReadonlyArray<A | undefined> | undefined): ReadonlyArray<A> =>
  (list ?? []).filter((item) => item !== undefined)

/** A capability is an object, or, in an older style, `true`. */
const Capability = optional(Schema.Union([Schema.Literal(true), Schema.Record(Schema.String, Schema.Unknown)]))

export const InitializeResponse = Schema.Struct({
  protocolVersion: Schema.Unknown,
  agentInfo: optional(Schema.Struct({ name: Schema.String })),
  agentCapabilities: optional(
    Schema.Struct({
      loadSession: optional(Schema.Boolean),
      promptCapabilities: optional(
        Schema.Struct({
          image: optional(Schema.Boolean),
          audio: optional(Schema.Boolean),
          embeddedContext: optional(Schema.Boolean)
        })
      ),
      mcpCapabilities: optional(Schema.Struct({ http: optional(Schema.Boolean), sse: optional(Schema.Boolean) })),
      sessionCapabilities: optional(Schema.Struct({ close: Capability, resume: Capability }))
    })
  ),
  authMethods: list(
    Schema.Struct({
      id: Schema.String,
      type: optional(Schema.String),
      name: optional(Schema.String),
      description: optional(Schema.String)
    })
  )
})

export const ConfigOption = Schema.Struct({
  id: Schema.String,
  category: optional(Schema.String),
  // plain options, or groups of them
  options: list(
    Schema.Struct({
      value: optional(Schema.String),
      name: optional(Schema.String),
      options: list(Schema.Struct({ value: Schema.String, name: optional(Schema.String) }))
    })
  )
})

const sessionSettings = {
  modes: optional(Schema.Struct({ availableModes: list(Schema.Struct({ id: Schema.String })) })),
  configOptions: list(ConfigOption),
  // gone from the protocol, and still how several agents offer their models
  models: optional(Schema.Struct({ availableModels: list(Schema.Struct({ modelId: Schema.String })) }))
}

export const NewSessionResponse = Schema.Struct({ sessionId: Schema.NonEmptyString, ...sessionSettings })

/** The answer to `session/load` and to `session/resume`. */
export const KnownSessionResponse = Schema.Struct(sessionSettings)

const Tokens = optional(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)))

export const PromptResponse = Schema.Struct({
  stopReason: optional(Schema.String),
  // not stable yet, and not clear: what the prompt has used, as those who made it mean it and most agents do
  usage: optional(
    Schema.Struct({
      inputTokens: Tokens,
      outputTokens: Tokens,
      totalTokens: Tokens,
      thoughtTokens: Tokens,
      cachedReadTokens: Tokens,
      cachedWriteTokens: Tokens
    })
  )
})

export const SessionNotification = Schema.Struct({
  sessionId: Schema.String,
  update: Schema.Record(Schema.String, Schema.Unknown)
})

export const ContentChunk = Schema.Struct({ content: Schema.Unknown, messageId: optional(Schema.String) })

/** A tool call, or what has changed of one. */
export const ToolCallUpdate = Schema.Struct({
  toolCallId: Schema.String,
  title: optional(Schema.String),
  name: optional(Schema.String),
  status: optional(Schema.String),
  content: optional(Schema.Array(Schema.Unknown)),
  rawInput: optional(Schema.Unknown),
  rawOutput: optional(Schema.Unknown)
})

export const Plan = Schema.Struct({
  entries: list(
    Schema.Struct({ content: Schema.String, priority: optional(Schema.String), status: optional(Schema.String) })
  )
})

export const PermissionOption = Schema.Struct({ optionId: Schema.String, kind: optional(Schema.String) })

export const RequestPermissionRequest = Schema.Struct({
  sessionId: Schema.String,
  toolCall: ToolCallUpdate,
  options: list(PermissionOption)
})

export const ReadTextFileRequest = Schema.Struct({
  sessionId: Schema.String,
  path: Schema.String,
  line: optional(Schema.Finite),
  limit: optional(Schema.Finite)
})

export const WriteTextFileRequest = Schema.Struct({
  sessionId: Schema.String,
  path: Schema.String,
  content: Schema.String
})

/** Reads a value of the peer's: nothing, if it is not even that much. */
export const reader = <A>(schema: Schema.Codec<A, unknown>): ((value: unknown) => A | undefined) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (value) => Option.getOrUndefined(decode(value))
}

const decodeBlock = reader(ContentBlock as Schema.Codec<ContentBlock, unknown>)

/** Members that are null are absent. */
const withoutNulls = (value: unknown): unknown =>
  Predicate.isObject(value)
    ? Object.fromEntries(
        Object.entries(value).flatMap(([key, each]) => (each === null ? [] : [[key, withoutNulls(each)]]))
      )
    : value

/** Reads a content block. What agents say is text, nearly always, so that comes first. */
export const readBlock = (value: unknown): ContentBlock | undefined =>
  Predicate.isObject(value) &&
  value["type"] === "text" &&
  Predicate.isString(value["text"]) &&
  value["annotations"] == null &&
  value["_meta"] == null
    ? { type: "text", text: value["text"] }
    : decodeBlock(withoutNulls(value))
