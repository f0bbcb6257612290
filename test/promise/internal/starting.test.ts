import { assert, describe, it } from "@effect/vitest"
import { Approvals, SubagentError, Subagents } from "effect-subagent"
import * as Effect from "effect/Effect"
import { starting } from "../../../src/promise/internal/starting.ts"
import { completed, provider, reasonOf, root, withSeam } from "../../utils/seam.ts"

describe("a start of the facade", () => {
  it.effect("leaves what is no schema at all to the seam to refuse (3)", () =>
    withSeam([provider()], (seam) =>
      Effect.gen(function* () {
        for (const outputSchema of [1, "text", null, true]) {
          const request = { prompt: "x", parent: root, outputSchema: outputSchema as never }
          const exit = yield* Effect.exit(starting("p", request, {}))
          assert.instanceOf(reasonOf(exit), SubagentError.InvalidRequest)
        }
        const unreadable = {
          prompt: "x",
          parent: root,
          get outputSchema(): never {
            throw new Error("no")
          }
        }
        const exit = yield* Effect.exit(starting("p", unreadable, {}))
        assert.instanceOf(reasonOf(exit), SubagentError.InvalidRequest)
        assert.deepStrictEqual(yield* seam.live, [])
      }).pipe(Effect.provideService(Subagents.Subagents, seam))
    )
  )

  it.effect("changes no approver if it has none of its own, and gives its own the time that it is given (19)", () =>
    Effect.gen(function* () {
      const seen: Array<Approvals.Approver | undefined> = []
      const each = provider({
        turn: (placed) =>
          Effect.map(Effect.service(Approvals.Approvals), (approver) => {
            seen.push(approver)
            placed.emit({ _tag: "Content", block: { type: "text", text: "x" } })
            return completed
          })
      })
      const own: Approvals.Approver = { decide: () => Effect.succeed("denied") }
      yield* withSeam([each], (seam) =>
        Effect.gen(function* () {
          const request = { prompt: "x", parent: root }
          for (const asking of [{}, { approve: () => "approved" as const, approvalTimeout: "1 minute" as const }]) {
            const run = yield* starting("p", request, asking)
            yield* Effect.promise(() => run.result)
          }
        }).pipe(Effect.provideService(Subagents.Subagents, seam), Effect.provideService(Approvals.Approvals, own))
      )
      assert.strictEqual(seen[0], own)
      assert.strictEqual(seen[1]?.timeout, "1 minute")
    })
  )
})
