/** What keeps agents of the default runtime from delegating without end. The ids are those of faults reported of other systems. */
import { assert, describe, it } from "@effect/vitest"
import { Budget, Content, SubagentError, Subagents } from "effect-subagent"
import { type ScriptedModel, ScriptedProvider } from "effect-subagent/testing"
import { PlainTool } from "effect-subagent/tool"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import { reasonOf } from "../utils/seam.ts"
import { calls, delegate, inTree, type Tree } from "../utils/tree.ts"

const usage = { input: 9, output: 1 }

/** An agent that hands on whatever it is asked, as long as it is offered a way to, and says what came of it. */
const passingOn: ScriptedModel.Rule = ({ toolResults, tools }) =>
  toolResults.length > 0
    ? { text: `back: ${String(toolResults.at(-1)!.result)}`, usage }
    : tools.includes("subagent")
      ? { toolCalls: [delegate("do it")], usage }
      : { text: "did it myself", usage }

/** An agent that delegates again whatever it is answered, as long as it is offered a way to. */
const insisting: ScriptedModel.Rule = ({ tools }) =>
  tools.includes("subagent") ? { toolCalls: [delegate("do it")], usage } : { text: "I give up", usage }

const runsOf = (events: ReadonlyArray<{ readonly type: string }>) =>
  events.filter(({ type }) => type === "subagent/start").length

describe("a model that delegates to itself without end (20)", () => {
  it.effect("is stopped by maxDepth alone, and the root's answer arrives", () =>
    Effect.gen(function* () {
      const { events, value } = yield* inTree(
        passingOn,
        (tree) => Effect.map(tree.ask("go"), ({ stopReason }) => [stopReason, tree.said()]),
        { limits: { maxDepth: 5 } }
      )
      assert.deepStrictEqual(value, ["completed", `${"back: ".repeat(5)}did it myself`])
      assert.strictEqual(runsOf(events), 5)
    })
  )

  it.effect("is stopped by maxRuns alone, and the root's answer arrives", () =>
    Effect.gen(function* () {
      const { events, value } = yield* inTree(
        passingOn,
        (tree) => Effect.map(tree.ask("go"), ({ stopReason }) => [stopReason, tree.said(), tree.root.id]),
        { limits: { maxDepth: 1000, maxRuns: 7 } }
      )
      const [stopReason, said, id] = value
      assert.strictEqual(stopReason, "completed")
      const refused = `The limit maxRuns of root "${id}" is reached: 7, of which 7 used`
      assert.strictEqual(said, `${"back: ".repeat(8)}The subagent could not be run: ${refused}`)
      assert.strictEqual(runsOf(events), 7)
    })
  )

  it.effect("is stopped by maxTokens alone, and the root's answer arrives", () =>
    Effect.gen(function* () {
      const { events, value } = yield* inTree(
        passingOn,
        (tree) => Effect.map(tree.ask("go"), ({ stopReason }) => [stopReason, tree.said()]),
        { limits: { maxDepth: 1000, maxTokens: 60 } }
      )
      const [stopReason, said] = value
      assert.strictEqual(stopReason, "completed")
      assert.include(said, "back: The subagent was stopped at its limit (error): maxTokens 60")
      // six calls of 10 tokens each, one after the other, each by one deeper than the one before
      assert.strictEqual(runsOf(events), 6)
      const total = events.flatMap((event) => (event.type === "subagent/end" ? [event.treeUsage?.total ?? 0] : []))
      // and no more than one last turn of each beyond that
      assert.isAtMost(Math.max(...total), 60 + 6 * 10)
    })
  )

  it.effect("is stopped by a budget alone, and the root's answer arrives", () =>
    Effect.gen(function* () {
      const acme = yield* Budget.make({ name: "acme", maxTokens: 60 })
      const { events, value } = yield* inTree(
        passingOn,
        (tree) =>
          Effect.map(Effect.provideService(tree.ask("go"), Budget.Current, acme), ({ stopReason }) => [
            stopReason,
            tree.said()
          ]),
        { limits: { maxDepth: 1000 } }
      )
      const [stopReason, said] = value
      assert.strictEqual(stopReason, "completed")
      assert.include(said, 'The limit maxTokens of budget "acme" is reached: 60')
      assert.strictEqual(runsOf(events), 6)
      const { reserved, runs, tokens } = yield* acme.spent
      assert.deepStrictEqual([reserved, runs], [0, 6])
      assert.isAtMost(tokens, 60 + 6 * 10)
    })
  )

  it.effect("is stopped however much it insists: its own turns come to an end, and it still says something", () =>
    Effect.gen(function* () {
      const { events, value } = yield* inTree(
        insisting,
        (tree) => Effect.map(tree.ask("go"), ({ failure, stopReason }) => [stopReason, failure?.name, tree.said()]),
        { limits: { maxDepth: 2, maxRuns: 9, maxTurns: 4 }, loop: { maxTurns: 6 } }
      )
      assert.deepStrictEqual(value, ["error", "maxTurns", "I give up"])
      assert.strictEqual(runsOf(events), 9)
    })
  )

  it.effect("H6: gets no further for being allowed the tool by name: depth and filters hold as before", () =>
    Effect.gen(function* () {
      const { events, value } = yield* inTree(
        passingOn,
        (tree) =>
          Effect.gen(function* () {
            const toolFilter = { allow: ["subagent"] }
            const first = yield* tree.start("spawn", "go", { toolFilter, maxDepth: 2 })
            const second = yield* tree.start("spawn", "go", { toolFilter: { allow: ["subagent"], deny: ["subagent"] } })
            return [Content.toText((yield* first.result).output), Content.toText((yield* second.result).output)]
          }),
        { limits: { maxDepth: 5 } }
      )
      assert.deepStrictEqual(value, ["back: did it myself", "did it myself"])
      assert.strictEqual(runsOf(events), 3)
    })
  )
})

