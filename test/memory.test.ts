/** Ten thousand runs of all outcomes leave nothing behind: real garbage collection, and what it could not collect (10). */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { getEventListeners } from "node:events"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Content, SubagentError, type SubagentRun, Subagents } from "effect-subagent"
import { agentOf, completed, type Outcome, type Placed, type Provider, root, type Seam } from "./utils/seam.ts"

setFlagsFromString("--expose-gc")
const gc = runInNewContext("gc") as () => void

const count = 10_000

/** Collects until there is nothing more to collect, and gives the bytes in use. */
const collected = Effect.gen(function* () {
  for (let i = 0; i < 4; i++) {
    gc()
    // what is held by a task of this turn is let go of in the next one
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  }
  return process.memoryUsage().heapUsed
})

/** How one run goes, by its number: every outcome there is, in turn. */
const outcomes = [
  "completes",
  "fails",
  "dies",
  "is cancelled",
  "is aborted",
  "is released",
  "resumes",
  "hears",
  "delegates",
  "is refused"
] as const

/** A provider whose children wait for their gate, and what is alive of what it has made. */
const makeWorld = () => {
  const fibers = new Set<WeakRef<object>>()
  const sessions = new Set<WeakRef<object>>()
  const runs = new Set<WeakRef<object>>()
  const gates = new Map<string, Deferred.Deferred<Outcome>>()
  let open = 0
  let working = 0
  const turnOf = (placed: Placed) =>
    Effect.withFiber<Outcome>((fiber) => {
      fibers.add(new WeakRef(fiber))
      const gate = Deferred.makeUnsafe<Outcome>()
      gates.set(placed.label!, gate)
      working++
      placed.emit({ _tag: "Content", messageId: "m", block: Content.text("x".repeat(200)) })
      return Effect.ensuring(
        Deferred.await(gate),
        Effect.sync(() => working--)
      )
    })
  const agents = new Map<string, ReturnType<typeof agentOf>>()
  const provider: Provider = {
    name: "p",
    capabilities: { outputSchema: false, depthLimit: false, toolFilter: false },
    inheritsContext: false,
    start: (placed) =>
      Effect.acquireRelease(
        Effect.suspend(() => {
          if (placed.label!.startsWith("is refused")) {
            return Effect.fail(
              SubagentError.fromReason(new SubagentError.StartFailed({ provider: "p", detail: "full" }))
            )
          }
          open++
          agents.set(placed.label!, agentOf(placed))
          return Effect.void
        }),
        () =>
          Effect.sync(() => {
            open--
            gates.delete(placed.label!)
            agents.delete(placed.label!)
          })
      ).pipe(
        Effect.map(() => {
          const session = {
            turn: turnOf(placed),
            resumeTurn: () => turnOf(placed),
            sendMessage: ({ messageId }: { readonly messageId: string }) =>
              Effect.sync(() => placed.emit({ _tag: "Receipt", messageId, state: "consumed" }))
          }
          sessions.add(new WeakRef(session))
          return session
        })
      )
  }
  const end = (label: string, exit: Exit.Exit<Outcome> = Exit.succeed(completed)) =>
    Effect.sync(() => void Deferred.doneUnsafe(gates.get(label)!, exit))
  const alive = (refs: Iterable<WeakRef<object>>) => Array.from(refs).filter((ref) => ref.deref() !== undefined).length
  /** What is left, seen once: the weak references go, too. */
  const left = () => {
    const labels = gates.size + agents.size
    const seen = { open, working, labels, fibers: alive(fibers), sessions: alive(sessions), runs: alive(runs) }
    for (const refs of [fibers, sessions, runs]) refs.clear()
    return seen
  }
  return { provider, agents, runs, end, left }
}

