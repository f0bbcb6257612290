/** A child that goes on in another process of its agent: what is kept of it, and what is made of that (16). */
import { assert, describe, it } from "@effect/vitest"
import {
  Agent,
  Approvals,
  Content,
  type ResumeToken,
  SubagentError,
  type SubagentRequest,
  Subagents
} from "effect-subagent"
import type { AcpProvider } from "effect-subagent/providers"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { checkAgent, keep, readKept } from "../../../../src/providers/internal/acp/keptSession.ts"
import { isAlive, marked, script, start, stubLayer } from "../../../fixtures/acp/harness.ts"
import type { Behaviour, Json, Step } from "../../../fixtures/acp/stubAgent.ts"

type Token = ResumeToken.ResumeToken
type Options = Partial<AcpProvider.Options>
type Fields = NonNullable<Parameters<typeof start>[1]>

const folder = () => fs.mkdtempSync(path.join(os.tmpdir(), "acp-kept-"))
const said = ({ output }: { readonly output: ReadonlyArray<Content.ContentBlock> }) => Content.toText(output)
const delegator = Agent.root({ cwd: os.tmpdir() })

/** Says two things in a first process, and gives the token of the child when that is gone. */
const kept = (behaviour: Behaviour, fields: Fields = {}, options: Options = {}) =>
  Effect.gen(function* () {
    const parent = yield* delegator
    const token = yield* Effect.gen(function* () {
      const run = yield* start(
        [
          ["say", "one"],
          ["say", "two"]
        ],
        { parent, ...fields }
      )
      yield* run.result
      return JSON.parse(JSON.stringify(yield* run.token!)) as Token
    }).pipe(Effect.scoped, Effect.provide(stubLayer(behaviour, options)))
    return { parent, token }
  })

const goOn = (
  { parent, token }: { readonly parent: Agent.Agent; readonly token: Token },
  steps: ReadonlyArray<Step>,
  fields: Omit<SubagentRequest.SubagentResumeRequest, "parent"> = {}
) =>
  Effect.flatMap(Subagents.Subagents, (subagents) => subagents.resume(token, script(...steps), { parent, ...fields }))

/** How a resumed child ends, and all that it reports. */
const resumed = (
  behaviour: Behaviour,
  steps: ReadonlyArray<Step>,
  options: Options = {},
  later: Behaviour = behaviour
) =>
  Effect.gen(function* () {
    const child = yield* kept(behaviour, {}, options)
    return yield* Effect.gen(function* () {
      const run = yield* goOn(child, steps)
      const result = yield* run.result
      return { child, result, run, updates: Array.from(yield* Stream.runCollect(run.updates)) }
    }).pipe(Effect.scoped, Effect.provide(stubLayer(later, options)))
  })

/** An agent that takes up sessions in this way. */
const able = (agentCapabilities: Json, fields: Behaviour = {}): Behaviour => ({
  store: folder(),
  ...fields,
  answers: { initialize: { protocolVersion: 1, agentCapabilities }, ...fields.answers }
})
const loading = (fields: Behaviour = {}) => able({ loadSession: true }, fields)
const resuming = (fields: Behaviour = {}) => able({ sessionCapabilities: { resume: {} } }, fields)

