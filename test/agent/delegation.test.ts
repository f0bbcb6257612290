/** What agents of the default runtime keep to when they delegate. The ids are those of faults reported of other systems. */
import { assert, describe, it } from "@effect/vitest"
import { Approvals, Content, type SubagentRequest, type SubagentUpdate } from "effect-subagent"
import type { ScriptedModel } from "effect-subagent/testing"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { calls, delegate, inTree } from "../utils/tree.ts"
import { nothing, provider, tagOf } from "../utils/seam.ts"
import { filtered, outline, resultsOf } from "./harness.ts"

/**
 * Agents that do what their prompt says: `a > b` delegates `b`, anything else calls the tools it names. Each then says
 * what its tools have answered.
 */
const obedient: ScriptedModel.Rule = ({ toolResults, userText }) => {
  if (toolResults.length > 0) return { text: toolResults.map(({ result }) => JSON.stringify(result)).join() }
  const at = userText.indexOf(" > ")
  return at < 0 ? calls(...userText.split(" ")) : { toolCalls: [delegate(userText.slice(at + 3))] }
}

/** The tools that the model was offered in the call in which it was told this. */
const offered = (calls: ReadonlyArray<ScriptedModel.ScriptedCall>, userText: string) =>
  calls.find((call) => call.userText === userText)?.tools

/** What the model was answered in the turn in which it was told this. */
const answers = (calls: ReadonlyArray<ScriptedModel.ScriptedCall>, userText: string) =>
  resultsOf(calls.find((call) => call.userText === userText && call.toolResults.length > 0))?.map(
    ({ isFailure, result }) => [isFailure, result]
  )

const toolCalls = (updates: ReadonlyArray<SubagentUpdate.UnstampedUpdate>) =>
  updates.flatMap((update) => (update._tag === "ToolCall" ? [update.status] : []))