/** Brings one run to its end, and gives nothing of it away. */
const live = (
  world: ReturnType<typeof makeWorld>,
  seam: Seam,
  label: string,
  run: SubagentRun.SubagentRun,
  abort: () => void
) => {
  const settled = Effect.asVoid(Effect.exit(run.result))
  const { end } = world
  switch (label.replace(/ \d+$/, "") as (typeof outcomes)[number]) {
    case "completes":
      return Effect.andThen(end(label), settled)
    case "fails":
      return Effect.andThen(end(label, Exit.succeed({ stopReason: "error" })), settled)
    case "dies":
      return Effect.andThen(end(label, Exit.die(new Error("oh"))), settled)
    case "is cancelled":
      return Effect.andThen(run.cancel("enough"), settled)
    case "is aborted":
      return Effect.andThen(Effect.sync(abort), settled)
    case "is released":
      return Effect.andThen(run.dispose, settled)
    case "resumes":
      return run
        .cancel()
        .pipe(Effect.andThen(Effect.scoped(Effect.andThen(run.resume!("go on"), end(label)))), Effect.andThen(settled))
    case "hears":
      return run.sendMessage!("hello").pipe(Effect.andThen(end(label)), Effect.andThen(settled))
    case "delegates":
      return Effect.scoped(
        Effect.andThen(
          seam.start("p", { prompt: "go", parent: world.agents.get(label)!, label: `below ${label}` }),
          run.cancel()
        )
      ).pipe(Effect.andThen(settled))
    case "is refused":
      return Effect.void
  }
}

const start = (world: ReturnType<typeof makeWorld>, seam: Seam, label: string, signal: AbortSignal) =>
  Effect.map(seam.start("p", { prompt: "go", parent: root, label, signal }), (run) => {
    world.runs.add(new WeakRef(run))
    return run
  })

/** One after the other. */
const inSequence = (world: ReturnType<typeof makeWorld>, seam: Seam, shared: AbortSignal, n: number) =>
  Effect.gen(function* () {
    for (let i = 0; i < n; i++) {
      const label = `${outcomes[i % outcomes.length]} ${i}`
      const own = new AbortController()
      const signal = label.startsWith("is aborted") ? own.signal : shared
      yield* Effect.scoped(
        Effect.flatMap(start(world, seam, label, signal), (run) => live(world, seam, label, run, () => own.abort()))
      ).pipe(Effect.ignore)
    }
  })

/** All at once: every one of them is live before the first is brought to its end. */
const atOnce = (world: ReturnType<typeof makeWorld>, seam: Seam, shared: AbortSignal, n: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const runs: Array<Effect.Effect<void, unknown>> = []
      for (let i = 0; i < n; i++) {
        const label = `${outcomes[i % outcomes.length]} ${i}`
        const own = new AbortController()
        const signal = label.startsWith("is aborted") ? own.signal : shared
        const exit = yield* Effect.exit(start(world, seam, label, signal))
        if (Exit.isSuccess(exit)) runs.push(live(world, seam, label, exit.value, () => own.abort()))
      }
      assert.strictEqual((yield* seam.live).length, (n * 9) / 10)
      assert.strictEqual(getEventListeners(shared, "abort").length, 1)
      yield* Effect.forEach(runs, (run) => run, { concurrency: "unbounded", discard: true })
    })
  )

describe("ten thousand runs of all outcomes (10)", () => {
  for (const [how, play] of [
    ["after each other", inSequence],
    ["at once", atOnce]
  ] as const) {
    it.effect(
      `${how}: heap, fibers, sessions, listeners and the live table are where they were [I11]`,
      () => {
        const world = makeWorld()
        const { signal } = new AbortController()
        return Effect.gen(function* () {
          // nobody keeps the events
          const seam = Context.get(yield* Layer.build(Subagents.layer), Subagents.Subagents)
          yield* seam.register(world.provider)
          // what is compiled and cached once is there before anybody looks
          yield* play(world, seam, signal, 2000)
          yield* collected
          world.left()
          const before = yield* collected
          yield* play(world, seam, signal, count)
          yield* collected
          assert.deepStrictEqual(world.left(), { open: 0, working: 0, labels: 0, fibers: 0, sessions: 0, runs: 0 })
          assert.deepStrictEqual(yield* seam.live, [])
          assert.strictEqual(getEventListeners(signal, "abort").length, 0)
          const grown = (yield* collected) - before
          // a run that is kept takes two kilobytes and more; what engines compile meanwhile is a megabyte at the most
          assert.isBelow(grown, count * 200, `${grown} bytes`)
        })
      },
      60_000
    )
  }
})