describe("an agent at its limit (20)", () => {
  const busy: ScriptedModel.Rule = ({ index, tools, userText }) =>
    tools.length === 0 || userText === "sum up"
      ? { text: `said in call ${index}`, usage }
      : { ...calls("read", "write"), usage }

  it.effect("P8: has all its calls answered, has said what it has got, and can go on from there", () =>
    inTree(busy, (tree) =>
      Effect.gen(function* () {
        const run = yield* tree.start("spawn", "read all", { maxTurns: 2 })
        const cut = yield* run.result
        assert.strictEqual(cut.stopReason, "error")
        assert.deepInclude(cut.failure, { kind: "limit", name: "maxTurns", limit: 2, used: 2 })
        assert.deepStrictEqual(cut.output, [Content.text("said in call 2")])
        assert.deepStrictEqual(tree.executed, ["read@1", "write@1", "read@1", "write@1"])
        // the model refuses a conversation that is out of balance
        const next = yield* run.resume!("sum up")
        const summed = yield* next.result
        assert.deepStrictEqual([summed.stopReason, summed.output], ["completed", [Content.text("said in call 3")]])
      })
    )
  )

  it.effect("has no last word where the host does not want it", () =>
    inTree(
      busy,
      (tree) =>
        Effect.gen(function* () {
          const run = yield* tree.start("spawn", "read all", { maxTokens: 20 })
          const cut = yield* run.result
          assert.deepInclude(cut.failure, { kind: "limit", name: "maxTokens", limit: 20, used: 20 })
          assert.deepStrictEqual([cut.output, cut.usage?.total], [[], 20])
          assert.strictEqual((yield* tree.calls).length, 2)
        }),
      { limits: { wrapUp: false } }
    )
  )

  it.effect("P6: has no more turns than its parent allows, whatever it asks for or its loop would take", () =>
    Effect.gen(function* () {
      const used = (parent: number | undefined, child: number | undefined, loop: number) =>
        inTree(
          ({ toolResults, userText, tools }) =>
            userText === "delegate"
              ? toolResults.length > 0
                ? { text: "done" }
                : { toolCalls: [delegate("work")] }
              : tools.length === 0
                ? { text: "so far" }
                : calls("read"),
          (tree) =>
            Effect.gen(function* () {
              const run = yield* tree.start("spawn", "delegate", parent === undefined ? {} : { maxTurns: parent })
              yield* run.result
              return tree.executed.length
            }),
          {
            loop: { maxTurns: loop },
            bindings: [{ provider: "spawn", ...(child !== undefined && { maxTurns: child }) }]
          }
        ).pipe(Effect.map(({ value }) => value))
      assert.strictEqual(yield* used(30, undefined, 50), 30)
      assert.strictEqual(yield* used(3, 10, 50), 3)
      assert.strictEqual(yield* used(30, 10, 50), 10)
      assert.strictEqual(yield* used(undefined, 10, 50), 10)
      // the loop's own, which is for each prompt, holds beside
      assert.strictEqual(yield* used(30, undefined, 5), 5)
    })
  )
})