describe("an approval that a grandchild needs (19)", () => {
  it.effect("E1: is asked of the approver at the root, who is told the whole lineage", () =>
    Effect.gen(function* () {
      const asked: Array<Approvals.ApprovalRequest> = []
      const { events, value } = yield* inTree(obedient, (tree) =>
        Effect.gen(function* () {
          const run = yield* tree.start("spawn", "child > erase", { label: "the child" })
          yield* run.result
          return { executed: tree.executed, run, root: tree.root }
        })
      ).pipe(
        Effect.provideService(Approvals.Approvals, {
          decide: (request) =>
            Effect.sync(() => {
              asked.push(request)
              return "approved"
            })
        })
      )
      assert.deepStrictEqual(value.executed, ["erase@2"])
      const grandchild = events.find(({ label, type }) => type === "subagent/start" && label === "a part")
      const { lineage, ...question } = asked[0]!
      assert.strictEqual(asked.length, 1)
      assert.deepStrictEqual(question, { toolCallId: "call-1-0", toolName: "erase", input: {} })
      assert.deepStrictEqual<object | undefined>(lineage, {
        id: grandchild?.id,
        runId: grandchild?.runId,
        parentId: value.run.id,
        parentRunId: value.run.runId,
        rootId: value.root.id,
        depth: 2,
        label: "a part"
      })
    })
  )

  it.effect("E1: is refused at once when there is nobody to ask, and nothing is parked", () =>
    inTree(obedient, (tree) =>
      Effect.gen(function* () {
        const run = yield* tree.start("spawn", "child > erase")
        assert.strictEqual((yield* run.result).stopReason, "completed")
        assert.deepStrictEqual(tree.executed, [])
        assert.deepStrictEqual(yield* tree.seam.live.pipe(Effect.map((live) => live.map(({ state }) => state))), [
          "settled"
        ])
      })
    )
  )

  const ends: ReadonlyArray<readonly [string, Approvals.Approver["decide"] | undefined, string]> = [
    ["E3: no-approver, which blames nobody", undefined, "no-approver: it needs an approval and there is nobody here"],
    ["denied", () => Effect.succeed("denied"), "denied: the approver denied this call"],
    [
      "approver-failed",
      () => Effect.fail("offline"),
      "approver-failed: it needs an approval and asking for one failed"
    ],
    ["approver-failed", () => Effect.die("bug"), "approver-failed: it needs an approval and asking for one failed"],
    ["timed-out", () => Effect.never, "timed-out: it needs an approval and no answer came in time"]
  ]
  for (const [index, [name, decide, reason]] of ends.entries()) {
    it.effect(`is told to the model with its true outcome: ${name} (${index})`, () =>
      Effect.gen(function* () {
        const approver = decide && { decide, timeout: "1 minute" as const }
        const running = yield* Effect.forkChild(
          inTree(obedient, (tree) =>
            Effect.gen(function* () {
              const run = yield* tree.start("spawn", "child > erase")
              assert.strictEqual((yield* run.result).stopReason, "completed")
              assert.deepStrictEqual(tree.executed, [])
              return answers(yield* tree.calls, "erase")
            })
          ).pipe(Effect.provideService(Approvals.Approvals, approver)),
          { startImmediately: true }
        )
        if (name === "timed-out") {
          yield* TestClock.adjust("59 seconds")
          assert.isUndefined(running.pollUnsafe())
          yield* TestClock.adjust("1 second")
        }
        const { value } = yield* Fiber.join(running)
        const [isFailure, result] = value![0]! as [boolean, { readonly type: string; readonly reason: string }]
        assert.deepStrictEqual([isFailure, result.type], [true, "execution-denied"])
        assert.isTrue(result.reason.startsWith(`The tool was not executed. ${reason}`), result.reason)
        assert.notMatch(result.reason, /user/i)
      })
    )
  }

  it.effect("is withdrawn when anything above is cancelled, and the approver stops deciding", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const withdrawn = yield* Deferred.make<void>()
      const approver: Approvals.Approver = {
        decide: () =>
          Deferred.succeed(asked, undefined).pipe(
            Effect.andThen(Effect.never),
            Effect.onInterrupt(() => Deferred.succeed(withdrawn, undefined))
          )
      }
      yield* inTree(obedient, (tree) =>
        Effect.gen(function* () {
          const run = yield* tree.start("spawn", "child > erase")
          yield* Deferred.await(asked)
          yield* run.cancel()
          yield* run.dispose
          assert.isTrue(Deferred.isDoneUnsafe(withdrawn))
          assert.deepStrictEqual(tree.executed, [])
          assert.strictEqual((yield* run.result).stopReason, "aborted")
        })
      ).pipe(Effect.provideService(Approvals.Approvals, approver))
    })
  )

  it.effect("may be one of several at once, each with its own answer", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      let waiting = 0
      const approver: Approvals.Approver = {
        decide: ({ toolCallId }) => {
          waiting++
          const both = waiting === 2 ? Deferred.succeed(gate, undefined) : Effect.void
          return Effect.as(Effect.andThen(both, Deferred.await(gate)), toolCallId.endsWith("0") ? "approved" : "denied")
        }
      }
      const { value } = yield* inTree(obedient, (tree) =>
        Effect.gen(function* () {
          yield* Effect.flatMap(tree.start("spawn", "erase erase"), (run) => run.result)
          return answers(yield* tree.calls, "erase erase")?.map(([isFailure]) => isFailure)
        })
      ).pipe(Effect.provideService(Approvals.Approvals, approver))
      assert.deepStrictEqual(value, [false, true])
    })
  )

  it.effect("E9: that nobody can give is advice to put the question into the result", () =>
    inTree(obedient, (tree) =>
      Effect.gen(function* () {
        yield* Effect.flatMap(tree.start("spawn", "erase"), (run) => run.result)
        const [[, result]] = answers(yield* tree.calls, "erase") as [[boolean, { readonly reason: string }]]
        assert.include(result.reason, "say in your answer what you would have done")
      })
    )
  )
})

