/** Every limit of a run at, below and above what it allows: whoever set it, and wherever the run stands. */
import { assert, describe, it } from "@effect/vitest"
import { type Limits, SubagentError, type SubagentResult } from "effect-subagent"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { makeChildren, parentIn } from "./utils/limited.ts"
import type { Asked } from "./utils/routes.ts"
import { reasonOf, root, withSeam } from "./utils/seam.ts"

interface Set {
  readonly host?: Partial<Limits.LimitsOptions>
  /** What the parent's run has asked for. The run is the root's own if there is none. */
  readonly parent?: Asked
  readonly asked?: Asked
}

/** Who has set a limit to 3, and what is told of it at the limit. `n` makes a figure of the limit's kind. */
const setters = (of: (n: number) => Asked): ReadonlyArray<readonly [string, Set, { readonly asked?: number }]> => [
  ["the host", { host: of(3) }, {}],
  ["the request", { asked: of(3) }, {}],
  ["the host, and the request asks for more", { host: of(3), asked: of(10) }, { asked: 10 }],
  ["the host, and the request asks for the same", { host: of(3), asked: of(3) }, {}],
  ["the request, which is tighter than the host", { host: of(10), asked: of(3) }, {}],
  ["the host, for a grandchild", { host: of(3), parent: {} }, {}],
  ["the parent's request", { parent: of(3) }, {}],
  ["the parent's request, which is tighter than the host", { host: of(10), parent: of(3) }, {}],
  ["P6: the parent's request, and the child asks for more", { parent: of(3), asked: of(10) }, { asked: 10 }],
  ["P6: the child's request, and the parent's has more", { parent: of(30), asked: of(3) }, {}],
  [
    "the host, the parent asks for more, and so does the child",
    { host: of(3), parent: of(20), asked: of(10) },
    { asked: 10 }
  ]
]

/** How a run with this prompt ends. */
const resultOf = (prompt: string, { asked, host, parent }: Set) =>
  Effect.gen(function* () {
    const children = yield* makeChildren()
    return yield* withSeam(
      [children.provider],
      (seam) =>
        Effect.gen(function* () {
          const agent = parent === undefined ? root : (yield* parentIn(seam, children, parent)).agent
          return yield* Effect.exit(seam.run("p", { prompt, parent: agent, ...asked }))
        }).pipe(Effect.scoped),
      host
    )
  })

const failureOf = (exit: Exit.Exit<SubagentResult.SubagentResult, unknown>) => {
  if (Exit.isFailure(exit)) return reasonOf(exit)
  const { failure, stopReason } = exit.value
  if (failure === undefined) return stopReason
  const { message: _message, retryable: _retryable, ...figures } = failure
  return figures
}

describe("maxTurns (20)", () => {
  for (const [who, set, told] of setters((maxTurns) => ({ maxTurns }))) {
    it.effect(`is set by ${who}`, () =>
      Effect.gen(function* () {
        assert.strictEqual(failureOf(yield* resultOf("turns 3", set)), "completed")
        const over = { kind: "limit", name: "maxTurns", limit: 3, used: 3, ...told }
        assert.deepStrictEqual(failureOf(yield* resultOf("turns 4", set)), over)
      })
    )
  }

  it.effect("allows one turn at 1, and the second is one too many", () =>
    Effect.gen(function* () {
      const set = { asked: { maxTurns: 1 } }
      assert.strictEqual(failureOf(yield* resultOf("turns 1", set)), "completed")
      const over = { kind: "limit", name: "maxTurns", limit: 1, used: 1 }
      assert.deepStrictEqual(failureOf(yield* resultOf("turns 2", set)), over)
    })
  )

  it.effect("leaves a child one turn more to wrap up, whose words are the output, or none", () =>
    Effect.gen(function* () {
      const outputs = []
      for (const host of [{}, { wrapUp: true }, { wrapUp: false }]) {
        const exit = yield* resultOf("turns 5", { host: { maxTurns: 2, ...host } })
        outputs.push(Exit.isSuccess(exit) && [exit.value.stopReason, exit.value.output, exit.value.usage])
      }
      const usage = { total: 20 }
      assert.deepStrictEqual(outputs, [
        ["error", [{ type: "text", text: "so far" }], usage],
        ["error", [{ type: "text", text: "so far" }], usage],
        ["error", [{ type: "text", text: "turn 2" }], usage]
      ])
    })
  )
})

