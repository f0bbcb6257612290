/**
 * The contract as cases, one entry each: those that are about the life of a run.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { format } from "effect/Formatter"
import * as Predicate from "effect/Predicate"
import * as Random from "effect/Random"
import * as References from "effect/References"
import * as Stream from "effect/Stream"
import type { ApprovalDecision, ApprovalRequest } from "../../Approvals.ts"
import { Approvals } from "../../Approvals.ts"
import { isBlank, text, toText } from "../../Content.ts"
import { diagnosticBytes, bound } from "../../internal/describe.ts"
import type { AbortCause } from "../../SubagentResult.ts"
import type { SubagentRun } from "../../SubagentRun.ts"
import type { SubagentUpdate } from "../../SubagentUpdate.ts"
import type { Harness, Signal } from "./harness.ts"
import { expect, expectEqual, makeSignal } from "./harness.ts"
import type { Case } from "./startCases.ts"
import { expectNothingLeft } from "./startCases.ts"

/** The child has stopped: its turn has ended, and nothing is done for it any more. */
const expectStopped = Effect.fnUntraced(function* (harness: Harness, run: SubagentRun) {
  const seen = harness.seen(run)
  yield* Deferred.await(seen.turn)
  yield* expectEqual(seen.turns, 1, "the number of turns")
  if (harness.given.world !== undefined) {
    yield* expectEqual((yield* harness.given.world).turns, 0, "the number of turns still worked on")
  }
})

/** A run that somebody's will ends is aborted, with whose it was, and its child stops. */
const stopping = (
  cause: AbortCause,
  stop: (run: SubagentRun, signal: Signal, owner: Fiber.Fiber<unknown, unknown>) => Effect.Effect<void>
): Case["run"] =>
  Effect.fnUntraced(function* (harness) {
    const signal = makeSignal()
    const accepted = yield* Deferred.make<SubagentRun>()
    const owner = yield* harness.start("hang", { signal }).pipe(
      Effect.flatMap((run) => Deferred.succeed(accepted, run)),
      Effect.andThen(Effect.never),
      Effect.scoped,
      Effect.forkChild
    )
    const run = yield* Effect.raceFirst(Deferred.await(accepted), Fiber.join(owner))
    yield* stop(run, signal, owner)
    const result = yield* run.result
    yield* expectEqual(result.stopReason, "aborted", "the stop reason")
    yield* expectEqual(result.cause, cause, "the cause")
    yield* expectEqual(signal.listeners(), 0, "the number of listeners left on the signal")
    yield* expectStopped(harness, run)
    yield* run.cancel("once more")
    yield* expect((yield* run.result) === result, "the same result for ever")
  })

/** The starts and ends that were announced until now. */
const announcements = ({ events }: Harness) =>
  Effect.map(events, (all) => all.filter(({ type }) => type === "subagent/start" || type === "subagent/end"))

/** The first update that says something. */
const firstWords = (run: SubagentRun) =>
  run.updates.pipe(
    Stream.filter((update) => update._tag === "Content" && !isBlank([update.block])),
    Stream.runHead
  )

/** What the child said after its last tool call. */
const wordsAfterTools = (updates: ReadonlyArray<SubagentUpdate>): string =>
  updates
    .slice(updates.findLastIndex(({ _tag }) => _tag === "ToolCall") + 1)
    .map((update) => (update._tag === "Content" ? toText([update.block]) : ""))
    .join("")

/** How the tool calls ended, by id. */
const toolCalls = (updates: ReadonlyArray<SubagentUpdate>): ReadonlyMap<string, string> =>
  new Map(updates.flatMap((update) => (update._tag === "ToolCall" ? [[update.id, update.status] as const] : [])))

const updatesOf = (run: SubagentRun): Effect.Effect<ReadonlyArray<SubagentUpdate>> => Stream.runCollect(run.updates)

/** Runs the prompt that needs an approval, with an approver or without, and gives how the calls that asked ended. */
const asking = Effect.fnUntraced(function* (harness: Harness, decision: ApprovalDecision | undefined) {
  const asked: Array<ApprovalRequest> = []
  const decide = (request: ApprovalRequest) =>
    Effect.sync(() => {
      asked.push(request)
      return decision!
    })
  const run = yield* Effect.provideService(
    harness.start("ask"),
    Approvals,
    decision === undefined ? undefined : { decide }
  )
  yield* run.result
  const updates = yield* updatesOf(run)
  const calls = toolCalls(updates)
  const outcomes = updates.flatMap((update) =>
    update._tag === "Permission" && update.outcome !== undefined
      ? [[update.outcome, calls.get(update.toolCallId)] as const]
      : []
  )
  yield* expect(outcomes.length > 0, "a tool call that needs an approval")
  yield* expectEqual(
    asked.map(({ lineage }) => lineage?.runId),
    decision === undefined ? [] : outcomes.map(() => run.runId),
    "the runs on whose behalf somebody was asked"
  )
  return outcomes
})