describe("a child that goes on in another process (16)", () => {
  for (const [how, behaviour] of [
    ["loads", loading()],
    ["resumes", resuming()],
    ["resumes, as an older one says it,", able({ sessionCapabilities: { resume: true } })]
  ] as const) {
    it.live(`of an agent that ${how} sessions is the same, and remembers`, () =>
      Effect.gen(function* () {
        const { child, result, run } = yield* resumed(behaviour, [["tell", "memory"]])
        assert.deepStrictEqual([run.id, run.header], [child.token.id, child.token.header])
        assert.deepStrictEqual((JSON.parse(said(result)) as Json[]).slice(1, 3), [
          ["agent", "one"],
          ["agent", "two"]
        ])
        assert.deepStrictEqual(marked(run.runId), [])
      })
    )
  }

  it.live("is told what the session is opened in, and is configured again", () =>
    Effect.gen(function* () {
      const settings = { modes: { availableModes: [{ id: "ask" }] }, models: { availableModels: [{ modelId: "m" }] } }
      const behaviour = resuming({ answers: { "session/new": settings, "session/resume": settings } })
      const { child, result } = yield* resumed(behaviour, [["tell", "inbox"]], {
        mode: "ask",
        model: "m",
        mcpServers: [{ name: "s", command: "/bin/server" }]
      })
      const { sessionId } = child.token.payload as { readonly sessionId: string }
      const inbox = JSON.parse(said(result)) as ReadonlyArray<{ readonly method: string; readonly params: Json }>
      assert.deepStrictEqual(
        inbox.slice(1, -1).map(({ method, params }) => [method, params]),
        [
          [
            "session/resume",
            { sessionId, cwd: os.tmpdir(), mcpServers: [{ name: "s", command: "/bin/server", args: [], env: [] }] }
          ],
          ["session/set_mode", { sessionId, modeId: "ask" }],
          ["session/set_model", { sessionId, modelId: "m" }]
        ]
      )
    })
  )

  it.live("can be kept again, and go on a third time", () =>
    Effect.gen(function* () {
      const behaviour = loading()
      const { child, run } = yield* resumed(behaviour, [["say", "three"]])
      assert.property(run, "token")
      const { updates } = yield* Effect.gen(function* () {
        const third = yield* goOn(child, [["tell", "memory"]])
        return { updates: Array.from(yield* Stream.runCollect(third.updates)) }
      }).pipe(Effect.scoped, Effect.provide(stubLayer(behaviour)))
      const [text = ""] = updates.flatMap((update) =>
        update._tag === "Content" ? [Content.toText([update.block])] : []
      )
      assert.include(text, '["agent","three"]')
    })
  )

  it.live("goes on in the process that it is in then", () =>
    Effect.gen(function* () {
      const behaviour = loading()
      const child = yield* kept(behaviour)
      yield* Effect.gen(function* () {
        const first = yield* goOn(child, [["say", "three"]])
        yield* first.result
        const second = yield* first.resume!(script(["tell", "memory"]))
        assert.include(said(yield* second.result), '["agent","three"]')
      }).pipe(Effect.scoped, Effect.provide(stubLayer(behaviour)))
    })
  )
})

