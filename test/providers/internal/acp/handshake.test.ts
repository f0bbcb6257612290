import { assert, describe, it } from "@effect/vitest"
import { type Content, Agent, SubagentError, Subagents } from "effect-subagent"
import type { AcpProvider } from "effect-subagent/providers"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { isAlive, run, start, stubLayer } from "../../../fixtures/acp/harness.ts"
import type { Behaviour, Json } from "../../../fixtures/acp/stubAgent.ts"

/** Why a start is refused, after a look at whether anything is left of it. */
const refusal = (
  behaviour: Behaviour,
  options: Partial<AcpProvider.Options> = {},
  fields: Parameters<typeof start>[1] = {}
): Effect.Effect<SubagentError.SubagentErrorReason, unknown> =>
  Effect.suspend(() => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "acp-refusal-"))
    return Effect.gen(function* () {
      const subagents = yield* Subagents.Subagents
      const events: Array<string> = []
      yield* subagents.on((event) => Effect.sync(() => events.push(event.type)))
      const { reason } = yield* Effect.flip(Effect.scoped(start("go", fields)))
      assert.deepStrictEqual(yield* subagents.live, [])
      assert.deepStrictEqual(
        fs.readdirSync(folder).filter((pid) => isAlive(Number(pid))),
        [],
        "the processes left"
      )
      assert.deepStrictEqual(
        events.filter((type) => type !== "subagent/provider-added"),
        []
      )
      return reason
    }).pipe(Effect.scoped, Effect.provide(stubLayer({ folder, ...behaviour }, options)))
  })

const detailOf = (reason: SubagentError.SubagentErrorReason) =>
  reason._tag === "StartFailed" ? reason.detail : reason._tag

const fieldsOf = (reason: SubagentError.SubagentErrorReason) =>
  Schema.encodeSync(SubagentError.SubagentError)(SubagentError.fromReason(reason)).reason

const initialized = (fields: { readonly [key: string]: Json } = {}): NonNullable<Behaviour["answers"]> => ({
  initialize: { protocolVersion: 1, ...fields }
})

