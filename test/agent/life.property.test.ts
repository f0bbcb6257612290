/**
 * Random lives of children on the default loop, step by step against a pure model of it (4, 5, 7, 9, 10, 15, 16).
 * `LIFE_SEQUENCES` says how many (300 by default), `LIFE_SEED` with which to begin. A failure says its seed and steps.
 */
import { assert, describe, it } from "@effect/vitest"
import { Approvals, Content, type SubagentRun } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { SpawnProvider } from "effect-subagent/providers"
import { ScriptedModel } from "effect-subagent/testing"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import type * as Loop from "../utils/loopModel.ts"
import { current, isFirst, Model, openCalls, stateOf } from "../utils/loopModel.ts"
import { inSeam, lines, makeSignal, root, type Seam, tagOf } from "../utils/seam.ts"
import { everySeed, makeRandom, quiesce, same } from "../utils/randomLives.ts"

const sequences = Number(process.env["LIFE_SEQUENCES"] ?? 300)
const firstSeed = Number(process.env["LIFE_SEED"] ?? 1)
const stepsEach = 44

const parameters = Schema.Struct({ id: Schema.String })
const toolkit = Toolkit.make(
  Tool.make("work", { parameters, success: Schema.String, failure: Schema.String }),
  Tool.make("guarded", { parameters, success: Schema.String, failure: Schema.String, needsApproval: true })
)

/** A conversation in the words of the model. */
const outline = ({ content }: Prompt.Prompt): ReadonlyArray<string> =>
  content.map((message) =>
    [
      message.role,
      ...(typeof message.content === "string" ? [message.content] : message.content.map((part) => partOf(part)))
    ].join(" ")
  )

const partOf = (part: Exclude<Prompt.Message["content"], string>[number]): string =>
  part.type === "text"
    ? part.text.replace(/^You have to stop here.*/, "wrap up")
    : part.type === "tool-call"
      ? `${part.name} ${part.id}`
      : part.type === "tool-result"
        ? `${part.id} ${resultOf(part)}`
        : part.type

const resultOf = ({ isFailure, result }: Prompt.ToolResultPart): string => {
  if (typeof result === "string") {
    return isFailure && result.startsWith("The tool failed unexpectedly") ? "died" : result
  }
  const { reason, type } = result as { readonly reason: string; readonly type: string }
  return type === "execution-denied" ? /executed\. ([a-z-]+):/.exec(reason)![1]! : "left out"
}

const labelOf = (prompt: Prompt.Prompt): string => outline(prompt)[0]!.split(" ")[1]!

/** What is under way, held by the test, by its id. What is interrupted is no longer under way. */
const makeHeld = <A, E>() => {
  const held = new Map<string, { readonly about: unknown; readonly end: Deferred.Deferred<A, E> }>()
  const over = Exit.die(new Error("the life is over"))
  let isOver = false
  return {
    ids: () => [...held.keys()].toSorted(),
    about: (id: string) => held.get(id)?.about,
    hold: (id: string, about?: unknown): Effect.Effect<A, E> =>
      Effect.suspend(() => {
        if (isOver) return over
        const end = Deferred.makeUnsafe<A, E>()
        assert.isFalse(held.has(id), `${id} is under way twice`)
        held.set(id, { about, end })
        return Effect.ensuring(
          Deferred.await(end),
          Effect.sync(() => held.delete(id))
        )
      }),
    end: (id: string, exit: Exit.Exit<A, E>) => Effect.sync(() => Deferred.doneUnsafe(held.get(id)!.end, exit)),
    /** Nothing is held from here on. */
    letGo: () => {
      isOver = true
      for (const { end } of Array.from(held.values())) Deferred.doneUnsafe(end, over)
    }
  }
}

const failures = {
  retryable: new AiError.RateLimitError({}),
  final: new AiError.AuthenticationError({ kind: "InvalidKey" })
}

const inEveryState = ["message", "resume", "cancel", "abort", "dispose", "close", "interrupt"]
const operations: Readonly<Record<Loop.State, ReadonlyArray<string>>> = {
  calling: ["say", "call", "cut", "retryable", "final", "defect"],
  retrying: ["pass time"],
  asking: ["approved", "denied", "failing approver", "dying approver", "pass time"],
  executing: ["done", "failed", "died", "pass time"],
  settled: [],
  released: []
}
const pairs = Object.entries(operations).flatMap(([state, own]) =>
  [...inEveryState, ...own].map((operation) => `${operation} while ${state}`)
)

