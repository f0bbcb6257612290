/** The bill: what each run has used, and what everything below it has, wherever that is told and however a run ends. */
import { assert, describe, it } from "@effect/vitest"
import { SubagentError, type SubagentResult } from "effect-subagent"
import { ScriptedProvider } from "effect-subagent/testing"
import { PlainTool } from "effect-subagent/tool"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { Subagents } from "effect-subagent"
import { agentOf, type Event, inSeam, type Placed, reasonOf, root, type Seam, type SeamOptions } from "./utils/seam.ts"

const { die, end, hang, nextTurn, run, text, usage } = ScriptedProvider

type Usage = SubagentResult.SubagentUsage

/** What one run has used in `n` turns, with as many figures as there are. */
const used = (n: number): Usage => ({
  input: 10 * n,
  output: n,
  total: 11 * n,
  cacheRead: 2 * n,
  cacheWrite: 3 * n,
  reasoning: 4 * n
})

/** How the last of a chain ends. */
const ends: Readonly<Record<string, ReadonlyArray<ScriptedProvider.Step>>> = {
  completed: [text("done")],
  refusal: [end({ stopReason: "refusal" })],
  "a failure of its own": [end({ stopReason: "error", failure: { kind: "model", retryable: false } })],
  "a fault of its provider": [die("bug")],
  "something that is no outcome": [end("nonsense")],
  limit: [nextTurn([]), nextTurn([]), text("one too many")],
  timeout: [text("so far"), hang],
  cancel: [text("so far"), hang]
}

/** Four runs, each the child of the one before. The one at depth `d` has used `used(d)`, told in several steps. */
const chainOf = (seam: () => Seam, last: ReadonlyArray<ScriptedProvider.Step>) => {
  const begun = Deferred.makeUnsafe<void>()
  const delegate = (placed: Placed) =>
    Effect.exit(
      seam().run("p", {
        prompt: "go on",
        parent: agentOf(placed),
        label: `depth ${placed.lineage.depth + 1}`,
        ...(placed.lineage.depth === 3 && { maxTurns: 1, timeout: "1 minute" })
      })
    )
  const script = ({ lineage: { depth } }: Placed): ScriptedProvider.RunScript => {
    const reports = [usage(used(0)), usage(used(depth / 2)), usage(used(depth))]
    return depth === 4
      ? [...reports, run(() => Deferred.succeed(begun, undefined)), ...last]
      : [...reports, run(delegate), text("done")]
  }
  return Effect.map(ScriptedProvider.make(script, { name: "p" }), ({ provider }) => ({
    provider,
    begun: Deferred.await(begun)
  }))
}

const endsOf = (events: ReadonlyArray<Event>) =>
  Object.fromEntries(
    events.flatMap((event) =>
      event.type === "subagent/end" ? [[event.label, { usage: event.usage, treeUsage: event.treeUsage }]] : []
    )
  )

const inChain = <A, E>(
  how: string,
  body: (seam: Seam, begun: Effect.Effect<void>) => Effect.Effect<A, E>,
  options: SeamOptions = {}
) =>
  Effect.gen(function* () {
    let known: Seam | undefined
    const { begun, provider } = yield* chainOf(() => known!, ends[how]!)
    return yield* inSeam(
      [provider],
      (seam) => {
        known = seam
        return body(seam, begun)
      },
      { maxDepth: 4, ...options }
    )
  })

const expected = {
  "depth 1": { usage: used(1), treeUsage: used(10) },
  "depth 2": { usage: used(2), treeUsage: used(9) },
  "depth 3": { usage: used(3), treeUsage: used(7) },
  "depth 4": { usage: used(4), treeUsage: used(4) }
}

