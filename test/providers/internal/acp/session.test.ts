import { assert, describe, it } from "@effect/vitest"
import { Approvals, Content, type SubagentRun, Subagents } from "effect-subagent"
import type { AcpProvider } from "effect-subagent/providers"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { isAlive, marked, run, start, stubLayer } from "../../../fixtures/acp/harness.ts"
import type { Behaviour, Step } from "../../../fixtures/acp/stubAgent.ts"

const folder = () => fs.mkdtempSync(path.join(os.tmpdir(), "acp-session-"))
const said = ({ output }: { readonly output: ReadonlyArray<Content.ContentBlock> }) => Content.toText(output)

/** The first words of a run, as a sign that its turn is under way. */
const firstWords = (run: SubagentRun.SubagentRun) =>
  run.updates.pipe(
    Stream.filter((update) => update._tag === "Content"),
    Stream.runHead
  )

/** The process of a run that has no other. */
const pidOf = (run: SubagentRun.SubagentRun) => marked(run.runId)[0] ?? 0

const toolCall = { sessionUpdate: "tool_call", toolCallId: "late", title: "Late" }

const play = (steps: ReadonlyArray<Step>, behaviour: Behaviour = {}, options: Partial<AcpProvider.Options> = {}) =>
  Effect.provide(run(steps), stubLayer(behaviour, options))

describe("a turn", () => {
  it.live("prompts with the blocks as they are", () =>
    Effect.gen(function* () {
      const prompt: ReadonlyArray<Content.ContentBlock> = [
        { type: "text", text: '[["tell", "prompt"]]' },
        { type: "resource_link", uri: "file:///a", name: "a" }
      ]
      const result = yield* Effect.provide(run("", { prompt }), stubLayer())
      assert.deepStrictEqual(JSON.parse(said(result)), prompt)
    })
  )

  it.live("(14) has the last message as its answer, and reports the rest", () =>
    Effect.gen(function* () {
      const result = yield* play([
        ["think", "hm"],
        ["say", "I'll look."],
        ["update", { sessionUpdate: "tool_call", toolCallId: "t", title: "Look", status: "completed" }],
        ["update", { sessionUpdate: "plan", entries: [{ content: "look", priority: "high", status: "completed" }] }],
        ["say", "It's "],
        ["say", "there."]
      ])
      assert.deepStrictEqual([result.stopReason, said(result)], ["completed", "It's there."])
    })
  )

  it.live("[F] that says nothing has not completed", () =>
    Effect.gen(function* () {
      for (const steps of [
        [["answer", { stopReason: "end_turn" }]],
        [
          ["think", "hm"],
          ["say", " \n"]
        ]
      ] as const) {
        const result = yield* play(steps)
        assert.deepStrictEqual([result.stopReason, result.failure?.kind], ["error", "empty"])
      }
    })
  )

  it.live("[F2] that fails is an error, with what the agent says of it", () =>
    Effect.gen(function* () {
      const result = yield* play([["fail", -32603, "Internal error", { details: "no credit" }]])
      assert.deepStrictEqual(result.failure, {
        kind: "model",
        retryable: false,
        message: "Internal error: no credit (-32603)"
      })
    })
  )

  it.live("[F4] that ends within a tool call has not completed", () =>
    Effect.gen(function* () {
      const result = yield* play([
        ["say", "let me look"],
        ["update", { sessionUpdate: "tool_call", toolCallId: "t", title: "Look" }]
      ])
      assert.deepStrictEqual([result.stopReason, result.failure?.kind], ["error", "unbalanced"])
    })
  )

  it.live("that the agent's own side has cancelled is aborted, by it", () =>
    Effect.gen(function* () {
      const result = yield* play([
        ["say", "a"],
        ["answer", { stopReason: "cancelled" }]
      ])
      assert.deepStrictEqual([result.stopReason, result.cause], ["aborted", { _tag: "Child" }])
    })
  )

  it.live("(7) [F8] is over with its answer: what comes then is no part of it", () =>
    Effect.gen(function* () {
      const result = yield* play([
        ["say", "the answer"],
        [
          "raw",
          '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}\n{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"$SESSION","update":{"sessionUpdate":"agent_message_chunk","messageId":"late","content":{"type":"text","text":"late"}}}}\n'
        ],
        ["flood", 100, "too late"]
      ])
      assert.deepStrictEqual([result.stopReason, said(result)], ["completed", "the answer"])
    })
  )

  it.live("reports what it has used, if the agent tells", () =>
    Effect.gen(function* () {
      const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15 }
      const result = yield* play([
        ["say", "a"],
        ["answer", { stopReason: "end_turn", usage }]
      ])
      assert.deepStrictEqual(result.usage, { input: 10, output: 5, total: 15 })
    })
  )

  it.live("hides what the agent was trusted with", () =>
    Effect.gen(function* () {
      const result = yield* play([["fail", 401, "bad key sk-12345678"]], {}, { env: { STUB_KEY: "sk-12345678" } })
      assert.strictEqual(result.failure?.message, "bad key [redacted] (401)")
    })
  )
})

