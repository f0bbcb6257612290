import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Capabilities } from "effect-subagent"
import { lines, inSeam, provider, root, tagOf } from "./utils/seam.ts"

describe("Capabilities.none", () => {
  it("answers what must be answered with no, and can't be changed", () => {
    assert.deepStrictEqual(Capabilities.none, { outputSchema: false, depthLimit: false, toolFilter: false })
    assert.isTrue(Object.isFrozen(Capabilities.none))
  })

  it.effect("makes a provider that takes a plain prompt and refuses all the rest (3)", () =>
    Effect.gen(function* () {
      const image = { type: "image", data: "aGk=", mimeType: "image/png" } as const
      const { events } = yield* inSeam([provider({ capabilities: Capabilities.none })], (seam) =>
        Effect.gen(function* () {
          const refused = [
            { maxDepth: 1 },
            { toolFilter: { allow: ["a"] } },
            { agentOptions: { model: "m" } },
            { agentOptions: { systemPrompt: "s" } },
            { prompt: [image] }
          ]
          for (const request of refused) {
            const exit = yield* Effect.exit(seam.run("p", { prompt: "go", parent: root, ...request }))
            assert.strictEqual(tagOf(exit), "UnsupportedCapability")
          }
          assert.strictEqual((yield* seam.run("p", { prompt: "go", parent: root })).stopReason, "completed")
        })
      )
      assert.deepStrictEqual(lines(events), ["start p", "end p completed"])
    })
  )
})
