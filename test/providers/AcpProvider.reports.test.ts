/** Faults that users of comparable systems have reported, by kind, as far as an external child can show them. */
import { assert, describe, it } from "@effect/vitest"
import { Agent, Approvals, Content, type SubagentRun, Subagents } from "effect-subagent"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { getEventListeners } from "node:events"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { isAlive, marked, run, script, start, stubLayer } from "../fixtures/acp/harness.ts"
import type { Behaviour, Step } from "../fixtures/acp/stubAgent.ts"
import { agentOf, completed, provider } from "../utils/seam.ts"

type Run = SubagentRun.SubagentRun

const folder = () => fs.mkdtempSync(path.join(os.tmpdir(), "acp-reports-"))
const said = ({ output }: { readonly output: ReadonlyArray<Content.ContentBlock> }) => Content.toText(output)
const hang: ReadonlyArray<Step> = [["say", "so far"], ["hang"]]
const toolCall = (fields: object): Step => [
  "update",
  { sessionUpdate: "tool_call", toolCallId: "t", title: "T", ...fields }
]

const delegator = Agent.root({ cwd: os.tmpdir() })

const controller = () => {
  const made = new AbortController()
  return { signal: made.signal, stop: () => made.abort() }
}

/** The processes that have left a file here and live. */
const living = (marks: string) => fs.readdirSync(marks).filter((name) => isAlive(Number.parseInt(name, 10)))

/** Waits until a run has said something: its turn is under way. */
const underWay = (run: Run) =>
  run.updates.pipe(
    Stream.filter((update) => update._tag === "Content"),
    Stream.runHead
  )

/** Notes the events of a seam, each as its type, its run, and how that ended. */
const noting = Effect.gen(function* () {
  const events: Array<string> = []
  const subagents = yield* Subagents.Subagents
  yield* subagents.on((event) =>
    Effect.sync(() => {
      if (event.type === "subagent/start") events.push(`start ${event.runId}`)
      if (event.type === "subagent/end")
        events.push(`end ${event.runId} ${event.stopReason} ${event.cause?._tag ?? ""}`)
    })
  )
  return events
})

/** Waits until so many events have been heard. */
const heard = (events: ReadonlyArray<string>, count: number) =>
  Effect.repeat(
    Effect.delay(
      Effect.sync(() => events.length),
      "10 millis"
    ),
    { until: (length) => length >= count }
  )

/** A child in this process whose turn does this as an agent of its own. */
const inside = (turn: (self: Agent.Agent) => Effect.Effect<unknown, unknown>) =>
  Effect.gen(function* () {
    const subagents = yield* Subagents.Subagents
    yield* subagents.register(
      provider({ name: "inside", turn: (placed) => Effect.as(Effect.orDie(turn(agentOf(placed))), completed) })
    )
  })

