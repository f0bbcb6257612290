/**
 * Random lives of trees of children, step by step against a pure model of the contract (4, 5, 7, 9, 10, 15, 16).
 * `LIFE_SEQUENCES` says how many (1,000 by default), `LIFE_SEED` with which to begin. A failure says its seed and steps.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Agent, Content, type SubagentError, type SubagentRun } from "effect-subagent"
import type * as Life from "./utils/lifeModel.ts"
import { current, isFirst, Model, stateOf } from "./utils/lifeModel.ts"
import { inSeam, lines, makeSignal, root, type Seam, tagOf } from "./utils/seam.ts"
import { makeSteerable } from "./utils/steerable.ts"
import { everySeed, makeRandom, quiesce, same } from "./utils/randomLives.ts"

type Handle = SubagentRun.SubagentRun
type Failure = SubagentError.SubagentError

const sequences = Number(process.env["LIFE_SEQUENCES"] ?? 1000)
const firstSeed = Number(process.env["LIFE_SEED"] ?? 1)
const stepsEach = 25
const maxDepth = 3

const releases = ["dispose", "close", "interrupt"]

/** What a fiber has come to, if it has. */
const polled = <A, E>(fiber: Fiber.Fiber<A, E>) => fiber.pollUnsafe()

const refusals: Readonly<Record<string, Life.Message["state"]>> = { RunSettled: "refused" }

