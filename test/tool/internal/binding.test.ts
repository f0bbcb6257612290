import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { SubagentTool } from "effect-subagent/tool"
import { requestOf } from "../../../src/tool/internal/binding.ts"
import { root } from "../../utils/seam.ts"

describe("what tools that delegate have in common", () => {
  it("is what the public module shows", () => {
    assert.deepStrictEqual(SubagentTool.inputSchema.required, ["description", "prompt"])
  })

  it.effect("is a request that asks for what the binding says, and for nothing else [seed 24] [seed 25]", () =>
    Effect.gen(function* () {
      const input = { description: "Look", prompt: "What is here?" }
      const bare = { prompt: input.prompt, parent: root, label: input.description }
      assert.deepStrictEqual(yield* requestOf({ provider: "p" }, input, root), bare)
      const asked = { agentOptions: { model: "fast" }, toolFilter: { deny: ["rm"] }, maxDepth: 0 }
      assert.deepStrictEqual(yield* requestOf({ provider: "p", ...asked }, input, root), { ...bare, ...asked })
    })
  )
})