describe("history that is told again (16)", () => {
  const toolCall = { sessionUpdate: "tool_call", toolCallId: "t", title: "Look" }
  const history: ReadonlyArray<Step> = [
    ["think", "hm"],
    ["update", toolCall],
    ["update", { sessionUpdate: "plan", entries: [{ content: "look", priority: "high", status: "completed" }] }],
    ["update", { sessionUpdate: "usage_update", used: 10, size: 100 }],
    ["say", "the old answer"]
  ]
  const tags = (updates: ReadonlyArray<{ readonly _tag: string }>) => updates.map(({ _tag }) => _tag)

  it.live("is no news: neither output nor updates, and a call in it is not this turn's", () =>
    Effect.gen(function* () {
      const { result, updates } = yield* resumed(loading({ before: { "session/load": history } }), [["say", "new"]])
      assert.deepStrictEqual([result.stopReason, said(result)], ["completed", "new"])
      assert.deepStrictEqual(tags(updates), ["MessageStarted", "Content"])
    })
  )

  it.live("is no answer of a child that says nothing now", () =>
    Effect.gen(function* () {
      const { result } = yield* resumed(loading({ before: { "session/load": history } }), [["think", "hm"]])
      assert.deepStrictEqual([result.stopReason, result.failure?.kind, said(result)], ["error", "empty", ""])
    })
  )

  it.live("may go on behind the answer", () =>
    Effect.gen(function* () {
      const late: ReadonlyArray<Step> = [...history, ["sleep", 60], ...history, ["sleep", 60], ...history]
      const { result, updates } = yield* resumed(loading({ after: { "session/load": late } }), [["say", "new"]])
      assert.strictEqual(said(result), "new")
      assert.deepStrictEqual(tags(updates), ["MessageStarted", "Content"])
    })
  )

  it.live("is not waited for without end", () =>
    Effect.gen(function* () {
      const told = path.join(folder(), "told")
      const late = Array.from({ length: 200 }, (): ReadonlyArray<Step> => [
        ["sleep", 50],
        ["think", "hm"]
      ]).flat()
      const after = { "session/load": [...late, ["touch", told]] } as const
      const { result } = yield* resumed(loading({ after }), [["say", "new"]])
      assert.strictEqual(said(result), "new")
      assert.isFalse(fs.existsSync(told))
    })
  )

  it.live("is no news either from an agent that resumes and was not to tell it", () =>
    Effect.gen(function* () {
      const { updates } = yield* resumed(resuming({ before: { "session/resume": history } }), [["say", "new"]])
      assert.deepStrictEqual(tags(updates), ["MessageStarted", "Content"])
    })
  )

  it.live("may be as long as it is", () =>
    Effect.gen(function* () {
      const { updates } = yield* resumed(loading({ before: { "session/load": [["flood", 5000, "old"]] } }), [
        ["say", "new"]
      ])
      assert.deepStrictEqual(tags(updates), ["MessageStarted", "Content"])
    })
  )
})

describe("what held for a child", () => {
  const Person = Schema.Struct({ name: Schema.String })

  it.live("holds for its permissions and files when it goes on (16, 19)", () =>
    Effect.gen(function* () {
      const root = fs.realpathSync(folder())
      const file = path.join(root, "a")
      fs.writeFileSync(file, "within")
      const steps: ReadonlyArray<Step> = [
        ["request", "fs/read_text_file", { sessionId: "$SESSION", path: file }],
        ["request", "fs/read_text_file", { sessionId: "$SESSION", path: "/etc/passwd" }],
        ["ask", {}]
      ]
      const asked: Array<string | undefined> = []
      const { result, run, updates } = yield* resumed(loading(), steps, { fs: { roots: [root] } }).pipe(
        Effect.provideService(Approvals.Approvals, {
          decide: ({ lineage }) => Effect.sync(() => (asked.push(lineage?.runId), "approved"))
        })
      )
      const texts = updates.flatMap((update) => (update._tag === "Content" ? [Content.toText([update.block])] : []))
      assert.deepStrictEqual(texts.slice(0, 1), ['{"content":"within"}'])
      assert.include(texts[1], "Not within the folders there are")
      assert.strictEqual(said(result), "selected yes")
      assert.deepStrictEqual(asked, [run.runId])
    })
  )

  it.live("is not kept of a schema: it is given again, and asked for again (13, 16)", () =>
    Effect.gen(function* () {
      const behaviour = loading({ turns: [[["say", "Ada"]], [["say", '{"name":"Ada"}']]] })
      const child = yield* kept(behaviour)
      const result = yield* Effect.gen(function* () {
        const subagents = yield* Subagents.Subagents
        const { parent, token } = child
        const run = yield* subagents.resume(token, "who?", { parent, outputSchema: Person })
        return yield* run.result
      }).pipe(Effect.scoped, Effect.provide(stubLayer(behaviour)))
      assert.deepStrictEqual(result.structured, { name: "Ada" })
    })
  )

  it.live("holds for its model (16)", () =>
    Effect.gen(function* () {
      const models = { models: { availableModels: [{ modelId: "m-1" }, { modelId: "m-2" }] } }
      const behaviour = loading({ answers: { "session/new": models, "session/load": models } })
      const child = yield* kept(behaviour, { agentOptions: { model: "m-2" } })
      const result = yield* Effect.gen(function* () {
        const run = yield* goOn(child, [["tell", "inbox"]])
        return yield* run.result
      }).pipe(Effect.scoped, Effect.provide(stubLayer(behaviour, { model: "m-1" })))
      assert.include(said(result), '"modelId":"m-2"')
    })
  )

  it.live("is refused if it can't be had any more: never passed over", () =>
    Effect.gen(function* () {
      const models = { models: { availableModels: [{ modelId: "m" }] } }
      const behaviour = loading({ answers: { "session/new": models, "session/load": null } })
      const child = yield* kept(behaviour, { agentOptions: { model: "m" } })
      const error = yield* Effect.flip(goOn(child, [])).pipe(Effect.scoped, Effect.provide(stubLayer(behaviour)))
      assert.strictEqual(error.message, 'Provider "stub" does not support model')
    })
  )
})

