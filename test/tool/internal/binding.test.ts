import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { SubagentTool } from "effect-subagent/tool"
import { requestOf } from "../../../src/tool/internal/binding.ts"
import { root } from "../../utils/seam.ts"

describe("what tools that delegate have in common", () => {
  it("is what the public module shows", () => {
    assert.deepStrictEqual(SubagentTool.inputSchema.required, ["description", "prompt"])
  })

  it("is a request that asks for what the binding says, and for nothing else [seed 24] [seed 25]", () => {
    const input = { description: "Look", prompt: "What is here?" }
    const bare = { prompt: input.prompt, parent: root, label: input.description }
    assert.deepStrictEqual(requestOf({ provider: "p" }, input, root), Result.succeed(bare))
    const limits = {
      startTimeout: "10 seconds",
      timeout: { minutes: 5 },
      idleTimeout: 30_000,
      maxTurns: 10,
      maxTokens: 100_000,
      maxRuns: 0
    } as const
    const asked = { agentOptions: { model: "fast" }, toolFilter: { deny: ["rm"] }, maxDepth: 0, ...limits }
    assert.deepStrictEqual(requestOf({ provider: "p", ...asked }, input, root), Result.succeed({ ...bare, ...asked }))
  })
})
