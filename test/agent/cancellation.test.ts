/** What becomes of agents of the default runtime that are stopped. The ids are those of faults reported of other systems. */
import { assert, describe, it } from "@effect/vitest"
import { Agent, Approvals, Content, Subagents } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { SpawnProvider } from "effect-subagent/providers"
import { ScriptedModel } from "effect-subagent/testing"
import * as AiError from "effect/ai/AiError"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { calls, delegate, inTree } from "../utils/tree.ts"

const submit = (value: unknown): ScriptedModel.Step => ({
  toolCalls: [{ name: "submit_result", params: { value } }]
})
const down = new AiError.InternalProviderError({ description: "down" })

/** Whoever is asked never answers. */
const undecided = { decide: () => Effect.never }

describe("a child that is cancelled (9)", () => {
  const late: ScriptedModel.Step = { text: "late", delay: "1 hour" }
  const stages: ReadonlyArray<[string, ReadonlyArray<ScriptedModel.Step>, ReadonlyArray<string>]> = [
    ["in a model call", [{ text: "so far", ...calls("read") }, late], ["read@1"]],
    ["in a tool", [{ text: "so far", ...calls("read", "wait") }], ["read@1", "wait@1"]],
    ["while it waits for an approval", [{ text: "so far", ...calls("erase") }], []],
    ["in a repair turn", [{ text: "so far", ...submit("three") }, late], []],
    ["when it was reminded of its value", [{ text: "so far" }, late], []],
    ["while it waits to make a model call again", [{ text: "so far", ...calls("read") }, { fail: down }], ["read@1"]]
  ]
  for (const streaming of [false, true]) {
    for (const [stage, steps, executed] of stages) {
      it.effect(`C3: ${stage} is aborted, quiet, and can go on${streaming ? ", streaming" : ""}`, () =>
        Effect.gen(function* () {
          const rule: ScriptedModel.Rule = ({ index, userText }) =>
            userText.startsWith("go on") ? submit(3) : (steps[index] ?? { die: "no call was expected" })
          const { events, value } = yield* inTree(
            rule,
            (tree) =>
              Effect.gen(function* () {
                const run = yield* tree.start("spawn", "the work", { outputSchema: Schema.Number })
                yield* TestClock.adjust(0)
                const before = (yield* tree.calls).length
                yield* run.cancel("enough")
                const stopped = yield* run.result
                yield* TestClock.adjust("2 hours")
                const after = (yield* tree.calls).length
                const resumed = yield* Effect.flatMap(run.resume!("go on"), ({ result }) => result)
                yield* run.dispose
                return { after, before, executed: [...tree.executed], live: yield* tree.seam.live, resumed, stopped }
              }),
            { loop: { streaming } }
          ).pipe(Effect.provideService(Approvals.Approvals, undecided))
          assert.deepStrictEqual(value.stopped, {
            output: [Content.text("so far")],
            stopReason: "aborted",
            cause: { _tag: "Caller", reason: "enough" }
          })
          assert.strictEqual(value.before, steps.length)
          assert.strictEqual(value.after, value.before)
          assert.deepStrictEqual(value.executed, executed)
          assert.strictEqual(value.resumed.structured, 3)
          assert.deepStrictEqual(value.live, [])
          assert.deepStrictEqual(
            events.flatMap((event) => (event.type === "subagent/end" ? [event.stopReason] : [])),
            ["aborted", "completed"]
          )
        })
      )
    }
  }
})

describe("a tool's resource (10)", () => {
  const endings: ReadonlyArray<[string, ScriptedModel.Step]> = [
    ["has ended", { text: "done" }],
    ["has failed", { fail: new AiError.AuthenticationError({ kind: "InvalidKey" }) }],
    ["was cancelled", { hang: true }]
  ]
  for (const [how, step] of endings) {
    it.effect(`I9: is released once, with the child that ${how}`, () =>
      Effect.gen(function* () {
        const log: Array<string> = []
        const toolkit = Toolkit.make(Tool.make("open", { dependencies: [Scope.Scope] }))
        const handlers = toolkit.toLayer({
          open: () =>
            Effect.acquireRelease(
              Effect.sync(() => void log.push("opened")),
              () => Effect.sync(() => void log.push("closed"))
            )
        })
        const layer = SpawnProvider.layer().pipe(
          Layer.provide(AgentRuntime.layer({ toolkit }).pipe(Layer.provide(handlers))),
          Layer.provide(ScriptedModel.layer([{ toolCalls: [{ name: "open", params: {} }] }, step])),
          Layer.provideMerge(Subagents.layer)
        )
        yield* Effect.gen(function* () {
          const { start } = yield* Subagents.Subagents
          const run = yield* start("spawn", { prompt: "go", parent: yield* Agent.root() })
          yield* TestClock.adjust(0)
          if (step.hang === true) yield* run.cancel()
          yield* run.result
          assert.deepStrictEqual(log, ["opened"])
          yield* run.dispose
          assert.deepStrictEqual(log, ["opened", "closed"])
        }).pipe(Effect.scoped, Effect.provide(layer))
        assert.deepStrictEqual(log, ["opened", "closed"])
      })
    )
  }
})

