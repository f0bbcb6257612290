import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Limits } from "effect-subagent"

const defaults = { maxDepth: 3, maxQueued: 10_000, wrapUp: true }

/** The limits in force below a layer. */
const below = <E>(layer: Layer.Layer<never, E>) => Effect.provide(Limits.Limits, layer)

/** The paths of what is wrong with limits that are none. */
const paths = (limits: unknown) =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(below(Limits.layer(limits as Limits.LimitsOptions)))
    assert.strictEqual(error.code, "INVALID_REQUEST")
    assert.strictEqual(error.reason._tag, "InvalidRequest")
    return error.reason._tag === "InvalidRequest" ? error.reason.issues.map(({ path }) => path.join(".")) : []
  })

describe("Limits", () => {
  it.effect("limits the depth and the queue where nobody has said anything, and nothing else", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Limits.Limits, defaults)
    })
  )
})

describe("layer", () => {
  it.effect("sets what it is given, and leaves the rest as it is", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* below(Limits.layer({})), defaults)
      assert.deepStrictEqual(yield* below(Limits.layer({ maxDepth: 0, timeout: "5 minutes" })), {
        ...defaults,
        maxDepth: 0,
        timeout: "5 minutes"
      })
    })
  )

  it.effect("takes a key without a value for one that is not there", () =>
    Effect.gen(function* () {
      const limits = yield* below(
        Limits.layer({ maxDepth: undefined, wrapUp: undefined, maxTurns: undefined } as object)
      )
      assert.deepStrictEqual(limits, defaults)
      assert.notProperty(limits, "maxTurns")
    })
  )

  it.effect("replaces what was set further out key by key, also by what is looser", () =>
    Effect.gen(function* () {
      const further = Limits.layer({ maxTurns: 5, maxTokens: 100, maxConcurrent: { overall: 4, tree: 2 } })
      const closer = Limits.layer({ maxTurns: 50, maxTokens: undefined, maxConcurrent: { tree: 1 }, wrapUp: false })
      const expected = { ...defaults, maxTurns: 50, maxTokens: 100, maxConcurrent: { tree: 1 }, wrapUp: false }
      assert.deepStrictEqual(yield* below(closer.pipe(Layer.provide(further))), expected)
      assert.deepStrictEqual(yield* Effect.provide(below(closer), further), expected)
      assert.deepStrictEqual(yield* below(closer.pipe(Layer.provideMerge(further))), expected)
    })
  )

  it.effect("takes the last one of those that stand side by side, which have not heard of each other", () =>
    Effect.gen(function* () {
      const limits = yield* below(Layer.mergeAll(Limits.layer({ maxTurns: 5 }), Limits.layer({ maxTokens: 100 })))
      assert.deepStrictEqual(limits, { ...defaults, maxTokens: 100 })
    })
  )

  it.effect("fails for every figure that is none, with its path", () =>
    Effect.gen(function* () {
      const names = [
        "startTimeout",
        "timeout",
        "idleTimeout",
        "maxTurns",
        "maxTokens",
        "maxRuns",
        "maxDepth",
        "maxQueued"
      ]
      for (const figure of [-1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, "soon", null, {}]) {
        const limits = Object.fromEntries(names.map((name) => [name, figure]))
        assert.deepStrictEqual(yield* paths(limits), names)
      }
      for (const name of ["startTimeout", "timeout", "idleTimeout", "maxTurns", "maxTokens"]) {
        for (const figure of [0, -0]) assert.deepStrictEqual(yield* paths({ [name]: figure }), [name])
      }
      for (const figure of [0, -0, -1, 1.5, 2 ** 53]) {
        const maxConcurrent = { overall: figure, tree: figure, provider: { acp: figure } }
        const expected = ["maxConcurrent.overall", "maxConcurrent.tree", "maxConcurrent.provider.acp"]
        assert.deepStrictEqual(yield* paths({ maxConcurrent }), expected)
      }
    })
  )

  it.effect("fails for a misspelt key, and for what are no limits", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* paths({ maxTurn: 5 }), ["maxTurn"])
      assert.deepStrictEqual(yield* paths({ maxConcurrent: { total: 5 } }), ["maxConcurrent.total"])
      for (const limits of [null, 5, "maxTurns", []]) assert.deepStrictEqual(yield* paths(limits), [""])
    })
  )

  it.effect("fails alone: what is further out stays as it is", () =>
    Effect.gen(function* () {
      const further = Limits.layer({ maxTurns: 5 })
      const left = Effect.catch(below(Limits.layer({ maxTurns: 0 })), () => Limits.Limits)
      assert.deepStrictEqual(yield* Effect.provide(left, further), { ...defaults, maxTurns: 5 })
    })
  )
})
