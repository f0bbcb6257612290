/** H2: limits hold on every way in, and bad figures are refused on every one of them. */
import { assert, describe, it } from "@effect/vitest"
import { type Agent, Budget, type Limits, SubagentError } from "effect-subagent"
import { PromiseSubagents } from "effect-subagent/promise"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { type Children, makeChildren, parentIn } from "./utils/limited.ts"
import { ask, type Asked, type Ended, type Route, routes } from "./utils/routes.ts"
import { reasonOf, root, type Seam, withSeam } from "./utils/seam.ts"

const { DepthExceeded, LimitReached, StartTimeout, UnsupportedCapability } = SubagentError

interface World {
  readonly seam: Seam
  readonly children: Children
}

/** Does something in a seam of its own for every way in, and says which one it was if it fails. */
const onEvery = <E>(
  host: Partial<Limits.LimitsOptions>,
  body: (route: Route, world: World) => Effect.Effect<void, E, Scope.Scope>,
  among: (route: Route) => boolean = () => true,
  capabilities: Parameters<typeof makeChildren>[0] = {}
) =>
  Effect.forEach(
    routes.filter(among),
    (route) =>
      Effect.flatMap(makeChildren(capabilities), (children) =>
        withSeam([children.provider], (seam) => Effect.scoped(body(route, { seam, children })), host)
      ).pipe(Effect.onError(() => Effect.logError(`on the way of ${route.name}`))),
    { discard: true }
  )

const askFor = (
  route: Route,
  { children, seam }: World,
  prompt: string,
  asked: Asked = {},
  parent: Agent.Agent = root
): Effect.Effect<Ended> => ask(route, { seam, provider: children.provider, parent, prompt, asked })

/** Whether a route tells of a refusal: in words on every way, and as itself where there is a way to. */
const isRefused = ({ reason, said }: Ended, refusal: SubagentError.SubagentErrorReason) => {
  assert.include(said, refusal.message)
  if (reason !== undefined) assert.deepStrictEqual(reason, refusal)
}

const isCut = ({ failure, said }: Ended, message: string, figures: object) => {
  assert.include(said, message)
  if (failure === undefined) return
  const { message: _message, retryable: _retryable, ...rest } = failure
  assert.deepStrictEqual<object>(rest, figures)
}

const sources = (asked: Asked): ReadonlyArray<readonly [string, Partial<Limits.LimitsOptions>, Asked]> => [
  ["the host's", asked, {}],
  ["what is asked for", {}, asked]
]

