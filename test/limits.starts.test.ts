/** Limits that refuse a start: of depth, of runs, and of places, at, below and above what they allow. */
import { assert, describe, it } from "@effect/vitest"
import { type Agent, type Limits, SubagentError } from "effect-subagent"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { type Children, makeChildren, parentIn } from "./utils/limited.ts"
import type { Asked } from "./utils/routes.ts"
import { inSeam, lines, reasonOf, root, type Seam, tagOf, withSeam } from "./utils/seam.ts"

const { DepthExceeded, LimitReached } = SubagentError

const within = <A, E>(
  host: Partial<Limits.LimitsOptions>,
  body: (seam: Seam, children: Children) => Effect.Effect<A, E, Scope.Scope>
) =>
  Effect.flatMap(makeChildren(), (children) =>
    withSeam([children.provider], (seam) => Effect.scoped(body(seam, children)), host)
  )

/** How many runs there can be one after the other, and why there is not one more. */
const runsOf = (seam: Seam, parent: Agent.Agent, asked: Asked = {}) =>
  Effect.gen(function* () {
    for (let n = 0; ; n++) {
      const exit = yield* Effect.exit(seam.run("p", { prompt: "modest", parent, ...asked }))
      if (Exit.isFailure(exit)) return [n, reasonOf(exit)] as const
    }
  })

describe("maxDepth (20)", () => {
  /** How deep a line of children gets, each of which asks for what is next in the list, and why no deeper. */
  const deepest = (host: Partial<Limits.LimitsOptions>, asked: ReadonlyArray<number | undefined>) =>
    within(host, (seam, children) =>
      Effect.gen(function* () {
        let above: Agent.Agent = root
        for (let depth = 0; ; depth++) {
          const maxDepth = asked[depth]
          const exit = yield* Effect.exit(parentIn(seam, children, maxDepth === undefined ? {} : { maxDepth }, above))
          if (Exit.isFailure(exit)) return [depth, reasonOf(exit)] as const
          above = exit.value.agent
        }
      })
    )
  const none = undefined
  const rows: ReadonlyArray<
    readonly [number | undefined, ReadonlyArray<number | undefined>, number, number | undefined]
  > = [
    // the host's, what is asked for at each level, how deep it gets, and what is told beside the limit
    [none, [], 3, none],
    [0, [], 0, none],
    [1, [], 1, none],
    [2, [], 2, none],
    [3, [0], 0, none],
    [3, [1], 1, none],
    [3, [2], 2, none],
    [3, [3], 3, none],
    [2, [3], 2, none],
    [2, [none, 1], 1, none],
    [2, [none, 2], 2, none],
    [2, [none, 3], 2, 3],
    [1, [10], 1, 10],
    [0, [10], 0, 10],
    [10, [1, 5], 1, 5],
    [10, [1], 1, none]
  ]
  for (const [host, asked, depth, told] of rows) {
    const who = asked.length === 0 ? "nobody asks for more or less" : `its runs ask for ${asked.map(String).join(", ")}`
    it.effect(`H4: gets ${depth} deep where the host says ${host ?? "nothing"} and ${who}`, () =>
      Effect.gen(function* () {
        const [reached, reason] = yield* deepest(host === undefined ? {} : { maxDepth: host }, asked)
        assert.strictEqual(reached, depth)
        assert.deepStrictEqual(
          reason,
          new DepthExceeded({ depth: depth + 1, maxDepth: depth, ...(told !== undefined && { asked: told }) })
        )
      })
    )
  }
})

