import { assert, describe, it } from "@effect/vitest"
import {
  Agent,
  Approvals,
  Content,
  type SubagentProvider,
  type SubagentRequest,
  type SubagentUpdate
} from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { OutputSchema } from "effect-subagent/json-schema"
import { ScriptedModel } from "effect-subagent/testing"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as Stream from "effect/Stream"
import { submitTools } from "../../../src/agent/internal/submission.ts"
import { calls, delegate, inTree } from "../../utils/tree.ts"
import { outline, resultsOf } from "../harness.ts"

const Count = Schema.Struct({ count: Schema.Int })

const submit = (params: unknown, ...others: ReadonlyArray<string>): ScriptedModel.Step => ({
  toolCalls: [...(calls(...others).toolCalls ?? []), { name: "submit_result", params }]
})

/** Runs one child that is asked for a value; what came of it, and all that the model was asked. */
const asking = <S extends SubagentRequest.SchemaSpec>(
  outputSchema: S,
  script: ScriptedModel.Script,
  options: Parameters<typeof inTree>[2] & { readonly fields?: Partial<SubagentRequest.SubagentStartRequest<S>> } = {}
) =>
  Effect.map(
    inTree(
      script,
      (tree) =>
        Effect.gen(function* () {
          const run = yield* tree.start<S>("spawn", "count", { outputSchema, ...options.fields })
          const result = yield* run.result
          const updates = yield* Stream.runCollect(run.updates)
          return { result, updates, calls: yield* tree.calls, executed: tree.executed }
        }),
      options
    ),
    ({ value }) => value
  )

/** What became of tool calls. */
const states = (updates: ReadonlyArray<SubagentUpdate.SubagentUpdate>) =>
  updates.flatMap((update) =>
    update._tag === "ToolCall" && (update.status === "completed" || update.status === "failed")
      ? [[update.status, update.output]]
      : []
  )