/** Items 5 to 10, 14, 17 to 19. */
export const runCases: ReadonlyArray<Case> = [
  {
    item: 5,
    title: "is announced once at its start and once at its end, as what it is",
    needs: ["complete"],
    run: Effect.fnUntraced(function* (harness) {
      const run = yield* harness.start("complete", { label: "a label" })
      const { diagnostic: _diagnostic, output: _output, structured: _structured, ...end } = yield* run.result
      yield* run.dispose
      const { parentId } = harness.seen(run).placed.lineage
      const about = { provider: run.provider, id: run.id, runId: run.runId, parentId, label: "a label" }
      yield* expectEqual(
        (yield* announcements(harness)).map((event) => ({ ...event })),
        [
          { type: "subagent/start", ...about },
          { type: "subagent/end", ...about, ...end }
        ],
        "what was announced"
      )
    })
  },
  {
    item: 6,
    title: "is not affected by a listener that dies, nor are other listeners",
    needs: ["complete"],
    run: Effect.fnUntraced(function* (harness) {
      yield* (
        harness.subagents
          .on(() => Effect.die("a listener of the conformance suite"))
          // its end is meant, so nobody has to be warned of it
          .pipe(Effect.provideService(References.MinimumLogLevel, "None"))
      )
      const result = yield* Effect.scoped(Effect.flatMap(harness.start("complete"), (run) => run.result))
      yield* expectEqual(result.stopReason, "completed", "the stop reason")
      const heard = (yield* announcements(harness)).map(({ type }) => type)
      yield* expectEqual(heard, ["subagent/start", "subagent/end"], "what another listener heard")
    })
  },
  {
    item: 7,
    title: "settles once, and its updates end with it, the same ones for whoever asks and whenever",
    needs: ["complete"],
    run: Effect.fnUntraced(function* (harness) {
      const run = yield* harness.start("complete")
      const early = yield* Effect.forkChild(updatesOf(run), { startImmediately: true })
      const result = yield* run.result
      const heard = yield* Fiber.join(early)
      yield* expectEqual(yield* updatesOf(run), heard, "what a late subscriber gets")
      yield* expectEqual(
        heard.map(({ runId, seq }) => [runId, seq]),
        heard.map((_, index) => [run.runId, index]),
        "the stamps of the updates"
      )
      yield* run.dispose
      yield* expect((yield* run.result) === result, "the same result for ever")
    })
  },
  {
    item: 7,
    title: "says nothing more once it is cancelled",
    needs: ["stream"],
    run: Effect.fnUntraced(function* (harness) {
      const run = yield* harness.start("stream")
      yield* firstWords(run)
      yield* run.cancel()
      const { output } = yield* run.result
      const heard = yield* updatesOf(run)
      harness.seen(run).placed.emit({ _tag: "Content", block: text("too late") })
      yield* run.dispose
      yield* expectEqual((yield* run.result).output, output, "the output")
      yield* expectEqual(yield* updatesOf(run), heard, "the updates")
    })
  },
  {
    item: 8,
    title: "reports its child's own failure as a result, with what went wrong",
    needs: ["fail"],
    run: Effect.fnUntraced(function* (harness) {
      const run = yield* harness.start("fail")
      const exit = yield* Effect.exit(run.result)
      if (Exit.isFailure(exit)) return yield* expect(false, `a result, and it fails with ${format(exit.cause)}`)
      const { diagnostic, failure, stopReason } = exit.value
      yield* expect(
        stopReason !== "completed" && stopReason !== "aborted",
        `a stop reason of its own, not ${stopReason}`
      )
      yield* expect(
        Predicate.isString(failure?.kind) && Predicate.isBoolean(failure.retryable),
        `a failure with a kind, and whether it is worth a retry, and it is ${format(failure)}`
      )
      yield* expect(
        diagnostic === undefined || bound(diagnostic) === diagnostic,
        `${diagnosticBytes} bytes of diagnostic`
      )
    })
  },
  {
    item: 9,
    title: "stops when it is cancelled",
    needs: ["hang"],
    run: stopping({ _tag: "Caller", reason: "enough" }, (run) => run.cancel("enough"))
  },
  {
    item: 9,
    title: "stops when its signal is aborted",
    needs: ["hang"],
    run: stopping({ _tag: "Signal" }, (_run, signal) => Effect.sync(signal.abort))
  },
  {
    item: 9,
    title: "stops when it is released",
    needs: ["hang"],
    run: stopping({ _tag: "Release" }, (run) => run.dispose)
  },
  {
    item: 9,
    title: "stops when the fiber that owns its scope is interrupted",
    needs: ["hang"],
    run: stopping({ _tag: "Interrupt" }, (_run, _signal, owner) => Fiber.interrupt(owner))
  },
  {
    item: 9,
    title: "goes on when somebody who merely waits for it is interrupted",
    needs: ["hang"],
    run: Effect.fnUntraced(function* (harness) {
      const run = yield* harness.start("hang")
      yield* Fiber.interrupt(yield* Effect.forkChild(run.result, { startImmediately: true }))
      const states = (yield* harness.subagents.live).map(({ state }) => state)
      yield* expectEqual(states, ["running"], "the state of the run")
      yield* expect(!Deferred.isDoneUnsafe(harness.seen(run).turn), "a turn that goes on")
    })
  },
  {
    item: 9,
    title: "keeps what its child had said when it is stopped",
    needs: ["stream"],
    run: Effect.fnUntraced(function* (harness) {
      const run = yield* harness.start("stream")
      yield* firstWords(run)
      yield* run.cancel()
      const { output, stopReason } = yield* run.result
      yield* expectEqual(stopReason, "aborted", "the stop reason")
      yield* expect(!isBlank(output), "the words that came before the end")
      yield* expectStopped(harness, run)
    })
  },
  {
    item: 9,
    title: "stays as it settled when it is cancelled afterwards",
    needs: ["complete"],
    run: Effect.fnUntraced(function* (harness) {
      const run = yield* harness.start("complete")
      const result = yield* run.result
      yield* run.cancel("too late")
      yield* run.dispose
      yield* expect((yield* run.result) === result, "the same result for ever")
      yield* expectEqual(result.stopReason, "completed", "the stop reason")
    })
  },
  ...(["complete", "hang"] as const).map((kind): Case => ({
    item: 10,
    title: `is quiet once it is released, however often, ${kind === "hang" ? "while it works" : "when it has ended"}`,
    needs: [kind],
    run: Effect.fnUntraced(function* (harness) {
      const run = yield* harness.start(kind)
      if (kind === "complete") yield* run.result
      yield* Effect.all([run.dispose, run.dispose], { concurrency: "unbounded" })
      yield* expect(Deferred.isDoneUnsafe(harness.seen(run).turn), "a turn that has ended")
      yield* expectEqual((yield* harness.subagents.live).length, 0, "the number of live runs")
      yield* expectNothingLeft(harness)
      yield* run.dispose
      const problems = (yield* harness.events).filter(({ type }) => type === "subagent/release-problem")
      yield* expectEqual(problems, [], "what went wrong at its release")
    })
  })),
  {
    item: 10,
    title: "is quiet once its owner has died",
    needs: ["hang"],
    run: Effect.fnUntraced(function* (harness) {
      const owner = Effect.flatMap(harness.start("hang"), () => Effect.die("the owner"))
      yield* expectEqual(yield* Effect.exit(Effect.scoped(owner)), Exit.die("the owner"), "the owner's own end")
      yield* expectEqual((yield* harness.subagents.live).length, 0, "the number of live runs")
      yield* expectNothingLeft(harness)
      const problems = (yield* harness.events).filter(({ type }) => type === "subagent/release-problem")
      yield* expectEqual(problems, [], "what went wrong at its release")
    })
  },
  {
    item: 14,
    title: "answers with something its child said",
    needs: ["complete"],
    run: Effect.fnUntraced(function* (harness) {
      const run = yield* harness.start("complete")
      const { failure, output, stopReason } = yield* run.result
      yield* expect(stopReason === "completed", `a completed run, and it ended ${stopReason}: ${format(failure)}`)
      const said = wordsAfterTools(yield* updatesOf(run))
      yield* expect(!isBlank(output) && said.endsWith(toText(output)), `an output out of: ${said}`)
    })
  },
  {
    item: 14,
    title: "answers with what its child said last, not with what it said before it called a tool",
    needs: ["callTool"],
    run: Effect.fnUntraced(function* (harness) {
      const run = yield* harness.start("callTool")
      const { failure, output, stopReason } = yield* run.result
      yield* expect(stopReason === "completed", `a completed run, and it ended ${stopReason}: ${format(failure)}`)
      const updates = yield* updatesOf(run)
      const ends = Array.from(toolCalls(updates).values())
      yield* expect(ends.length > 0, "a tool call among the updates")
      yield* expect(wordsAfterTools(updates).endsWith(toText(output)), `an output out of: ${wordsAfterTools(updates)}`)
    })
  },
  {
    item: 17,
    title: "leaves the parent and the request as they are",
    needs: ["complete"],
    run: Effect.fnUntraced(function* (harness) {
      const { parent } = yield* harness.request("complete")
      const { header } = parent.session
      // the host's own agent, all of which it may change, and nobody else may
      const own = { id: parent.id, session: { header: { ...header } }, options: {}, notes: ["a note of the host"] }
      const request = { prompt: [text(harness.given.prompts.complete!)], parent: own, label: "a label" }
      const before = format(request)
      yield* Effect.flatMap(harness.subagents.start(harness.observed.provider.name, request), (run) => run.result)
      yield* expectEqual(format(request), before, "the request")
    })
  },
  {
    item: 17,
    title: "keeps two runs of one parent apart",
    needs: ["complete", "hang"],
    run: Effect.fnUntraced(function* (harness) {
      const { parent } = yield* harness.request("complete")
      const hanging = yield* harness.start("hang", { parent })
      const first = yield* harness.start("complete", { parent })
      yield* expectEqual((yield* first.result).stopReason, "completed", "the stop reason")
      yield* first.dispose
      yield* expect(!Deferred.isDoneUnsafe(harness.seen(hanging).turn), "the other run to go on")
      yield* hanging.cancel()
      yield* hanging.dispose
      const second = yield* harness.start("complete", { parent })
      yield* expectEqual((yield* second.result).stopReason, "completed", "the stop reason")
      const runs = [hanging, first, second]
      yield* expectEqual(new Set(runs.map((run) => run.id)).size, 3, "the number of children")
      yield* expectEqual(new Set(runs.map((run) => run.header.id)).size, 3, "the number of sessions")
    })
  },
  {
    item: 18,
    title: "has its ids from Random and its times from Clock",
    needs: ["complete"],
    run: Effect.fnUntraced(function* (harness) {
      const clock = yield* Clock.Clock
      const later = (now: number) => now + 1e12
      const shifted: Clock.Clock = {
        currentTimeMillisUnsafe: () => later(clock.currentTimeMillisUnsafe()),
        currentTimeMillis: Effect.map(clock.currentTimeMillis, later),
        currentTimeNanosUnsafe: clock.currentTimeNanosUnsafe.bind(clock),
        currentTimeNanos: clock.currentTimeNanos,
        monotonicTimeNanosUnsafe: clock.monotonicTimeNanosUnsafe.bind(clock),
        monotonicTimeNanos: clock.monotonicTimeNanos,
        sleep: clock.sleep.bind(clock)
      }
      const before = shifted.currentTimeMillisUnsafe()
      const ids = Effect.gen(function* () {
        const run = yield* harness.start("complete")
        yield* run.result
        const since = (yield* harness.subagents.live).map((live) => live.since >= before)
        yield* expectEqual(since, [true], "whether the run began by the clock there is")
        return [run.runId, run.header.id]
      }).pipe(Effect.scoped, Effect.provideService(Clock.Clock, shifted), Random.withSeed("conformance"))
      yield* expectEqual(yield* ids, yield* ids, "the ids of a second run with the same seed")
    })
  },
  {
    item: 19,
    title: "executes no tool that needs an approval when there is nobody to ask, and does not wait",
    needs: ["ask"],
    run: Effect.fnUntraced(function* (harness) {
      const outcomes = yield* asking(harness, undefined)
      yield* expectEqual(
        outcomes,
        outcomes.map(() => ["no-approver", "failed"]),
        "the end of what needed an approval"
      )
    })
  },
  {
    item: 19,
    title: "executes no tool whose approval is denied",
    needs: ["ask"],
    run: Effect.fnUntraced(function* (harness) {
      const outcomes = yield* asking(harness, "denied")
      yield* expectEqual(
        outcomes,
        outcomes.map(() => ["denied", "failed"]),
        "the end of what needed an approval"
      )
    })
  },
  {
    item: 19,
    title: "executes a tool that is approved",
    needs: ["ask"],
    run: Effect.fnUntraced(function* (harness) {
      const outcomes = yield* asking(harness, "approved")
      yield* expectEqual(
        outcomes,
        outcomes.map(() => ["approved", "completed"]),
        "the end of what needed an approval"
      )
    })
  }
]