describe("a start", () => {
  for (const [problem, behaviour, options, detail] of [
    [
      "an agent that ends before it answers, with what it said last",
      {
        before: {
          initialize: [
            ["stderr", "no such model: \u001B[31mx\u001B[0m\n"],
            ["exit", 7]
          ]
        }
      },
      {},
      "The agent has ended with exit code 7 before it answered initialize\nno such model: x"
    ],
    [
      "an agent that is killed",
      { before: { initialize: [["kill"]] } },
      {},
      "The agent was ended by SIGKILL before it answered initialize"
    ],
    [
      "an agent that closes its output and lives",
      { before: { initialize: [["closeStdout"]] } },
      {},
      "The agent has closed its output before it answered initialize"
    ],
    [
      "what is no agent, with what it said",
      {
        before: {
          initialize: [
            ["raw", "Usage: stub [options]\n"],
            ["exit", 0]
          ]
        }
      },
      {},
      "The agent has ended with exit code 0 before it answered initialize\nUsage: stub [options]"
    ],
    [
      "an agent of another version",
      { answers: initialized({ protocolVersion: 2 }) },
      {},
      "It speaks version 2 of the protocol, and version 1 is needed"
    ],
    [
      "an agent that says no version",
      { answers: { initialize: {} } },
      {},
      "It speaks version null of the protocol, and version 1 is needed"
    ],
    [
      "an agent that answers with an error",
      { errors: { initialize: { code: -32602, message: "Invalid params", data: "no" } } },
      {},
      "It has answered initialize with an error: Invalid params: no (-32602)"
    ],
    [
      "an agent that can't make a session",
      { errors: { "session/new": { code: 1001, message: "no room" } } },
      {},
      "It has answered session/new with an error: no room (1001)"
    ],
    [
      "an agent whose session has no name",
      { answers: { "session/new": { sessionId: null } } },
      {},
      "It has answered session/new without a session"
    ],
    [
      "an agent whose session has an empty name",
      { answers: { "session/new": { sessionId: "" } } },
      {},
      "It has answered session/new without a session"
    ],
    [
      "a method of authentication that the agent does not have",
      {},
      { authMethod: "key" },
      "It can't be told to authenticate by key; its methods: none"
    ],
    [
      "a method of authentication that needs a terminal",
      { answers: initialized({ authMethods: [{ id: "login", name: "Log in", type: "terminal" }] }) },
      { authMethod: "login" },
      "It can't be told to authenticate by login; its methods: login"
    ],
    [
      "an authentication that fails",
      {
        answers: initialized({ authMethods: [{ id: "key", name: "Key" }] }),
        errors: { authenticate: { code: -32602, message: "wrong key" } }
      },
      { authMethod: "key" },
      "It has answered authenticate with an error: wrong key (-32602)"
    ],
    [
      "a mode that the agent does not have",
      {
        answers: {
          "session/new": {
            sessionId: "s",
            modes: { currentModeId: "ask", availableModes: [{ id: "ask", name: "Ask" }] }
          }
        }
      },
      { mode: "code" },
      'It has no mode "code"; those there are: ask'
    ],
    ["a mode where there are none", {}, { mode: "code" }, 'It has no mode "code"; those there are: none'],
    [
      "a model that the agent does not have",
      { answers: { "session/new": { models: { availableModels: [{ modelId: "m-1" }] } } } },
      { model: "m-2" },
      'It has no model "m-2"; those there are: m-1'
    ],
    [
      "a mode that can't be set",
      {
        answers: { "session/new": { modes: { availableModes: [{ id: "ask" }] } } },
        errors: { "session/set_mode": { code: -32603, message: "not now" } }
      },
      { mode: "ask" },
      "It has answered session/set_mode with an error: not now (-32603)"
    ],
    [
      "a way to an MCP server that the agent does not have",
      { answers: initialized({ agentCapabilities: { mcpCapabilities: { http: true, sse: false } } }) },
      { mcpServers: [{ type: "sse", name: "m", url: "http://localhost" }] },
      "It does not take MCP servers over sse"
    ],
    [
      "a command that does not exist",
      {},
      { command: "no-such-agent" },
      "no-such-agent can't be run: there is no such file"
    ],
    ["a folder of its own that is not absolute", {}, { cwd: "here" }, "cwd: Expected an absolute path, not here"],
    [
      "a folder of its own that is not there",
      {},
      { cwd: "/no/such/folder" },
      "The working directory /no/such/folder can't be entered: there is no such file"
    ]
  ] as ReadonlyArray<readonly [string, Behaviour, Partial<AcpProvider.Options>, string]>) {
    it.live(`is refused ${problem}`, () =>
      Effect.gen(function* () {
        assert.strictEqual(detailOf(yield* refusal(behaviour, options)), detail)
      })
    )
  }

  for (const [what, method, before, detail] of [
    ["an agent that never answers", "initialize", {}, {}],
    [
      "[D12] an agent that never makes a session, with what it said last",
      "session/new",
      { "session/new": [["stderr", "loading the index\n"]] },
      { detail: "loading the index" }
    ]
  ] as ReadonlyArray<readonly [string, string, NonNullable<Behaviour["before"]>, object]>) {
    it.live(`is refused ${what}, as too late`, () =>
      Effect.gen(function* () {
        const reason = yield* refusal({ silent: [method], before }, { timeouts: { start: "1 second" } })
        assert.deepStrictEqual<object>(fieldsOf(reason), {
          _tag: "StartTimeout",
          provider: "stub",
          timeout: 1000,
          step: method,
          ...detail
        })
      })
    )
  }

  const authMethods = [
    { id: "key", name: "Key", description: "A key in the environment" },
    { id: "login", name: null, type: "terminal" }
  ]
  const methods = [{ id: "key", name: "Key", description: "A key in the environment" }, { id: "login" }]
  for (const [method, known, options] of [
    ["initialize", [], {}],
    ["authenticate", methods, { authMethod: "key" }],
    ["session/new", methods, {}]
  ] as ReadonlyArray<readonly [string, ReadonlyArray<object>, Partial<AcpProvider.Options>]>) {
    it.live(`is refused an agent that wants to be authenticated at ${method}, with its methods`, () =>
      Effect.gen(function* () {
        const errors = { [method]: { code: -32000, message: "Authentication required" } }
        const reason = yield* refusal({ answers: initialized({ authMethods }), errors }, options)
        assert.deepStrictEqual<object>(fieldsOf(reason), {
          _tag: "AuthRequired",
          provider: "stub",
          methods: known,
          detail: `It has answered ${method} with an error: Authentication required (-32000)`
        })
      })
    )
  }

  it.live("is refused a parent without a working directory: never this process's own", () =>
    Effect.gen(function* () {
      const reason = yield* refusal({}, {}, { parent: yield* Agent.root() })
      assert.strictEqual(reason.message, "Invalid request: parent.session.header.cwd: Expected a working directory")
    })
  )

  it.live("(3) is refused what this agent lacks, as if the provider had never claimed it", () =>
    Effect.gen(function* () {
      const model = yield* refusal({}, {}, { agentOptions: { model: "m" } })
      assert.strictEqual(model.message, 'Provider "stub" does not support model')
      const blocks: ReadonlyArray<Content.ContentBlock> = [
        { type: "text", text: "look" },
        { type: "image", data: "", mimeType: "image/png" },
        { type: "audio", data: "", mimeType: "audio/wav" },
        { type: "resource_link", uri: "file:///a", name: "a" },
        { type: "resource", resource: { uri: "file:///a", text: "a" } }
      ]
      const answers = initialized({ agentCapabilities: { promptCapabilities: { image: true, audio: "yes" } } })
      const content = yield* refusal({ answers }, {}, { prompt: blocks })
      assert.strictEqual(content.message, 'Provider "stub" does not support content:audio, content:resource')
    })
  )

  it.live("is refused a schema that has no JSON Schema, before there is a process", () =>
    Effect.gen(function* () {
      const outputSchema = Schema.suspend((): Schema.Codec<unknown> => {
        throw new Error("not yet")
      })
      const reason = yield* refusal({}, { command: "no-such-agent" }, { outputSchema })
      assert.strictEqual(reason._tag, "InvalidRequest")
    })
  )

  it.live("hides what it was trusted with", () =>
    Effect.gen(function* () {
      const behaviour: Behaviour = {
        before: { "session/new": [["stderr", "using sk-12345678\n"]] },
        errors: { "session/new": { code: -32603, message: "bad key sk-12345678" } }
      }
      const detail = detailOf(yield* refusal(behaviour, { env: { STUB_API_KEY: "sk-12345678" } }))
      assert.include(detail, "bad key [redacted]")
      assert.notInclude(detail, "sk-12345678")
    })
  )
})

