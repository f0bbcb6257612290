/** The life of agents of the default runtime: messages, further turns. The ids are those of faults reported of other systems. */
import { assert, describe, it } from "@effect/vitest"
import { Agent, Approvals, Content, type ResumeToken, SubagentError, type SubagentRun } from "effect-subagent"
import { AgentModels, AgentRuntime } from "effect-subagent/agent"
import { ScriptedModel } from "effect-subagent/testing"
import * as AiError from "effect/ai/AiError"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Scheduler from "effect/Scheduler"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { calls, delegate, inTree, type Tree } from "../utils/tree.ts"
import { tagOf } from "../utils/seam.ts"
import { calculator, open, outline } from "./harness.ts"

const add = { name: "add", params: { a: 1, b: 2 } }
const user = (...content: ReadonlyArray<string>) => ({ role: "user", content })
const assistant = (...content: ReadonlyArray<string>) => ({ role: "assistant", content })
const tool = (...content: ReadonlyArray<string>) => ({ role: "tool", content })
const submit = (params: unknown) => ({ toolCalls: [{ name: "submit_result", params }] })

/** The receipts among updates, in order. */
const receipts = (updates: ReadonlyArray<object>) =>
  updates.flatMap((update) => ("_tag" in update && update._tag === "Receipt" ? [update] : []))
const consumed = (messageId: string) => ({ _tag: "Receipt", messageId, state: "consumed" })

/** What became of the messages to a run, once it has settled. */
const receiptsOf = (run: SubagentRun.SubagentRun) =>
  Effect.map(Stream.runCollect(run.updates), (updates) =>
    updates.flatMap((update) => (update._tag === "Receipt" ? [[update.messageId, update.state]] : []))
  )

/** An agent whose one tool waits until it is told. */
const waiting = Effect.fnUntraced(function* (script: ScriptedModel.Script) {
  const gate = yield* Deferred.make<void>()
  const toolkit = Toolkit.make(Tool.make("wait", { success: Schema.String }))
  const handlers = toolkit.toLayer({ wait: () => Effect.as(Deferred.await(gate), "waited") })
  const runtime = AgentRuntime.layer({ toolkit }).pipe(
    Layer.provide(handlers),
    Layer.provideMerge(ScriptedModel.layer(script))
  )
  return { gate, agent: yield* open(runtime) }
})

/** An agent that has been given a prompt, and is at it. */
const started = Effect.fnUntraced(function* (...given: Parameters<typeof open>) {
  const agent = yield* open(...given)
  const fiber = yield* Effect.forkChild(agent.turn("go"), { startImmediately: true })
  return { agent, fiber }
})

