import { assert, describe, it } from "@effect/vitest"
import { Approvals, type SubagentProvider, type SubagentUpdate } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { ScriptedModel } from "effect-subagent/testing"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import { open } from "../harness.ts"

const Params = Schema.Struct({ path: Schema.String, times: Schema.FiniteFromString })

const lineage: SubagentProvider.Lineage = {
  id: "child" as SubagentProvider.Lineage["id"],
  runId: "run" as SubagentProvider.Lineage["runId"],
  parentId: "parent",
  rootId: "parent",
  depth: 1
}

/** An agent whose model calls a dangerous tool once, and what became of it. */
const dangerous = Effect.fnUntraced(function* (
  needsApproval: Tool.NeedsApproval<typeof Params> | undefined,
  spec: Partial<AgentRuntime.AgentSpec> = { lineage },
  context: Layer.Layer<never> = Layer.empty
) {
  const executed: Array<unknown> = []
  const toolkit = Toolkit.make(Tool.make("erase", { parameters: Params, success: Schema.String, needsApproval }))
  const handlers = toolkit.toLayer({
    erase: (params) =>
      Effect.sync(() => {
        executed.push(params)
        return "erased"
      })
  })
  const agent = yield* open(
    AgentRuntime.layer({ toolkit }).pipe(
      Layer.provide(handlers),
      Layer.provideMerge(
        ScriptedModel.layer([
          { toolCalls: [{ name: "erase", params: { path: "/", times: "2" }, id: "1" }] },
          { text: "done" },
          { toolCalls: [{ name: "erase", params: { path: "/", times: "2" }, id: "2" }] },
          { text: "done now" }
        ])
      ),
      Layer.provide(context)
    ),
    spec
  )
  return {
    executed,
    permissions: () => agent.updates.filter((update) => update._tag === "Permission"),
    turn: agent.turn("erase it"),
    result: Effect.map(agent.calls, (calls) => {
      const part = calls[1]?.toolResults[0]
      return { isFailure: part?.isFailure, result: part?.result }
    })
  }
})

const denied = (reason: string) => ({ isFailure: true, result: { type: "execution-denied", reason } })
const erased = { isFailure: false, result: "erased" }

const asked = (outcome: SubagentUpdate.Permission["outcome"]) => [
  { _tag: "Permission", toolCallId: "1" },
  { _tag: "Permission", toolCallId: "1", outcome }
]