/** One life of a tree: the seam's on one side, the model's on the other. */
const live = (seed: number, hits: Map<string, number>, trace: Array<string>) => {
  const { below, pick } = makeRandom(seed)
  const model = new Model(maxDepth)
  let names = 0
  const gates = new Map<string, Deferred.Deferred<void>>()
  const steerable = makeSteerable({
    isEager: false,
    isDeaf: ({ label }) => label!.endsWith("deaf"),
    before: ({ label }) => gates.get(label!)?.pipe(Deferred.await) ?? Effect.void
  })
  const runs: Array<{ readonly handle: Handle; readonly scope: Scope.Closeable }> = []
  const signals = new Map<string, ReturnType<typeof makeSignal>>()
  const starting: Array<{
    readonly start: Life.Start
    readonly fiber: Fiber.Fiber<Handle, Failure>
    readonly scope: Scope.Closeable
  }> = []
  const sending: Array<{ readonly message: Life.Message; readonly fiber: Fiber.Fiber<unknown, Failure> }> = []
  const releasing: Array<{ readonly run: Life.Run; readonly fiber: Fiber.Fiber<unknown> }> = []

  const handleOf = (run: Life.Run) => runs[run.index]!
  const childOf = ({ label }: Life.Child) => steerable.child(label)
  const agentOf = (child: Life.Child | undefined): Agent.Agent => (child === undefined ? root : childOf(child).agent)
  const fork = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkDetach(effect, { startImmediately: true })

  /** Notes an operation, and the state in which it finds its run. */
  const note = (operation: string, state: string, about: string) => {
    const pair = `${operation} while ${state}`
    hits.set(pair, (hits.get(pair) ?? 0) + 1)
    trace.push(`${operation} ${about} (${state})`)
  }

  const about = (run: Life.Run) => `${run.child.label}/${run.child.runs.indexOf(run)}`

  const start = (seam: Seam, parent: Life.Child | undefined) =>
    Effect.gen(function* () {
      const isSlow = below(3) === 0
      const label = `${names++}${below(3) === 0 ? " deaf" : ""}`
      note("start below", parent === undefined ? "root" : stateOf(current(parent)), `${label} below ${parent?.label}`)
      const scope = Scope.makeUnsafe()
      const signal = makeSignal()
      if (isSlow) gates.set(label, Deferred.makeUnsafe())
      const request = { prompt: "first", parent: agentOf(parent), label, signal: signal.signal }
      const fiber = yield* fork(Scope.provide(seam.start("p", request), scope))
      const asked = model.ask(label, parent)
      if (typeof asked === "string") {
        assert.strictEqual(tagOf(polled(fiber)!), asked)
        return
      }
      signals.set(label, signal)
      if (isSlow) {
        starting.push({ start: asked, fiber, scope })
        return
      }
      model.accept(asked)
      yield* quiesce
      runs.push({ handle: yield* polled(fiber)!, scope })
    })

  const underWay = () => starting.filter(({ start }) => start.end === "under way")

  const startings = [
    {
      name: "open",
      run: ({ fiber, scope, start }: (typeof starting)[number]) =>
        Effect.gen(function* () {
          Deferred.doneUnsafe(gates.get(start.label)!, Exit.void)
          model.accept(start)
          yield* quiesce
          runs.push({ handle: yield* polled(fiber)!, scope })
        })
    },
    {
      name: "abort",
      run: ({ start }: (typeof starting)[number]) =>
        Effect.sync(() => {
          start.end = "AbortedBeforeStart"
          signals.get(start.label)!.abort()
        })
    },
    {
      name: "interrupt",
      run: ({ fiber, start }: (typeof starting)[number]) =>
        Effect.suspend(() => {
          start.end = "interrupted"
          return Fiber.interrupt(fiber)
        })
    }
  ]

  const resume = (run: Life.Run) =>
    Effect.gen(function* () {
      const scope = Scope.makeUnsafe()
      const prompt = `prompt ${model.runs.length}`
      const exit = yield* Effect.exit(Scope.provide(handleOf(run).handle.resume!(prompt), scope))
      const asked = model.resume(run.child, prompt)
      if (typeof asked === "string") assert.strictEqual(tagOf(exit), asked)
      else runs.push({ handle: yield* exit, scope })
    })

  const send = (run: Life.Run) =>
    Effect.gen(function* () {
      const text = `message ${sending.length}`
      const fiber = yield* fork(handleOf(run).handle.sendMessage!(text))
      sending.push({ message: model.send(run, text), fiber })
    })

  const release = (run: Life.Run, how: "dispose" | "close" | "interrupt") =>
    Effect.gen(function* () {
      const { handle, scope } = handleOf(run)
      const exit = how === "interrupt" ? Exit.interrupt(0) : Exit.void
      // a scope that is being closed already returns at once, which is Effect's way
      const isClosed = scope.state._tag === "Closed"
      const fiber = yield* fork(how === "dispose" ? handle.dispose : Scope.close(scope, exit))
      model.release(run, { _tag: how === "interrupt" ? "Interrupt" : "Release" })
      if (how === "dispose" || !isClosed) releasing.push({ run, fiber })
    })

  const settle = (run: Life.Run, how: "completed" | "error" | "fault") =>
    Effect.sync(() => {
      const drop = below(2) === 0
      model.conclude(run, how, drop)
      const end =
        how === "fault"
          ? Exit.die(new Error("oh"))
          : { stopReason: how, ...(how === "error" && { failure: { kind: "model", retryable: true } as const }) }
      childOf(run.child).turn().finish(end, { drop })
    })

  const isAtWork = (run: Life.Run) => run.child.work?.run === run && run.child.work.state === "at work"

  const operations: ReadonlyArray<{
    readonly name: string
    readonly on?: (run: Life.Run) => boolean
    readonly run: (run: Life.Run, seam: Seam) => Effect.Effect<unknown, unknown>
  }> = [
    { name: "message", run: send },
    { name: "resume", run: resume },
    {
      name: "cancel",
      run: (run) =>
        Effect.suspend(() => {
          model.abort(run, { _tag: "Caller" })
          return handleOf(run).handle.cancel()
        })
    },
    {
      name: "abort",
      on: isFirst,
      run: (run) =>
        Effect.sync(() => {
          const signal = signals.get(run.child.label)!
          if (run.end === undefined) model.abort(run, { _tag: "Signal" })
          signal.abort()
        })
    },
    { name: "dispose", run: (run) => release(run, "dispose") },
    { name: "close", run: (run) => release(run, "close") },
    { name: "interrupt", run: (run) => release(run, "interrupt") },
    { name: "complete", on: isAtWork, run: (run) => settle(run, "completed") },
    { name: "fail", on: isAtWork, run: (run) => settle(run, "error") },
    { name: "break", on: isAtWork, run: (run) => settle(run, "fault") },
    {
      name: "read",
      on: isAtWork,
      run: (run) =>
        Effect.sync(() => {
          model.read(run)
          childOf(run.child).turn().read()
        })
    },
    {
      name: "let go",
      on: (run) => run.child.work?.run === run && run.child.work.state === "on its way out",
      run: (run) =>
        Effect.sync(() => {
          model.letGo(run.child)
          childOf(run.child).turn().letGo()
        })
    },
    { name: "start", run: (run, seam) => start(seam, run.child) }
  ]

  const byName = (name: string) => operations.find((operation) => operation.name === name)!

  const step = (seam: Seam): Effect.Effect<unknown, unknown> => {
    const slow = underWay()
    if (model.runs.every(({ release }) => release === "done") || below(12) === 0) return start(seam, undefined)
    if (slow.length > 0 && below(4) === 0) {
      const one = pick(slow)
      const operation = pick(startings)
      note(operation.name, "starting", one.start.label)
      return operation.run(one)
    }
    // most of what can go wrong goes wrong while something lives, and where a stopped turn keeps the next one waiting
    const alive = model.runs.filter(({ release }) => release !== "done")
    const waiting = alive.filter((run) => stateOf(run) === "waiting")
    const run = pick(waiting.length > 0 && below(2) === 0 ? waiting : below(8) === 0 ? model.runs : alive)
    const isHeldUp = stateOf(run) === "settled" && run.child.work?.state === "on its way out"
    const isSpared = below(2) === 0
    const possible = operations.filter(({ name, on = () => true }) => on(run) && !(isSpared && releases.includes(name)))
    const operation = isHeldUp && below(3) === 0 ? byName("resume") : pick(possible)
    if (operation.name !== "start") note(operation.name, stateOf(run), about(run))
    return operation.run(run, seam)
  }

  const resultOf = (run: Life.Run) =>
    Effect.gen(function* () {
      const { handle } = handleOf(run)
      const exit = polled(yield* fork(handle.result))
      if (run.end === undefined) return assert.isUndefined(exit, `${about(run)} has settled`)
      assert.isDefined(exit, `${about(run)} has not settled`)
      if (run.end.how === "fault") return assert.strictEqual(tagOf(exit), "ProviderFault")
      const { cause, output, stopReason } = yield* exit
      assert.strictEqual(stopReason, run.end.how, about(run))
      assert.strictEqual(Content.toText(output), run.said, about(run))
      const because = run.end.how === "aborted" ? run.end.cause : undefined
      same(
        cause && [cause._tag, cause._tag === "Parent" && cause.runId],
        because && [because._tag, because._tag === "Parent" && handleOf(because.run).handle.runId],
        about(run)
      )
    })

  /** Everything that can be seen is as the model says. */
  const check = (seam: Seam) =>
    Effect.gen(function* () {
      yield* quiesce
      const states = (yield* seam.live).map(({ runId, state }) => `${runId} ${state}`)
      const expected = model.runs.flatMap((run) => {
        const { runId } = handleOf(run).handle
        if (run.release === "done") return []
        return [`${runId} ${run.release === "under way" ? "releasing" : run.end === undefined ? "running" : "settled"}`]
      })
      same(states, expected, "the live runs")
      for (const run of model.runs) yield* resultOf(run)
      for (const child of model.children) {
        const { isOpen, turns } = childOf(child)
        assert.strictEqual(isOpen, child.isOpen, `the session of ${child.label}`)
        same(
          turns.map(({ prompt }) => prompt),
          child.runs.filter(({ hasBegun }) => hasBegun).map(({ prompt }) => prompt),
          `the turns of ${child.label}`
        )
        const isWorking = turns.some(({ state }) => state === "working")
        assert.strictEqual(isWorking, child.work?.state === "at work", `the work of ${child.label}`)
      }
      for (const { fiber, run } of releasing) {
        assert.strictEqual(polled(fiber) !== undefined, run.release === "done", `the release of ${about(run)}`)
      }
      for (const { fiber, message } of sending) {
        const exit = polled(fiber)
        const state = exit === undefined ? "waiting" : Exit.isSuccess(exit) ? "queued" : refusals[tagOf(exit)]
        const { text } = message
        assert.strictEqual(
          state,
          message.state === "waiting" || message.state === "refused" ? message.state : "queued",
          text
        )
      }
      for (const { fiber, start } of starting) {
        const exit = polled(fiber)
        if (start.end === "under way") assert.isUndefined(exit)
        else if (start.end === "interrupted") assert.isTrue(Exit.hasInterrupts(exit!))
        else if (start.end !== "accepted") assert.strictEqual(tagOf(exit!), start.end)
      }
      for (const [label, signal] of signals) {
        const [first] = model.children.filter((child) => child.label === label).map(({ runs }) => runs[0]!)
        const start = model.starts.find((each) => each.label === label)!
        const isHeard = first === undefined ? start.end === "under way" : first.end === undefined
        assert.strictEqual(signal.listeners(), isHeard ? 1 : 0, `the listeners for ${label}`)
      }
    })

  /** What became of the messages of each run, in order. */
  const checkReceipts = Effect.gen(function* () {
    for (const run of model.runs) {
      const updates = yield* Stream.runCollect(handleOf(run).handle.updates)
      const states = updates.flatMap((update) => (update._tag === "Receipt" ? [update.state] : []))
      const taken = run.messages.filter(({ state }) => state !== "refused").map(({ state }) => state)
      assert.deepStrictEqual(states, taken, `the receipts of ${about(run)}`)
      const heard = updates.flatMap((update) => (update._tag === "Content" ? [Content.toText([update.block])] : []))
      const read = run.messages.filter(({ state }) => state === "consumed").map(({ text }) => `heard ${text}`)
      assert.deepStrictEqual(heard, run.hasBegun ? [`on ${run.prompt}`, ...read] : [], `the updates of ${about(run)}`)
    }
  })

  return Effect.gen(function* () {
    const { events } = yield* inSeam([steerable.provider], (seam, scope) =>
      Effect.gen(function* () {
        for (let i = 0; i < stepsEach; i++) {
          yield* step(seam)
          yield* check(seam)
        }
        // the end of the registry is the end of all that is left, as soon as the deaf have been told
        trace.push("the registry is released")
        const closing = yield* fork(Scope.close(scope, Exit.void))
        for (const { start } of underWay()) start.end = "RegistryClosed"
        for (const run of model.runs) model.release(run, { _tag: "Release" })
        yield* check(seam)
        for (const child of model.children) {
          if (child.work?.state !== "on its way out") continue
          model.letGo(child)
          childOf(child).turn().letGo()
        }
        yield* check(seam)
        assert.isDefined(polled(closing), "the end of the registry")
        yield* checkReceipts
        // what has failed must not wait for the deaf
      }).pipe(
        Effect.onError(() =>
          Effect.sync(() => {
            for (const { turns } of steerable.children) for (const { letGo } of turns) letGo()
          })
        )
      )
    )
    assert.deepStrictEqual(lines(events), model.events)
  })
}