describe("a message to an agent (15)", () => {
  const slowly = (step: ScriptedModel.Step): ScriptedModel.Step => ({ ...step, delay: "1 second" })

  for (const streaming of [false, true]) {
    const mode = streaming ? ", streaming" : ""
    it.effect(`is read before the next model call, after the results of the tools${mode}`, () =>
      Effect.gen(function* () {
        const script = [slowly({ text: "let me see", toolCalls: [add] }), slowly({ text: "it is 3" })]
        const { agent, fiber } = yield* started(calculator(script, { streaming }))
        yield* agent.steer("faster")
        yield* agent.steer("please")
        assert.deepStrictEqual(receipts(agent.updates), [])
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(receipts(agent.updates), [consumed("faster"), consumed("please")])
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* Fiber.join(fiber), { stopReason: "completed" })
        assert.deepStrictEqual(outline((yield* agent.calls)[1]), [
          user("go"),
          assistant("let me see", "call-0-0 add"),
          tool("call-0-0 gave 3"),
          user("faster"),
          user("please")
        ])
      })
    )

    it.effect(`G1: that comes when nothing more is to do gets an answer of its own${mode}`, () =>
      Effect.gen(function* () {
        const script = [{ toolCalls: [add] }, slowly({ text: "it is 3" }), { text: "you are welcome" }]
        const { agent, fiber } = yield* started(calculator(script, { streaming }))
        yield* agent.steer("thanks")
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* Fiber.join(fiber), { stopReason: "completed" })
        assert.deepStrictEqual(receipts(agent.updates), [consumed("thanks")])
        assert.deepStrictEqual(outline((yield* agent.calls)[2])?.slice(-2), [assistant("it is 3"), user("thanks")])
      })
    )
  }

  it.effect("is read while a tool is at work, and not before that is done", () =>
    Effect.gen(function* () {
      const { agent, gate } = yield* waiting([{ toolCalls: [{ name: "wait", params: {} }] }, { text: "done" }])
      const fiber = yield* Effect.forkChild(agent.turn("go"), { startImmediately: true })
      yield* agent.steer("hurry")
      assert.deepStrictEqual(receipts(agent.updates), [])
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(outline((yield* agent.calls)[1])?.slice(-2), [
        tool('call-0-0 gave "waited"'),
        user("hurry")
      ])
    })
  )

  it.effect("is refused when no turn is at work, and once the turn has decided to end", () =>
    Effect.gen(function* () {
      const { agent, gate } = yield* waiting([{ text: "hi" }, { toolCalls: [{ name: "wait", params: {} }] }])
      const refused = SubagentError.fromReason(new SubagentError.RunSettled({ runId: agent.agent.id }))
      assert.deepStrictEqual(yield* Effect.flip(agent.steer("too soon")), refused)
      yield* agent.turn("hello")
      assert.deepStrictEqual(yield* Effect.flip(agent.steer("too late")), refused)
      const fiber = yield* Effect.forkChild(agent.turn("go"), { startImmediately: true })
      yield* agent.steer("lost")
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(yield* Effect.flip(agent.steer("too late")), refused)
      yield* Deferred.succeed(gate, undefined)
      assert.deepStrictEqual(receipts(agent.updates), [])
    })
  )

  it.effect("G1: is read or refused, however close to the decision to end it comes", () =>
    Effect.gen(function* () {
      const outcomes = new Set<string>()
      // the agent makes way for others now and then, each time somewhere else
      for (let pace = 4; pace < 32; pace++) {
        for (let ways = 0; ways < 12; ways++) {
          const agent = yield* open(calculator(() => ({ text: "it is 3" })))
          const turn = Effect.provideService(agent.turn("go"), Scheduler.MaxOpsBeforeYield, pace)
          const fiber = yield* Effect.forkChild(turn, { startImmediately: true })
          for (let way = 0; way < ways; way++) yield* Effect.yieldNow
          const sent = yield* Effect.exit(agent.steer("thanks"))
          yield* Fiber.join(fiber)
          assert.strictEqual(receipts(agent.updates).length, Exit.isSuccess(sent) ? 1 : 0)
          outcomes.add(sent._tag)
        }
      }
      assert.deepStrictEqual([...outcomes].toSorted(), ["Failure", "Success"])
    })
  )

  const endings: ReadonlyArray<[string, ScriptedModel.Step]> = [
    ["fails", { fail: new AiError.AuthenticationError({ kind: "InvalidKey" }) }],
    ["dies", { die: "broken" }],
    ["is cut short", { text: "so", finishReason: "length" }],
    ["declines", { text: "no", finishReason: "content-filter" }]
  ]
  for (const [how, step] of endings) {
    it.effect(`is not read by a turn whose model ${how}, nor by the next one`, () =>
      Effect.gen(function* () {
        const { agent, fiber } = yield* started(calculator([slowly(step), { text: "hi" }]))
        yield* agent.steer("hurry")
        yield* TestClock.adjust("1 second")
        assert.notStrictEqual((yield* Fiber.join(fiber)).stopReason, "completed")
        assert.strictEqual(tagOf(yield* Effect.exit(agent.steer("hurry"))), "RunSettled")
        yield* agent.turn("hello")
        assert.deepStrictEqual(receipts(agent.updates), [])
        assert.notInclude(JSON.stringify(outline((yield* agent.calls)[1])), "hurry")
      })
    )
  }

  it.effect("is not read when the model calls are used up, and spoils no answer", () =>
    Effect.gen(function* () {
      const { agent, fiber } = yield* started(calculator(() => slowly({ text: "hi" }), { maxTurns: 2 }))
      yield* agent.steer("one")
      yield* TestClock.adjust("1 second")
      yield* agent.steer("two")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(fiber), { stopReason: "completed" })
      assert.deepStrictEqual(receipts(agent.updates), [consumed("one")])
    })
  )

  it.effect("of 1,000 senders is read in the order in which they sent theirs", () =>
    Effect.gen(function* () {
      const { agent, fiber } = yield* started(calculator([slowly({ text: "hm" }), { text: "well" }]))
      const names = Array.from({ length: 1000 }, (_, index) => `message ${index}`)
      yield* Effect.forEach(names, (name) => agent.steer(name), { concurrency: "unbounded", discard: true })
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(fiber), { stopReason: "completed" })
      assert.deepStrictEqual(receipts(agent.updates), names.map(consumed))
      assert.deepStrictEqual(
        outline((yield* agent.calls)[1])?.slice(2),
        names.map((name) => user(name))
      )
    })
  )

  it.effect("is what it was when it was sent (17)", () =>
    Effect.gen(function* () {
      const { agent, fiber } = yield* started(calculator([slowly({ text: "hm" }), { text: "well" }]))
      const content = [Content.text("red")]
      yield* agent.send({ messageId: "1", content })
      content.push(Content.text("green"))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(outline((yield* agent.calls)[1])?.at(-1), user("red"))
    })
  )

  const output = { schema: Schema.Number, decode: Schema.decodeUnknownEffect(Schema.Number) } as never

  it.effect("is read between a value that does not fit and the next one", () =>
    Effect.gen(function* () {
      const script = [slowly(submit({ value: "three" })), slowly(submit({ value: 3 }))]
      const { agent, fiber } = yield* started(calculator(script), { output })
      yield* agent.steer("a number")
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* Fiber.join(fiber), { stopReason: "completed", structured: 3 })
      assert.deepStrictEqual(
        outline((yield* agent.calls)[1])?.map(({ role }) => role),
        ["user", "assistant", "tool", "user"]
      )
      assert.deepStrictEqual(receipts(agent.updates), [consumed("a number")])
    })
  )

  it.effect("is answered instead of the reminder that a value is missing, which comes later", () =>
    Effect.gen(function* () {
      const script = [slowly({ text: "hm" }), { text: "well" }, submit({ value: 3 })]
      const { agent, fiber } = yield* started(calculator(script), { output })
      yield* agent.steer("think")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(fiber), { stopReason: "completed", structured: 3 })
      const [, , asked, thought, , reminded] = outline((yield* agent.calls)[2]) ?? []
      assert.deepStrictEqual(asked, user("think"))
      assert.deepStrictEqual(thought, assistant("well"))
      assert.isUndefined(reminded)
    })
  )

  it.effect("that comes with the value is not read: the value was the end", () =>
    Effect.gen(function* () {
      const { agent, fiber } = yield* started(calculator([slowly(submit({ value: 3 }))]), { output })
      yield* agent.steer("wait")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(fiber), { stopReason: "completed", structured: 3 })
      assert.deepStrictEqual(receipts(agent.updates), [])
      assert.strictEqual(tagOf(yield* Effect.exit(agent.steer("wait"))), "RunSettled")
    })
  )

  it.effect("E7: leaves an approval that is pending as it is (19)", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<"approved">()
      let questions = 0
      const script: ScriptedModel.Script = [calls("erase"), { text: "gone" }]
      const { value } = yield* inTree(script, (tree) =>
        Effect.gen(function* () {
          const run = yield* tree.start("spawn", "tidy up")
          yield* Deferred.await(asked)
          const { messageId } = yield* run.sendMessage!("carefully")
          yield* Deferred.succeed(answer, "approved")
          const { stopReason } = yield* run.result
          return {
            calls: yield* tree.calls,
            executed: tree.executed,
            messageId,
            receipts: yield* receiptsOf(run),
            stopReason
          }
        })
      ).pipe(
        Effect.provideService(Approvals.Approvals, {
          decide: () =>
            Effect.suspend(() => {
              questions++
              return Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(answer))
            })
        })
      )
      assert.strictEqual(questions, 1)
      assert.deepStrictEqual(value.executed, ["erase@1"])
      assert.strictEqual(value.stopReason, "completed")
      assert.deepStrictEqual(value.receipts, [[value.messageId, "consumed"]])
      assert.deepStrictEqual(outline(value.calls[1])?.at(-1), user("carefully"))
    })
  )

  it.effect("G1: to a run is consumed, or has expired, or is refused, whenever it comes", () =>
    Effect.gen(function* () {
      const { value } = yield* inTree(
        ({ userText }) => ({ text: userText, delay: "1 second" }),
        (tree) =>
          Effect.gen(function* () {
            const run = yield* tree.start("spawn", "tidy up")
            const sending = yield* Effect.forkChild(
              Effect.forEach(
                Array.from({ length: 40 }),
                () => Effect.delay(Effect.exit(run.sendMessage!("more")), "250 millis"),
                {}
              )
            )
            yield* TestClock.adjust("3 seconds")
            yield* run.cancel()
            yield* TestClock.adjust("1 minute")
            const sent = yield* Fiber.join(sending)
            return { sent, receipts: yield* receiptsOf(run) }
          }),
        { loop: { maxTurns: 100 } }
      )
      const taken = value.sent.flatMap((exit) => (Exit.isSuccess(exit) ? [exit.value.messageId] : []))
      assert.deepStrictEqual(
        value.receipts.map(([messageId]) => messageId),
        taken
      )
      assert.isAbove(value.receipts.filter(([, state]) => state === "consumed").length, 0)
      assert.isBelow(taken.length, 40)
    })
  )

  const Moment = Schema.Literals(["idle", "message", "tick", "turn", "stop"])
  const Step = Schema.Struct({
    kind: Schema.Literals(["words", "tool", "fail", "length", "nothing"]),
    delay: Schema.Boolean
  })
  it.effect.prop(
    "is read once and in its order or not at all, and leaves a conversation that a model API takes",
    [Schema.Array(Step), Schema.Array(Moment), Schema.Boolean],
    ([replies, moments, streaming]) =>
      Effect.gen(function* () {
        const stepOf = ({ delay, kind }: (typeof replies)[number]): ScriptedModel.Step => ({
          ...(delay && { delay: "1 second" }),
          ...(kind !== "nothing" && { text: "words" }),
          ...(kind === "tool" && { toolCalls: [add] }),
          ...(kind === "fail" && { fail: new AiError.InternalProviderError({ description: "down" }) }),
          ...(kind === "length" && { finishReason: "length" })
        })
        const script: ScriptedModel.Rule = ({ index }) => (replies[index] ? stepOf(replies[index]) : { text: "done" })
        const agent = yield* open(calculator(script, { streaming, maxTurns: 4, retry: Schedule.recurs(1) }))
        let fiber: Fiber.Fiber<unknown, unknown> | undefined
        const taken: Array<string> = []
        for (const [index, moment] of moments.entries()) {
          if (moment === "turn") fiber = yield* Effect.forkChild(agent.turn("go"), { startImmediately: true })
          if (moment === "tick") yield* TestClock.adjust("1 second")
          if (moment === "stop" && fiber !== undefined) yield* Fiber.interrupt(fiber)
          if (moment === "message") {
            const exit = yield* Effect.exit(agent.steer(`message ${index}`))
            if (Exit.isSuccess(exit)) taken.push(`message ${index}`)
          }
        }
        yield* TestClock.adjust("1 hour")
        const read = receipts(agent.updates).map((receipt) => ("messageId" in receipt ? receipt.messageId : ""))
        assert.deepStrictEqual(
          read,
          taken.filter((messageId) => read.includes(messageId))
        )
        const last = yield* Effect.forkChild(agent.turn("well?"), { startImmediately: true })
        yield* TestClock.adjust("1 hour")
        assert.notStrictEqual((yield* Fiber.join(last)).failure?.status, 400)
        const told = outline((yield* agent.calls).at(-1)) ?? []
        assert.deepStrictEqual(
          told.flatMap(({ content }) => (content[0]?.startsWith("message") ? [content[0]] : [])),
          read
        )
      }).pipe(Effect.scoped)
  )
})