describe("a token", () => {
  it.live("is not there for an agent that can't take up a session (16)", () =>
    Effect.gen(function* () {
      for (const agentCapabilities of [{}, { loadSession: false, sessionCapabilities: { resume: false } }]) {
        const run = yield* Effect.provide(start([["say", "a"]]), stubLayer(able(agentCapabilities)))
        assert.notProperty(run, "token")
      }
    }).pipe(Effect.scoped)
  )

  /** Why a child can't go on, after a look at whether anything is left of the try. */
  const refusal = (
    change: (token: Token) => Token,
    later: (behaviour: Behaviour) => Behaviour = (behaviour) => behaviour,
    options: Options = {}
  ) =>
    Effect.gen(function* () {
      const marks = folder()
      const behaviour = loading({ folder: marks })
      const child = yield* kept(behaviour)
      const before = fs.readdirSync(marks)
      const error = yield* Effect.gen(function* () {
        const subagents = yield* Subagents.Subagents
        const events: Array<string> = []
        yield* subagents.on((event) => Effect.sync(() => events.push(event.type)))
        const exit = yield* Effect.exit(goOn({ ...child, token: change(child.token) }, []))
        assert.deepStrictEqual(yield* subagents.live, [])
        assert.notInclude(events, "subagent/start")
        return Exit.isFailure(exit) ? yield* Effect.flip(exit) : assert.fail("it went on")
      }).pipe(Effect.scoped, Effect.provide(stubLayer(later(behaviour), options)))
      const started = fs.readdirSync(marks).filter((name) => !before.includes(name))
      assert.deepStrictEqual(
        started.filter((pid) => isAlive(Number(pid))),
        []
      )
      return { code: error.code, message: error.message, started: started.length }
    })

  const but = (token: Token, fields: object): Token => Object.assign({}, token, fields)
  const payload = (fields: object) => (token: Token) =>
    but(token, { payload: Object.assign({}, token.payload, fields) })

  for (const [what, change, message] of [
    ["is of another kind of child", (token) => but(token, { payload: { seed: [] } }), "token.payload.seed: "],
    ["has nothing", (token) => but(token, { payload: null }), "token.payload: "],
    ["has no session", payload({ sessionId: "" }), "token.payload.sessionId: "],
    ["has more than is known", payload({ command: "rm" }), "token.payload.command: "],
    [
      "is of another folder",
      payload({ cwd: "/etc" }),
      `token.payload.cwd: Expected a session in ${os.tmpdir()}, not in /etc`
    ],
    [
      "was moved to another folder",
      (token) => payload({ cwd: "/etc" })(but(token, { header: { ...token.header, cwd: "/etc" } })),
      `token.header.cwd: Expected the parent's folder, ${os.tmpdir()}`
    ]
  ] as ReadonlyArray<readonly [string, (token: Token) => Token, string]>) {
    it.live(`that ${what} is refused before there is a process (16)`, () =>
      Effect.gen(function* () {
        const { code, message: said, started } = yield* refusal(change)
        assert.deepStrictEqual([code, started], ["INVALID_REQUEST", 0])
        assert.include(said, message)
      })
    )
  }

  it.live("of a folder that the provider no longer works in is refused before there is a process (16)", () =>
    Effect.gen(function* () {
      const cwd = fs.realpathSync(folder())
      const { message, started } = yield* refusal((token) => token, undefined, { cwd })
      assert.deepStrictEqual(
        [message, started],
        [`Invalid request: token.payload.cwd: Expected a session in ${cwd}, not in ${os.tmpdir()}`, 0]
      )
    })
  )

  it.live("of a provider that is not there is refused before there is a process (16)", () =>
    Effect.gen(function* () {
      const { code, started } = yield* refusal((token) => but(token, { provider: "another" }))
      assert.deepStrictEqual([code, started], ["NO_PROVIDER", 0])
    })
  )

  it.live("of a session that the agent does not have is refused, with what it says (16)", () =>
    Effect.gen(function* () {
      const { code, message } = yield* refusal(payload({ sessionId: "gone" }))
      assert.strictEqual(code, "START_FAILED")
      assert.include(message, "It has answered session/load with an error: Resource not found (-32002)")
    })
  )

  it.live("for an agent that can no longer take up a session is refused (16)", () =>
    Effect.gen(function* () {
      const { message } = yield* refusal(
        (token) => token,
        ({ store = "" }) => ({ store, answers: { initialize: { protocolVersion: 1 } } })
      )
      assert.strictEqual(message, 'Provider "stub" does not support resume')
    })
  )

  it.live("for an agent of another name is refused, and that one is not told of the session (16)", () =>
    Effect.gen(function* () {
      const told = path.join(folder(), "told")
      const { code, message } = yield* refusal(payload({ agent: "first" }), (behaviour) => ({
        ...behaviour,
        answers: {
          initialize: { protocolVersion: 1, agentInfo: { name: "second" }, agentCapabilities: { loadSession: true } }
        },
        before: { "session/load": [["touch", told]] }
      }))
      assert.strictEqual(code, "INVALID_REQUEST")
      assert.include(message, "token.payload.agent: Expected a session of second, not of first")
      assert.isFalse(fs.existsSync(told))
    })
  )

  it.live("of an agent that never takes up its session is refused in time (16)", () =>
    Effect.gen(function* () {
      const { message } = yield* refusal(
        (token) => token,
        (behaviour) => ({ ...behaviour, silent: ["session/load"] }),
        { timeouts: { start: "500 millis" } }
      )
      assert.strictEqual(message, 'Provider "stub" had no answer to session/load within 500 ms')
    })
  )

  it.live("for an agent that wants a login is refused (16)", () =>
    Effect.gen(function* () {
      const { code } = yield* refusal(
        (token) => token,
        (behaviour) => ({ ...behaviour, errors: { "session/load": { code: -32000, message: "who are you?" } } })
      )
      assert.strictEqual(code, "AUTH_REQUIRED")
    })
  )
})

describe("what is kept of a session", () => {
  const named = (name: string) => ({ protocolVersion: 1, agentInfo: { name } })

  it.effect("comes back as it was", () =>
    Effect.gen(function* () {
      for (const initialized of [named("a"), { protocolVersion: 1 }]) {
        const session = keep("s", "/w", initialized)
        assert.deepStrictEqual(yield* readKept(JSON.parse(JSON.stringify(session)), "/w"), session)
        yield* checkAgent(session, initialized)
      }
    })
  )

  it.effect("is of one agent, as far as agents say who they are", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(checkAgent(keep("s", "/w", named("a")), named("b")))
      assert.instanceOf(error, SubagentError.SubagentError)
      assert.strictEqual(error.message, "Invalid request: token.payload.agent: Expected a session of b, not of a")
      yield* checkAgent(keep("s", "/w", { protocolVersion: 1 }), named("b"))
      yield* checkAgent(keep("s", "/w", named("a")), { protocolVersion: 1 })
    })
  )
})