describe("an agent", () => {
  it.live("is told what it needs to know, and nothing is offered that is not there", () =>
    Effect.gen(function* () {
      const { output } = yield* run([["tell", "inbox"]]).pipe(
        Effect.provide(
          stubLayer(
            {
              answers: {
                initialize: {
                  protocolVersion: 1,
                  agentCapabilities: { mcpCapabilities: { http: true } },
                  authMethods: [{ id: "key", name: "Key", type: "agent" }]
                },
                "session/new": {
                  modes: { availableModes: [{ id: "code", name: "Code" }] },
                  configOptions: [
                    {
                      id: "llm",
                      name: "LLM",
                      category: "model",
                      type: "select",
                      options: [{ value: "m-1", name: "One" }]
                    }
                  ]
                }
              }
            },
            {
              authMethod: "key",
              mode: "code",
              model: "m-1",
              mcpServers: [
                { name: "local", command: "/bin/server", args: ["-v"], env: { A: "1" } },
                { name: "bare", command: "/bin/server" },
                { type: "http", name: "remote", url: "http://localhost", headers: { B: "2" } }
              ]
            }
          )
        )
      )
      const inbox = JSON.parse((output[0] as Content.TextBlock).text) as ReadonlyArray<object>
      const calls = inbox.map((message) =>
        JSON.parse(JSON.stringify({ ...message, jsonrpc: undefined, id: undefined }).replaceAll(/session-\d+/g, "s"))
      )
      assert.deepStrictEqual(calls.slice(0, -1), [
        {
          method: "initialize",
          params: {
            protocolVersion: 1,
            clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
            clientInfo: { name: "effect-subagent", version: "0.1.0" }
          }
        },
        { method: "authenticate", params: { methodId: "key" } },
        {
          method: "session/new",
          params: {
            cwd: os.tmpdir(),
            mcpServers: [
              { name: "local", command: "/bin/server", args: ["-v"], env: [{ name: "A", value: "1" }] },
              { name: "bare", command: "/bin/server", args: [], env: [] },
              { type: "http", name: "remote", url: "http://localhost", headers: [{ name: "B", value: "2" }] }
            ]
          }
        },
        { method: "session/set_mode", params: { sessionId: "s", modeId: "code" } },
        { method: "session/set_config_option", params: { sessionId: "s", configId: "llm", value: "m-1" } }
      ])
    })
  )

  it.live("works in the parent's folder, or in the one that the provider has for it", () =>
    Effect.gen(function* () {
      const own = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "acp-own-")))
      const parents = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "acp-parents-")))
      const parent = yield* Agent.root({ cwd: parents })
      const tell = run([["tell", "cwd"]], { parent })
      const texts = [
        yield* Effect.provide(tell, stubLayer()),
        yield* Effect.provide(tell, stubLayer({}, { cwd: own }))
      ].map(({ output }) => (output[0] as Content.TextBlock).text)
      assert.deepStrictEqual(texts, [parents, own])
    })
  )

  it.live("runs on the model that the request asks for, rather than the provider's", () =>
    Effect.gen(function* () {
      const models = { availableModels: [{ modelId: "m-1" }, { modelId: "m-2" }] }
      const result = yield* run([["tell", "inbox"]], { agentOptions: { model: "m-2" } }).pipe(
        Effect.provide(stubLayer({ answers: { "session/new": { models } } }, { model: "m-1" }))
      )
      assert.include((result.output[0] as Content.TextBlock).text, '"modelId":"m-2"')
    })
  )
})