describe("agents side by side", () => {
  it.effect("O7: go on by themselves while one of them waits for an approval, and none does anything twice", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<"approved">()
      const script: ScriptedModel.Rule = ({ toolResults, userText }) => {
        if (toolResults.length > 0) return { text: "done" }
        if (userText === "all")
          return { toolCalls: [delegate("erase"), delegate("write"), { name: "read", params: {} }] }
        return calls(userText)
      }
      const { value } = yield* inTree(script, (tree) =>
        Effect.gen(function* () {
          const run = yield* tree.start("spawn", "all")
          yield* Deferred.await(asked)
          yield* TestClock.adjust(0)
          const early = [...tree.executed].toSorted()
          yield* Deferred.succeed(answer, "approved")
          const { stopReason } = yield* run.result
          return { early, executed: tree.executed.toSorted(), stopReason }
        })
      ).pipe(
        Effect.provideService(Approvals.Approvals, {
          decide: () => Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(answer))
        })
      )
      assert.deepStrictEqual(value, {
        early: ["read@1", "write@2"],
        executed: ["erase@2", "read@1", "write@2"],
        stopReason: "completed"
      })
    })
  )

  it.effect("B4: are waited for by a parent whose model calls are used up, and none is cancelled", () =>
    Effect.gen(function* () {
      const script: ScriptedModel.Rule = ({ toolResults, userText }) =>
        userText === "all"
          ? { toolCalls: Array.from({ length: 4 }, (_, index) => delegate(`part ${index}`)) }
          : { text: `${userText} ${toolResults.length}`, delay: userText < "part 2" ? 0 : "1 minute" }
      const { events, value } = yield* inTree(
        script,
        (tree) =>
          Effect.gen(function* () {
            const run = yield* tree.start("spawn", "all")
            yield* TestClock.adjust("1 minute")
            return yield* run.result
          }),
        { loop: { maxTurns: 1 } }
      )
      assert.strictEqual(value.failure?.name, "maxTurns")
      assert.deepStrictEqual(
        events.flatMap((event) => (event.type === "subagent/end" ? [event.stopReason] : [])),
        ["completed", "completed", "completed", "completed", "error"]
      )
    })
  )

  it.effect("P6: have the cap of the runtime each, whatever their parent has used of its own", () =>
    Effect.gen(function* () {
      const script: ScriptedModel.Rule = ({ prompt, userText }) => {
        const steps = prompt.content.filter(({ role }) => role === "tool").length
        if (userText === "child") return steps < 2 ? calls("read") : { text: "child done" }
        return steps < 1 ? calls("read") : steps < 2 ? { toolCalls: [delegate("child")] } : { text: "all done" }
      }
      const { value } = yield* inTree(
        script,
        (tree) => Effect.flatMap(tree.start("spawn", "all"), ({ result }) => result),
        {
          loop: { maxTurns: 3 }
        }
      )
      assert.deepStrictEqual(value, { output: [Content.text("all done")], stopReason: "completed" })
    })
  )

  it.effect("E5: still reach their approver when the turn that started them is over (19)", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const script: ScriptedModel.Rule = ({ toolResults, userText }) =>
        userText === "root" || toolResults.length > 0 ? { text: "done" } : { ...calls("erase"), delay: "1 second" }
      const { value } = yield* inTree(script, (tree) =>
        Effect.gen(function* () {
          const run = yield* tree.start("spawn", "tidy up")
          yield* tree.ask("root")
          yield* TestClock.adjust("1 second")
          yield* run.result
          return tree.executed
        })
      ).pipe(
        Effect.provideService(Approvals.Approvals, {
          decide: ({ toolName }) =>
            Effect.sync(() => {
              asked.push(toolName)
              return "approved"
            })
        })
      )
      assert.deepStrictEqual([asked, value], [["erase"], ["erase@1"]])
    })
  )
})
