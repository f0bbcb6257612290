import { assert, describe, it } from "@effect/vitest"
import type * as Schema from "effect/Schema"
import { createRequire } from "node:module"
import * as Messages from "../../../../src/providers/internal/acp/messages.ts"

interface Definition {
  readonly properties?: { readonly [name: string]: unknown }
  readonly required?: ReadonlyArray<string>
  readonly oneOf?: ReadonlyArray<Definition>
  readonly anyOf?: ReadonlyArray<Definition>
  readonly allOf?: ReadonlyArray<Definition>
  readonly const?: string
  readonly $ref?: string
  readonly "x-method"?: string
}

const load = createRequire(import.meta.url)
const definitionsOf = (name: string) =>
  (load(`@agentclientprotocol/sdk/schema/v1/${name}.json`) as { $defs: { readonly [name: string]: Definition } }).$defs
const stable = definitionsOf("schema")
const unstable = definitionsOf("schema.unstable")

/** All properties that a definition may have, and those that each of its forms must have. */
const shapeOf = (
  definition: Definition,
  all: { readonly [name: string]: Definition }
): { readonly properties: ReadonlySet<string>; readonly required: ReadonlySet<string> } => {
  if (definition.$ref !== undefined) return shapeOf(all[definition.$ref.replace("#/$defs/", "")]!, all)
  const parts = (definition.allOf ?? []).map((part) => shapeOf(part, all))
  const forms = [...(definition.oneOf ?? []), ...(definition.anyOf ?? [])].map((part) => shapeOf(part, all))
  return {
    properties: new Set([
      ...Object.keys(definition.properties ?? {}),
      ...[...parts, ...forms].flatMap(({ properties }) => [...properties])
    ]),
    required: new Set([...(definition.required ?? []), ...parts.flatMap(({ required }) => [...required])])
  }
}

type Fields = { readonly [name: string]: { readonly ast: { readonly context?: { readonly isOptional: boolean } } } }

const fieldsOf = (schema: Schema.Top): Fields => (schema as unknown as { readonly fields: Fields }).fields

/** The string constants among the forms of a definition. */
const constants = (definition: Definition, property?: string): ReadonlyArray<string> =>
  [...(definition.oneOf ?? []), ...(definition.anyOf ?? [])].flatMap((form) => {
    const value = property === undefined ? form : (form.properties?.[property] as Definition | undefined)
    return value?.const === undefined ? [] : [value.const]
  })

const methodsOf = (all: { readonly [name: string]: Definition }) =>
  new Set(Object.values(all).flatMap((definition) => definition["x-method"] ?? []))