describe("P2: a chain of four (20)", () => {
  for (const how of Object.keys(ends)) {
    it.effect(`costs the sum of what each has used itself, if the last one ends with: ${how}`, () =>
      Effect.gen(function* () {
        const { events, value } = yield* inChain(how, (seam, begun) =>
          Effect.scoped(
            Effect.gen(function* () {
              const run = yield* seam.start("p", { prompt: "go", parent: root, label: "depth 1" })
              yield* begun
              if (how === "cancel") {
                const { runId } = (yield* seam.live).find(({ label }) => label === "depth 4")!
                assert.isTrue(yield* seam.cancel(runId))
              }
              if (how === "timeout") yield* TestClock.adjust("1 minute")
              const result = yield* run.result
              const [live] = yield* seam.live
              return { result, live }
            })
          )
        )
        const { live, result } = value
        assert.strictEqual(result.stopReason, "completed")
        assert.deepStrictEqual({ usage: result.usage, treeUsage: result.treeUsage }, expected["depth 1"])
        assert.deepStrictEqual({ usage: live?.usage, treeUsage: live?.treeUsage }, expected["depth 1"])
        assert.deepStrictEqual(endsOf(events), expected)
      })
    )
  }

  it.effect("shows in the live table what has been used by now", () =>
    inChain("cancel", (seam, begun) =>
      Effect.scoped(
        Effect.gen(function* () {
          yield* seam.start("p", { prompt: "go", parent: root, label: "depth 1" })
          yield* begun
          const live = yield* seam.live
          const shown = live.map(({ label, treeUsage, usage }) => [label, { usage, treeUsage }])
          assert.deepStrictEqual(Object.fromEntries(shown), expected)
        })
      )
    )
  )

  it.effect("costs the same if all of it is stopped from above", () =>
    Effect.gen(function* () {
      for (const stop of ["cancel", "interrupt", "close"] as const) {
        const { events, value } = yield* inChain("cancel", (seam, begun) =>
          Effect.gen(function* () {
            const running = yield* Effect.forkChild(seam.run("p", { prompt: "go", parent: root, label: "depth 1" }), {
              startImmediately: true
            })
            yield* begun
            if (stop === "interrupt") yield* Fiber.interrupt(running)
            if (stop === "cancel") yield* seam.cancel((yield* seam.live)[0]!.runId)
            return running
          })
        )
        assert.deepStrictEqual(endsOf(events), expected, stop)
        const exit = yield* Fiber.await(value)
        if (stop !== "interrupt") {
          const result = Exit.getSuccess(exit)
          assert.deepStrictEqual(result._tag === "Some" && result.value.treeUsage, used(10))
        }
      }
    })
  )

  it.effect("costs the same if it ends with a fault further up, which has no result to tell it in", () =>
    Effect.gen(function* () {
      let known: Seam | undefined
      const script = (placed: Placed): ScriptedProvider.RunScript =>
        placed.lineage.depth === 2
          ? [usage(used(2)), text("done")]
          : [
              usage(used(1)),
              run(() => known!.run("p", { prompt: "go", parent: agentOf(placed), label: "depth 2" })),
              die("bug")
            ]
      const { provider } = yield* ScriptedProvider.make(script, { name: "p" })
      const { events, value } = yield* inSeam([provider], (seam) => {
        known = seam
        return Effect.exit(seam.run("p", { prompt: "go", parent: root, label: "depth 1" }))
      })
      assert.instanceOf(reasonOf(value), SubagentError.ProviderFault)
      assert.deepStrictEqual(endsOf(events), {
        "depth 1": { usage: used(1), treeUsage: used(3) },
        "depth 2": { usage: used(2), treeUsage: used(2) }
      })
    })
  )

  it.effect("is told in the plain tool's answer", () =>
    Effect.gen(function* () {
      const { value } = yield* inChain("completed", (seam) =>
        Effect.gen(function* () {
          const { execute } = yield* PlainTool.make({ provider: "p" })
          return yield* Effect.promise(() => execute({ description: "depth 1", prompt: "go" }, { parent: root }))
        }).pipe(Effect.scoped, Effect.provideService(Subagents.Subagents, seam))
      )
      assert.deepStrictEqual({ usage: value.usage, treeUsage: value.treeUsage }, expected["depth 1"])
    })
  )

  it.effect("is charged once to whoever pays for it, as the tokens of the tree", () =>
    Effect.gen(function* () {
      const { value } = yield* inChain(
        "completed",
        (seam) =>
          Effect.scoped(Effect.flatMap(seam.start("p", { prompt: "go", parent: root }), ({ result }) => result)),
        { maxTokens: 11 * 10 }
      )
      // exactly at the limit, as every one of them could still end
      assert.deepStrictEqual([value.stopReason, value.treeUsage], ["completed", used(10)])
    })
  )
})