/** One life of some children: the loop's on one side, the model's on the other. */
const live = (seed: number, hits: Map<string, number>, trace: Array<string>) => {
  const { below, pick } = makeRandom(seed)
  const isStreaming = seed % 2 === 0
  const maxTurns = [1, 2, 4, 4][below(4)]!
  const model = new Model({ isStreaming, maxTurns })
  const modelCalls = makeHeld<void, never>()
  const questions = makeHeld<Approvals.ApprovalDecision, string>()
  const tools = makeHeld<string, string>()
  const executed: Array<string> = []
  const steps = new Map<string, ScriptedModel.Step>()
  const runs: Array<{ readonly handle: SubagentRun.SubagentRun; readonly scope: Scope.Closeable }> = []
  const signals = new Map<string, ReturnType<typeof makeSignal>>()
  const sent = new Map<Loop.Message, string>()
  const checked = new Set<Loop.Run>()
  let names = 0

  const handleOf = (run: Loop.Run) => runs[run.index]!
  const fork = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkDetach(effect, { startImmediately: true })
  const about = (run: Loop.Run) => `${run.child.label}/${run.child.runs.indexOf(run)}`

  const execute = ({ id }: { readonly id: string }) =>
    Effect.suspend(() => {
      executed.push(id)
      return tools.hold(id)
    })

  const approver: Approvals.Approver = {
    decide: ({ input, lineage }) => questions.hold((input as { readonly id: string }).id, lineage?.runId),
    timeout: "1 second"
  }

  const runtime = Effect.gen(function* () {
    const scripted = yield* ScriptedModel.make(({ prompt }) => steps.get(labelOf(prompt))!)
    const hold = ({ prompt }: { readonly prompt: Prompt.RawInput }) => {
      const made = Prompt.make(prompt)
      return modelCalls.hold(labelOf(made), outline(made))
    }
    const { model } = scripted
    // the loop's own call of the many that their types allow for
    const generate = model.generateText as (options: { readonly prompt: Prompt.RawInput }) => Effect.Effect<unknown>
    const stream = model.streamText as (options: { readonly prompt: Prompt.RawInput }) => Stream.Stream<unknown>
    const held: LanguageModel.LanguageModel = {
      ...model,
      generateText: ((options) =>
        Effect.andThen(hold(options), generate(options))) as typeof generate as typeof model.generateText,
      streamText: ((options) =>
        Stream.unwrap(Effect.as(hold(options), stream(options)))) as typeof stream as typeof model.streamText
    }
    const layer = AgentRuntime.layer({
      toolkit,
      maxTurns,
      streaming: isStreaming,
      retry: Schedule.upTo(Schedule.spaced("1 second"), { times: 1 })
    }).pipe(
      Layer.provide([
        toolkit.toLayer({ work: execute, guarded: execute }),
        Layer.succeed(LanguageModel.LanguageModel, held)
      ])
    )
    return Context.get(yield* Layer.build(layer), AgentRuntime.AgentRuntime)
  })

  const start = (seam: Seam) =>
    Effect.gen(function* () {
      const label = `c${names++}`
      trace.push(`start ${label}`)
      const scope = Scope.makeUnsafe()
      const signal = makeSignal()
      signals.set(label, signal)
      const request = { prompt: `${label} first`, parent: root, label, signal: signal.signal }
      const handle = yield* seam
        .start("spawn", request)
        .pipe(Scope.provide(scope), Effect.provideService(Approvals.Approvals, approver))
      model.start(label)
      runs.push({ handle, scope })
    })

  const callsOf = (run: Loop.Run, least: number): ReadonlyArray<Loop.Call> =>
    Array.from({ length: least + below(2) }, () => ({
      id: `t${names++}`,
      run,
      tool: pick(["work", "guarded", "guarded"]),
      state: "asking",
      result: ""
    }))

  const answer = ({ child }: Loop.Run, calls: ReadonlyArray<Loop.Call>, step: ScriptedModel.Step) => {
    const toolCalls = calls.map(({ id, tool }) => ({ id, name: tool, params: { id } }))
    steps.set(child.label, { ...step, ...(calls.length > 0 && { toolCalls }), usage: { input: 10, output: 1 } })
    return modelCalls.end(child.label, Exit.void)
  }

  const callIn = (run: Loop.Run, state: Loop.Call["state"]) =>
    pick(openCalls(run).filter((call) => call.state === state))

  const release = (run: Loop.Run, how: string) =>
    Effect.gen(function* () {
      const { handle, scope } = handleOf(run)
      model.release(run, how === "interrupt" ? "Interrupt" : "Release")
      const exit = how === "interrupt" ? Exit.interrupt(0) : Exit.void
      const fiber = yield* fork(how === "dispose" ? handle.dispose : Scope.close(scope, exit))
      yield* quiesce
      assert.isDefined(fiber.pollUnsafe(), `the release of ${about(run)}`)
    })

  const operate = (run: Loop.Run, operation: string): Effect.Effect<unknown, unknown> =>
    Effect.suspend((): Effect.Effect<unknown, unknown> => {
      const { handle } = handleOf(run)
      switch (operation) {
        case "message": {
          const message = model.send(run, `message ${names++}`)
          return Effect.map(Effect.exit(handle.sendMessage!(message.text)), (exit) => {
            if (message.state === "refused") assert.strictEqual(tagOf(exit), "RunSettled")
            else if (Exit.isSuccess(exit)) sent.set(message, exit.value.messageId)
            else assert.fail(`${message.text} was refused: ${tagOf(exit)}`)
          })
        }
        case "resume": {
          const scope = Scope.makeUnsafe()
          const prompt = `prompt ${names++}`
          const asked = model.resume(run.child, prompt)
          return Effect.map(Effect.exit(Scope.provide(handle.resume!(prompt), scope)), (exit) => {
            if (typeof asked === "string") assert.strictEqual(tagOf(exit), asked)
            else if (Exit.isSuccess(exit)) runs.push({ handle: exit.value, scope })
            else assert.fail(`${prompt} was refused: ${tagOf(exit)}`)
          })
        }
        case "cancel":
          model.abort(run, "Caller")
          return handle.cancel()
        case "abort":
          model.abort(run, "Signal")
          return Effect.sync(() => signals.get(run.child.label)!.abort())
        case "dispose":
        case "close":
        case "interrupt":
          return release(run, operation)
        case "say": {
          const text = `text ${names++}`
          model.say(run, text)
          return answer(run, [], { text })
        }
        case "call": {
          const text = below(2) === 0 ? "" : `text ${names++}`
          const calls = callsOf(run, 1)
          model.call(run, text, calls)
          return answer(run, calls, text === "" ? {} : { text })
        }
        case "cut": {
          const text = `text ${names++}`
          const calls = callsOf(run, 0)
          model.cut(run, text, calls)
          return answer(run, calls, { text, finishReason: "length" })
        }
        case "retryable":
        case "final":
        case "defect": {
          const text = `text ${names++}`
          const calls = callsOf(run, 0)
          model.fail(run, operation, text, calls)
          return answer(run, calls, {
            text,
            ...(operation === "defect" ? { die: new Error("oh") } : { fail: failures[operation] })
          })
        }
        case "pass time":
          model.tick()
          return TestClock.adjust("1 second")
        case "approved":
        case "denied":
        case "failing approver":
        case "dying approver": {
          const call = callIn(run, "asking")
          if (operation === "approved") model.approve(call)
          else model.deny(call, operation === "denied" ? operation : "approver-failed")
          return questions.end(
            call.id,
            operation === "failing approver"
              ? Exit.fail("away")
              : operation === "dying approver"
                ? Exit.die("gone")
                : Exit.succeed(operation)
          )
        }
        default: {
          const call = callIn(run, "executing")
          model.finish(call, operation)
          return tools.end(
            call.id,
            operation === "done"
              ? Exit.succeed("done")
              : operation === "failed"
                ? Exit.fail("failed")
                : Exit.die(new Error("oh"))
          )
        }
      }
    })

  const step = (seam: Seam): Effect.Effect<unknown, unknown> => {
    const alive = model.runs.filter(({ isReleased }) => !isReleased)
    if (alive.length === 0 || below(8) === 0) return start(seam)
    // each state as often as the others, however many are in it, but for those that are rare
    const within = below(10) === 0 ? model.runs : alive
    const states = [...new Set(within.map(stateOf))]
    const rare = states.filter((each) => each === "asking" || each === "executing")
    const state = pick(rare.length > 0 && below(3) === 0 ? rare : states)
    const run = pick(within.filter((each) => stateOf(each) === state))
    const own = operations[state]
    // a life that is stopped at once shows little, nor does one without tools
    const isSpared = own.length > 1 && below(2) === 0
    const operation = pick(
      isSpared
        ? state === "calling" && below(2) === 0
          ? ["call", "call", "call", "retryable"]
          : own
        : [...inEveryState.filter((each) => each !== "abort" || isFirst(run)), ...own]
    )
    const pair = `${operation} while ${state}`
    hits.set(pair, (hits.get(pair) ?? 0) + 1)
    trace.push(`${operation} ${about(run)} (${state})`)
    return operate(run, operation)
  }

  /** The verdict on a run, and what was reported of it, are as the model says. */
  const checkRun = (run: Loop.Run) =>
    Effect.gen(function* () {
      const { handle } = handleOf(run)
      const exit = (yield* fork(handle.result)).pollUnsafe()
      if (run.end === undefined) return assert.isUndefined(exit, `${about(run)} has settled`)
      assert.isDefined(exit, `${about(run)} has not settled`)
      if (checked.has(run)) return
      checked.add(run)
      const { cause, failure, output, stopReason, usage } = yield* exit
      const why = cause?._tag ?? (failure && `${failure.kind} ${failure.retryable}`)
      const n = run.answered
      same(
        [stopReason, why, Content.toText(output), usage && [usage.input, usage.output, usage.total]],
        [run.end.stopReason, run.end.why, run.said, n === 0 ? undefined : [10 * n, n, 11 * n]],
        `the verdict on ${about(run)}`
      )
      const updates = yield* Stream.runCollect(handle.updates)
      same(
        updates.flatMap((update) => (update._tag === "Receipt" ? [[update.messageId, update.state]] : [])),
        run.messages.flatMap((each) => (each.state === "refused" ? [] : [[sent.get(each), each.state]])),
        `the receipts of ${about(run)}`
      )
      same(
        updates.flatMap((update) => (update._tag === "Permission" && update.outcome ? [update.outcome] : [])),
        run.permissions,
        `the permissions of ${about(run)}`
      )
      same(
        updates.flatMap((update) =>
          update._tag === "ToolCall" && (update.status === "completed" || update.status === "failed")
            ? [`${update.id} ${update.status}`]
            : []
        ),
        run.ends,
        `the tool calls of ${about(run)}`
      )
    })

  /** Everything that can be seen is as the model says. */
  const check = (seam: Seam) =>
    Effect.gen(function* () {
      yield* quiesce
      same(
        (yield* seam.live).map(({ runId, state }) => `${runId} ${state}`),
        model.runs.flatMap((run) =>
          run.isReleased ? [] : [`${handleOf(run).handle.runId} ${run.end === undefined ? "running" : "settled"}`]
        ),
        "the live runs"
      )
      for (const run of model.runs) yield* checkRun(run)
      const calling = model.children.filter((child) => current(child).phase === "calling")
      same(modelCalls.ids(), calling.map(({ label }) => label).toSorted(), "the model calls under way")
      for (const { history, label } of calling) same(modelCalls.about(label), history, `what ${label} is told`)
      const open = model.runs.flatMap(openCalls)
      const idsOf = (state: Loop.Call["state"]) =>
        open.flatMap((call) => (call.state === state ? [call.id] : [])).toSorted()
      same(questions.ids(), idsOf("asking"), "the questions under way")
      same(tools.ids(), idsOf("executing"), "the tools under way")
      for (const { id, run, state } of open) {
        if (state === "asking") assert.strictEqual(questions.about(id), handleOf(run).handle.runId, `who asks ${id}`)
      }
      same(executed, model.executed, "the tools executed")
      for (const { label, runs } of model.children) {
        const listeners = runs[0]!.end === undefined ? 1 : 0
        assert.strictEqual(signals.get(label)!.listeners(), listeners, `the listeners for ${label}`)
      }
    })

  return Effect.gen(function* () {
    const provider = SpawnProvider.fromRuntime(yield* runtime)
    const { events } = yield* inSeam([provider], (seam, scope) =>
      Effect.gen(function* () {
        for (let i = 0; i < stepsEach; i++) {
          yield* step(seam)
          yield* check(seam)
        }
        trace.push("the registry is released")
        for (const run of model.runs) model.release(run, "Release")
        const closing = yield* fork(Scope.close(scope, Exit.void))
        yield* check(seam)
        assert.isDefined(closing.pollUnsafe(), "the end of the registry")
        yield* Fiber.join(closing)
        // what has failed must not wait for what hears of no interruption
      }).pipe(
        Effect.onError(() =>
          Effect.sync(() => {
            for (const { letGo } of [modelCalls, questions, tools]) letGo()
          })
        )
      )
    )
    same(lines(events), model.events, "the events")
    const wrapped = model.runs.filter(({ isWrappingUp }) => isWrappingUp).length
    hits.set("wrap up", (hits.get("wrap up") ?? 0) + wrapped)
  }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"))
}

describe("the life of children on the default loop", () => {
  it.effect(
    "is what the contract says, whatever is done to them and when (4, 5, 7, 9, 10, 15, 16)",
    () =>
      Effect.gen(function* () {
        const hits = new Map<string, number>()
        yield* everySeed({ name: "LIFE", first: firstSeed, sequences }, (seed, trace) => live(seed, hits, trace))
        if (sequences < 300) return
        for (const pair of [...pairs, "wrap up"]) assert.isAtLeast(hits.get(pair) ?? 0, 20, pair)
      }),
    120_000
  )
})