describe("the life of a tree of children", () => {
  it.effect(
    "is what the contract says, whatever is done to it and when (4, 5, 7, 9, 10, 15, 16)",
    () =>
      Effect.gen(function* () {
        const hits = new Map<string, number>()
        yield* everySeed({ name: "LIFE", first: firstSeed, sequences }, (seed, trace) => live(seed, hits, trace))
        if (sequences < 1000) return
        const states = ["waiting", "at work", "settled", "releasing", "released"]
        const everywhere = ["message", "resume", "cancel", ...releases]
        const atWork = ["complete", "fail", "break", "read"].map((operation) => `${operation} while at work`)
        const pairs = [
          ...everywhere.flatMap((operation) => states.map((state) => `${operation} while ${state}`)),
          // a waiting run is never the first of its child, and has no signal
          ...states.filter((state) => state !== "waiting").map((state) => `abort while ${state}`),
          ...atWork,
          ...["settled", "releasing"].map((state) => `let go while ${state}`),
          ...["root", ...states].map((state) => `start below while ${state}`),
          ...["open", "abort", "interrupt"].map((operation) => `${operation} while starting`)
        ]
        for (const pair of pairs) assert.isAtLeast(hits.get(pair) ?? 0, 20, pair)
      }),
    120_000
  )
})