describe("a child that is resumed (16)", () => {
  const limits = new AiError.RateLimitError({})

  it.effect("P4: after a failure that stays has the steps before it, and loses none", () =>
    Effect.gen(function* () {
      let isDown = true
      const script: ScriptedModel.Rule = ({ prompt, toolResults, userText }) => {
        const steps = prompt.content.filter(({ role }) => role === "tool").length
        if (userText === "try again") return { text: `went on after ${steps} steps` }
        if (steps < 5) return { text: `step ${steps + 1}`, toolCalls: [{ name: "read", params: {} }] }
        return isDown ? { fail: limits } : { text: String(toolResults.length) }
      }
      const { events, value } = yield* inTree(
        script,
        (tree) =>
          Effect.gen(function* () {
            const first = yield* tree.start("spawn", "seven steps")
            const failed = yield* first.result
            const attempts = (yield* tree.calls).length
            const second = yield* first.resume!("try again")
            const resumed = yield* second.result
            isDown = false
            const third = yield* tree.start("spawn", "seven steps")
            return { attempts, failed, first, resumed, second, third: yield* third.result }
          }),
        { loop: { retry: Schedule.recurs(2) } }
      )
      assert.strictEqual(value.attempts, 5 + 3)
      assert.strictEqual(value.failed.stopReason, "error")
      assert.deepInclude(value.failed.failure, { kind: "model", retryable: true, status: 429 })
      assert.deepStrictEqual(value.failed.output, [Content.text("step 5")])
      assert.deepStrictEqual(value.resumed, {
        output: [Content.text("went on after 5 steps")],
        stopReason: "completed"
      })
      assert.strictEqual(value.second.id, value.first.id)
      assert.notStrictEqual(value.second.runId, value.first.runId)
      assert.strictEqual(value.third.stopReason, "completed")
      assert.strictEqual(events.filter(({ type }) => type === "subagent/end").length, 3)
    })
  )

  it.effect("P4: is not needed after a failure that passes", () =>
    Effect.gen(function* () {
      const steps = Array.from({ length: 5 }, (): ScriptedModel.Step => calls("read"))
      const script = [...steps, { fail: limits }, calls("read"), { text: "all seven" }]
      const { value } = yield* inTree(
        script,
        (tree) =>
          Effect.gen(function* () {
            const run = yield* tree.start("spawn", "seven steps")
            const { output, stopReason } = yield* run.result
            const updates = yield* Stream.runCollect(run.updates)
            return {
              executed: tree.executed,
              output,
              retries: updates.filter(({ _tag }) => _tag === "Raw").length,
              stopReason
            }
          }),
        { loop: { retry: Schedule.recurs(2) } }
      )
      assert.deepStrictEqual(value, {
        executed: Array.from({ length: 6 }, () => "read@1"),
        output: [Content.text("all seven")],
        retries: 1,
        stopReason: "completed"
      })
    })
  )

  it.effect("P8: at the cap of its model calls has every tool call executed or answered, and goes on", () =>
    Effect.gen(function* () {
      const script: ScriptedModel.Rule = ({ userText }) => (userText === "go on" ? { text: "there" } : calls("read"))
      const { value } = yield* inTree(
        script,
        (tree) =>
          Effect.gen(function* () {
            const run = yield* tree.start("spawn", "read all")
            const capped = yield* run.result
            const resumed = yield* Effect.flatMap(run.resume!("go on"), ({ result }) => result)
            return { calls: yield* tree.calls, capped, executed: tree.executed, resumed }
          }),
        { loop: { maxTurns: 2 } }
      )
      assert.deepInclude(value.capped.failure, { kind: "limit", name: "maxTurns" })
      assert.deepStrictEqual(value.executed, ["read@1", "read@1"])
      assert.strictEqual(value.resumed.stopReason, "completed")
      assert.deepStrictEqual(
        outline(value.calls.at(-1))?.map(({ role }) => role),
        ["user", "assistant", "tool", "assistant", "tool", "user", "assistant", "tool", "user"]
      )
    })
  )

  it.effect("O5: after it was cancelled reports to its parent, and has its last prompt but no half step", () =>
    Effect.gen(function* () {
      const script: ScriptedModel.Rule = ({ toolResults, userText }) =>
        userText === "go on"
          ? { text: "done after all" }
          : toolResults.length === 0
            ? calls("read")
            : { text: "half", toolCalls: [{ name: "wait", params: {} }] }
      const { events, value } = yield* inTree(script, (tree) =>
        Effect.gen(function* () {
          const run = yield* tree.start("spawn", "the work")
          yield* Effect.yieldNow
          yield* run.cancel("enough")
          const cancelled = yield* run.result
          const next = yield* run.resume!("go on")
          yield* next.result
          return { calls: yield* tree.calls, cancelled, executed: tree.executed, result: yield* next.result }
        })
      )
      assert.deepStrictEqual(value.executed, ["read@1", "wait@1"])
      assert.deepStrictEqual(value.cancelled.cause, { _tag: "Caller", reason: "enough" })
      assert.deepStrictEqual(value.result, { output: [Content.text("done after all")], stopReason: "completed" })
      assert.deepStrictEqual(outline(value.calls.at(-1)), [
        user("the work"),
        assistant("call-0-0 read"),
        tool("call-0-0 gave null"),
        user("go on")
      ])
      assert.deepStrictEqual(
        events.map(({ type, ...event }) => ("stopReason" in event ? [type, event.stopReason] : [type])),
        [["subagent/start"], ["subagent/end", "aborted"], ["subagent/start"], ["subagent/end", "completed"]]
      )
    })
  )

  it.effect("O3: twice at once is so once, and free again after that", () =>
    Effect.gen(function* () {
      const { value } = yield* inTree(
        ({ userText }) => ({ text: userText, delay: "1 second" }),
        (tree) =>
          Effect.gen(function* () {
            const run = yield* tree.start("spawn", "one")
            const early = yield* Effect.exit(run.resume!("too soon"))
            yield* TestClock.adjust("1 second")
            const both = yield* Effect.all([Effect.exit(run.resume!("two")), Effect.exit(run.resume!("three"))], {
              concurrency: "unbounded"
            })
            yield* TestClock.adjust("1 second")
            const again = yield* run.resume!("four")
            yield* TestClock.adjust("1 second")
            const { output } = yield* again.result
            return { both: both.map(Exit.isSuccess), early, output, last: (yield* tree.calls).at(-1) }
          })
      )
      assert.strictEqual(tagOf(value.early), "ChildBusy")
      assert.deepStrictEqual(value.both, [true, false])
      assert.deepStrictEqual(value.output, [Content.text("four")])
      assert.deepStrictEqual(outline(value.last), [
        user("one"),
        assistant("one"),
        user("two"),
        assistant("two"),
        user("four")
      ])
    })
  )

  it.effect("after the output limit, and a hundred times, knows all that came before", () =>
    Effect.gen(function* () {
      const { value } = yield* inTree(
        ({ index }) => ({ text: `answer ${index}`, ...(index === 0 && { finishReason: "length" }) }),
        (tree) =>
          Effect.gen(function* () {
            const run = yield* tree.start("spawn", "prompt 0")
            const ends = [(yield* run.result).stopReason]
            for (let turn = 1; turn <= 100; turn++) {
              const { stopReason } = yield* Effect.scoped(
                Effect.flatMap(run.resume!(`prompt ${turn}`), ({ result }) => result)
              )
              ends.push(stopReason)
            }
            return { ends, last: (yield* tree.calls).at(-1) }
          })
      )
      assert.deepStrictEqual(value.ends, ["max-tokens", ...Array.from({ length: 100 }, () => "completed")])
      assert.deepStrictEqual(
        outline(value.last),
        Array.from({ length: 101 }, (_, turn) =>
          turn === 100 ? [user("prompt 100")] : [user(`prompt ${turn}`), assistant(`answer ${turn}`)]
        ).flat()
      )
    })
  )

  it.effect("has the same filter, depth, options and schema (11, 12, 13)", () =>
    Effect.gen(function* () {
      const script: ScriptedModel.Rule = ({ prompt, toolResults, userText }) =>
        prompt.content.at(-1)?.role === "tool"
          ? submit({ value: toolResults.filter(({ isFailure }) => isFailure).length })
          : userText.includes("try")
            ? { toolCalls: [{ name: "write", params: {} }, delegate("deeper")] }
            : submit({ value: 0 })
      const { value } = yield* inTree(script, (tree) =>
        Effect.gen(function* () {
          const run = yield* tree.start("spawn", "begin", {
            toolFilter: { deny: ["write"] },
            maxDepth: 1,
            agentOptions: { systemPrompt: "be brief" },
            outputSchema: Schema.Number
          })
          const first = yield* run.result
          const next = yield* run.resume!("try")
          return {
            calls: yield* Effect.andThen(next.result, tree.calls),
            executed: tree.executed,
            first,
            second: yield* next.result
          }
        })
      )
      assert.strictEqual(value.first.structured, 0)
      assert.strictEqual(value.second.structured, 2)
      assert.deepStrictEqual(value.executed, [])
      for (const call of value.calls) {
        assert.notInclude(call.tools, "write")
        assert.deepStrictEqual(outline(call)?.[0], { role: "system", content: "be brief" })
      }
    })
  )

  it.effect("of a fork knows what the fork did, and nothing of what its parent did since (17)", () =>
    Effect.gen(function* () {
      const { value } = yield* inTree(
        ({ userText }) => ({ text: `on ${userText}` }),
        (tree) =>
          Effect.gen(function* () {
            yield* tree.ask("before")
            const run = yield* tree.start("fork", "child")
            yield* run.result
            yield* tree.ask("since")
            const next = yield* run.resume!("again")
            yield* next.result
            return outline((yield* tree.calls).at(-1))
          })
      )
      assert.deepStrictEqual(value, [
        user("before"),
        assistant("on before"),
        user("child"),
        assistant("on child"),
        user("again")
      ])
    })
  )
})