describe("a child that is asked for a value (13)", () => {
  it.effect("submits it through a tool made for it, and ends with it, typed", () =>
    Effect.gen(function* () {
      const { calls, result } = yield* asking(Count, [submit({ count: 3 })])
      const count: number | undefined = result.structured?.count
      assert.strictEqual(count, 3)
      assert.deepStrictEqual(result, { output: [], stopReason: "completed", structured: { count: 3 } })
      assert.strictEqual(calls.length, 1)
      assert.deepStrictEqual(outline(calls[0]), [
        { role: "user", content: ["count", "When you are done, submit the result with the tool submit_result."] }
      ])
      assert.deepStrictEqual(calls[0]?.tools, ["read", "write", "wait", "erase", "subagent", "submit_result"])
    })
  )

  it.effect("may say something with it", () =>
    Effect.gen(function* () {
      const { result } = yield* asking(Count, [{ text: "three", ...submit({ count: 3 }) }])
      assert.deepStrictEqual([result.output, result.structured], [[Content.text("three")], { count: 3 }])
    })
  )

  it.effect("N2: works with its tools and approvals as it does without, and is asked at the end only", () =>
    Effect.gen(function* () {
      const approver: Approvals.Approver = { decide: () => Effect.succeed("approved") }
      const script = [calls("read"), calls("erase"), calls("write"), submit({ count: 3 })]
      const asked = yield* Effect.provideService(asking(Count, script), Approvals.Approvals, approver)
      assert.deepStrictEqual(asked.result.structured, { count: 3 })
      assert.deepStrictEqual(asked.executed, ["read@1", "erase@1", "write@1"])
      assert.deepStrictEqual(
        asked.calls.slice(1).map((call) => resultsOf(call)?.map(({ isFailure, result }) => [isFailure, result])),
        [[[false, null]], [[false, null]], [[false, null]]]
      )
    })
  )

  it.effect("N6: is told what is wrong with a value, where, and may try again; both are among the updates", () =>
    Effect.gen(function* () {
      const { calls, result, updates } = yield* asking(Count, [submit({ count: "many" }), submit({ count: 3 })])
      assert.deepStrictEqual(result.structured, { count: 3 })
      const refused = "Invalid result: count: Expected number"
      assert.deepStrictEqual(states(updates), [
        ["failed", refused],
        ["completed", "Accepted."]
      ])
      assert.deepStrictEqual(resultsOf(calls[1]), [
        { id: "call-0-0", name: "submit_result", isFailure: true, result: refused }
      ])
    })
  )

  it.effect("N4: that never satisfies the schema is told from one that never submits", () =>
    Effect.gen(function* () {
      const invalid = yield* asking(Count, [submit({ count: 1.5 }), submit({}), submit({ count: "a" })])
      assert.deepStrictEqual(
        [invalid.result.stopReason, invalid.result.failure],
        ["error", { kind: "schema-invalid", retryable: true, message: "count: Expected number" }]
      )
      assert.notProperty(invalid.result, "structured")
      const prose = [{ text: "three" }, { text: "it's three" }, { text: "three, I said" }]
      const missing = yield* asking(Count, prose)
      assert.deepStrictEqual(
        [missing.result.stopReason, missing.result.failure],
        ["error", { kind: "schema-missing", retryable: true, message: "The agent submitted no result" }]
      )
      assert.deepStrictEqual(missing.result.output, [Content.text("three, I said")])
      const once = yield* asking(Count, [submit({ count: "a" }), { text: "three" }, { text: "three!" }])
      assert.strictEqual(once.result.failure?.kind, "schema-invalid")
      const changed = yield* asking(Count, [
        { toolCalls: [...submit({ count: 3 }).toolCalls!, ...submit({ count: 4 }).toolCalls!] }
      ])
      assert.deepStrictEqual(changed.result.structured, { count: 3 })
      assert.deepStrictEqual(states(changed.updates), [
        ["completed", "Accepted."],
        ["failed", "A result was submitted already."]
      ])
    })
  )

  it.effect("is reminded when it ends in words instead", () =>
    Effect.gen(function* () {
      const { calls, result } = yield* asking(Count, [{ text: "three" }, {}, submit({ count: 3 })])
      assert.deepStrictEqual(result.structured, { count: 3 })
      const reminder = {
        role: "user",
        content: ["There is no result yet: it counts only if it is submitted with the tool submit_result."]
      }
      assert.deepStrictEqual(outline(calls[2])?.slice(1), [
        { role: "assistant", content: ["three"] },
        reminder,
        reminder
      ])
    })
  )

  for (const repairs of [0, 1, 3]) {
    it.effect(`may try again ${repairs} times if its runtime says so`, () =>
      Effect.gen(function* () {
        const { calls, result } = yield* asking(Count, () => submit({}), { loop: { repairs } })
        assert.strictEqual(result.failure?.kind, "schema-invalid")
        assert.strictEqual(calls.length, repairs + 1)
      })
    )
  }

  it.effect("uses up no try with its other tools, nor two with two values of one reply", () =>
    Effect.gen(function* () {
      const twice = { toolCalls: [...submit({}).toolCalls!, ...submit({}).toolCalls!] }
      const { result } = yield* asking(Count, [twice, calls("read"), calls("read"), twice, submit({ count: 3 })])
      assert.deepStrictEqual(result.structured, { count: 3 })
    })
  )

  it.effect("has the other tool calls of its last reply answered before it ends", () =>
    Effect.gen(function* () {
      const { executed, result, updates } = yield* asking(Count, [
        { toolCalls: [...submit({ count: 3 }).toolCalls!, ...calls("read", "gone").toolCalls!] }
      ])
      assert.deepStrictEqual(result.structured, { count: 3 })
      assert.deepStrictEqual(executed, ["read@1"])
      assert.sameMembers(
        states(updates).map(([status]) => status),
        ["completed", "completed", "failed"]
      )
    })
  )

  it.effect("has the first value of a reply that fits, also if it takes the longest to check", () =>
    Effect.gen(function* () {
      const Slow = Schema.Struct({ name: Schema.String }).pipe(
        Schema.decode({
          decode: SchemaGetter.transformEffect((value: { readonly name: string }) =>
            value.name === "slow" ? Effect.as(Effect.yieldNow, value) : Effect.succeed(value)
          ),
          encode: SchemaGetter.passthrough()
        })
      )
      const { result, updates } = yield* asking(Slow, [
        {
          toolCalls: [{ name: "slow" }, { name: "fast" }].map((params) => ({ name: "submit_result", params }))
        }
      ])
      assert.deepStrictEqual(result.structured, { name: "slow" })
      assert.deepStrictEqual(
        states(updates).map(([status]) => status),
        ["completed", "failed"]
      )
    })
  )

  it.effect("ends as the model calls run out: with a value in the last of them, or for the limit", () =>
    Effect.gen(function* () {
      const loop = { maxTurns: 2 }
      const last = yield* asking(Count, [calls("read"), submit({ count: 3 }, "read")], { loop })
      assert.deepStrictEqual(last.result.structured, { count: 3 })
      for (const script of [
        [calls("read"), calls("read")],
        [calls("read"), submit({})],
        [{ text: "three" }, { text: "three!" }]
      ]) {
        const { result } = yield* asking(Count, [...script, { text: "no value yet" }], { loop })
        assert.deepStrictEqual([result.stopReason, result.failure?.kind], ["error", "limit"])
        assert.deepStrictEqual(result.output, [Content.text("no value yet")])
      }
    })
  )

  it.effect("does not submit what a cut off reply has in it", () =>
    Effect.gen(function* () {
      const { result, updates } = yield* asking(Count, [{ ...submit({ count: 3 }), finishReason: "length" }])
      assert.deepStrictEqual([result.stopReason, result.structured], ["max-tokens", undefined])
      assert.deepStrictEqual(
        states(updates).map(([status]) => status),
        ["failed"]
      )
    })
  )

  it.effect("that is cancelled has no value, whatever it submits afterwards", () =>
    inTree([submit({ count: 3 }, "wait")], (tree) =>
      Effect.gen(function* () {
        const run = yield* tree.start("spawn", "count", { outputSchema: Count })
        const accepted = yield* Effect.forkChild(
          Stream.runHead(
            Stream.filter(run.updates, (update) => update._tag === "ToolCall" && update.status === "completed")
          )
        )
        yield* Fiber.join(accepted)
        yield* run.cancel()
        const result = yield* run.result
        assert.strictEqual(result.stopReason, "aborted")
        assert.notProperty(result, "structured")
      })
    )
  )

  it.effect("keeps the tool when a filter leaves it no other", () =>
    Effect.gen(function* () {
      const { calls, result } = yield* asking(
        Count,
        [{ toolCalls: [{ name: "read", params: {} }] }, submit({ count: 3 })],
        {
          fields: { toolFilter: { allow: [] } }
        }
      )
      assert.deepStrictEqual(calls[0]?.tools, ["submit_result"])
      assert.strictEqual(
        resultsOf(calls[1])?.[0]?.result,
        'A tool filter denies "read"; the tools there are: "submit_result"'
      )
      assert.deepStrictEqual(result.structured, { count: 3 })
    })
  )

  it.effect("leaves its siblings alone: two with two schemas at once", () =>
    Effect.gen(function* () {
      const script: ScriptedModel.Rule = ({ userText }) =>
        userText.startsWith("name") ? submit({ name: "Ada" }) : submit({ count: 3 })
      const { value } = yield* inTree(
        script,
        (tree) =>
          Effect.gen(function* () {
            const count = yield* tree.start("spawn", "count", { outputSchema: Count })
            const name = yield* tree.start("spawn", "name", { outputSchema: Schema.Struct({ name: Schema.String }) })
            const none = yield* tree.start("spawn", "count without a schema")
            return [
              (yield* count.result).structured,
              (yield* name.result).structured,
              (yield* none.result).stopReason,
              (yield* tree.calls).at(-1)?.tools.includes("submit_result")
            ]
          }),
        { loop: { maxTurns: 2 } }
      )
      assert.deepStrictEqual(value, [{ count: 3 }, { name: "Ada" }, "error", false])
    })
  )

  it.effect("does not hand its schema down to what it starts", () =>
    Effect.gen(function* () {
      const { calls, result } = yield* asking(Count, ({ toolResults, userText }) =>
        userText === "look"
          ? { text: "three" }
          : toolResults.length === 0
            ? { toolCalls: [delegate("look")] }
            : submit({ count: 3 })
      )
      assert.deepStrictEqual(result.structured, { count: 3 })
      assert.notInclude(calls[1]?.tools ?? [], "submit_result")
    })
  )
})

