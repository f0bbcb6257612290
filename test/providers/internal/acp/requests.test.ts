import { assert, describe, it } from "@effect/vitest"
import { Approvals, Content, type SubagentUpdate } from "effect-subagent"
import type { AcpProvider } from "effect-subagent/providers"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as References from "effect/References"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { start, stubLayer } from "../../../fixtures/acp/harness.ts"
import type { Behaviour, Json, Step } from "../../../fixtures/acp/stubAgent.ts"

/** Runs these steps, and gives what was said and what came as updates. */
const play = (steps: ReadonlyArray<Step>, options: Partial<AcpProvider.Options> = {}, behaviour: Behaviour = {}) =>
  Effect.gen(function* () {
    const run = yield* start(steps)
    const result = yield* run.result
    const updates = yield* Stream.runCollect(run.updates)
    return { result, said: Content.toText(result.output), updates }
  }).pipe(
    Effect.scoped,
    Effect.provide(stubLayer(behaviour, options)),
    // what is warned of here is meant
    Effect.provideService(References.MinimumLogLevel, "None")
  )

const permissions = (updates: Iterable<SubagentUpdate.SubagentUpdate>) =>
  Array.from(updates).flatMap((update) =>
    update._tag === "Permission" ? [`${update.toolCallId} ${update.outcome ?? "?"}`] : []
  )

const states = (updates: Iterable<SubagentUpdate.SubagentUpdate>) =>
  Array.from(updates).flatMap((update) => (update._tag === "ToolCall" ? [update.status] : []))

const option = (optionId: string, kind: string): Json => ({ optionId, name: optionId, kind })