describe("C3: a cancel looks the same at every stage (20)", () => {
  const late: ScriptedModel.Step = { text: "late", delay: "1 hour" }
  const submit = { toolCalls: [{ name: "submit_result", params: { value: "three" } }] }
  const stages: Readonly<Record<string, ReadonlyArray<ScriptedModel.Step>>> = {
    queued: [],
    starting: [],
    "in a model call": [{ text: "so far", ...calls("read") }, late],
    "in a tool": [{ text: "so far", ...calls("wait") }],
    "in a repair turn": [{ text: "so far", ...submit }, late]
  }
  /** Cancels a call of the plain tool at a stage. */
  const cancelled = (stage: string, how: (tree: Tree, abort: () => void) => Effect.Effect<unknown>) =>
    Effect.gen(function* () {
      const { provider: slow, runs: starts } = yield* ScriptedProvider.make(
        { start: [ScriptedProvider.hang] },
        { name: "slow" }
      )
      const { provider: busy } = yield* ScriptedProvider.make([ScriptedProvider.hang], { name: "busy" })
      return yield* inTree(
        ({ index }) => stages[stage]![index] ?? { die: "no call was expected" },
        (tree) =>
          Effect.gen(function* () {
            if (stage === "queued") yield* tree.start("busy", "hold the place")
            const controller = new AbortController()
            const { execute } = yield* PlainTool.make({
              provider: stage === "starting" ? "slow" : "spawn",
              outputSchema: Schema.Number
            })
            const context = { parent: tree.root, signal: controller.signal }
            const answer = yield* Effect.forkChild(
              Effect.promise(() => execute({ description: "it", prompt: "go" }, context)),
              { startImmediately: true }
            )
            yield* TestClock.adjust(0)
            // it is where it is said to be: it holds the only place, or waits in the only one to wait in
            const another = yield* Effect.exit(tree.seam.run("spawn", { prompt: "another", parent: tree.root }))
            assert.propertyVal(reasonOf(another), "name", stage === "queued" ? "maxQueued" : "maxConcurrent")
            assert.strictEqual((yield* starts).length, stage === "starting" ? 1 : 0)
            yield* how(tree, () => controller.abort())
            return yield* Fiber.join(answer)
          }).pipe(Effect.provideService(Subagents.Subagents, tree.seam)),
        { limits: { maxConcurrent: { overall: 1 }, maxQueued: stage === "queued" ? 1 : 0 }, others: [slow, busy] }
      )
    }).pipe(
      Effect.map(({ events, value }) => ({
        answer: value,
        events: events.flatMap((event): ReadonlyArray<unknown> =>
          event.label !== "it"
            ? []
            : event.type === "subagent/start"
              ? ["start"]
              : [[event.stopReason, event.cause, event.failure]]
        )
      }))
    )
  const abort = (_: Tree, abort: () => void) => Effect.sync(abort)
  const cancel = (tree: Tree) =>
    Effect.flatMap(tree.seam.live, (live) => tree.seam.cancel(live.find(({ label }) => label === "it")!.id))

  for (const stage of ["queued", "starting"]) {
    it.effect(`${stage}, it is aborted before its start, without events`, () =>
      Effect.gen(function* () {
        const { answer, events } = yield* cancelled(stage, abort)
        const { error, isError, runId, stopReason, text } = answer
        assert.deepStrictEqual([isError, stopReason, runId], [true, "aborted", undefined])
        assert.instanceOf(error?.reason, SubagentError.AbortedBeforeStart)
        assert.include(text, "aborted before")
        assert.deepStrictEqual(events, [])
      })
    )
  }

  const ways = [
    ["Signal", abort, "the call was aborted"],
    ["Caller", cancel, "it was cancelled"]
  ] as const
  for (const [cause, how, words] of ways) {
    for (const stage of Object.keys(stages).slice(2)) {
      it.effect(`${stage}, it is aborted, with what it has said so far and the cause ${cause}`, () =>
        Effect.gen(function* () {
          const { answer, events } = yield* cancelled(stage, how)
          const { content: _content, runId: _runId, usage: _usage, treeUsage: _treeUsage, ...rest } = answer
          const headline = `The subagent was stopped before it was done (aborted: ${words}).`
          const text = `${headline}\n\nPartial output, not a finished answer:\nso far`
          assert.deepStrictEqual(rest, { isError: true, stopReason: "aborted", text })
          assert.deepStrictEqual(events, ["start", ["aborted", { _tag: cause }, undefined]])
        })
      )
    }
  }

  for (const stage of Object.keys(stages).slice(2)) {
    it.effect(`${stage}, it is aborted for the model that has delegated, too`, () =>
      Effect.gen(function* () {
        const rule: ScriptedModel.Rule = ({ index, toolResults, userText }) =>
          userText !== "go"
            ? (stages[stage]![index - 1] ?? { die: "no call was expected" })
            : toolResults.length === 0
              ? { toolCalls: [delegate("it")] }
              : { text: String(toolResults[0]!.result) }
        const { value } = yield* inTree(
          rule,
          (tree) =>
            Effect.gen(function* () {
              const asking = yield* Effect.forkChild(tree.ask("go"))
              yield* TestClock.adjust(0)
              const [child] = yield* tree.seam.live
              assert.isTrue(yield* tree.seam.cancel(child!.runId))
              assert.strictEqual((yield* Fiber.join(asking)).stopReason, "completed")
              return tree.said()
            }),
          { bindings: [{ provider: "spawn", outputSchema: Schema.Number }] }
        )
        const headline = "The subagent was stopped before it was done (aborted: it was cancelled)."
        assert.strictEqual(value, `${headline}\n\nPartial output, not a finished answer:\nso far`)
      })
    )
  }
})