describe("the schema of a value (13)", () => {
  it.effect("may transform: what is submitted is JSON, what the caller gets is decoded once", () =>
    Effect.gen(function* () {
      const Event = Schema.Struct({ at: Schema.Date, seats: Schema.FiniteFromString })
      const at = "2026-11-30T12:00:00.000Z"
      const { result } = yield* asking(Event, [submit({ at: "soon", seats: 4 }), submit({ at, seats: "4" })])
      assert.deepStrictEqual(result.structured, { at: new Date(at), seats: 4 })
    })
  )

  it.effect("may be no object: the value is then submitted as one property", () =>
    Effect.gen(function* () {
      const { calls, result, updates } = yield* asking(Schema.Array(Schema.Int), [
        submit([1]),
        submit({ value: [1, "2"], rest: 3 }),
        submit({ value: [1, 2] })
      ])
      assert.deepStrictEqual(result.structured, [1, 2])
      assert.deepStrictEqual(
        states(updates).map(([status]) => status),
        ["failed", "failed", "completed"]
      )
      assert.match(String(resultsOf(calls[2])?.[0]?.result), /^Invalid result: rest: /)
      const paths = yield* asking(Schema.Array(Schema.Int), () => submit({ value: [1, "2"] }))
      assert.match(paths.result.failure?.message ?? "", /^value\.1: /)
    })
  )

  it.effect("may be recursive", () =>
    Effect.gen(function* () {
      interface Tree {
        readonly name: string
        readonly parts: ReadonlyArray<Tree>
      }
      const Tree = Schema.Struct({
        name: Schema.String,
        parts: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree))
      }).annotate({ identifier: "Tree" })
      const tree = { name: "a", parts: [{ name: "b", parts: [] }] }
      const { result } = yield* asking(Tree, [submit({ name: "a", parts: [{ name: "b" }] }), submit(tree)])
      assert.deepStrictEqual(result.structured, tree)
    })
  )

  it.effect("may be a JSON Schema, whose word on further properties counts", () =>
    Effect.gen(function* () {
      const schema = yield* OutputSchema.fromJsonSchema({
        type: "object",
        properties: { count: { type: "integer" } },
        required: ["count"],
        additionalProperties: false
      })
      const { calls, result } = yield* asking(schema, [submit({ count: 3, more: 1 }), submit({ count: 3 })])
      assert.deepStrictEqual(result.structured, { count: 3 })
      assert.match(String(resultsOf(calls[1])?.[0]?.result), /^Invalid result: more: /)
    })
  )

  it.effect("that dies of a value has not been satisfied", () =>
    Effect.gen(function* () {
      const Dying = Schema.Struct({
        count: Schema.Int.check(
          Schema.makeFilter(() => {
            throw new Error("no idea")
          })
        )
      })
      const { result } = yield* asking(Dying, () => submit({ count: 3 }))
      assert.deepStrictEqual([result.failure?.kind, result.failure?.message], ["schema-invalid", "no idea"])
    })
  )

  it.effect("that can't be shown to a model refuses the start, and no run begins", () =>
    Effect.gen(function* () {
      const dies = Schema.suspend((): Schema.Codec<unknown> => {
        throw new Error("not yet")
      })
      const { events, value } = yield* inTree([], (tree) =>
        Effect.flip(tree.start("spawn", "count", { outputSchema: dies }))
      )
      assert.strictEqual(value.reason._tag, "InvalidRequest")
      assert.match(value.message, /^Invalid request: outputSchema: It has no JSON Schema: /)
      assert.deepStrictEqual(events, [])
    })
  )
})