describe("a permission request", () => {
  it.live("(19) goes to the approver, with the run it is of, also as the first news of a tool call", () =>
    Effect.gen(function* () {
      const asked: Array<Approvals.ApprovalRequest> = []
      const { said, updates } = yield* play([["ask", {}]]).pipe(
        Effect.provideService(Approvals.Approvals, {
          decide: (request) => Effect.sync(() => (asked.push(request), "approved"))
        })
      )
      assert.strictEqual(said, "selected yes")
      assert.deepStrictEqual(states(updates), ["pending", "completed"])
      assert.deepStrictEqual(permissions(updates), ["call-1 ?", "call-1 approved"])
      const { lineage, ...request } = asked[0]!
      assert.deepStrictEqual(request, { toolCallId: "call-1", toolName: "Write a file", input: { path: "a" } })
      assert.strictEqual(lineage?.depth, 1)
    })
  )

  it.live("(19) [E1] [E3] is denied at once if there is nobody to ask, and nobody is blamed", () =>
    Effect.gen(function* () {
      const { said, updates } = yield* play([["ask", {}]])
      assert.strictEqual(said, "selected no")
      assert.deepStrictEqual(permissions(updates), ["call-1 ?", "call-1 no-approver"])
      assert.deepStrictEqual(states(updates), ["pending", "failed"])
    })
  )

  it.live("(19) that is denied to an agent that then stops is why the run has failed", () =>
    Effect.gen(function* () {
      const { result } = yield* play([
        ["ask", {}],
        ["answer", { stopReason: "cancelled" }]
      ])
      assert.deepStrictEqual([result.stopReason, result.failure?.kind], ["error", "permission"])
      const again = yield* play(
        [
          ["ask", {}],
          ["answer", { stopReason: "cancelled" }]
        ],
        { permission: "allow" }
      )
      assert.deepStrictEqual(again.result.cause, { _tag: "Child" })
    })
  )

  it.live("is denied if the approver fails, and the prompt goes on", () =>
    Effect.gen(function* () {
      for (const decide of [() => Effect.fail("broken"), () => Effect.die("broken"), () => Effect.interrupt]) {
        const { result, said, updates } = yield* play([["ask", {}]]).pipe(
          Effect.provideService(Approvals.Approvals, { decide })
        )
        assert.deepStrictEqual([result.stopReason, said], ["completed", "selected no"])
        assert.deepStrictEqual(permissions(updates), ["call-1 ?", "call-1 approver-failed"])
      }
    })
  )

  it.live("is answered by the host's own policy without asking anybody", () =>
    Effect.gen(function* () {
      const allowed = yield* play([["ask", {}]], { permission: "allow" })
      assert.deepStrictEqual([allowed.said, permissions(allowed.updates)[1]], ["selected yes", "call-1 approved"])
      const denied = yield* play([["ask", {}]], { permission: "deny" })
      assert.deepStrictEqual([denied.said, permissions(denied.updates)[1]], ["selected no", "call-1 denied"])
    }).pipe(Effect.provideService(Approvals.Approvals, { decide: () => Effect.die("asked") }))
  )

  it.live("is cancelled where no option can be chosen, none or doubled", () =>
    Effect.gen(function* () {
      const doubled = [option("a", "allow_once"), option("b", "allow_once")]
      for (const options of [[], doubled, [option("c", "later")]]) {
        const { said } = yield* play([["ask", { options }]], { permission: "allow" })
        assert.strictEqual(said, "cancelled")
      }
    })
  )

  it.live("that can't be refused is cancelled: nothing is allowed for want of another option", () =>
    Effect.gen(function* () {
      const options = [option("yes", "allow_once"), option("always", "allow_always")]
      const { said, updates } = yield* play([["ask", { options }]])
      assert.strictEqual(said, "cancelled")
      assert.deepStrictEqual(states(updates), ["pending", "failed"])
    })
  )

  it.live("of no session of ours, or of none, is cancelled, and nobody is asked", () =>
    Effect.gen(function* () {
      const { said, updates } = yield* play(
        [
          ["request", "session/request_permission", { sessionId: "other", toolCall: { toolCallId: "t" }, options: [] }],
          ["request", "session/request_permission", { options: "none" }]
        ],
        { permission: "allow" }
      )
      const cancelled = '{"outcome":{"outcome":"cancelled"}}'
      assert.strictEqual(said, cancelled + cancelled)
      assert.deepStrictEqual(permissions(updates), [])
    })
  )

  it.live("while no turn runs is cancelled", () =>
    Effect.gen(function* () {
      const { said } = yield* play(
        [["tell", "inbox"]],
        { permission: "allow" },
        {
          before: {
            "session/new": [
              [
                "request",
                "session/request_permission",
                { sessionId: "$SESSION", toolCall: { toolCallId: "t" }, options: [option("y", "allow_once")] }
              ]
            ]
          }
        }
      )
      assert.include(said, '{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"cancelled"}}}')
    })
  )

  it.live("is answered when the run is cancelled, and the question is withdrawn", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const withdrawn = yield* Deferred.make<void>()
      const folder = fs.mkdtempSync(path.join(os.tmpdir(), "acp-withdrawn-"))
      yield* Effect.gen(function* () {
        const run = yield* start([["ask", {}]])
        yield* Deferred.await(asked)
        yield* run.cancel()
        yield* Deferred.await(withdrawn)
        assert.strictEqual((yield* run.result).stopReason, "aborted")
        // the agent's turn ends only when its question has been answered
        yield* Effect.repeat(
          Effect.sync(() => fs.readdirSync(folder).filter((name) => name.endsWith(".turn")).length),
          { until: (turns) => turns === 0 }
        )
      }).pipe(
        Effect.scoped,
        Effect.provideService(Approvals.Approvals, {
          decide: () =>
            Deferred.succeed(asked, undefined).pipe(
              Effect.andThen(Effect.never),
              Effect.onInterrupt(() => Deferred.succeed(withdrawn, undefined))
            )
        }),
        Effect.provide(stubLayer({ folder }))
      )
    })
  )

  it.live("[O9] is answered when the turn has ended without waiting for it", () =>
    Effect.gen(function* () {
      const withdrawn = yield* Deferred.make<void>()
      const steps: ReadonlyArray<Step> = [
        ["say", "done"],
        [
          "raw",
          '{"id":"q","method":"session/request_permission","params":{"sessionId":"$SESSION","toolCall":{"toolCallId":"t"},"options":[{"optionId":"y","kind":"allow_once"}]}}\n'
        ]
      ]
      const { result, updates } = yield* play([...steps, ["sleep", 50]]).pipe(
        Effect.provideService(Approvals.Approvals, {
          decide: () => Effect.onInterrupt(Effect.never, () => Deferred.succeed(withdrawn, undefined))
        })
      )
      yield* Deferred.await(withdrawn)
      // the tool call that it was about was never answered
      assert.strictEqual(result.failure?.kind, "unbalanced")
      assert.deepStrictEqual(permissions(updates), ["t ?", "t withdrawn"])
    })
  )
})

