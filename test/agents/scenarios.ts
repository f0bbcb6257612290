/** What every agent is put through. A scenario fails by an assertion, a typed error or its timeout; what it leaves is looked for after it. */
import {
  Approvals,
  Content,
  ResumeToken,
  type SubagentResult,
  type SubagentRun,
  type SubagentUpdate
} from "effect-subagent"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as assert from "node:assert/strict"
import * as fs from "node:fs"
import * as path from "node:path"
import type { Bench, Delegation, Scenario } from "./bench.ts"
import { hostScenarios } from "./hostScenarios.ts"
import type { Play } from "./model/fakeModel.ts"
import { call, ramble, say, stall } from "./model/fakeModel.ts"
import { leader, living, until } from "./world.ts"

/** What a result came to, in a line that can be compared. */
const verdict = ({ cause, failure, output, stopReason }: SubagentResult.SubagentResult): string =>
  [stopReason, cause?._tag, failure?.kind, failure?.message, Content.toText(output)].filter(Boolean).join(": ")

const assertCompleted = (result: SubagentResult.SubagentResult, text: string): void =>
  assert.equal(verdict(result), `completed: ${text}`)

/** An approver with one answer for everything, and what it was asked. */
const approver = (decision: Approvals.ApprovalDecision) => {
  const asked: Array<Approvals.ApprovalRequest> = []
  const decide = (request: Approvals.ApprovalRequest) => {
    asked.push(request)
    return Effect.succeed(decision)
  }
  return { asked, provide: Effect.provideService(Approvals.Approvals, { decide }) }
}

const updatesOf = (run: SubagentRun.SubagentRun): Effect.Effect<ReadonlyArray<SubagentUpdate.SubagentUpdate>> =>
  Stream.runCollect(run.updates)

/** All that was said, in whatever message. */
const textOf = (updates: ReadonlyArray<SubagentUpdate.SubagentUpdate>): string =>
  Content.toText(updates.flatMap((update) => (update._tag === "Content" ? [update.block] : [])))

/** A run whose agent is at some stage of its first turn, and what comes to pass when that turn is stopped. */
interface Staged {
  readonly run: SubagentRun.SubagentRun
  readonly stopped?: Effect.Effect<void>
}

type Stage = (bench: Bench, delegation: Delegation) => Effect.Effect<Staged, unknown, Scope.Scope>

/** Starts a run, and waits until its model is called. */
const begin = ({ start }: Delegation, { calls, prompt }: Play) => Effect.tap(start(prompt), () => Queue.take(calls))

const waiting: Stage = ({ model }, delegation) => Effect.map(begin(delegation, model.play(stall)), (run) => ({ run }))

const streaming: Stage = Effect.fnUntraced(function* ({ model }, delegation) {
  const run = yield* begin(delegation, model.play(ramble))
  yield* Stream.runDrain(Stream.takeUntil(run.updates, ({ _tag }) => _tag === "Content"))
  return { run }
})

const inTool: Stage = Effect.fnUntraced(function* ({ agent, folder, mark, model }, delegation) {
  const run = yield* begin(delegation, model.play(call(agent.shell(`touch made && tail -f /dev/null ${mark}`))))
  yield* until(() => fs.existsSync(path.join(folder, "made")))
  return { run, stopped: until(() => living(mark).every(({ command }) => !command.startsWith("tail "))) }
})