describe("maxRuns (20)", () => {
  it.effect("of the host counts the runs below each root, for each root by itself", () =>
    Effect.gen(function* () {
      const other: Agent.Agent = { id: "other", session: { header: { id: "other-session" } } }
      for (const maxRuns of [0, 1, 2, 5]) {
        const [first, second] = yield* within({ maxRuns }, (seam) =>
          Effect.all([runsOf(seam, root), runsOf(seam, other)])
        )
        const reason = (of: string) => new LimitReached({ name: "maxRuns", of, limit: maxRuns, used: maxRuns })
        assert.deepStrictEqual(first, [maxRuns, reason('root "root"')])
        assert.deepStrictEqual(second, [maxRuns, reason('root "other"')])
      }
    })
  )

  it.effect("of the host counts those of every level", () =>
    within({ maxRuns: 5 }, (seam, children) =>
      Effect.gen(function* () {
        const { agent } = yield* parentIn(seam, children)
        const below = yield* parentIn(seam, children, {}, agent)
        const [n, reason] = yield* runsOf(seam, below.agent)
        const refusal = new LimitReached({ name: "maxRuns", of: 'root "root"', limit: 5, used: 5 })
        assert.deepStrictEqual([n, reason], [3, refusal])
        assert.deepStrictEqual(yield* runsOf(seam, root), [0, refusal])
      })
    )
  )

  it.effect("of a request counts the runs below that one, at every level", () =>
    Effect.gen(function* () {
      for (const maxRuns of [0, 1, 3]) {
        yield* within({}, (seam, children) =>
          Effect.gen(function* () {
            const { agent, run } = yield* parentIn(seam, children, { maxRuns })
            const [n, reason] = yield* runsOf(seam, agent)
            const of = `run ${run.runId}`
            assert.deepStrictEqual(
              [n, reason],
              [maxRuns, new LimitReached({ name: "maxRuns", of, limit: maxRuns, used: maxRuns })]
            )
            // the root may go on
            yield* seam.run("p", { prompt: "modest", parent: root })
          })
        )
      }
    })
  )

  it.effect("of a parent's request holds for what its children start", () =>
    within({}, (seam, children) =>
      Effect.gen(function* () {
        const { agent, run } = yield* parentIn(seam, children, { maxRuns: 3 })
        const below = yield* parentIn(seam, children, {}, agent)
        const limit = { name: "maxRuns", of: `run ${run.runId}`, limit: 3, used: 3 }
        assert.deepStrictEqual(yield* runsOf(seam, below.agent), [2, new LimitReached(limit)])
        assert.deepStrictEqual(yield* runsOf(seam, agent), [0, new LimitReached(limit)])
      })
    )
  )

  it.effect("is not widened by a request that asks for more, and the refusal names both", () =>
    Effect.gen(function* () {
      const byHost = yield* within({ maxRuns: 3 }, (seam, children) =>
        Effect.flatMap(parentIn(seam, children, { maxRuns: 10 }), ({ agent }) => runsOf(seam, agent))
      )
      const limit = { name: "maxRuns", limit: 3, used: 3 }
      assert.deepStrictEqual(byHost, [2, new LimitReached({ ...limit, of: 'root "root"', asked: 10 })])
      yield* within({}, (seam, children) =>
        Effect.gen(function* () {
          const { agent, run } = yield* parentIn(seam, children, { maxRuns: 3 })
          const below = yield* parentIn(seam, children, { maxRuns: 10 }, agent)
          const refusal = new LimitReached({ ...limit, of: `run ${run.runId}`, asked: 10 })
          assert.deepStrictEqual(yield* runsOf(seam, below.agent), [2, refusal])
        })
      )
    })
  )

  it.effect("does not count what came to nothing", () =>
    within({ maxRuns: 1 }, (seam) =>
      Effect.gen(function* () {
        yield* Effect.exit(seam.run("p", { prompt: "", parent: root }))
        yield* Effect.exit(seam.run("nobody", { prompt: "modest", parent: root }))
        const aborted = { aborted: true, addEventListener: () => {}, removeEventListener: () => {} }
        yield* Effect.exit(seam.run("p", { prompt: "modest", parent: root, signal: aborted }))
        yield* Effect.timeoutOption(Effect.scoped(seam.start("p", { prompt: "slow", parent: root })), 0).pipe(
          Effect.forkChild({ startImmediately: true }),
          Effect.flatMap(Fiber.interrupt)
        )
        assert.strictEqual((yield* runsOf(seam, root))[0], 1)
      })
    )
  )
})