describe("an end that is no success (14)", () => {
  const ends: ReadonlyArray<readonly [string, ScriptedModel.Step, string, string]> = [
    ["F2: a model that stops with an error and says nothing", { finishReason: "error" }, "error", "model"],
    [
      "F4: a stream that ends after a tool call",
      { text: "let me", toolCalls: [{ name: "read", params: {} }], finishReason: "none" },
      "error",
      "model"
    ],
    ["F4: a stream that ends in half a sentence", { text: "the answer is", finishReason: "none" }, "error", "model"]
  ]
  for (const [name, step, stopReason, kind] of ends) {
    for (const streaming of [false, true]) {
      it.effect(`${name}, ${streaming ? "" : "not "}streaming`, () =>
        Effect.gen(function* () {
          const { value } = yield* inTree(
            ({ toolResults, userText }) =>
              userText !== "root"
                ? step
                : toolResults.length === 0
                  ? { toolCalls: [delegate("child")] }
                  : { text: String(toolResults[0]?.isFailure) },
            (tree) =>
              Effect.gen(function* () {
                const run = yield* tree.start("spawn", "child")
                const result = yield* run.result
                yield* tree.ask("root")
                return { result, said: tree.said() }
              }),
            { loop: { streaming } }
          )
          assert.deepStrictEqual([value.result.stopReason, value.result.failure?.kind], [stopReason, kind])
          assert.strictEqual(value.said, "true")
        })
      )
    }
  }

  it.effect("F6: keeps the last message that says something, also after one that is usage only", () =>
    inTree(
      ({ toolResults }) =>
        toolResults.length === 0
          ? { text: "so far", ...calls("read") }
          : { usage: { input: 1, output: 9 }, finishReason: "length" },
      (tree) =>
        Effect.gen(function* () {
          const { failure, output, stopReason, usage } = yield* Effect.flatMap(
            tree.start("spawn", "go"),
            (run) => run.result
          )
          assert.deepStrictEqual([stopReason, output], ["max-tokens", [Content.text("so far")]])
          assert.strictEqual(failure?.kind, "model")
          assert.strictEqual(usage?.output, 9)
        })
    )
  )

  it.effect("F8: comes when the turn has ended, not with the first words, and nothing comes after it", () =>
    inTree(
      ({ index }) => (index < 2 ? { text: `step ${index}`, ...calls("read"), delay: "1 second" } : { text: "done" }),
      (tree) =>
        Effect.gen(function* () {
          const run = yield* tree.start("spawn", "go")
          const heard = yield* Effect.forkChild(Stream.runCollect(run.updates), { startImmediately: true })
          const result = yield* Effect.forkChild(run.result, { startImmediately: true })
          yield* TestClock.adjust("1 second")
          assert.isUndefined(result.pollUnsafe())
          yield* TestClock.adjust("1 second")
          assert.deepStrictEqual((yield* Fiber.join(result)).output, [Content.text("done")])
          const last = (yield* Fiber.join(heard)).at(-1)
          assert.deepStrictEqual(last?._tag === "Content" ? last.block : last, Content.text("done"))
        })
    )
  )
})

describe("depth (11)", () => {
  it.effect("F10: is refused to the model as an error result and as a failed tool call, and no run is announced", () =>
    Effect.gen(function* () {
      const { events, value } = yield* inTree(
        obedient,
        (tree) =>
          Effect.gen(function* () {
            yield* tree.ask("root > read")
            return { answers: answers(yield* tree.calls, "root > read"), updates: tree.updates }
          }),
        { bindings: [{ provider: "spawn", maxDepth: 0 }] }
      )
      assert.deepStrictEqual(value.answers, [
        [true, "The subagent could not be run: Delegation depth 1 exceeds the limit of 0"]
      ])
      assert.deepStrictEqual(toolCalls(value.updates), ["pending", "running", "failed"])
      assert.deepStrictEqual(events, [])
    })
  )

  for (const maxDepth of [0, 1, 2]) {
    it.effect(
      `H4: of ${maxDepth} means ${maxDepth} levels below the root, and who can't use the tool is not offered it`,
      () =>
        Effect.gen(function* () {
          const { events, value } = yield* inTree(
            obedient,
            (tree) => Effect.andThen(tree.ask("0 > 1 > 2 > 3 > read"), tree.calls),
            { bindings: [{ provider: "spawn", maxDepth }] }
          )
          assert.strictEqual(events.filter(({ type }) => type === "subagent/start").length, maxDepth)
          for (const [depth, prompt] of ["0 > 1 > 2 > 3 > read", "1 > 2 > 3 > read", "2 > 3 > read"].entries()) {
            if (depth > maxDepth) continue
            assert.strictEqual(offered(value, prompt)?.includes("subagent"), depth < maxDepth, prompt)
          }
        })
    )

    it.effect(`H4: of ${maxDepth} that a child asks for is counted from the root, too`, () =>
      inTree(obedient, (tree) =>
        Effect.gen(function* () {
          const child = yield* tree.start("spawn", "wait")
          const parent = { id: child.id, session: { header: { ...child.header, delegationDepth: 0 } } }
          const exit = yield* Effect.exit(tree.start("spawn", "read", { parent, maxDepth }))
          // what the caller's header says of the depth does not count
          if (maxDepth < 2) assert.strictEqual(tagOf(exit), "DepthExceeded")
          else assert.strictEqual(Exit.isSuccess(exit) && exit.value.header.delegationDepth, 2)
        })
      )
    )
  }

  it.effect("H6: holds for a child that delegates to its own kind without end", () =>
    Effect.gen(function* () {
      const cloning: ScriptedModel.Rule = ({ toolResults }) =>
        toolResults.length === 0 ? { toolCalls: [delegate("clone yourself")] } : { text: "done" }
      const { events } = yield* inTree(cloning, (tree) =>
        Effect.gen(function* () {
          yield* tree.ask("clone yourself")
          const tools = (yield* tree.calls).slice(0, 4).map(({ tools }) => tools.includes("subagent"))
          assert.deepStrictEqual(tools, [true, true, true, false])
        })
      )
      assert.strictEqual(events.filter(({ type }) => type === "subagent/start").length, 3)
    })
  )

  it.effect("H6: holds for a child that is allowed nothing but to delegate", () =>
    inTree(obedient, (tree) =>
      Effect.gen(function* () {
        const run = yield* tree.start("spawn", "1 > 2 > 3 > read", { toolFilter: { allow: ["subagent"] }, maxDepth: 2 })
        yield* run.result
        const all = yield* tree.calls
        assert.deepStrictEqual(offered(all, "1 > 2 > 3 > read"), ["subagent"])
        assert.deepStrictEqual(offered(all, "2 > 3 > read"), [])
        assert.isUndefined(offered(all, "3 > read"))
      })
    )
  )
})