describe("H2: on every way in (20)", () => {
  for (const [whose, host, asked] of sources({ maxTurns: 2 })) {
    it.effect(`maxTurns holds, ${whose}`, () =>
      onEvery(host, (route, world) =>
        Effect.gen(function* () {
          const figures = { kind: "limit", name: "maxTurns", limit: 2, used: 2 }
          isCut(yield* askFor(route, world, "turns 3", asked), "The limit maxTurns of the run is reached: 2", figures)
        })
      )
    )
  }

  for (const [whose, host, asked] of sources({ maxTokens: 20 })) {
    it.effect(`maxTokens holds, ${whose}`, () =>
      onEvery(host, (route, world) =>
        Effect.gen(function* () {
          const figures = { kind: "limit", name: "maxTokens", limit: 20, used: 20 }
          isCut(yield* askFor(route, world, "turns 3", asked), "is reached: 20, of which 20 used", figures)
        })
      )
    )
  }

  it.effect("a looser request changes nothing, and what is told at the limit names both", () =>
    onEvery({ maxTurns: 2 }, (route, world) =>
      Effect.gen(function* () {
        const figures = { kind: "limit", name: "maxTurns", limit: 2, used: 2, asked: 10 }
        isCut(yield* askFor(route, world, "turns 3", { maxTurns: 10 }), "2, of which 2 used; 10 asked for", figures)
      })
    )
  )

  const times = sources({ timeout: "3 seconds" }).concat(sources({ idleTimeout: "3 seconds" }))
  for (const [whose, host, asked] of times) {
    const [name] = Object.keys({ ...host, ...asked })
    it.effect(`${name} holds, ${whose}`, () =>
      onEvery(host, (route, world) =>
        Effect.gen(function* () {
          const asking = yield* Effect.forkChild(askFor(route, world, "wait", asked))
          yield* world.children.hanging
          yield* TestClock.adjust(2999)
          const last = (yield* world.seam.live).at(-1)
          assert.strictEqual(last?.state, "running")
          yield* TestClock.adjust(1)
          isCut(yield* Fiber.join(asking), "after 3000 ms", { kind: "timeout", name, limit: 3000, used: 3000 })
        })
      )
    )
  }

  for (const [whose, host, asked] of sources({ startTimeout: "3 seconds" })) {
    it.effect(`startTimeout holds, ${whose}`, () =>
      onEvery(
        host,
        (route, world) =>
          Effect.gen(function* () {
            const asking = yield* Effect.forkChild(askFor(route, world, "slow", asked))
            yield* world.children.hanging
            yield* TestClock.adjust(3000)
            isRefused(yield* Fiber.join(asking), new StartTimeout({ provider: "p", timeout: 3000 }))
            assert.deepStrictEqual(yield* world.seam.live, [])
          }),
        ({ isStart }) => isStart
      )
    )
  }

  it.effect("maxDepth holds, the host's", () =>
    onEvery(
      { maxDepth: 0 },
      (route, world) =>
        Effect.gen(function* () {
          isRefused(yield* askFor(route, world, "modest"), new DepthExceeded({ depth: 1, maxDepth: 0 }))
        }),
      ({ isStart }) => isStart
    )
  )

  it.effect("maxDepth holds, what is asked for", () =>
    onEvery(
      {},
      (route, world) =>
        Effect.gen(function* () {
          const refusal = new DepthExceeded({ depth: 1, maxDepth: 0 })
          isRefused(yield* askFor(route, world, "modest", { maxDepth: 0 }), refusal)
        }),
      ({ canAskDepth }) => canAskDepth
    )
  )

  it.effect("maxDepth holds, what the parent's run has asked for", () =>
    onEvery(
      {},
      (route, world) =>
        Effect.gen(function* () {
          const { agent } = yield* parentIn(world.seam, world.children, { maxDepth: 1 })
          isRefused(yield* askFor(route, world, "modest", {}, agent), new DepthExceeded({ depth: 2, maxDepth: 1 }))
        }),
      // a child can't be there where it may not be
      ({ isStart, name }) => isStart && !name.includes("token")
    )
  )

  it.effect("maxRuns holds, the host's", () =>
    onEvery({ maxRuns: 3 }, (route, world) =>
      Effect.gen(function* () {
        const { seam, children } = world
        const asks = yield* route.prepare({ seam, provider: children.provider, parent: root, prompt: "modest" })
        for (let n = route.prepared; n < 2; n++) yield* seam.run("p", { prompt: "modest", parent: root })
        const last = yield* asks
        assert.isUndefined(last.failure ?? last.reason)
        const refusal = new LimitReached({ name: "maxRuns", of: 'root "root"', limit: 3, used: 3 })
        isRefused(yield* asks, refusal)
        isRefused(
          yield* Effect.map(Effect.exit(seam.run("p", { prompt: "modest", parent: root })), (exit) => ({
            said: Exit.isFailure(exit) ? refusal.message : "",
            reason: reasonOf(exit) as SubagentError.SubagentErrorReason
          })),
          refusal
        )
      })
    )
  )

  it.effect("maxRuns holds, what the parent's run has asked for", () =>
    onEvery(
      {},
      (route, world) =>
        Effect.gen(function* () {
          const { seam, children } = world
          const { agent, run } = yield* parentIn(seam, children, { maxRuns: 1 })
          const asks = yield* route.prepare({ seam, provider: children.provider, parent: agent, prompt: "modest" })
          if (route.prepared === 0) yield* seam.run("p", { prompt: "modest", parent: agent })
          isRefused(yield* asks, new LimitReached({ name: "maxRuns", of: `run ${run.runId}`, limit: 1, used: 1 }))
        }),
      ({ name }) => !name.includes("token")
    )
  )

  it.effect("a place is taken, and given back", () =>
    onEvery({ maxConcurrent: { overall: 1 }, maxQueued: 0 }, (route, world) =>
      Effect.gen(function* () {
        const { seam, children } = world
        const asks = yield* route.prepare({ seam, provider: children.provider, parent: root, prompt: "modest" })
        const { run } = yield* parentIn(seam, children)
        isRefused(yield* asks, new LimitReached({ name: "maxConcurrent", of: "the host", limit: 1, used: 1 }))
        yield* run.cancel()
        for (let n = 0; n < 3; n++) {
          const ended = yield* asks
          assert.isUndefined(ended.failure ?? ended.reason)
        }
      })
    )
  )

  it.effect("a place is waited for", () =>
    onEvery({ maxConcurrent: { overall: 1 } }, (route, world) =>
      Effect.gen(function* () {
        const { seam, children } = world
        const asks = yield* route.prepare({ seam, provider: children.provider, parent: root, prompt: "modest" })
        const { run } = yield* parentIn(seam, children)
        const before = (yield* children.runs).length
        const asking = yield* Effect.forkChild(asks, { startImmediately: true })
        for (let n = 0; n < 20; n++) yield* Effect.promise(() => Promise.resolve())
        assert.isUndefined(asking.pollUnsafe())
        assert.strictEqual((yield* children.runs).length, before)
        yield* run.cancel()
        const ended = yield* Fiber.join(asking)
        assert.isUndefined(ended.failure ?? ended.reason)
      })
    )
  )

  it.effect("a budget pays, and what it can't pay is refused", () =>
    onEvery({}, (route, world) =>
      Effect.gen(function* () {
        const budget = yield* Budget.make({ name: "acme", maxTokens: 30 })
        const asking = (prompt: string, asked?: Asked) =>
          Effect.provideService(askFor(route, world, prompt, asked), Budget.Current, budget)
        const figures = { kind: "limit", name: "maxTokens", limit: 20, used: 20 }
        isCut(yield* asking("turns 3", { maxTokens: 20 }), "is reached: 20", figures)
        assert.deepStrictEqual(yield* budget.spent, { tokens: 20, reserved: 0, runs: 1 + route.prepared })
        isRefused(
          yield* asking("modest", { maxTokens: 20 }),
          new LimitReached({ name: "maxTokens", of: 'budget "acme"', limit: 30, used: 20, asked: 20 })
        )
      })
    )
  )
})