describe("a tool that needs an approval (19)", () => {
  it.effect("is executed once it is approved, and the approver knows all about the call", () =>
    Effect.gen(function* () {
      const requests: Array<Approvals.ApprovalRequest> = []
      const agent = yield* dangerous(true)
      yield* Effect.provideService(agent.turn, Approvals.Approvals, {
        decide: (request) =>
          Effect.sync(() => {
            assert.deepStrictEqual(agent.executed, [])
            requests.push(request)
            return "approved"
          })
      })
      assert.deepStrictEqual(requests, [
        { toolCallId: "1", toolName: "erase", input: { path: "/", times: 2 }, lineage }
      ])
      assert.deepStrictEqual(agent.executed, [{ path: "/", times: 2 }])
      assert.deepStrictEqual(yield* agent.result, erased)
      assert.deepStrictEqual(agent.permissions(), asked("approved"))
    })
  )

  it.effect("K7: asks again when its agent goes on with somebody to ask", () =>
    Effect.gen(function* () {
      const agent = yield* dangerous(true)
      yield* agent.turn
      assert.deepStrictEqual(agent.executed, [])
      yield* Effect.provideService(agent.turn, Approvals.Approvals, { decide: () => Effect.succeed("approved") })
      assert.deepStrictEqual(agent.executed, [{ path: "/", times: 2 }])
      assert.deepStrictEqual(
        agent.permissions().map(({ outcome }) => outcome),
        [undefined, "no-approver", undefined, "approved"]
      )
    })
  )

  it.effect("is executed with what was approved, whatever the approver does to the question (17)", () =>
    Effect.gen(function* () {
      const agent = yield* dangerous(true)
      yield* Effect.provideService(agent.turn, Approvals.Approvals, {
        decide: ({ input }) =>
          Effect.sync(() => {
            assert.throws(() => {
              ;(input as { path: string }).path = "/home"
            })
            return "approved"
          })
      })
      assert.deepStrictEqual(agent.executed, [{ path: "/", times: 2 }])
    })
  )

  it.effect("has no lineage to tell in an agent that nobody delegated to", () =>
    Effect.gen(function* () {
      const requests: Array<Approvals.ApprovalRequest> = []
      const agent = yield* dangerous(true, {})
      yield* Effect.provideService(agent.turn, Approvals.Approvals, {
        decide: (request) =>
          Effect.as(
            Effect.sync(() => requests.push(request)),
            "approved"
          )
      })
      assert.deepStrictEqual(requests, [{ toolCallId: "1", toolName: "erase", input: { path: "/", times: 2 } }])
    })
  )

  const refusals: ReadonlyArray<[Approvals.Approver["decide"] | undefined, Approvals.ApprovalOutcome, string]> = [
    [
      undefined,
      "no-approver",
      "no-approver: it needs an approval and there is nobody here who could give one; nobody was asked. If it matters, say in your answer what you would have done"
    ],
    [() => Effect.succeed("denied"), "denied", "denied: the approver denied this call"],
    [
      () => Effect.fail("offline"),
      "approver-failed",
      "approver-failed: it needs an approval and asking for one failed; nobody decided"
    ],
    [
      () => Effect.interrupt,
      "approver-failed",
      "approver-failed: it needs an approval and asking for one failed; nobody decided"
    ],
    [() => Effect.never, "timed-out", "timed-out: it needs an approval and no answer came in time; nobody decided"]
  ]
  for (const [index, [decide, outcome, reason]] of refusals.entries()) {
    it.effect(`is not executed and says so truly: ${outcome} (${index})`, () =>
      Effect.gen(function* () {
        const agent = yield* dangerous(true)
        const fiber = yield* Effect.forkChild(
          decide === undefined ? agent.turn : Effect.provideService(agent.turn, Approvals.Approvals, { decide })
        )
        yield* TestClock.adjust("10 minutes")
        assert.deepStrictEqual(yield* Fiber.join(fiber), { stopReason: "completed" })
        assert.deepStrictEqual(agent.executed, [])
        assert.deepStrictEqual(yield* agent.result, denied(`The tool was not executed. ${reason}`))
        assert.deepStrictEqual(agent.permissions(), asked(outcome))
      })
    )
  }

  it.effect("withdraws the question when its turn is interrupted", () =>
    Effect.gen(function* () {
      const agent = yield* dangerous(true)
      const fiber = yield* Effect.forkChild(
        Effect.provideService(agent.turn, Approvals.Approvals, { decide: () => Effect.never }),
        { startImmediately: true }
      )
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(agent.permissions(), asked("withdrawn"))
      assert.deepStrictEqual(agent.executed, [])
    })
  )

  it.effect("asks whom the run asks, not whom its runtime was built with", () =>
    Effect.gen(function* () {
      const agent = yield* dangerous(
        true,
        {},
        Layer.succeed(Approvals.Approvals, { decide: () => Effect.succeed("approved") })
      )
      yield* agent.turn
      assert.deepStrictEqual(agent.permissions(), asked("no-approver"))
    })
  )
})

describe("whether a tool needs an approval (19)", () => {
  const answers: ReadonlyArray<[string, Tool.NeedsApproval<typeof Params> | undefined, boolean]> = [
    ["no by default", undefined, false],
    ["a plain no", false, false],
    ["a no to these arguments", ({ times }) => times > 2, false],
    ["a yes to these arguments", ({ times }) => times === 2, true],
    ["a no that takes its time", () => Effect.succeed(false), false],
    ["a yes that takes its time", () => Effect.succeed(true), true],
    ["no answer at all, which is a yes", () => undefined as never, true]
  ]
  for (const [name, needsApproval, isAsked] of answers) {
    it.effect(`may be ${name}`, () =>
      Effect.gen(function* () {
        const agent = yield* dangerous(needsApproval)
        yield* agent.turn
        assert.deepStrictEqual(agent.permissions(), isAsked ? asked("no-approver") : [])
        assert.strictEqual(agent.executed.length, isAsked ? 0 : 1)
      })
    )
  }

  it.effect("may depend on the conversation", () =>
    Effect.gen(function* () {
      const agent = yield* dangerous((_, { messages, toolCallId }) => {
        assert.strictEqual(toolCallId, "1")
        return messages.length !== 1
      })
      yield* agent.turn
      assert.strictEqual(agent.executed.length, 1)
    })
  )

  const unknown: ReadonlyArray<[string, Tool.NeedsApproval<typeof Params>]> = [
    [
      "throws",
      () => {
        throw new Error("who knows")
      }
    ],
    ["dies", () => Effect.die(new Error("who knows"))],
    ["fails", () => Effect.fail(new Error("who knows")) as never]
  ]
  for (const [name, needsApproval] of unknown) {
    it.effect(`is not known when the question ${name}, and then the tool is not executed`, () =>
      Effect.gen(function* () {
        const agent = yield* dangerous(needsApproval)
        assert.deepStrictEqual(yield* agent.turn, { stopReason: "completed" })
        assert.deepStrictEqual(agent.executed, [])
        assert.deepStrictEqual(
          yield* agent.result,
          denied("The tool was not executed. Whether it needs an approval could not be told: who knows")
        )
      })
    )
  }
})