describe("a tool filter (12)", () => {
  it.effect("J2: with a misspelt key is refused, and so is one with nothing in it", () =>
    inTree(obedient, (tree) =>
      Effect.gen(function* () {
        for (const toolFilter of [{ denied: ["write"] }, {}] as ReadonlyArray<SubagentRequest.ToolFilter>) {
          const error = yield* Effect.flip(tree.start("spawn", "write", { toolFilter }))
          assert.strictEqual(error.reason._tag, "InvalidRequest")
        }
        assert.deepStrictEqual(yield* tree.calls, [])
      })
    )
  )

  for (const list of ["allow", "deny"] as const) {
    it.effect(`J4: that wants to ${list} a tool there is not is refused with the names there are`, () =>
      inTree(obedient, (tree) =>
        Effect.gen(function* () {
          const error = yield* Effect.flip(tree.start("spawn", "read", { toolFilter: { [list]: ["read", "wirte"] } }))
          assert.strictEqual(
            error.message,
            `Invalid request: toolFilter.${list}.1: There is no tool "wirte"; ` +
              'the tools there are: "read", "write", "wait", "erase", "subagent"'
          )
          assert.deepStrictEqual(yield* tree.calls, [])
        })
      )
    )
  }

  it.effect("J6: takes away tools, never the guards of the others", () =>
    inTree(obedient, (tree) =>
      Effect.gen(function* () {
        yield* tree.ask("read")
        for (const name of ["spawn", "fork"]) {
          yield* Effect.flatMap(tree.start(name, "erase", { toolFilter: { allow: ["erase"] } }), (run) => run.result)
        }
        assert.deepStrictEqual(tree.executed, ["read@0"])
      })
    )
  )

  const sources: ReadonlyArray<
    readonly [string, string, Parameters<typeof inTree>[2], SubagentRequest.ToolFilter | undefined]
  > = [
    ["the request", "write", {}, { deny: ["write"] }],
    ["the binding", "1 > write", { bindings: [{ provider: "spawn", toolFilter: { deny: ["write"] } }] }, undefined],
    ["the parent", "1 > write", {}, { deny: ["write"] }],
    ["the grandparent", "1 > 2 > write", {}, { allow: ["read", "subagent"] }]
  ]
  for (const [source, prompt, options, toolFilter] of sources) {
    for (const name of ["spawn", "fork"]) {
      it.effect(`J8: of ${source} refuses a denied tool that is called all the same (${name})`, () =>
        inTree(
          obedient,
          (tree) =>
            Effect.gen(function* () {
              const run = yield* tree.start(name, prompt, { toolFilter })
              assert.strictEqual((yield* run.result).stopReason, "completed")
              assert.deepStrictEqual(tree.executed, [])
              const all = yield* tree.calls
              assert.notInclude(offered(all, "write") ?? [], "write")
              const [[isFailure, result]] = answers(all, "write") as [[boolean, string]]
              assert.isTrue(isFailure)
              assert.match(result, /^A tool filter denies "write"; the tools there are: "read"/)
            }),
          options
        )
      )
    }
  }

  it.effect("J8: holds for a root that a host has opened with one", () =>
    inTree(
      obedient,
      (tree) =>
        Effect.gen(function* () {
          yield* tree.ask("write")
          assert.deepStrictEqual(tree.executed, [])
        }),
      { root: { policy: filtered({ deny: ["write"] }) } }
    )
  )

  it.effect("K1: is not regained by a grandchild, whatever is allowed to it", () =>
    inTree(
      obedient,
      (tree) =>
        Effect.gen(function* () {
          const run = yield* tree.start("spawn", "1 > 2 > write", { toolFilter: { deny: ["write"] } })
          yield* run.result
          assert.deepStrictEqual(tree.executed, [])
          assert.deepStrictEqual(offered(yield* tree.calls, "write"), [])
        }),
      { bindings: [{ provider: "spawn", toolFilter: { allow: ["write", "subagent"] } }] }
    )
  )

  it.effect("K3: is not what a root does not use itself", () =>
    inTree(
      obedient,
      (tree) =>
        Effect.gen(function* () {
          yield* tree.ask("1 > write")
          assert.deepStrictEqual(tree.executed, ["write@1"])
        }),
      { root: { policy: filtered({ deny: ["write"] }) } }
    )
  )

  it.effect("K5: of one child changes nothing for its parent and siblings, nor can anybody change it", () =>
    inTree(obedient, (tree) =>
      Effect.gen(function* () {
        const deny = ["write"]
        const filtered = yield* tree.start("spawn", "write", { toolFilter: { deny } })
        deny.pop()
        yield* filtered.result
        assert.deepStrictEqual(tree.executed, [])
        yield* Effect.flatMap(tree.start("spawn", "write"), (run) => run.result)
        yield* tree.ask("write")
        assert.deepStrictEqual(tree.executed, ["write@1", "write@0"])
      })
    )
  )

  it.effect("may take away the subagent tool itself", () =>
    inTree(obedient, (tree) =>
      Effect.gen(function* () {
        const run = yield* tree.start("spawn", "1 > write", { toolFilter: { deny: ["subagent"] } })
        yield* run.result
        assert.deepStrictEqual(tree.executed, [])
        assert.notInclude(offered(yield* tree.calls, "1 > write") ?? [], "subagent")
      })
    )
  )

  it.effect("keeps a child from a provider that can't filter, and the model is told", () =>
    inTree(
      obedient,
      (tree) =>
        Effect.gen(function* () {
          const run = yield* tree.start("spawn", "1 > write", { toolFilter: { deny: ["write"] } })
          yield* run.result
          assert.deepStrictEqual(answers(yield* tree.calls, "1 > write"), [
            [true, 'The subagent could not be run: Provider "loose" does not support toolFilter']
          ])
        }),
      { bindings: [{ provider: "loose" }], others: [provider({ name: "loose", capabilities: nothing })] }
    )
  )
})