describe("A: a cancel that does not reach the child", () => {
  it.live("A1: a parent that is interrupted takes all its children along, the nested ones too", () =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const subagents = yield* Subagents.Subagents
      yield* inside((parent) =>
        Effect.gen(function* () {
          runs.push(yield* subagents.start("stub", { prompt: script(...hang), parent }))
          yield* underWay(runs.at(-1)!)
          yield* Effect.never
        }).pipe(Effect.scoped)
      )
      const owner = yield* Effect.gen(function* () {
        runs.push(yield* start(hang), yield* start(hang))
        yield* start("nest", {}, "inside")
        yield* Effect.never
      }).pipe(Effect.scoped, Effect.forkChild)
      yield* Effect.repeat(
        Effect.delay(
          Effect.sync(() => runs.length),
          "10 millis"
        ),
        { until: (count) => count === 3 }
      )
      for (const each of runs) yield* underWay(each)
      yield* Fiber.interrupt(owner)
      const causes: Array<string> = []
      for (const each of runs) {
        assert.deepStrictEqual(marked(each.runId), [])
        const { cause, stopReason } = yield* each.result
        assert.strictEqual(stopReason, "aborted")
        causes.push(String(cause?._tag))
      }
      assert.deepStrictEqual(causes, ["Interrupt", "Interrupt", "Parent"])
      assert.deepStrictEqual(yield* subagents.live, [])
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )

  it.live("A3: a child can be cancelled by whoever knows its id, again and again", () =>
    Effect.gen(function* () {
      const subagents = yield* Subagents.Subagents
      const run = yield* start(hang)
      yield* underWay(run)
      const known = (yield* subagents.live).find(({ id }) => id === run.id)
      yield* known!.cancel("not needed")
      yield* known!.cancel("again")
      const { cause } = yield* run.result
      assert.deepStrictEqual(cause, { _tag: "Caller", reason: "not needed" })
      yield* known!.cancel()
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )

  it.live("A5: the signal reaches a child on every path: a start, a structured one, one from a token", () =>
    Effect.gen(function* () {
      const subagents = yield* Subagents.Subagents
      const outputSchema = Schema.Struct({ name: Schema.String })
      const parent = yield* delegator
      const first = yield* start([["say", "one"]], { parent })
      yield* first.result
      const token = yield* first.token!
      yield* first.dispose
      const { signal, stop } = controller()
      const runs: ReadonlyArray<Run> = [
        yield* start(hang, { signal }),
        yield* start(hang, { signal, outputSchema }),
        yield* subagents.resume(token, script(...hang), { parent, signal })
      ]
      for (const each of runs) yield* underWay(each)
      stop()
      for (const each of runs) assert.deepStrictEqual((yield* each.result).cause, { _tag: "Signal" })
    }).pipe(Effect.scoped, Effect.provide(stubLayer({ store: folder() })))
  )

  it.live("A9: starts that are under way when their parent is stopped come to nothing", () => {
    const marks = folder()
    return Effect.gen(function* () {
      const events = yield* noting
      const { signal, stop } = controller()
      const starting = yield* Effect.forkChild(
        Effect.forEach([1, 2, 3], () => Effect.flip(Effect.scoped(start(hang, { signal }))), {
          concurrency: "unbounded"
        })
      )
      yield* Effect.repeat(
        Effect.delay(
          Effect.sync(() => fs.readdirSync(marks).length),
          "10 millis"
        ),
        { until: (count) => count === 3 }
      )
      stop()
      const errors = yield* Fiber.join(starting)
      assert.deepStrictEqual(
        errors.map(({ code }) => code),
        ["ABORTED_BEFORE_START", "ABORTED_BEFORE_START", "ABORTED_BEFORE_START"]
      )
      assert.deepStrictEqual(events, [])
      assert.deepStrictEqual(living(marks), [])
    }).pipe(Effect.scoped, Effect.provide(stubLayer({ folder: marks, silent: ["session/new"] })))
  })
})

describe("B: a cancel that hits too much, or says nothing", () => {
  for (const [how, end, cause] of [
    ["is cancelled", (run: Run) => run.cancel(), "Caller"],
    ["is disposed of", (run: Run) => run.dispose, "Release"]
  ] as const) {
    it.live(`B2: a child that ${how} ends once, and it is said`, () =>
      Effect.gen(function* () {
        const events = yield* noting
        const run = yield* start(hang)
        yield* underWay(run)
        yield* end(run)
        yield* run.dispose
        yield* heard(events, 2)
        assert.deepStrictEqual(events, [`start ${run.runId}`, `end ${run.runId} aborted ${cause}`])
      }).pipe(Effect.scoped, Effect.provide(stubLayer({ cancelAnswer: "end_turn" })))
    )
  }

  it.live("B2: so does one whose scope closes, and one whose process is killed", () =>
    Effect.gen(function* () {
      const events = yield* noting
      const scoped = yield* Effect.scoped(Effect.tap(start(hang), underWay))
      const killed = yield* start([["say", "a"], ["kill"]])
      assert.strictEqual((yield* killed.result).failure?.kind, "transport")
      yield* killed.dispose
      yield* heard(events, 4)
      assert.deepStrictEqual(events, [
        `start ${scoped.runId}`,
        `end ${scoped.runId} aborted Release`,
        `start ${killed.runId}`,
        `end ${killed.runId} error `
      ])
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )
})

describe("C: races and untrue ends", () => {
  it.live("C1: a child that ends as it is cancelled is the one or the other, and stays it", () =>
    Effect.gen(function* () {
      const events = yield* noting
      const ends: Array<string> = []
      for (let i = 0; i < 6; i++) {
        const run = yield* start([["say", "done"]])
        yield* underWay(run)
        // the answer is on its way: sooner or later than the cancel
        yield* Effect.sleep(i % 3)
        yield* run.cancel()
        const { stopReason } = yield* run.result
        yield* run.dispose
        assert.strictEqual((yield* run.result).stopReason, stopReason)
        ends.push(`end ${run.runId} ${stopReason} ${stopReason === "aborted" ? "Caller" : ""}`)
      }
      yield* heard(events, 12)
      assert.deepStrictEqual(
        events.filter((event) => event.startsWith("end")),
        ends
      )
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )

  for (const [when, steps] of [
    ["before it says anything", [toolCall({ status: "completed" }), ["hang"]]],
    ["while its model answers", [["say", "so"], ["hang"]]],
    ["in a tool", [["say", "let me see"], toolCall({ status: "in_progress" }), ["hang"]]]
  ] as ReadonlyArray<readonly [string, ReadonlyArray<Step>]>) {
    it.live(`C3: a child that is cancelled ${when} is aborted, with the same shape`, () =>
      Effect.gen(function* () {
        const run = yield* start(steps)
        yield* Stream.runHead(Stream.drop(run.updates, steps.length - 2))
        yield* run.cancel("enough")
        const { cause, stopReason, ...rest } = yield* run.result
        assert.deepStrictEqual([stopReason, cause], ["aborted", { _tag: "Caller", reason: "enough" }])
        assert.notProperty(rest, "failure")
      }).pipe(Effect.scoped, Effect.provide(stubLayer()))
    )
  }

  it.live("C5: whose will it was is told by the result and by the event", () =>
    Effect.gen(function* () {
      const events = yield* noting
      const { signal, stop } = controller()
      const cancelled = yield* start(hang)
      const signalled = yield* start(hang, { signal })
      const owner = yield* Effect.flatMap(start(hang), ({ result }) => result).pipe(Effect.scoped, Effect.forkChild)
      yield* heard(events, 3)
      yield* cancelled.cancel()
      stop()
      yield* Fiber.interrupt(owner)
      assert.strictEqual((yield* cancelled.result).cause?._tag, "Caller")
      assert.strictEqual((yield* signalled.result).cause?._tag, "Signal")
      yield* heard(events, 6)
      assert.deepStrictEqual(
        events.slice(3).map((event) => event.split(" ").slice(2).join(" ")),
        ["aborted Caller", "aborted Signal", "aborted Interrupt"]
      )
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )

  it.live("C5: a limit is nobody's will", () =>
    Effect.gen(function* () {
      const events = yield* noting
      const run = yield* start(hang)
      const { cause, failure } = yield* run.result
      assert.deepStrictEqual([cause, failure?.kind], [undefined, "timeout"])
      yield* heard(events, 2)
      assert.strictEqual(events[1], `end ${run.runId} error `)
    }).pipe(Effect.scoped, Effect.provide(stubLayer({}, { timeouts: { idle: "300 millis" } })))
  )
})

describe("D: a parent that waits for ever", () => {
  it.live("D8: a child that has ended before anybody waits for it is heard of all the same", () =>
    Effect.gen(function* () {
      const subagents = yield* Subagents.Subagents
      const run = yield* start([["say", "quick"]])
      yield* Effect.repeat(Effect.delay(subagents.live, "10 millis"), {
        until: (live) => live.every(({ state }) => state === "settled")
      })
      yield* Stream.runDrain(run.updates)
      assert.strictEqual(said(yield* run.result), "quick")
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )
})

describe("E: questions that nobody answers", () => {
  const noted = (asked: Array<Approvals.ApprovalRequest>): Approvals.Approver => ({
    decide: (request) => Effect.sync(() => (asked.push(request), "approved"))
  })

  it.live("E1: a child two levels down asks whoever is there for the root, as what it is", () => {
    const asked: Array<Approvals.ApprovalRequest> = []
    return Effect.gen(function* () {
      const subagents = yield* Subagents.Subagents
      let answer = ""
      yield* inside((parent) =>
        Effect.map(subagents.run("stub", { prompt: script(["ask", {}]), parent }), (result) => {
          answer = said(result)
        })
      )
      const outer = yield* start("nest", {}, "inside")
      yield* outer.result
      assert.strictEqual(answer, "selected yes")
      const [{ lineage } = { lineage: undefined }] = asked
      assert.deepStrictEqual(
        [asked.length, lineage?.depth, lineage?.parentRunId, lineage?.parentId],
        [1, 2, outer.runId, outer.id]
      )
    }).pipe(Effect.scoped, Effect.provide(stubLayer()), Effect.provideService(Approvals.Approvals, noted(asked)))
  })

  it.live("E5: who is asked stays there for the others when a first child has ended", () => {
    const asked: Array<Approvals.ApprovalRequest> = []
    return Effect.gen(function* () {
      const late = yield* start([
        ["say", "one moment"],
        ["sleep", 700],
        ["ask", {}]
      ])
      yield* underWay(late)
      assert.strictEqual(said(yield* run([["say", "done"]])), "done")
      assert.strictEqual(said(yield* late.result), "selected yes")
    }).pipe(Effect.scoped, Effect.provide(stubLayer()), Effect.provideService(Approvals.Approvals, noted(asked)))
  })

  it.live("E9: a child that wants to ask its user something is told at once that it can't", () =>
    Effect.gen(function* () {
      const result = yield* run([["request", "elicitation/create", { mode: "form", message: "Which one?" }]])
      assert.include(said(result), "Method not found: elicitation/create")
    }).pipe(Effect.provide(stubLayer()))
  )
})

describe("F: false success", () => {
  it.live("F6: an answer that is cut short counts, whatever comes empty behind it", () =>
    Effect.gen(function* () {
      const result = yield* run([
        ["say", "half an ans", "one"],
        ["say", "", "two"],
        ["update", { sessionUpdate: "usage_update", used: 10, size: 10 }],
        ["answer", { stopReason: "max_tokens" }]
      ])
      assert.deepStrictEqual([result.stopReason, said(result)], ["max-tokens", "half an ans"])
    }).pipe(Effect.provide(stubLayer()))
  )

  it.live("F10: what a child was not allowed to do is a failed call among its updates, whatever it says", () =>
    Effect.gen(function* () {
      const run = yield* start([
        ["ask", {}],
        ["say", " I have written the file."]
      ])
      yield* run.result
      const updates = Array.from(yield* Stream.runCollect(run.updates))
      const calls = updates.flatMap((update) => (update._tag === "ToolCall" ? [update.status] : []))
      const outcomes = updates.flatMap((update) => (update._tag === "Permission" ? [update.outcome] : []))
      assert.deepStrictEqual([calls.at(-1), outcomes.at(-1)], ["failed", "no-approver"])
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )
})

describe("G: lost, late and misrouted messages", () => {
  it.live("G3: a child gets its task however late it is ready, and there is none without one", () => {
    const marks = folder()
    return Effect.gen(function* () {
      const result = yield* run([["tell", "prompt"]])
      assert.include(said(result), "tell")
      const before = fs.readdirSync(marks).length
      const error = yield* Effect.flip(run(" \n"))
      assert.deepStrictEqual([error.code, fs.readdirSync(marks).length - before], ["INVALID_REQUEST", 0])
    }).pipe(Effect.provide(stubLayer({ folder: marks, before: { "session/new": [["sleep", 500]] } })))
  })

  it.live("G5: a result is there for whoever asks, also after somebody has stopped waiting for it", () =>
    Effect.gen(function* () {
      const run = yield* start([
        ["sleep", 300],
        ["say", "done"]
      ])
      assert.isTrue(Exit.isFailure(yield* Effect.exit(Effect.timeout(run.result, "50 millis"))))
      assert.deepStrictEqual([said(yield* run.result), said(yield* run.result)], ["done", "done"])
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )

  it.live("G9: what a child has said before it ended is heard before its end, in order", () =>
    Effect.gen(function* () {
      const words = Array.from({ length: 200 }, (_, i) => `${i};`)
      const run = yield* start(words.map((word): Step => ["say", word]))
      const updates = Array.from(yield* Stream.runCollect(run.updates))
      assert.strictEqual(
        updates.map((update) => (update._tag === "Content" ? Content.toText([update.block]) : "")).join(""),
        words.join("")
      )
      assert.deepStrictEqual(
        updates.map(({ seq }) => seq),
        updates.map(({ seq }) => seq).toSorted((a, b) => a - b)
      )
      assert.strictEqual(said(yield* run.result), words.join(""))
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )
})

describe("I: what is left", () => {
  it.live("I3: a child that has crashed holds nothing: it is gone, can be closed, and makes room", () =>
    Effect.gen(function* () {
      const subagents = yield* Subagents.Subagents
      const crashed = yield* start([["kill"]])
      yield* crashed.result
      yield* crashed.dispose
      yield* crashed.dispose
      assert.deepStrictEqual(yield* subagents.live, [])
      assert.deepStrictEqual(marked(crashed.runId), [])
      assert.strictEqual(said(yield* run([["say", "next"]])), "next")
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )

  it.live("I7: many runs under one signal leave no listener on it", () =>
    Effect.gen(function* () {
      const { signal } = controller()
      for (let i = 0; i < 4; i++) yield* run([["say", "a"]], { signal })
      yield* Effect.exit(Effect.scoped(start([["say", "a"]], { signal, prompt: "" })))
      assert.strictEqual(getEventListeners(signal, "abort").length, 0)
    }).pipe(Effect.provide(stubLayer()))
  )

  for (const [how, steps, cancels] of [
    ["ends", [["say", "a"]], false],
    ["fails", [["fail", 1, "no"]], false],
    ["is cancelled", hang, true]
  ] as ReadonlyArray<readonly [string, ReadonlyArray<Step>, boolean]>) {
    it.live(`I9: nothing keeps the process busy when a child ${how}`, () =>
      Effect.gen(function* () {
        const busy = () => process.getActiveResourcesInfo().filter((name) => /Process|Pipe|Stdio/.test(name)).length
        const before = busy()
        yield* Effect.gen(function* () {
          const run = yield* start(steps)
          assert.isAbove(busy(), before)
          if (cancels) yield* run.cancel()
          yield* run.result
        }).pipe(Effect.scoped, Effect.provide(stubLayer()))
        yield* Effect.repeat(Effect.delay(Effect.sync(busy), "20 millis"), { until: (count) => count <= before })
      })
    )
  }
})

describe("N: structured output", () => {
  const outputSchema = Schema.Struct({ name: Schema.String })

  it.live("N2: a schema is for the last message only: what comes before has its own shape", () =>
    Effect.gen(function* () {
      const steps = [1, 2, 3].flatMap((i): ReadonlyArray<Step> => [
        ["say", `{"step":${i}}`],
        toolCall({ toolCallId: `t${i}`, status: "completed", rawInput: { anything: i } })
      ])
      const { structured } = yield* run("who?", { outputSchema }).pipe(
        Effect.provide(stubLayer({ turns: [[...steps, ["say", '{"name":"Ada"}']]] }))
      )
      assert.deepStrictEqual(structured, { name: "Ada" })
    })
  )

  it.live("N6: a value that is refused is told so, and both are among the updates", () =>
    Effect.gen(function* () {
      const run = yield* start("who?", { outputSchema })
      assert.deepStrictEqual((yield* run.result).structured, { name: "Ada" })
      const texts = Array.from(yield* Stream.runCollect(run.updates)).flatMap((update) =>
        update._tag === "Content" ? [Content.toText([update.block])] : []
      )
      assert.strictEqual(texts[0], '{"name":7}')
      assert.match(texts[1] ?? "", /is not: .*name/)
      assert.strictEqual(texts[2], '{"name":"Ada"}')
    }).pipe(
      Effect.scoped,
      Effect.provide(
        stubLayer({
          turns: [
            [["say", '{"name":7}']],
            [["tell", "prompt"], toolCall({ status: "completed" }), ["say", '{"name":"Ada"}']]
          ]
        })
      )
    )
  )
})

describe("O: going on, and who is who", () => {
  it.live("O1: a child goes on from a token that was taken while it was at work, after its host is gone", () => {
    const behaviour: Behaviour = { store: folder() }
    return Effect.gen(function* () {
      const parent = yield* delegator
      const token = yield* Effect.gen(function* () {
        const run = yield* start(hang, { parent })
        yield* underWay(run)
        return yield* run.token!
      }).pipe(Effect.scoped, Effect.provide(stubLayer(behaviour)))
      const result = yield* Effect.gen(function* () {
        const subagents = yield* Subagents.Subagents
        return yield* (yield* subagents.resume(token, script(["tell", "memory"]), { parent })).result
      }).pipe(Effect.scoped, Effect.provide(stubLayer(behaviour)))
      assert.include(said(result), '["agent","so far"]')
    })
  })

  it.live("O7: one that goes on does not make its siblings do anything again", () => {
    const marks = folder()
    return Effect.gen(function* () {
      const sibling = yield* start([
        ["touch", path.join(marks, "once")],
        ["say", "done"]
      ])
      const stopped = yield* start(hang)
      yield* underWay(stopped)
      yield* sibling.result
      fs.rmSync(path.join(marks, "once"))
      yield* stopped.cancel()
      const resumed = yield* stopped.resume!(script(["say", "on it"]))
      assert.strictEqual(said(yield* resumed.result), "on it")
      assert.deepStrictEqual(fs.readdirSync(marks), [])
      assert.strictEqual(said(yield* sibling.result), "done")
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  })
})