describe("usage (20)", () => {
  const only = (steps: ReadonlyArray<ScriptedProvider.Step>) =>
    Effect.gen(function* () {
      const { provider } = yield* ScriptedProvider.make(steps, { name: "p" })
      const { events, value } = yield* inSeam([provider], (seam) =>
        seam.run("p", { prompt: "go", parent: root, label: "it" })
      )
      const { treeUsage, usage } = value
      assert.deepStrictEqual(endsOf(events), { it: { usage, treeUsage } })
      return { usage, treeUsage }
    })

  it.effect("is absent where nobody has reported any", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* only([text("done")]), { usage: undefined, treeUsage: undefined })
    })
  )

  it.effect("is what the outcome says, else what was reported last", () =>
    Effect.gen(function* () {
      const said = [text("done"), end({ stopReason: "completed", usage: used(5) })]
      assert.deepStrictEqual(yield* only(said), { usage: used(5), treeUsage: used(5) })
      assert.deepStrictEqual(yield* only([usage(used(2)), ...said]), { usage: used(5), treeUsage: used(5) })
      const reported = [usage(used(2)), usage(used(3)), text("done")]
      assert.deepStrictEqual(yield* only(reported), { usage: used(3), treeUsage: used(3) })
    })
  )

  it.effect("of a child that outlives its parent's turn is not in the parent's result, but in its end event", () =>
    Effect.gen(function* () {
      let known: Seam | undefined
      const go = Deferred.makeUnsafe<void>()
      const script = (placed: Placed): ScriptedProvider.RunScript =>
        placed.lineage.depth === 2
          ? [usage(used(1)), run(() => Deferred.await(go)), usage(used(5)), text("done")]
          : [
              usage(used(1)),
              run(() => known!.start("p", { prompt: "go", parent: agentOf(placed), label: "child" })),
              text("done")
            ]
      const { provider } = yield* ScriptedProvider.make(script, { name: "p" })
      const { events, value } = yield* inSeam([provider], (seam) => {
        known = seam
        return Effect.scoped(
          Effect.gen(function* () {
            const run = yield* seam.start("p", { prompt: "go", parent: root, label: "parent" })
            const result = yield* run.result
            const before = (yield* seam.live).map(({ treeUsage }) => treeUsage)
            yield* Deferred.succeed(go, undefined)
            yield* TestClock.adjust(0)
            const after = (yield* seam.live).map(({ treeUsage }) => treeUsage)
            return { result, before, after }
          })
        )
      })
      assert.deepStrictEqual([value.result.usage, value.result.treeUsage], [used(1), used(1)])
      assert.deepStrictEqual(value.before, [used(2), used(1)])
      assert.deepStrictEqual(value.after, [used(6), used(5)])
      assert.deepStrictEqual(endsOf(events), {
        parent: { usage: used(1), treeUsage: used(6) },
        child: { usage: used(5), treeUsage: used(5) }
      })
    })
  )

  it.effect("of a child that is resumed is that of each of its runs", () =>
    Effect.gen(function* () {
      const script = { turn: [usage(used(2)), text("one")], resumed: [usage(used(3)), text("two")] }
      const { provider } = yield* ScriptedProvider.make(script, { name: "p" })
      const { events, value } = yield* inSeam([provider], (seam) =>
        Effect.scoped(
          Effect.gen(function* () {
            const first = yield* seam.start("p", { prompt: "go", parent: root })
            yield* first.result
            const second = yield* first.resume!("go on")
            yield* second.result
            return [yield* first.result, yield* second.result]
          })
        )
      )
      const own = [used(2), used(3)]
      assert.deepStrictEqual(
        value.map(({ usage }) => usage),
        own
      )
      assert.deepStrictEqual(
        value.map(({ treeUsage }) => treeUsage),
        own
      )
      const told = events.flatMap((event) => (event.type === "subagent/end" ? [event.treeUsage] : []))
      assert.deepStrictEqual(told, own)
    })
  )
})