describe("a request for a file", () => {
  const read = (file: string, fields: object = {}): Step => [
    "request",
    "fs/read_text_file",
    { sessionId: "$SESSION", path: file, ...fields }
  ]
  const write = (file: string, content: string): Step => [
    "request",
    "fs/write_text_file",
    { sessionId: "$SESSION", path: file, content }
  ]
  const folder = () => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "acp-fs-")))
  const notFound = (method: string) => JSON.stringify({ code: -32601, message: `Method not found: ${method}` })
  const invalid = JSON.stringify({ code: -32602, message: "Invalid params" })

  it.live("is not known unless it was offered", () =>
    Effect.gen(function* () {
      const cwd = folder()
      const file = path.join(cwd, "a")
      fs.writeFileSync(file, "text")
      const steps = [read(file), write(file, "new")]
      const none = yield* play(steps, { cwd })
      assert.strictEqual(none.said, notFound("fs/read_text_file") + notFound("fs/write_text_file"))
      const reading = yield* play(steps, { cwd, fs: { write: false } })
      assert.strictEqual(reading.said, '{"content":"text"}' + notFound("fs/write_text_file"))
      const writing = yield* play(steps, { cwd, fs: { read: false } })
      assert.strictEqual(writing.said, notFound("fs/read_text_file") + "{}")
      assert.strictEqual(fs.readFileSync(file, "utf8"), "new")
    })
  )

  it.live("is held against the child's folder, or the ones that were named", () =>
    Effect.gen(function* () {
      const [cwd, other] = [folder(), folder()]
      fs.writeFileSync(path.join(cwd, "a"), "in the folder")
      fs.writeFileSync(path.join(other, "b"), "in the other")
      const steps = [read(path.join(cwd, "a")), read(path.join(other, "b"))]
      const outside = (file: string) =>
        JSON.stringify({ code: -32602, message: `Not within the folders there are: ${file}` })
      const own = yield* play(steps, { cwd, fs: {} })
      assert.strictEqual(own.said, '{"content":"in the folder"}' + outside(path.join(other, "b")))
      const named = yield* play(steps, { cwd, fs: { roots: [other] } })
      assert.strictEqual(named.said, outside(path.join(cwd, "a")) + '{"content":"in the other"}')
    })
  )

  it.live("of another session, or without a path, is invalid", () =>
    Effect.gen(function* () {
      const { said } = yield* play([read("/a", { sessionId: "other" }), read("/a", { path: 7 })], { fs: {} })
      assert.strictEqual(said, invalid + invalid)
    })
  )
})

describe("what is asked for while the run is released", () => {
  it.live("(9) is answered, and no file is changed", () =>
    Effect.gen(function* () {
      const cwd = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "acp-fs-")))
      const told = path.join(cwd, "told")
      const write: Step = [
        "request",
        "fs/write_text_file",
        { sessionId: "$SESSION", path: path.join(cwd, "a"), content: "" }
      ]
      yield* Effect.gen(function* () {
        const run = yield* start([["say", "at work"], ["hang"]])
        yield* Stream.runHead(run.updates)
        yield* run.cancel()
        assert.strictEqual((yield* run.result).stopReason, "aborted")
      }).pipe(
        Effect.scoped,
        Effect.provide(
          stubLayer(
            { lastWords: [["ask", {}], ["request", "unknown", {}], write, ["touch", told]] },
            { cwd, fs: {}, timeouts: { close: "5 seconds" } }
          )
        )
      )
      assert.deepStrictEqual(fs.readdirSync(cwd), ["told"])
    })
  )
})

describe("any other request", () => {
  it.live("gets a proper error", () =>
    Effect.gen(function* () {
      const methods = ["terminal/create", "elicitation/create", "craft/drainMidTurnQueue", "_own/thing"]
      const { said } = yield* play(methods.map((method): Step => ["request", method, {}]))
      assert.strictEqual(
        said,
        methods.map((method) => JSON.stringify({ code: -32601, message: `Method not found: ${method}` })).join("")
      )
    })
  )

  it.live("is answered even when the run ends first", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(
        play([
          ["say", "a"],
          ["request", "unknown", {}],
          ["exit", 0]
        ])
      )
      assert.isTrue(Exit.isSuccess(exit))
    })
  )
})