describe("the tool to submit with", () => {
  const submitTool = (toolkit: Toolkit.Toolkit<Record<string, Tool.Any>>) =>
    submitTools({ tools: toolkit.tools, handle: () => Effect.die("not handled") } as never)

  it.effect("is made once for a schema, so that a model keeps its decoder", () =>
    Effect.gen(function* () {
      const of = submitTool(Toolkit.make(Tool.make("read")) as never)
      const tool = yield* of(Count)
      assert.strictEqual(yield* of(Count), tool)
      assert.notStrictEqual(yield* of(Schema.Struct({ count: Schema.Int })), tool)
      assert.deepStrictEqual(Object.keys(tool.kit.tools), ["read", "submit_result"])
    })
  )

  it.effect("shows the model the JSON Schema of the value", () =>
    Effect.gen(function* () {
      const tool = yield* submitTool(Toolkit.empty)(Schema.Struct({ name: Schema.String }))
      assert.deepStrictEqual(Tool.getJsonSchema(tool.kit.tools["submit_result"]!), {
        type: "object",
        properties: { name: { type: "string" } },
        required: ["name"],
        additionalProperties: true
      })
    })
  )

  it.effect("has a name that no other tool has", () =>
    Effect.gen(function* () {
      const taken = Toolkit.make(Tool.make("submit_result"), Tool.make("submit_result_"))
      const { name } = yield* submitTool(taken as never)(Count)
      assert.strictEqual(name, "submit_result__")
    })
  )

  it.effect("takes values in an agent that nobody delegated to, turn by turn", () =>
    Effect.gen(function* () {
      const runtime = AgentRuntime.layer().pipe(
        Layer.provide(ScriptedModel.layer([submit({ count: 1 }), submit({ count: 2 })]))
      )
      const context = yield* Layer.build(runtime)
      const agent = yield* Context.get(context, AgentRuntime.AgentRuntime).open({
        agent: yield* Agent.root(),
        options: {},
        policy: AgentRuntime.openPolicy,
        output: { schema: Count, decode: () => Effect.succeed(undefined) },
        emit: () => {}
      })
      const turn = agent.turn([Content.text("count")])
      assert.deepStrictEqual(
        [yield* turn, yield* turn],
        [1, 2].map((count): SubagentProvider.ChildOutcome => ({ stopReason: "completed", structured: { count } }))
      )
    })
  )

  it.effect("remembers what it has submitted, whatever its caller does with the value (17)", () =>
    Effect.gen(function* () {
      const schema = yield* OutputSchema.fromJsonSchema({ type: "object" })
      const prompts = yield* inTree([submit({ data: { x: 1 } }), submit({ data: { x: 2 } })], (tree) =>
        Effect.gen(function* () {
          const run = yield* tree.start("spawn", "first", { outputSchema: schema })
          const { structured } = yield* run.result
          ;(structured as { data: { x: unknown } }).data.x = "changed"
          yield* Effect.flatMap(run.resume!("again"), ({ result }) => result)
          const [, second] = yield* tree.calls
          return second?.prompt.content.flatMap(({ content, role }): ReadonlyArray<unknown> =>
            role === "assistant" ? [...content] : []
          )
        })
      )
      assert.deepInclude(prompts.value?.[0] as object, { params: { data: { x: 1 } } })
    })
  )
})