describe("maxConcurrent (20)", () => {
  const p2 = (children: Children) => ({ ...children.provider, name: "p2" })
  const hold = (seam: Seam, children: Children, name = "p", parent: Agent.Agent = root) =>
    Effect.gen(function* () {
      const run = yield* seam.start(name, { prompt: "hold", parent })
      yield* children.hanging
      return { run, agent: children.agent() }
    })
  const other: Agent.Agent = { id: "other", session: { header: { id: "other-session" } } }
  const tagsOf = (seam: Seam, ...asking: ReadonlyArray<readonly [string, Agent.Agent]>) =>
    Effect.forEach(asking, ([name, parent]) =>
      Effect.map(Effect.exit(seam.run(name, { prompt: "modest", parent })), (exit) =>
        Exit.isSuccess(exit) ? exit.value.stopReason : tagOf(exit)
      )
    )
  const full = "LimitReached"
  const rows: ReadonlyArray<readonly [Limits.MaxConcurrent, string, ReadonlyArray<string>]> = [
    // with a run of p below root at work: another of p below root, of p2 below root, of p and of p2 below another root
    [{ overall: 1 }, "the host", [full, full, full, full]],
    [{ tree: 1 }, 'root "root"', [full, full, "completed", "completed"]],
    [{ provider: 1 }, 'provider "p"', [full, "completed", full, "completed"]],
    [{ provider: { p: 1 } }, 'provider "p"', [full, "completed", full, "completed"]],
    [{ provider: { p: 2, p2: 1 } }, "", ["completed", "completed", "completed", "completed"]],
    [{ overall: 2 }, "", ["completed", "completed", "completed", "completed"]],
    [{ overall: 2, tree: 1 }, 'root "root"', [full, full, "completed", "completed"]],
    [{ overall: 2, tree: 2, provider: 1 }, 'provider "p"', [full, "completed", full, "completed"]]
  ]
  for (const [maxConcurrent, of, expected] of rows) {
    it.effect(
      `${JSON.stringify(maxConcurrent)} lets in as many as that, and refuses one more where nobody may wait`,
      () =>
        Effect.gen(function* () {
          const children = yield* makeChildren()
          yield* withSeam(
            [children.provider, p2(children)],
            (seam) =>
              Effect.gen(function* () {
                yield* hold(seam, children)
                const asking = [
                  ["p", root],
                  ["p2", root],
                  ["p", other],
                  ["p2", other]
                ] as const
                assert.deepStrictEqual(yield* tagsOf(seam, ...asking), expected)
                if (of === "") return
                const exit = yield* Effect.exit(seam.run("p", { prompt: "modest", parent: root }))
                assert.deepStrictEqual(
                  reasonOf(exit),
                  new LimitReached({ name: "maxConcurrent", of, limit: 1, used: 1 })
                )
              }).pipe(Effect.scoped),
            { maxConcurrent, maxQueued: 0 }
          )
        })
    )
  }

  it.effect("lets as many wait as maxQueued says, and refuses one more with the figures", () =>
    Effect.gen(function* () {
      for (const maxQueued of [1, 2]) {
        const children = yield* makeChildren()
        const { events } = yield* inSeam(
          [children.provider],
          (seam) =>
            Effect.gen(function* () {
              yield* hold(seam, children)
              const waiting = yield* Effect.forEach(Array.from({ length: maxQueued }), (_, i) =>
                Effect.forkChild(seam.run("p", { prompt: "modest", parent: root, label: `waiter ${i}` }), {
                  startImmediately: true
                })
              )
              const exit = yield* Effect.exit(seam.run("p", { prompt: "modest", parent: root }))
              const refusal = { name: "maxQueued", of: "the host", limit: maxQueued, used: maxQueued }
              assert.deepStrictEqual(reasonOf(exit), new LimitReached(refusal))
              assert.strictEqual((yield* seam.live).length, 1)
              yield* children.letGo
              for (const fiber of waiting) assert.strictEqual((yield* Fiber.join(fiber)).stopReason, "completed")
              assert.strictEqual((yield* seam.run("p", { prompt: "modest", parent: root })).stopReason, "completed")
            }).pipe(Effect.scoped),
          { maxConcurrent: { overall: 1 }, maxQueued }
        )
        const starts = lines(events).filter((line) => line.startsWith("start waiter"))
        assert.deepStrictEqual(
          starts,
          Array.from({ length: maxQueued }, (_, i) => `start waiter ${i}`)
        )
      }
    })
  )

  it.effect("of a parent is shared with its children, one at a time", () =>
    Effect.gen(function* () {
      const children = yield* makeChildren()
      yield* withSeam(
        [children.provider],
        (seam) =>
          Effect.gen(function* () {
            const { agent } = yield* hold(seam, children)
            const child = yield* hold(seam, children, "p", agent)
            const exit = yield* Effect.exit(seam.run("p", { prompt: "modest", parent: agent }))
            const refusal = { name: "maxConcurrent", of: 'root "root"', limit: 1, used: 1 }
            assert.deepStrictEqual(reasonOf(exit), new LimitReached(refusal))
            yield* child.run.cancel()
            assert.strictEqual((yield* seam.run("p", { prompt: "modest", parent: agent })).stopReason, "completed")
          }).pipe(Effect.scoped),
        { maxConcurrent: { tree: 1 }, maxQueued: 0 }
      )
    })
  )
})
