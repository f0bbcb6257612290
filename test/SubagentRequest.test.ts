import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { SubagentRequest } from "effect-subagent"
import { inSeam, lines, makeSignal, provider, root, tagOf } from "./utils/seam.ts"

describe("allowsTool (12)", () => {
  const usable = (...filters: ReadonlyArray<SubagentRequest.ToolFilter>) =>
    ["a", "b", "c"].filter((name) => SubagentRequest.allowsTool(filters, name)).join("")

  it("lets through what is allowed, less what is denied", () => {
    assert.strictEqual(usable(), "abc")
    assert.strictEqual(usable({ allow: ["a", "b"] }), "ab")
    assert.strictEqual(usable({ deny: ["b"] }), "ac")
    assert.strictEqual(usable({ allow: ["a", "b"], deny: ["b", "x"] }), "a")
    assert.strictEqual(usable({ allow: [] }), "")
    assert.strictEqual(usable({ allow: undefined, deny: undefined }), "abc")
  })

  it("never gives back below what was taken above", () => {
    assert.strictEqual(usable({ allow: ["a"] }, { allow: ["a", "b"] }), "a")
    assert.strictEqual(usable({ deny: ["a"] }, { allow: ["a", "b"] }), "b")
    assert.strictEqual(usable({ allow: ["a"] }, { allow: ["b"] }), "")
  })

  it("goes by exact names", () => {
    assert.isFalse(SubagentRequest.allowsTool([{ allow: ["a*"] }], "ab"))
    assert.isTrue(SubagentRequest.allowsTool([{ deny: ["A"] }], "a"))
  })
})

describe("a request", () => {
  it.effect("is never changed, and can be used again", () =>
    Effect.gen(function* () {
      const { listeners, signal } = makeSignal()
      const request = Object.freeze({
        prompt: Object.freeze([Object.freeze({ type: "text" as const, text: "go" })]),
        parent: root,
        signal,
        agentOptions: Object.freeze({ model: "m" }),
        toolFilter: Object.freeze({ allow: Object.freeze(["a"]) }),
        maxDepth: 2,
        label: "l"
      })
      const { events } = yield* inSeam([provider()], (seam) =>
        Effect.all([seam.run("p", request), seam.run("p", request)])
      )
      assert.deepStrictEqual(lines(events), ["start l", "end l completed", "start l", "end l completed"])
      assert.strictEqual(listeners(), 0)
    })
  )

  it.effect("that is refused touches neither the signal nor the provider (3, 4)", () =>
    Effect.gen(function* () {
      const { added, signal } = makeSignal()
      const { events } = yield* inSeam([provider({ start: () => Effect.die("asked") })], (seam) =>
        Effect.gen(function* () {
          const exit = yield* Effect.exit(seam.run("p", { prompt: " ", parent: root, signal }))
          assert.strictEqual(tagOf(exit), "InvalidRequest")
        })
      )
      assert.deepStrictEqual([added(), lines(events)], [0, []])
    })
  )

  it.effect("whose signal can't be listened to starts nothing", () =>
    Effect.gen(function* () {
      let asked = 0
      const { signal } = makeSignal()
      const broken = {
        ...signal,
        addEventListener: () => {
          throw new Error("no")
        }
      }
      const start = () => {
        asked++
        return Effect.die("asked")
      }
      const { events } = yield* inSeam([provider({ start })], (seam) =>
        Effect.exit(seam.run("p", { prompt: "go", parent: root, signal: broken }))
      )
      assert.deepStrictEqual([asked, lines(events)], [0, []])
    })
  )
})