describe("a child that goes on in another process (16)", () => {
  const told: ScriptedModel.Rule = ({ userText }) => ({ text: `on ${userText}` })

  /** Keeps the token of a child of this provider, once its first turn has ended, as text. */
  const keep = (provider: string, ...[fields, options]: [Fields?, Parameters<typeof inTree>[2]?]) =>
    Effect.map(
      inTree(
        told,
        (tree) =>
          Effect.gen(function* () {
            yield* tree.ask("before")
            const run = yield* tree.start(provider, "child", fields)
            yield* run.result
            const token = yield* run.token!
            return { kept: JSON.stringify(token), parent: tree.root, run }
          }),
        options
      ),
      ({ value }) => value
    )
  type Fields = Parameters<Tree["start"]>[2]
  const parse = (kept: string): ResumeToken.ResumeToken => JSON.parse(kept) as ResumeToken.ResumeToken

  const memories: ReadonlyArray<[string, ReadonlyArray<ReturnType<typeof user>>]> = [
    ["spawn", [user("child"), assistant("on child")]],
    ["fork", [user("before"), assistant("on before"), user("child"), assistant("on child")]]
  ]
  for (const [provider, memory] of memories) {
    it.effect(`is the same ${provider}, and remembers what it did there`, () =>
      Effect.gen(function* () {
        const { kept, parent, run } = yield* keep(provider)
        const { value } = yield* inTree(told, (tree) =>
          Effect.gen(function* () {
            const resumed = yield* tree.seam.resume(parse(kept), "go on", { parent })
            const { output } = yield* resumed.result
            const further = yield* resumed.resume!("and on")
            yield* further.result
            return { calls: yield* tree.calls, further: yield* further.token!, output, resumed }
          })
        )
        assert.strictEqual(value.resumed.id, run.id)
        assert.deepStrictEqual(value.resumed.header, run.header)
        assert.deepStrictEqual(value.output, [Content.text("on go on")])
        assert.deepStrictEqual(outline(value.calls[0]), [...memory, user("go on")])
        assert.deepStrictEqual(outline(value.calls[1]), [
          ...memory,
          user("go on"),
          assistant("on go on"),
          user("and on")
        ])
        assert.notDeepEqual(value.further.payload, parse(kept).payload)
      })
    )
  }

  const models = AgentModels.layer({ other: ScriptedModel.layer(told), usual: ScriptedModel.layer([]) })

  it.effect("has the model that it had inherited, its system prompt, its filter and its depth (11, 12)", () =>
    Effect.gen(function* () {
      const agentOptions = { systemPrompt: "be brief" }
      const asked = { agentOptions, toolFilter: { deny: ["write"] }, maxDepth: 1 }
      const parent = yield* Agent.root({ options: { model: "other" } })
      const { kept } = yield* keep("spawn", { ...asked, parent }, { models })
      const seen: Array<ScriptedModel.ScriptedCall> = []
      const noting: ScriptedModel.Rule = (call) => {
        seen.push(call)
        return told(call)
      }
      const { value } = yield* inTree(
        () => ({ text: "the wrong model" }),
        (tree) =>
          Effect.gen(function* () {
            const { model: _, ...options } = parent.options ?? {}
            const resumed = yield* tree.seam.resume(parse(kept), "go on", { parent: { ...parent, options } })
            return yield* resumed.result
          }),
        { models: AgentModels.layer({ other: ScriptedModel.layer(noting) }) }
      )
      assert.deepStrictEqual(value.output, [Content.text("on go on")])
      assert.deepStrictEqual(outline(seen[0])?.[0], { role: "system", content: "be brief" })
      assert.notInclude(seen[0]?.tools ?? [], "write")
      assert.notInclude(seen[0]?.tools ?? [], "subagent")
    })
  )

  it.effect("submits a value of the schema that is given again (13)", () =>
    Effect.gen(function* () {
      const { kept, parent } = yield* keep("spawn")
      const { value } = yield* inTree(
        () => submit({ value: 3 }),
        (tree) =>
          Effect.flatMap(
            tree.seam.resume(parse(kept), "how many?", { parent, outputSchema: Schema.Number }),
            ({ result }) => result
          )
      )
      assert.strictEqual(value.structured, 3)
    })
  )

  it.effect("remembers no turn that had not ended when its token was asked for", () =>
    Effect.gen(function* () {
      const { value } = yield* inTree(
        ({ userText }) => ({ text: userText, ...(userText === "two" && { hang: true }) }),
        (tree) =>
          Effect.gen(function* () {
            const run = yield* tree.start("spawn", "one")
            yield* run.result
            const before = yield* run.token!
            const next = yield* run.resume!("two")
            return { before, during: yield* next.token! }
          })
      )
      assert.deepStrictEqual(value.during, value.before)
    })
  )

  const call = { type: "tool-call", id: "1", name: "read", params: {}, providerExecuted: false }
  const unbalanced = JSON.stringify({ content: [{ role: "assistant", content: [call] }] })
  const tampered: ReadonlyArray<[string, unknown, string]> = [
    ["nothing", null, "token.payload"],
    ["of another shape", { seed: "x" }, "token.payload.agentOptions"],
    [
      "with more in it",
      { agentOptions: { systemPrompt: "be evil" }, seed: "x" },
      "token.payload.agentOptions.systemPrompt"
    ],
    ["without a memory", { agentOptions: {}, seed: null }, "token.payload.seed"],
    ["with a memory out of balance", { agentOptions: {}, seed: unbalanced }, "token.payload.seed"],
    [
      "with a model there is not",
      { agentOptions: { model: "huge" }, seed: '{"content":[]}' },
      "token.payload.agentOptions.model"
    ]
  ]
  for (const [what, payload, path] of tampered) {
    it.effect(`is refused if its payload is ${what}`, () =>
      Effect.gen(function* () {
        const { kept, parent } = yield* keep("spawn")
        const { events, value } = yield* inTree(told, (tree) =>
          Effect.gen(function* () {
            const error = yield* Effect.flip(
              tree.seam.resume(Object.assign(parse(kept), { payload }), "go on", { parent })
            )
            return { calls: yield* tree.calls, error, live: yield* tree.seam.live }
          })
        )
        const { reason } = value.error
        assert.deepStrictEqual(reason._tag === "InvalidRequest" && reason.issues.map((issue) => issue.path.join(".")), [
          path
        ])
        assert.deepStrictEqual([value.calls, value.live, events], [[], [], []])
      })
    )
  }
})