describe("a limit that nobody could hold (20)", () => {
  const rows: ReadonlyArray<readonly ["usage" | "turns", Asked]> = [
    ["usage", { maxTokens: 10 }],
    ["turns", { maxTurns: 10 }]
  ]
  for (const [capability, limit] of rows) {
    for (const [whose, host, asked] of sources(limit)) {
      it.effect(`is refused on every way where the provider has no ${capability}, ${whose}`, () =>
        onEvery(
          host,
          (route, world) =>
            Effect.gen(function* () {
              const refusal = new UnsupportedCapability({ provider: "p", capability, missing: [capability] })
              isRefused(yield* askFor(route, world, "modest", asked), refusal)
              assert.deepStrictEqual(yield* world.seam.live, [])
            }),
          undefined,
          { [capability]: false }
        )
      )
    }
  }

  it.effect("is refused where a budget has it, also one further out", () =>
    onEvery(
      {},
      (route, world) =>
        Effect.gen(function* () {
          const overall = yield* Budget.make({ name: "overall", maxTokens: 100 })
          const acme = yield* Budget.make({ name: "acme", parent: overall })
          const refusal = new UnsupportedCapability({ provider: "p", capability: "usage", missing: ["usage"] })
          isRefused(yield* Effect.provideService(askFor(route, world, "modest"), Budget.Current, acme), refusal)
          // one that limits nothing of the kind is no obstacle
          const runs = yield* Budget.make({ name: "runs", maxRuns: 2 })
          const ended = yield* Effect.provideService(askFor(route, world, "modest"), Budget.Current, runs)
          assert.isUndefined(ended.failure ?? ended.reason)
        }),
      undefined,
      { usage: false }
    )
  )

  it.effect("is refused where the parent's run has it", () =>
    Effect.gen(function* () {
      const children = yield* makeChildren()
      const mute = {
        ...children.provider,
        name: "mute",
        capabilities: { ...children.provider.capabilities, usage: false, turns: false }
      }
      yield* withSeam([children.provider, mute], (seam) =>
        Effect.gen(function* () {
          const { agent } = yield* parentIn(seam, children, { maxTokens: 10, maxTurns: 3 })
          const exit = yield* Effect.exit(seam.run("mute", { prompt: "modest", parent: agent }))
          const missing = ["usage", "turns"]
          assert.deepStrictEqual(
            reasonOf(exit),
            new UnsupportedCapability({ provider: "mute", capability: "usage", missing })
          )
        }).pipe(Effect.scoped)
      )
    })
  )
})

