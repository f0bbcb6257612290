/**
 * The contract as cases, one entry each: those that are about a child that takes messages, or that can be resumed.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { format } from "effect/Formatter"
import * as Stream from "effect/Stream"
import { isBlank } from "../../Content.ts"
import type { SubagentRun } from "../../SubagentRun.ts"
import type { Harness, PromptKind, Violation } from "./harness.ts"
import { expect, expectEqual } from "./harness.ts"
import type { Case } from "./startCases.ts"
import { expectNothingLeft } from "./startCases.ts"

/** A run whose child waits for a message, and what sends it one. */
const steered = Effect.fnUntraced(function* (harness: Harness) {
  const run = yield* harness.start("steer")
  const { sendMessage } = run
  yield* expect(sendMessage !== undefined, "a child that takes messages, as prompts.steer says")
  return { run, send: sendMessage! }
})

/** What became of the messages, in order. */
const receiptsOf = (run: SubagentRun) =>
  Effect.map(Stream.runCollect(run.updates), (updates) =>
    updates.flatMap((update) => (update._tag === "Receipt" ? [[update.messageId, update.state] as const] : []))
  )

/** Every message that was taken in has one receipt, and no other message has any. */
const expectAccounted = (
  receipts: ReadonlyArray<readonly [string, string]>,
  taken: ReadonlyArray<string>
): Effect.Effect<void, Violation> =>
  expectEqual(
    receipts.map(([messageId]) => messageId).toSorted(),
    taken.toSorted(),
    "the messages of which it is known what became of them"
  )

/** Resumes a run with a prompt of this kind. */
const resumed = Effect.fnUntraced(function* (harness: Harness, run: SubagentRun, kind: PromptKind) {
  yield* expect(run.resume !== undefined, "a child that can be resumed, as prompts.resume says")
  return yield* run.resume!(harness.given.prompts[kind]!)
})

/** Resumes a run whose turn has ended, and holds the new run against what is promised of it. */
const goingOn = (after: PromptKind, how: string, stop?: (run: SubagentRun) => Effect.Effect<void>): Case => ({
  item: 16,
  title: `goes on with the same child after it ${how}`,
  needs: [after, "resume"],
  run: Effect.fnUntraced(function* (harness) {
    const run = yield* harness.start(after)
    if (stop !== undefined) yield* stop(run)
    // how it ended is another case's question
    yield* Effect.exit(run.result)
    const next = yield* resumed(harness, run, "resume")
    yield* expectEqual([next.id, { ...next.header }], [run.id, { ...run.header }], "the child and its session")
    yield* expect(next.runId !== run.runId, "a run id of its own")
    const { failure, output, stopReason } = yield* next.result
    yield* expect(stopReason === "completed", `a completed run, and it ended ${stopReason}: ${format(failure)}`)
    yield* expect(!isBlank(output), "an answer")
  })
})

/** Items 15 and 16, and 10 as far as it is about resumed runs. */
export const lifeCases: ReadonlyArray<Case> = [
  {
    item: 15,
    title: "reads a message that it has taken in, says so, and answers",
    needs: ["steer"],
    run: Effect.fnUntraced(function* (harness) {
      const { run, send } = yield* steered(harness)
      const { messageId } = yield* send("go on")
      const { failure, stopReason } = yield* run.result
      yield* expect(stopReason === "completed", `a completed run, and it ended ${stopReason}: ${format(failure)}`)
      yield* expectEqual(yield* receiptsOf(run), [[messageId, "consumed"]], "what became of the message")
    })
  },
  {
    item: 15,
    title: "reads messages in the order in which they were sent, or refuses them, or lets them expire",
    needs: ["steer"],
    run: Effect.fnUntraced(function* (harness) {
      const { run, send } = yield* steered(harness)
      const texts = Array.from({ length: 20 }, (_, index) => `message ${index}`)
      const exits = yield* Effect.forEach(texts, (text) => Effect.exit(send(text)), { concurrency: "unbounded" })
      yield* run.result
      const taken = exits.flatMap((exit) => (Exit.isSuccess(exit) ? [exit.value.messageId] : []))
      const receipts = yield* receiptsOf(run)
      yield* expectAccounted(receipts, taken)
      const read = receipts.flatMap(([messageId, state]) => (state === "consumed" ? [messageId] : []))
      yield* expect(read.length > 0, "a message that was read")
      yield* expectEqual(
        read,
        taken.filter((messageId) => read.includes(messageId)),
        "the order in which they were read"
      )
    })
  },
  {
    item: 15,
    title: "loses no message that is sent just before it is stopped, or just after",
    needs: ["steer"],
    run: Effect.fnUntraced(function* (harness) {
      for (const isSentFirst of [true, false]) {
        const { run, send } = yield* steered(harness)
        if (!isSentFirst) yield* run.cancel()
        const exit = yield* Effect.exit(send("go on"))
        yield* run.cancel()
        yield* run.result
        yield* expectAccounted(yield* receiptsOf(run), Exit.isSuccess(exit) ? [exit.value.messageId] : [])
      }
    })
  },
  goingOn("complete", "has answered"),
  goingOn("fail", "has failed"),
  goingOn("hang", "was stopped", (run) => run.cancel()),
  {
    item: 16,
    title: "stops in a resumed run as it does in its first, and can be resumed again",
    needs: ["complete", "hang", "resume"],
    run: Effect.fnUntraced(function* (harness) {
      const run = yield* harness.start("complete")
      yield* run.result
      const next = yield* resumed(harness, run, "hang")
      yield* next.cancel("enough")
      yield* expectEqual((yield* next.result).cause, { _tag: "Caller", reason: "enough" }, "the cause")
      yield* next.dispose
      if (harness.given.world !== undefined) {
        yield* expectEqual((yield* harness.given.world).turns, 0, "the number of turns still worked on")
      }
      const last = yield* resumed(harness, run, "resume")
      yield* expectEqual((yield* last.result).stopReason, "completed", "the stop reason")
    })
  },
  {
    item: 10,
    title: "is quiet once its first run is released, also in the middle of a resumed one",
    needs: ["complete", "hang", "resume"],
    run: Effect.fnUntraced(function* (harness) {
      const run = yield* harness.start("complete")
      yield* run.result
      const next = yield* resumed(harness, run, "hang")
      yield* run.dispose
      yield* expectEqual((yield* next.result).cause, { _tag: "Release" }, "the cause")
      yield* expectEqual((yield* harness.subagents.live).length, 0, "the number of live runs")
      yield* expectNothingLeft(harness)
      const problems = (yield* harness.events).filter(({ type }) => type === "subagent/release-problem")
      yield* expectEqual(problems, [], "what went wrong at its release")
    })
  }
]