describe("an agent that is stopped (9)", () => {
  it.effect("A5: stops three levels at once while the deepest is in a model call, and no call is made after that", () =>
    Effect.gen(function* () {
      const script: ScriptedModel.Rule = ({ userText }) => {
        const at = userText.indexOf(" > ")
        return at < 0 ? { text: "late", delay: "1 hour" } : { toolCalls: [delegate(userText.slice(at + 3))] }
      }
      const { events, value } = yield* inTree(script, (tree) =>
        Effect.gen(function* () {
          const run = yield* tree.start("spawn", "one > two > three")
          yield* TestClock.adjust("1 second")
          const before = (yield* tree.calls).length
          yield* run.cancel()
          const { cause, stopReason } = yield* run.result
          yield* run.dispose
          const live = yield* tree.seam.live
          yield* TestClock.adjust("2 hours")
          return { after: (yield* tree.calls).length, before, cause, live, stopReason }
        })
      )
      assert.deepStrictEqual(value, { after: 3, before: 3, cause: { _tag: "Caller" }, live: [], stopReason: "aborted" })
      assert.deepStrictEqual(
        events.flatMap((event) => (event.type === "subagent/end" ? [event.cause?._tag] : [])),
        ["Parent", "Parent", "Caller"]
      )
    })
  )

  it.effect("C7: never speaks again, whatever its model still replies (7)", () =>
    Effect.gen(function* () {
      const { events, value } = yield* inTree(
        () => ({ text: "late", toolCalls: [{ name: "read", params: {} }], delay: "1 second" }),
        (tree) =>
          Effect.gen(function* () {
            const run = yield* tree.start("spawn", "the work")
            yield* run.cancel()
            const updates = yield* Stream.runCollect(run.updates)
            yield* TestClock.adjust("1 hour")
            return { executed: tree.executed, result: yield* run.result, updates }
          })
      )
      assert.deepStrictEqual(value, {
        executed: [],
        result: { output: [], stopReason: "aborted", cause: { _tag: "Caller" } },
        updates: []
      })
      assert.strictEqual(events.length, 2)
    })
  )

  it.effect("is stopped while it waits to try a model call again", () =>
    Effect.gen(function* () {
      const { value } = yield* inTree(
        () => ({ fail: new AiError.InternalProviderError({ description: "down" }) }),
        (tree) =>
          Effect.gen(function* () {
            const run = yield* tree.start("spawn", "the work")
            yield* run.cancel("enough")
            const { cause } = yield* run.result
            yield* run.dispose
            yield* TestClock.adjust("1 hour")
            return { calls: (yield* tree.calls).length, cause }
          })
      )
      assert.deepStrictEqual(value, { calls: 1, cause: { _tag: "Caller", reason: "enough" } })
    })
  )
})