const asking: Stage = Effect.fnUntraced(function* ({ agent, model }, delegation) {
  const [asked, withdrawn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const decide = () =>
    Effect.andThen(Deferred.succeed(asked, undefined), Effect.never).pipe(
      Effect.onInterrupt(() => Deferred.succeed(withdrawn, undefined))
    )
  const run = yield* begin(delegation, model.play(call(agent.shell("touch made")))).pipe(
    Effect.provideService(Approvals.Approvals, { decide })
  )
  yield* Deferred.await(asked)
  return { run, stopped: Deferred.await(withdrawn) }
})

/** Cancels at a stage; then the same child answers the next prompt, and nothing of the cancelled turn is in that. */
const cancelled = (stage: Stage): Scenario["run"] =>
  Effect.fnUntraced(function* (bench) {
    const delegation = yield* bench.delegation({ permission: stage === asking ? "ask" : "allow" })
    const { run, stopped } = yield* stage(bench, delegation)
    yield* run.cancel("that is enough")
    const { cause, stopReason } = yield* run.result
    assert.deepEqual([stopReason, cause], ["aborted", { _tag: "Caller", reason: "that is enough" }])
    const next = bench.model.play(say("Here I am again."))
    const resumed = yield* run.resume!(next.prompt)
    const updates = yield* updatesOf(resumed)
    assertCompleted(yield* resumed.result, "Here I am again.")
    assert.equal(textOf(updates), "Here I am again.")
    if (stage === asking) assert.ok(!fs.existsSync(path.join(bench.folder, "made")), "done although nobody allowed it")
    if (stage === inTool && bench.agent.leavesCommands === true) return "the command goes on until the release"
    if (stopped !== undefined) yield* Effect.timeout(stopped, "20 seconds")
    return undefined
  })

/** Releases at a stage: whatever the agent was doing is over when that returns. */
const released: Scenario["run"] = Effect.fnUntraced(function* (bench) {
  const delegation = yield* bench.delegation({ permission: "allow" })
  const { run } = yield* inTool(bench, delegation)
  yield* run.dispose
  assert.equal(verdict(yield* run.result), "aborted: Release")
})

const killed: Scenario["run"] = Effect.fnUntraced(function* (bench) {
  const delegation = yield* bench.delegation({ permission: "allow" })
  const { run } = yield* inTool(bench, delegation)
  process.kill(leader(run.runId)!, "SIGKILL")
  const { failure, stopReason } = yield* run.result
  assert.deepEqual([stopReason, failure?.kind, failure?.retryable], ["error", "transport", true])
  assert.match(failure?.message ?? "", /SIGKILL/)
})

const allowed: Scenario["run"] = Effect.fnUntraced(function* ({ agent, delegation, folder, model }) {
  const { asked, provide } = approver("approved")
  const play = model.play(call(agent.shell("printf yes > made")), say("It is made."))
  const run = yield* provide((yield* delegation()).start(play.prompt))
  const updates = yield* updatesOf(run)
  assertCompleted(yield* run.result, "It is made.")
  assert.equal(fs.readFileSync(path.join(folder, "made"), "utf8"), "yes")
  assert.deepEqual(
    asked.map(({ lineage }) => lineage?.runId),
    [run.runId]
  )
  const [{ toolCallId } = { toolCallId: "" }] = asked
  assert.deepEqual(
    updates.flatMap((update) => (update._tag === "Permission" ? [[update.toolCallId, update.outcome]] : [])),
    [
      [toolCallId, undefined],
      [toolCallId, "approved"]
    ]
  )
  const statuses = updates.flatMap((update) =>
    update._tag === "ToolCall" && update.id === toolCallId ? [update.status] : []
  )
  assert.equal(statuses.at(-1), "completed")
})

/** Some agents go on after a tool call that was denied, others stop there. Neither has made the file. */
const denied = (isAnyoneThere: boolean): Scenario["run"] =>
  Effect.fnUntraced(function* ({ agent, delegation, folder, model }) {
    const { asked, provide } = approver("denied")
    const play = model.play(call(agent.shell("touch made")), say("It is not made."))
    const starting = (yield* delegation()).start(play.prompt)
    const run = yield* isAnyoneThere ? provide(starting) : starting
    const updates = yield* updatesOf(run)
    const outcome = isAnyoneThere ? "denied" : "no-approver"
    assert.ok(
      [
        "completed: It is not made.",
        `error: permission: The agent stopped at a tool call that was not permitted: ${outcome}`
      ].includes(verdict(yield* run.result)),
      verdict(yield* run.result)
    )
    assert.ok(!fs.existsSync(path.join(folder, "made")))
    assert.equal(asked.length, isAnyoneThere ? 1 : 0)
    assert.deepEqual(
      updates.flatMap((update) => (update._tag === "Permission" ? [update.outcome] : [])),
      [undefined, outcome]
    )
  })

const files: Scenario["run"] = Effect.fnUntraced(function* ({ agent, delegation, folder, model }) {
  const inside = path.join(folder, "inside")
  fs.mkdirSync(inside)
  const [file, other] = [path.join(inside, "made"), path.join(folder, "made")]
  const { files, start } = yield* delegation({ permission: "allow", fs: { roots: [inside], read: false } })
  const play = model.play(call(agent.write(file, "yes\n")), call(agent.write(other, "yes\n")), say("I have tried."))
  const run = yield* start(play.prompt)
  assertCompleted(yield* run.result, "I have tried.")
  assert.equal(fs.readFileSync(file, "utf8"), "yes\n")
  assert.deepEqual(files, [`write ${file}`])
  assert.ok(!fs.existsSync(other), "written outside of the roots")
})

const structured: Scenario["run"] = Effect.fnUntraced(function* ({ delegation, model }) {
  const play = model.play(say('{"count":"three"}'), say('{"count":3}'))
  const outputSchema = Schema.Struct({ count: Schema.Number })
  const run = yield* (yield* delegation()).start(play.prompt, { outputSchema })
  const result = yield* run.result
  assertCompleted(result, '{"count":3}')
  assert.deepEqual(result.structured, { count: 3 })
  assert.equal(yield* Queue.size(play.calls), 2)
})

const resumed: Scenario["run"] = Effect.fnUntraced(function* ({ delegation, model }) {
  const [first, second] = [model.play(say("One.")), model.play(say("Two."))]
  const run = yield* (yield* delegation()).start(first.prompt)
  assertCompleted(yield* run.result, "One.")
  const next = yield* run.resume!(second.prompt)
  assertCompleted(yield* next.result, "Two.")
  assert.ok((yield* Queue.take(second.calls)).includes(first.prompt), "the agent has forgotten the first prompt")
})

/** Nothing of the first process is left when the second one goes on, and what was said before is not said again. */
const token: Scenario["run"] = Effect.fnUntraced(function* ({ agent, delegation, marks, model }) {
  const [first, second] = [model.play(say("One.")), model.play(say("Two."))]
  const kept = yield* Effect.scoped(
    Effect.gen(function* () {
      const run = yield* (yield* delegation()).start(first.prompt)
      assertCompleted(yield* run.result, "One.")
      return JSON.stringify(yield* run.token!)
    })
  )
  assert.deepEqual(living(...marks), [])
  yield* Effect.sleep(agent.takenUpAfter ?? 0)
  const read = Schema.decodeEffect(Schema.fromJsonString(ResumeToken.ResumeToken))
  const run = yield* (yield* delegation()).resume(yield* read(kept), second.prompt)
  const updates = yield* updatesOf(run)
  assertCompleted(yield* run.result, "Two.")
  assert.equal(textOf(updates), "Two.")
  assert.ok((yield* Queue.take(second.calls)).includes(first.prompt), "the agent has forgotten the first prompt")
  return agent.takenUpAfter === undefined
    ? undefined
    : `after ${agent.takenUpAfter}: at once, the agent has lost the session`
})

const two: Scenario["run"] = Effect.fnUntraced(function* ({ delegation, model }) {
  const { start } = yield* delegation()
  const names = ["The first.", "The second."]
  const results = yield* Effect.forEach(
    names,
    (name) => Effect.scoped(Effect.flatMap(start(model.play(say(name)).prompt), ({ result }) => result)),
    { concurrency: "unbounded" }
  )
  assert.deepEqual(
    results.map(verdict),
    names.map((name) => `completed: ${name}`)
  )
})

const turn: Scenario["run"] = Effect.fnUntraced(function* ({ delegation, model }) {
  const { start } = yield* delegation()
  const run = yield* start(model.play(say("Here I am.")).prompt)
  assertCompleted(yield* run.result, "Here I am.")
})

export const scenarios: ReadonlyArray<Scenario> = [
  { name: "turn", says: "a prompt is answered", run: turn },
  { name: "allowed", says: "a command that the approver allows is run", run: allowed },
  { name: "denied", says: "one that the approver denies is not", run: denied(true) },
  { name: "unasked", says: "nor is one if there is no approver", run: denied(false) },
  { name: "files", says: "files are written through the client, within the roots only", run: files },
  {
    name: "cancel-waiting",
    says: "cancelled before the model's first word; then prompted again",
    run: cancelled(waiting)
  },
  { name: "cancel-streaming", says: "the same while the model speaks", run: cancelled(streaming) },
  { name: "cancel-tool", says: "the same while a command runs", run: cancelled(inTool) },
  { name: "cancel-asking", says: "the same while a permission is asked for", run: cancelled(asking) },
  { name: "structured", says: "a value is corrected once, then satisfies its schema", run: structured },
  { name: "resume", says: "a second prompt in the same session", run: resumed },
  { name: "token", says: "a second prompt in another process, from the token of the first", run: token },
  { name: "two", says: "two runs at once, each with its own answer", run: two },
  { name: "release", says: "released while a command runs", run: released },
  { name: "killed", says: "the agent is killed while a command runs: a failure that says so", run: killed },
  ...hostScenarios
]
