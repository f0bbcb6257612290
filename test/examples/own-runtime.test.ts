import { assert, describe, it } from "@effect/vitest"
import { Agent, Content, Subagents } from "effect-subagent"
import { ProviderConformance } from "effect-subagent/testing"
import * as Effect from "effect/Effect"
import { layer } from "../../docs/examples/own-runtime.ts"

ProviderConformance.suite("spawn on a host's own runtime", layer, {
  describe,
  it,
  prompts: {
    complete: "how many words are these",
    hang: "wait",
    stream: "wait",
    fail: "fail",
    resume: "how many words"
  },
  capabilities: { outputSchema: false, depthLimit: true, toolFilter: false }
})

describe("a host's own runtime", () => {
  const run = (prompt: string) =>
    Effect.gen(function* () {
      const { run } = yield* Subagents.Subagents
      return yield* run("spawn", { prompt, parent: yield* Agent.root() })
    }).pipe(Effect.provide(layer))

  it.effect("answers from its own loop, each child with a memory of its own (17)", () =>
    Effect.gen(function* () {
      for (const prompt of ["one two three", "four five six"]) {
        const { output, stopReason } = yield* run(prompt)
        assert.strictEqual(stopReason, "completed")
        assert.strictEqual(Content.toText(output), "Request 1: 3 words.")
      }
    })
  )

  it.effect("tells as data how its loop failed (8)", () =>
    Effect.gen(function* () {
      const { failure, stopReason } = yield* run("fail")
      assert.strictEqual(stopReason, "error")
      assert.deepStrictEqual(failure, {
        kind: "model",
        retryable: false,
        message: "Error: The clerk is out of forms"
      })
    })
  )
})