describe("the messages, held against the protocol's own schema", () => {
  for (const [name, schema, beside] of [
    ["InitializeResponse", Messages.InitializeResponse, []],
    ["SessionConfigOption", Messages.ConfigOption, []],
    // several agents still answer with it
    ["NewSessionResponse", Messages.NewSessionResponse, ["models"]],
    ["LoadSessionResponse", Messages.KnownSessionResponse, ["models"]],
    ["ResumeSessionResponse", Messages.KnownSessionResponse, ["models"]],
    // in the unstable schema, see below
    ["PromptResponse", Messages.PromptResponse, ["usage"]],
    ["SessionNotification", Messages.SessionNotification, []],
    ["ContentChunk", Messages.ContentChunk, []],
    ["ToolCallUpdate", Messages.ToolCallUpdate, []],
    ["ToolCall", Messages.ToolCallUpdate, []],
    ["Plan", Messages.Plan, []],
    ["PermissionOption", Messages.PermissionOption, []],
    ["RequestPermissionRequest", Messages.RequestPermissionRequest, []],
    ["ReadTextFileRequest", Messages.ReadTextFileRequest, []],
    ["WriteTextFileRequest", Messages.WriteTextFileRequest, []]
  ] as const) {
    it(`${name} has what is read of it, and what is required of it`, () => {
      const official = shapeOf(stable[name]!, stable)
      const fields = fieldsOf(schema)
      const unknown = Object.keys(fields).filter((field) => !official.properties.has(field))
      assert.deepStrictEqual<ReadonlyArray<string>>(unknown, beside)
      const demanded = Object.keys(fields).filter((field) => fields[field]!.ast.context?.isOptional !== true)
      assert.deepStrictEqual(
        demanded.filter((field) => !official.required.has(field)),
        [],
        "nothing is demanded that may be absent"
      )
    })
  }

  it("usage is still what the unstable schema calls it", () => {
    assert.isTrue(shapeOf(unstable["PromptResponse"]!, unstable).properties.has("usage"))
    const usage = [
      "inputTokens",
      "outputTokens",
      "totalTokens",
      "thoughtTokens",
      "cachedReadTokens",
      "cachedWriteTokens"
    ]
    const official = shapeOf(unstable["Usage"]!, unstable).properties
    assert.deepStrictEqual(
      usage.filter((field) => !official.has(field)),
      []
    )
  })

  it("the methods that are called and answered exist", () => {
    const methods = methodsOf(stable)
    for (const method of [
      "initialize",
      "authenticate",
      "session/new",
      "session/load",
      "session/resume",
      "session/prompt",
      "session/cancel",
      "session/close",
      "session/set_mode",
      "session/set_config_option",
      "session/update",
      "session/request_permission",
      "fs/read_text_file",
      "fs/write_text_file"
    ]) {
      assert.isTrue(methods.has(method), method)
    }
  })

  it("the updates, stop reasons, option kinds and states are the ones that are known here", () => {
    assert.deepStrictEqual(constants(stable["SessionUpdate"]!, "sessionUpdate"), [
      // these are told apart
      "user_message_chunk",
      "agent_message_chunk",
      "agent_thought_chunk",
      "tool_call",
      "tool_call_update",
      "plan",
      // these go through raw
      "available_commands_update",
      "current_mode_update",
      "config_option_update",
      "session_info_update",
      "usage_update",
      "notice",
      "compaction_update",
      "compaction_summary_chunk"
    ])
    const reasons = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
    assert.deepStrictEqual(constants(stable["StopReason"]!), reasons)
    const kinds = ["allow_once", "allow_always", "reject_once", "reject_always"]
    assert.deepStrictEqual(constants(stable["PermissionOptionKind"]!), kinds)
    assert.deepStrictEqual(constants(stable["ToolCallStatus"]!), ["pending", "in_progress", "completed", "failed"])
    assert.deepStrictEqual(constants(stable["SessionConfigOptionCategory"]!), [
      "mode",
      "model",
      "model_config",
      "thought_level"
    ])
  })
})

describe("reading", () => {
  const readSession = Messages.reader(Messages.NewSessionResponse)

  it("takes null, and what is not what it should be, for absent, and ignores what it does not know", () => {
    assert.deepStrictEqual(
      readSession({ sessionId: "s", modes: null, configOptions: 7, models: { availableModels: [{}] }, new: 1 }),
      { sessionId: "s", modes: undefined, configOptions: undefined, models: { availableModels: [undefined] } }
    )
  })

  it("leaves out the items of a list that are not what they should be", () => {
    const session = readSession({ sessionId: "s", configOptions: [{ id: "a" }, { name: "no id" }, null, { id: "b" }] })
    assert.deepStrictEqual(Messages.items(session?.configOptions), [{ id: "a" }, { id: "b" }])
    assert.deepStrictEqual(Messages.items(undefined), [])
  })

  it("gives nothing without what nothing can be done without", () => {
    assert.isUndefined(readSession({}))
    assert.isUndefined(readSession(null))
  })

  it("takes blocks of every kind, with nulls, and no others", () => {
    const blocks = [
      { type: "text", text: "a" },
      { type: "text", text: "a", annotations: { priority: 1 } },
      { type: "image", data: "", mimeType: "image/png" },
      { type: "audio", data: "", mimeType: "audio/wav" },
      { type: "resource_link", uri: "file:///a", name: "a" },
      { type: "resource", resource: { uri: "file:///a", text: "a" } }
    ]
    for (const block of blocks) assert.deepStrictEqual<unknown>(Messages.readBlock(block), block)
    const nulls = { type: "image", data: "", mimeType: "image/png", uri: null, annotations: null, _meta: null }
    assert.deepStrictEqual<unknown>(Messages.readBlock(nulls), blocks[2])
    const resource = { type: "resource", resource: { uri: "file:///a", text: "a", mimeType: null } }
    assert.deepStrictEqual<unknown>(Messages.readBlock(resource), blocks[5])
    assert.deepStrictEqual<unknown>(Messages.readBlock({ type: "text", text: "a", annotations: null }), blocks[0])
    for (const other of [{ type: "video" }, { type: "text" }, "text", null]) {
      assert.isUndefined(Messages.readBlock(other))
    }
  })
})