describe("maxTokens (20)", () => {
  for (const [who, set, told] of setters((n) => ({ maxTokens: 10 * n }))) {
    it.effect(`is set by ${who}`, () =>
      Effect.gen(function* () {
        assert.strictEqual(failureOf(yield* resultOf("turns 3", set)), "completed")
        const over = { kind: "limit", name: "maxTokens", limit: 30, used: 30, ...(told.asked && { asked: 100 }) }
        assert.deepStrictEqual(failureOf(yield* resultOf("turns 4", set)), over)
      })
    )
  }

  it.effect("is exceeded by what is under way, and no more than that", () =>
    Effect.gen(function* () {
      assert.strictEqual(failureOf(yield* resultOf("tokens 1", { asked: { maxTokens: 1 } })), "completed")
      assert.strictEqual(failureOf(yield* resultOf("tokens 2", { asked: { maxTokens: 1 } })), "completed")
      const over = { kind: "limit", name: "maxTokens", limit: 11, used: 20 }
      assert.deepStrictEqual(failureOf(yield* resultOf("turns 3", { asked: { maxTokens: 11 } })), over)
    })
  )

  it.effect("stops a child whose provider does not ask when it reports one more", () =>
    Effect.gen(function* () {
      const children = yield* makeChildren({ turns: false })
      const { provider } = children
      const silent = {
        ...provider,
        start: ((placed) => provider.start({ ...placed, nextTurn: () => undefined })) as typeof provider.start
      }
      const run = (n: number) =>
        withSeam([silent], (seam) => Effect.exit(seam.run("p", { prompt: `tokens ${n}`, parent: root, maxTokens: 7 })))
      const [exactly, over] = [yield* run(7), yield* run(8)]
      assert.strictEqual(failureOf(exactly), "completed")
      assert.deepStrictEqual(failureOf(over), { kind: "limit", name: "maxTokens", limit: 7, used: 8 })
      // it was stopped there: what it would have said next nobody has heard
      assert.deepStrictEqual(Exit.isSuccess(over) && over.value.output, [{ type: "text", text: "reading" }])
    })
  )
})

for (const name of ["timeout", "idleTimeout"] as const) {
  describe(`${name} (20)`, () => {
    for (const [who, set, told] of setters((n) => ({ [name]: 1000 * n }))) {
      it.effect(`is set by ${who}`, () =>
        Effect.gen(function* () {
          const children = yield* makeChildren()
          yield* withSeam(
            [children.provider],
            (seam) =>
              Effect.gen(function* () {
                const parent = set.parent === undefined ? root : (yield* parentIn(seam, children, set.parent)).agent
                const run = yield* seam.start("p", { prompt: "wait", parent, ...set.asked })
                yield* children.hanging
                // the parent's clock would run out in the same moment
                yield* children.letGo
                yield* TestClock.adjust(2999)
                assert.strictEqual((yield* seam.live).at(-1)?.state, "running")
                yield* TestClock.adjust(1)
                const result = yield* run.result
                const over = { kind: "timeout", name, limit: 3000, used: 3000, ...(told.asked && { asked: 10_000 }) }
                assert.deepStrictEqual(failureOf(Exit.succeed(result)), over)
                assert.deepStrictEqual(result.output, [{ type: "text", text: "so far" }])
              }).pipe(Effect.scoped),
            set.host
          )
        })
      )
    }
  })
}

describe("startTimeout (20)", () => {
  for (const [who, set, told] of setters((n) => ({ startTimeout: 1000 * n }))) {
    it.effect(`is set by ${who}`, () =>
      Effect.gen(function* () {
        const children = yield* makeChildren()
        yield* withSeam(
          [children.provider],
          (seam) =>
            Effect.gen(function* () {
              const parent = set.parent === undefined ? root : (yield* parentIn(seam, children, set.parent)).agent
              const starting = yield* Effect.forkChild(
                Effect.exit(Effect.scoped(seam.start("p", { prompt: "slow", parent, ...set.asked })))
              )
              yield* children.hanging
              yield* TestClock.adjust(2999)
              assert.isUndefined(starting.pollUnsafe())
              yield* TestClock.adjust(1)
              const exit = yield* Fiber.join(starting)
              const reason = { provider: "p", timeout: 3000, ...(told.asked && { asked: 10_000 }) }
              assert.deepStrictEqual(reasonOf(exit), new SubagentError.StartTimeout(reason))
            }).pipe(Effect.scoped),
          set.host
        )
      })
    )
  }
})

describe("the limits of a child that goes on elsewhere (20)", () => {
  const kept = (asked: Asked) =>
    Effect.flatMap(makeChildren(), ({ provider }) =>
      withSeam([provider], (seam) =>
        Effect.scoped(
          Effect.flatMap(seam.start("p", { prompt: "modest", parent: root, ...asked }), ({ result, token }) =>
            Effect.andThen(result, token!)
          )
        )
      )
    )
  const rows: ReadonlyArray<readonly [string, Asked, Partial<Limits.LimitsOptions>, Asked, object]> = [
    ["of the token", { maxTurns: 3 }, {}, {}, {}],
    ["of the token, and not a request for more", { maxTurns: 3 }, {}, { maxTurns: 10 }, { asked: 10 }],
    [
      "of the token, and not a host's that are looser",
      { maxTurns: 3 },
      { maxTurns: 20 },
      { maxTurns: 10 },
      { asked: 10 }
    ],
    ["of a request that is tighter", { maxTurns: 10 }, {}, { maxTurns: 3 }, {}],
    ["of a host that is tighter", { maxTurns: 10 }, { maxTurns: 3 }, {}, { asked: 10 }],
    ["of a host that is tighter, also than a request", { maxTurns: 10 }, { maxTurns: 3 }, { maxTurns: 5 }, { asked: 5 }]
  ]
  for (const [whose, before, host, asked, told] of rows) {
    it.effect(`are those ${whose}`, () =>
      Effect.gen(function* () {
        const token = yield* kept(before)
        const { provider } = yield* makeChildren()
        const exit = yield* withSeam(
          [provider],
          (seam) =>
            Effect.exit(
              Effect.scoped(
                Effect.flatMap(seam.resume(token, "turns 4", { parent: root, ...asked }), ({ result }) => result)
              )
            ),
          host
        )
        assert.deepStrictEqual(failureOf(exit), { kind: "limit", name: "maxTurns", limit: 3, used: 3, ...told })
      })
    )
  }
})