describe("a parent and its child (17)", () => {
  it.effect("L2: the parent's conversation has the call and its result, and nothing else of the child", () =>
    Effect.gen(function* () {
      const { value } = yield* inTree(obedient, (tree) =>
        Effect.gen(function* () {
          yield* tree.ask("1 > read write")
          yield* tree.ask("read")
          return outline((yield* tree.calls).find(({ userText }) => userText === "read"))
        })
      )
      assert.deepStrictEqual(value, [
        { role: "user", content: ["1 > read write"] },
        { role: "assistant", content: ["call-0-0 subagent"] },
        { role: "tool", content: ['call-0-0 gave "null,null"'] },
        { role: "assistant", content: ['"null,null"'] },
        { role: "user", content: ["read"] }
      ])
    })
  )

  it.effect("L4: what a cancelled run still says changes nothing of what comes after it", () =>
    inTree(
      ({ userText }) => (userText === "old" ? { text: "too late", delay: "1 minute" } : { text: "new" }),
      (tree) =>
        Effect.gen(function* () {
          const old = yield* Effect.forkChild(tree.ask("old"), { startImmediately: true })
          yield* Fiber.interrupt(old)
          yield* tree.ask("new")
          yield* TestClock.adjust("1 minute")
          yield* tree.ask("again")
          assert.strictEqual(tree.said(), "new")
          assert.notInclude(JSON.stringify(outline((yield* tree.calls).at(-1))), "too late")
        })
    )
  )

  it.effect("L6: hands back a value through the result alone", () =>
    inTree(
      () => ({ toolCalls: [{ name: "submit_result", params: { count: 3 } }] }),
      (tree) =>
        Effect.gen(function* () {
          const run = yield* tree.start("spawn", "count", { outputSchema: Schema.Struct({ count: Schema.Int }) })
          assert.deepStrictEqual((yield* run.result).structured, { count: 3 })
          assert.deepStrictEqual(tree.updates, [])
        })
    )
  )

  it.effect("L8: an isolation that nobody can give is refused by the name of its key", () =>
    inTree(obedient, (tree) =>
      Effect.gen(function* () {
        const fields = { isolation: "worktree" } as object
        const error = yield* Effect.flip(tree.start("spawn", "write", fields))
        assert.match(error.message, /^Invalid request: isolation: /)
        assert.deepStrictEqual(tree.executed, [])
      })
    )
  )
})
