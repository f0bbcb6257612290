import { assert, describe, it } from "@effect/vitest"
import { Content, type SubagentUpdate } from "effect-subagent"
import type { AcpProvider } from "effect-subagent/providers"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { isAlive, marked, start, stubLayer } from "../../../fixtures/acp/harness.ts"
import type { Behaviour, Step } from "../../../fixtures/acp/stubAgent.ts"

/** Runs these steps, and gives the result, what was said and what came as updates. */
const play = (steps: ReadonlyArray<Step>, behaviour: Behaviour = {}, options: Partial<AcpProvider.Options> = {}) =>
  Effect.gen(function* () {
    const run = yield* start(steps)
    const result = yield* run.result
    const updates: ReadonlyArray<SubagentUpdate.SubagentUpdate> = yield* Stream.runCollect(run.updates)
    return { result, said: Content.toText(result.output), updates }
  }).pipe(Effect.scoped, Effect.provide(stubLayer(behaviour, options)))

const chunk = (text: string) => ({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } })
/** Deeper than anything that goes down into it can go. */
const deep = (open: string, close: string) => `${open.repeat(20_000)}1${close.repeat(20_000)}`
const line = (message: object) => `${JSON.stringify(message)}\n`

describe("an agent's output", () => {
  it.live("may have anything between its messages", () =>
    Effect.gen(function* () {
      const { result, said } = yield* play([
        ["raw", "Debugger attached.\n\n\r\n\u001B[2J[INFO] ready\n"],
        ["raw", '[{"jsonrpc":"2.0","method":"x"}]\n"text"\nnull\n{"half":\n'],
        ["raw", line({ method: "unknown/notification", params: {} }) + line({ method: "session/update" })],
        [
          "raw",
          line({ id: 99, result: {} }) + line({ id: null, error: { code: 1, message: "m" } }) + line({ result: 1 })
        ],
        ["raw", line({ id: "s", method: "unknown/request" }) + line({ id: 0, method: "unknown/request" })],
        ["raw", line({ id: null, method: "unknown/request" }) + line({ method: "unknown/request", params: 7 })],
        ["bytes", "c328ff0a"],
        ["bytes", "efbbbf0a"],
        ["say", "still "],
        ["raw", '{"jsonrpc":"2.0","method":"session/update",'],
        ["sleep", 20],
        ["raw", '"params":{"sessionId":"$SESSION","update":{"sessionUpdate":"agent_message_chunk",'],
        ["raw", '"content":{"type":"text","text":"h\u00e4re"}}}}\n']
      ])
      assert.strictEqual(result.stopReason, "completed")
      assert.strictEqual(said, "still häre")
    })
  )

  it.live("may be more than anybody can make something of, and what comes then is heard", () =>
    Effect.gen(function* () {
      const update = (fields: string) =>
        `{"method":"session/update","params":{"sessionId":"$SESSION","update":{${fields}}}}\n`
      const { result, said } = yield* play([
        ["raw", update('"sessionUpdate":{"toString":0,"valueOf":0}')],
        ["raw", update(`"sessionUpdate":${deep("[", "]")}`)],
        ["raw", update(`"sessionUpdate":"agent_message_chunk","content":${deep('{"a":', "}")}`)],
        ["raw", `{"id":${deep("[", "]")},"result":{}}\n{"id":${deep("[", "]")},"method":"unknown/request"}\n`],
        ["raw", `{"id":${deep("[", "]")},"method":"session/request_permission"}\n`],
        ["say", "still here"]
      ])
      assert.deepStrictEqual([result.stopReason, said], ["completed", "still here"])
    })
  )

  it.live("may be an error that can't be printed", () =>
    Effect.gen(function* () {
      const { result } = yield* play([["raw", `{"id":3,"error":${deep('{"a":', "}")}}\n`], ["hang"]])
      assert.deepStrictEqual([result.stopReason, result.failure?.kind], ["error", "model"])
      const version = `{"id":1,"result":{"protocolVersion":${deep("[", "]")}}}\n`
      const refused = yield* Effect.flip(
        play([], { silent: ["initialize"], before: { initialize: [["raw", version]] } })
      )
      assert.strictEqual(refused.reason._tag, "StartFailed")
    })
  )

  it.live("that is for other sessions is nobody's", () =>
    Effect.gen(function* () {
      const { said, updates } = yield* play([
        ["update", chunk("not mine"), "other"],
        ["say", "mine"]
      ])
      assert.strictEqual(said, "mine")
      assert.deepStrictEqual(
        updates.map(({ _tag }) => _tag),
        ["MessageStarted", "Content"]
      )
    })
  )

  it.live("that comes before the session has a name is kept, and is no answer", () =>
    Effect.gen(function* () {
      const { said, updates } = yield* play([["say", "answer"]], {
        before: {
          "session/new": [
            ["update", chunk("not mine"), "other"],
            ["update", { sessionUpdate: "available_commands_update", availableCommands: [] }],
            ["say", "Welcome!"]
          ]
        }
      })
      assert.strictEqual(said, "answer")
      assert.deepStrictEqual(
        updates.map((update) => (update._tag === "Raw" ? update.kind : update._tag)),
        ["available_commands_update", "agent_message_chunk", "MessageStarted", "Content"]
      )
    })
  )

  it.live("that comes before the session has a name is kept within bounds", () =>
    Effect.gen(function* () {
      const { updates } = yield* play([["say", "answer"]], { before: { "session/new": [["flood", 2000, "Welcome!"]] } })
      assert.strictEqual(updates.filter(({ _tag }) => _tag === "Raw").length, 1022)
    })
  )

  it.live("may be 64 MB", () =>
    Effect.gen(function* () {
      const { said } = yield* play([["flood", 64, "x".repeat(1024 * 1024)]])
      assert.strictEqual(said.length, 64 * 1024 * 1024)
    })
  )

  it.live("may be 200,000 updates, and a consumer that does not keep up with them", () =>
    Effect.gen(function* () {
      const before = process.memoryUsage().heapUsed
      const run = yield* start([["flood", 200_000, "y"]])
      const gate = yield* Deferred.make<void>()
      const consuming = yield* run.updates.pipe(
        Stream.mapEffect((update) => Effect.as(Deferred.await(gate), update)),
        Stream.runCollect,
        Effect.forkChild
      )
      assert.strictEqual(Content.toText((yield* run.result).output).length, 200_000)
      // what is kept for those who are late or slow, and no more
      assert.isBelow(process.memoryUsage().heapUsed - before, 256 * 1024 * 1024)
      assert.isAtMost((yield* Stream.runCollect(run.updates)).length, 1024)
      yield* Deferred.succeed(gate, undefined)
      assert.isBelow((yield* Fiber.join(consuming)).length, 10_000)
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )

  it.live("ends the run with a line over the limit, after the lines before it", () =>
    Effect.gen(function* () {
      const { result, said } = yield* play(
        [["say", "before"], ["raw", `${"x".repeat(2000)}\n`], ["hang"]],
        {},
        {
          maxMessageBytes: 1500
        }
      )
      assert.deepStrictEqual(result.failure, {
        kind: "transport",
        retryable: true,
        message: "It has sent a line of more than 1500 bytes"
      })
      assert.strictEqual(said, "before")
    })
  )
})

describe("an agent that goes away", () => {
  for (const [how, step, message] of [
    ["ends", ["exit", 3], "The agent has ended with exit code 3"],
    ["is killed", ["kill"], "The agent was ended by SIGKILL"],
    ["closes its output and lives", ["closeStdout"], "The agent has closed its output"],
    ["closes its input and lives", ["closeStdin"], "The agent has closed its input"]
  ] as const) {
    it.live(`and ${how} in a turn makes it an error, and what it had said is kept`, () =>
      Effect.gen(function* () {
        const { result, said } = yield* play([["say", "the answer"], ["stderr", "panic!\n"], ["sleep", 50], step])
        assert.deepStrictEqual(result.failure, { kind: "transport", retryable: true, message })
        assert.strictEqual(result.diagnostic, "panic!")
        assert.strictEqual(said, "the answer")
      })
    )
  }

  it.live("without a last word has no diagnostic", () =>
    Effect.gen(function* () {
      const { result } = yield* play([["kill"]])
      assert.isFalse("diagnostic" in result)
    })
  )

  it.live("and leaves its output to what it has started is lost all the same", () =>
    Effect.gen(function* () {
      const { result } = yield* play([["say", "a"], ["inherit"], ["exit", 4]])
      assert.strictEqual(result.failure?.message, "The agent has ended with exit code 4")
    })
  )

  it.live("after its answer changes nothing", () =>
    Effect.gen(function* () {
      const { result, said } = yield* play([
        ["say", "done"],
        ["answer", { stopReason: "end_turn" }],
        ["exit", 1]
      ])
      assert.deepStrictEqual([result.stopReason, said], ["completed", "done"])
    })
  )

  it.live("[D4] [D6] does not have to go away for its answer to count", () =>
    Effect.gen(function* () {
      const run = yield* start([["say", "done"]])
      assert.strictEqual((yield* run.result).stopReason, "completed")
      const [pid = 0] = marked(run.runId)
      assert.isTrue(isAlive(pid))
      yield* run.dispose
      assert.isFalse(isAlive(pid))
      assert.strictEqual((yield* run.result).stopReason, "completed")
    }).pipe(Effect.scoped, Effect.provide(stubLayer({ ignoreEnd: true, ignoreTerm: true })))
  )
})

describe("an agent's standard error", () => {
  it.live("never blocks it, however much there is", () =>
    Effect.gen(function* () {
      const { result } = yield* play([
        ["stderr", "noise ".repeat(200), 2000],
        ["say", "done"]
      ])
      assert.strictEqual(result.stopReason, "completed")
    })
  )
})