describe("a turn in which nothing is heard", () => {
  const idle = { timeouts: { idle: "400 millis" } } as const

  it.live("[D2] fails if the host says for how long it may be, keeps what was said, and its agent is told", () =>
    Effect.gen(function* () {
      const marks = folder()
      yield* Effect.gen(function* () {
        const run = yield* start([["say", "so far"], ["hang"]])
        const result = yield* run.result
        assert.deepStrictEqual(result.failure, {
          kind: "timeout",
          retryable: true,
          name: "idle",
          limit: 400,
          message: "Nothing was heard of the agent for 400ms"
        })
        assert.strictEqual(said(result), "so far")
        yield* Effect.repeat(
          Effect.sync(() => fs.readdirSync(marks)),
          { until: (names) => names.length === 1 }
        )
      }).pipe(Effect.scoped, Effect.provide(stubLayer({ folder: marks }, idle)))
    })
  )

  it.live("goes on as long as something is", () =>
    Effect.gen(function* () {
      const steps = Array.from(
        { length: 10 },
        () =>
          [
            ["sleep", 100],
            ["think", "hm"]
          ] as const
      ).flat()
      const result = yield* play([...steps, ["say", "done"]], {}, idle)
      assert.strictEqual(said(result), "done")
    })
  )

  it.live("goes on while somebody thinks about a permission", () =>
    Effect.gen(function* () {
      const result = yield* play([["ask", {}]], {}, idle).pipe(
        Effect.provideService(Approvals.Approvals, {
          decide: () => Effect.delay(Effect.succeed("approved" as const), "1500 millis")
        })
      )
      assert.strictEqual(said(result), "selected yes")
    })
  )
})