describe("a figure that is none (20)", () => {
  const counts = [-1, -0, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 1.5, "3", 3n, null, {}, [], true]
  const durations = [0, -1, -0, Number.NaN, Number.POSITIVE_INFINITY, "soon", "-1 second", "0 millis", null, {}, true]
  const figures: Readonly<Record<string, ReadonlyArray<unknown>>> = {
    maxTurns: [0, ...counts],
    maxTokens: [0, ...counts],
    maxRuns: counts,
    maxDepth: counts,
    timeout: durations,
    idleTimeout: durations,
    startTimeout: durations
  }
  for (const [name, wrong] of Object.entries(figures)) {
    it.effect(`is refused on every way, by its name: ${name}`, () =>
      onEvery(
        {},
        (route, world) =>
          Effect.gen(function* () {
            for (const figure of wrong) {
              const { reason, said } = yield* askFor(route, world, "modest", { [name]: figure })
              assert.include(said, `Invalid request: ${name}`, String(figure))
              if (reason !== undefined) assert.strictEqual(reason._tag, "InvalidRequest")
            }
            // a token's child was made elsewhere
            if (!route.name.includes("token")) assert.deepStrictEqual(world.children.placed, [])
            assert.deepStrictEqual(yield* world.seam.live, [])
          }),
        ({ canAskDepth, isStart }) => isStart && (name !== "maxDepth" || canAskDepth)
      )
    )
  }

  it.effect("is refused on every way where its name is misspelt, and on none where it has no value", () =>
    onEvery({}, (route, world) =>
      Effect.gen(function* () {
        for (const key of ["maxTurn", "maxtokens", "timeOut", "maxConcurrent", "maxQueued", "wrapUp"]) {
          const { said } = yield* askFor(route, world, "modest", { [key]: 1 })
          assert.match(said, new RegExp(`Invalid request: ${key}: (Unexpected key|Expected no)`))
        }
        const undefineds = { maxTurns: undefined, maxTokens: undefined, maxRuns: undefined, timeout: undefined }
        const ended = yield* askFor(route, world, "modest", undefineds)
        assert.isUndefined(ended.failure ?? ended.reason)
      })
    )
  )
})

describe("limits of a facade (20)", () => {
  const given = (options: Parameters<typeof PromiseSubagents.fromProviders>[1]) =>
    Effect.gen(function* () {
      const children = yield* makeChildren()
      const facade = yield* Effect.acquireRelease(
        Effect.sync(() => PromiseSubagents.fromProviders([children.provider], options)),
        ({ dispose }) => Effect.promise(dispose)
      )
      return (prompt: string, fields: Asked = {}, asking?: PromiseSubagents.Options) =>
        Effect.tryPromise({
          try: () => facade.run("p", { prompt, parent: root, ...fields }, asking),
          catch: (thrown) => thrown as SubagentError.SubagentError
        })
    })

  it.effect("are those of its options", () =>
    Effect.gen(function* () {
      const run = yield* given({ limits: { maxRuns: 2, maxTurns: 1 } })
      const { failure } = yield* run("turns 2", { maxTurns: 9 })
      assert.deepInclude(failure, { kind: "limit", name: "maxTurns", limit: 1, used: 1, asked: 9 })
      yield* run("modest")
      const refusal = new LimitReached({ name: "maxRuns", of: 'root "root"', limit: 2, used: 2 })
      assert.deepStrictEqual((yield* Effect.flip(run("modest"))).reason, refusal)
    })
  )

  it.effect("are no figures of another kind: everything rejects with what is wrong with them", () =>
    Effect.gen(function* () {
      for (const limits of [{ maxTurns: 0 }, { maxTurn: 1 }, { maxConcurrent: { overall: 0 } }, { timeout: "soon" }]) {
        const run = yield* given({ limits: limits as object })
        const { reason } = yield* Effect.flip(run("modest"))
        assert.strictEqual(reason._tag, "InvalidRequest")
        assert.include(reason.message, Object.keys(limits)[0]!)
      }
    })
  )

  it.effect("are a budget, of the whole or of one start", () =>
    Effect.gen(function* () {
      const [all, one] = [yield* Budget.make({ name: "all", maxRuns: 1 }), yield* Budget.make({ name: "one" })]
      const run = yield* given({ budget: all })
      yield* run("modest")
      yield* run("turns 2", {}, { budget: one })
      const spent = [yield* all.spent, yield* one.spent]
      assert.deepStrictEqual(spent, [
        { tokens: 0, reserved: 0, runs: 1 },
        { tokens: 20, reserved: 0, runs: 1 }
      ])
      const refusal = new LimitReached({ name: "maxRuns", of: 'budget "all"', limit: 1, used: 1 })
      assert.deepStrictEqual((yield* Effect.flip(run("modest"))).reason, refusal)
    })
  )
})