describe("a turn that is cancelled", () => {
  for (const [how, behaviour] of [
    ["says so", {}],
    ["says end_turn", { cancelAnswer: "end_turn" }],
    ["answers with an error", { cancelAnswer: "error" }]
  ] as const) {
    it.live(`[C7] is aborted at once and for good, also by an agent that ${how}`, () =>
      Effect.gen(function* () {
        const run = yield* start([["say", "so far"], ["hang"]])
        yield* firstWords(run)
        const began = yield* Clock.currentTimeMillis
        yield* run.cancel("enough")
        const result = yield* run.result
        assert.isBelow((yield* Clock.currentTimeMillis) - began, 100)
        assert.deepStrictEqual([result.stopReason, result.cause], ["aborted", { _tag: "Caller", reason: "enough" }])
        assert.strictEqual(said(result), "so far")
      }).pipe(Effect.scoped, Effect.provide(stubLayer(behaviour)))
    )
  }

  it.live("ends the agent's turn, which stays ready for its release", () =>
    Effect.gen(function* () {
      const marks = folder()
      yield* Effect.gen(function* () {
        const run = yield* start([["hang"]])
        yield* run.cancel()
        yield* Effect.repeat(
          Effect.sync(() => fs.readdirSync(marks)),
          { until: (names) => names.length === 1 }
        )
        assert.isTrue(isAlive(pidOf(run)))
      }).pipe(Effect.scoped, Effect.provide(stubLayer({ folder: marks })))
    })
  )

  it.live("is told again to an agent that had not yet taken in the prompt", () =>
    Effect.gen(function* () {
      const marks = folder()
      yield* Effect.gen(function* () {
        const run = yield* start([["hang"]])
        yield* Effect.repeat(
          Effect.sync(() => fs.readdirSync(marks).length),
          { until: (count) => count === 2 }
        )
        yield* run.cancel()
        yield* Effect.repeat(
          Effect.delay(
            Effect.sync(() => fs.readdirSync(marks).length),
            "20 millis"
          ),
          { until: (count) => count === 1 }
        )
      }).pipe(Effect.scoped, Effect.provide(stubLayer({ folder: marks, loseFirstCancel: true })))
    })
  )

  it.live("is told to an agent that has more to read than it has read, when it reads on", () =>
    Effect.gen(function* () {
      const marks = folder()
      yield* Effect.gen(function* () {
        const run = yield* start([["deaf", 2000, 3000], ["say", "so far"], ["hang"]])
        yield* firstWords(run)
        yield* run.cancel()
        yield* Effect.repeat(
          Effect.delay(
            Effect.sync(() => fs.readdirSync(marks).length),
            "20 millis"
          ),
          { until: (count) => count === 1 }
        )
        assert.isTrue(isAlive(pidOf(run)))
      }).pipe(Effect.scoped, Effect.provide(stubLayer({ folder: marks })))
    })
  )

  it.live("ends an agent that does not end it, also if the run is not released", () =>
    Effect.gen(function* () {
      const run = yield* start([["say", "a"], ["hang"]])
      yield* firstWords(run)
      yield* run.cancel()
      yield* Effect.repeat(
        Effect.delay(
          Effect.sync(() => marked(run.runId).length),
          "20 millis"
        ),
        { until: (left) => left === 0 }
      )
    }).pipe(Effect.scoped, Effect.provide(stubLayer({ ignoreCancel: true }, { timeouts: { cancel: "200 millis" } })))
  )

  it.live("does not touch another run's", () =>
    Effect.gen(function* () {
      const [one, other] = [
        yield* start([["hang"]]),
        yield* start([
          ["sleep", 300],
          ["say", "done"]
        ])
      ]
      yield* one.cancel()
      yield* one.dispose
      assert.strictEqual(said(yield* other.result), "done")
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )
})

describe("a release", () => {
  for (const [whom, behaviour, steps] of [
    ["an agent that ends by itself", {}, [["say", "a"], ["hang"]]],
    [
      "an agent that ignores cancel, the end of its input and SIGTERM",
      { ignoreCancel: true, ignoreEnd: true, ignoreTerm: true },
      [["say", "a"], ["hang"]]
    ],
    ["an agent with children", {}, [["start", "child"], ["hang"]]],
    ["an agent with a child in a session of its own", {}, [["start", "session"], ["hang"]]],
    ["an agent with a daemon", {}, [["start", "daemon"], ["hang"]]],
    ["an agent that floods its output", {}, [["flood", 10_000_000, "x".repeat(1000)]]],
    [
      "an agent that has ended",
      {},
      [
        ["say", "a"],
        ["exit", 0]
      ]
    ]
  ] as ReadonlyArray<readonly [string, Behaviour, ReadonlyArray<Step>]>) {
    it.live(`(10) leaves nothing of ${whom}`, () =>
      Effect.gen(function* () {
        const problems: Array<string> = []
        const subagents = yield* Subagents.Subagents
        yield* subagents.on((event) => Effect.sync(() => problems.push(event.type)))
        const run = yield* start(steps)
        yield* firstWords(run)
        const began = yield* Clock.currentTimeMillis
        yield* run.dispose
        assert.isBelow((yield* Clock.currentTimeMillis) - began, 8000)
        assert.deepStrictEqual(marked(run.runId), [])
        yield* Effect.yieldNow
        assert.notInclude(problems, "subagent/release-problem")
      }).pipe(Effect.scoped, Effect.provide(stubLayer(behaviour)))
    )
  }

  it.live("lets the agent close its session, if it can", () =>
    Effect.gen(function* () {
      const marks = folder()
      yield* run([["say", "a"]]).pipe(
        Effect.provide(
          stubLayer({
            answers: { initialize: { protocolVersion: 1, agentCapabilities: { sessionCapabilities: { close: {} } } } },
            before: { "session/close": [["touch", path.join(marks, "closed")]] }
          })
        )
      )
      assert.deepStrictEqual(fs.readdirSync(marks), ["closed"])
    })
  )

  it.live("does not wait for a session that is never closed", () =>
    Effect.gen(function* () {
      const subagents = yield* Subagents.Subagents
      const heard: Array<string> = []
      yield* subagents.on((event) => Effect.sync(() => heard.push(event.type)))
      const { runId } = yield* Effect.scoped(Effect.tap(start([["say", "a"]]), ({ result }) => result))
      assert.deepStrictEqual(marked(runId), [])
      yield* Effect.repeat(
        Effect.delay(
          Effect.sync(() => heard.includes("subagent/end")),
          "10 millis"
        ),
        { until: (isHeard) => isHeard }
      )
      // one that waited would be left behind by its release
      assert.notInclude(heard, "subagent/release-problem")
    }).pipe(
      Effect.scoped,
      Effect.provide(
        stubLayer(
          {
            answers: { initialize: { protocolVersion: 1, agentCapabilities: { sessionCapabilities: { close: {} } } } },
            silent: ["session/close"]
          },
          { timeouts: { close: "100 millis" } }
        )
      )
    )
  )

  it.live("[A11] comes before a timeout round the run has its result", () =>
    Effect.gen(function* () {
      const marks = folder()
      yield* run([["start", "daemon"], ["hang"]]).pipe(
        Effect.timeoutOption("700 millis"),
        Effect.provide(stubLayer({ folder: marks }))
      )
      const [pid = "0"] = fs.readdirSync(marks)
      assert.isFalse(isAlive(Number.parseInt(pid, 10)))
    })
  )

  it.live("[I1] leaves room for the next run, again and again", () =>
    Effect.gen(function* () {
      const subagents = yield* Subagents.Subagents
      for (let i = 0; i < 10; i++) assert.strictEqual(said(yield* run([["say", `${i}`]])), `${i}`)
      assert.deepStrictEqual(yield* subagents.live, [])
    }).pipe(Effect.provide(stubLayer()))
  )

  it.live("comes of the end of the whole layer, too", () =>
    Effect.gen(function* () {
      const runId = yield* Effect.gen(function* () {
        const scopeOfRun = yield* Effect.scope
        const run = yield* start([["start", "daemon"], ["hang"]])
        yield* firstWords(run)
        assert.isDefined(scopeOfRun)
        return run.runId
      }).pipe(Effect.provide(stubLayer()))
      assert.deepStrictEqual(marked(runId), [])
    }).pipe(Effect.scoped)
  )
})

describe("a resumed run", () => {
  it.live("(16) prompts the same session of the same process", () =>
    Effect.gen(function* () {
      const first = yield* start([["say", "one"]])
      yield* first.result
      const pid = pidOf(first)
      const second = yield* first.resume!('[["tell", "prompt"]]')
      const result = yield* second.result
      assert.strictEqual(said(result), '[{"type":"text","text":"[[\\"tell\\", \\"prompt\\"]]"}]')
      assert.deepStrictEqual([second.id, second.header], [first.id, first.header])
      assert.strictEqual(pidOf(first), pid)
      yield* first.dispose
      assert.deepStrictEqual(marked(first.runId), [])
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )

  it.live("(16) [C9] [O5] waits until the agent has ended the turn that was cancelled, and hears nothing of it", () =>
    Effect.gen(function* () {
      const first = yield* start([["say", "so far"], ["ask", {}], ["hang"]])
      yield* first.updates.pipe(
        Stream.filter((update) => update._tag === "Permission" && update.outcome !== undefined),
        Stream.runHead
      )
      yield* first.cancel()
      const second = yield* first.resume!('[["say", "two"]]')
      assert.strictEqual(said(yield* second.result), "two")
      const updates = yield* Stream.runCollect(second.updates)
      assert.deepStrictEqual(
        updates.map(({ _tag }) => _tag),
        ["MessageStarted", "Content"]
      )
    }).pipe(
      Effect.scoped,
      Effect.provide(
        stubLayer({
          lastWords: [
            ["say", "late"],
            ["update", toolCall]
          ]
        })
      )
    )
  )

  it.live("(16) of an agent that never ends the turn that was cancelled is an error", () =>
    Effect.gen(function* () {
      const first = yield* start([["say", "a"], ["hang"]])
      yield* firstWords(first)
      yield* first.cancel()
      const second = yield* first.resume!("go on")
      assert.strictEqual((yield* second.result).failure?.kind, "transport")
    }).pipe(Effect.scoped, Effect.provide(stubLayer({ ignoreCancel: true }, { timeouts: { cancel: "100 millis" } })))
  )

  it.live("(16) [O3] is one at a time", () =>
    Effect.gen(function* () {
      const first = yield* start([["say", "one"]])
      yield* first.result
      const [one, other] = yield* Effect.all(
        [Effect.result(first.resume!('[["say", "two"]]')), Effect.result(first.resume!('[["say", "three"]]'))],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual([Result.isSuccess(one), Result.isSuccess(other)], [true, false])
      assert.strictEqual(Result.isFailure(other) ? other.failure.code : "", "CHILD_BUSY")
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )

  it.live("(16) of an agent that has ended is an error", () =>
    Effect.gen(function* () {
      const first = yield* start([
        ["say", "a"],
        ["exit", 0]
      ])
      assert.strictEqual((yield* first.result).failure?.kind, "transport")
      const second = yield* first.resume!("go on")
      assert.deepStrictEqual((yield* second.result).failure, {
        kind: "transport",
        retryable: true,
        message: "The agent has ended with exit code 0"
      })
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )

  it.live("(16) has used what its own turn has", () =>
    Effect.gen(function* () {
      const turn = (input: number): ReadonlyArray<Step> => [
        ["say", "a"],
        ["answer", { stopReason: "end_turn", usage: { inputTokens: input } }]
      ]
      const first = yield* start(turn(10))
      assert.deepStrictEqual((yield* first.result).usage, { input: 10 })
      const second = yield* first.resume!(JSON.stringify(turn(5)))
      assert.deepStrictEqual((yield* second.result).usage, { input: 5 })
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )

  it.live("(16) is refused what this agent does not take", () =>
    Effect.gen(function* () {
      const first = yield* start([["say", "a"]])
      yield* first.result
      const second = yield* first.resume!([{ type: "image", data: "", mimeType: "image/png" }])
      const error = yield* Effect.flip(second.result)
      assert.strictEqual(error.message, 'Provider "stub" does not support content:image')
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )

  it.live("(19) asks its own approver, as itself", () =>
    Effect.gen(function* () {
      const asked: Array<string | undefined> = []
      const approver: Approvals.Approver = {
        decide: ({ lineage }) => Effect.sync(() => (asked.push(lineage?.runId), "approved"))
      }
      const first = yield* start([["ask", {}]])
      assert.strictEqual(said(yield* first.result), "selected no")
      const second = yield* Effect.provideService(
        first.resume!('[["ask", {"toolCall": {"toolCallId": "u"}}]]'),
        Approvals.Approvals,
        approver
      )
      assert.strictEqual(said(yield* second.result), "selected yes")
      assert.deepStrictEqual(asked, [second.runId])
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )
})

describe("a structured value", () => {
  const Person = Schema.Struct({ name: Schema.String })
  const structured = (turns: NonNullable<Behaviour["turns"]>) =>
    Effect.provide(run("who?", { outputSchema: Person }), stubLayer({ turns }))

  it.live("(13) is what the agent says", () =>
    Effect.gen(function* () {
      const result = yield* structured([[["say", 'Sure:\n```json\n{"name":"Ada"}\n```']]])
      assert.deepStrictEqual([result.stopReason, result.structured], ["completed", { name: "Ada" }])
    })
  )

  it.live("(13) may be corrected, a few times", () =>
    Effect.gen(function* () {
      const result = yield* structured([[["say", "Ada"]], [["say", '{"name":1}']], [["say", '{"name":"Ada"}']]])
      assert.deepStrictEqual(result.structured, { name: "Ada" })
    })
  )

  it.live("(13) that is never right, or never there, is an error", () =>
    Effect.gen(function* () {
      const wrong = yield* structured([1, 2, 3].map(() => [["say", '{"name":1}']] as const))
      assert.deepStrictEqual([wrong.stopReason, wrong.failure?.kind], ["error", "schema-invalid"])
      const missing = yield* structured([1, 2, 3].map(() => [["say", "no"]] as const))
      assert.deepStrictEqual([missing.stopReason, missing.failure?.kind], ["error", "schema-missing"])
    })
  )

  it.live("(13) [N4] that was wrong, and then not given again, was not missing", () =>
    Effect.gen(function* () {
      const result = yield* structured([[["say", '{"name":1}']], [["say", "no"]], [["say", "no"]]])
      assert.strictEqual(result.failure?.kind, "schema-invalid")
    })
  )

  it.live("(13) is asked for with its schema, and with what was wrong", () =>
    Effect.gen(function* () {
      const run = yield* start("who?", { outputSchema: Person })
      yield* run.result
      const updates = yield* Stream.runCollect(run.updates)
      const [first, second] = updates.flatMap((update) =>
        update._tag === "Content" ? [Content.toText([update.block])] : []
      )
      assert.include(first, "who?")
      assert.include(first, "JSON Schema")
      assert.include(second, "Your last message was to be one JSON value")
    }).pipe(
      Effect.scoped,
      Effect.provide(
        stubLayer({
          turns: [[["tell", "prompt"]], [["tell", "prompt"]], [["say", '{"name":"Ada"}']]]
        })
      )
    )
  )

  it.live("(13) has cost what all its prompts have, also if the last of them does not tell", () =>
    Effect.gen(function* () {
      const used = (input: number, output: number) =>
        ["answer", { stopReason: "end_turn", usage: { inputTokens: input, outputTokens: output } }] as const
      const corrected = yield* structured([
        [["say", "Ada"], used(10, 1)],
        [["say", '{"name":"Ada"}'], used(20, 2)]
      ])
      assert.deepStrictEqual(corrected.usage, { input: 30, output: 3 })
      const silent = yield* structured([[["say", "Ada"], used(10, 1)], [["say", '{"name":"Ada"}']]])
      assert.deepStrictEqual(silent.usage, { input: 10, output: 1 })
    })
  )

  it.live("(13) is not asked for again of a turn that has not completed", () =>
    Effect.gen(function* () {
      const result = yield* structured([[["fail", -32603, "no model"]]])
      assert.strictEqual(result.failure?.message, "no model (-32603)")
    })
  )

  it.live("(9) [C3] is given up when the run is cancelled while it is corrected", () =>
    Effect.gen(function* () {
      const run = yield* start("who?", { outputSchema: Person })
      const updates = yield* Effect.forkChild(
        run.updates.pipe(
          Stream.filter((update) => update._tag === "Content"),
          Stream.take(2),
          Stream.runDrain
        )
      )
      yield* Fiber.join(updates)
      yield* run.cancel()
      assert.deepStrictEqual((yield* run.result).cause, { _tag: "Caller" })
    }).pipe(Effect.scoped, Effect.provide(stubLayer({ turns: [[["say", "no"]], [["say", "hm"], ["hang"]]] })))
  )
})
