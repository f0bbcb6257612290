import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { CurrentAgent } from "effect-subagent"
import { root } from "./utils/seam.ts"

describe("CurrentAgent", () => {
  const ask = Effect.serviceOption(CurrentAgent.CurrentAgent)

  it.effect("is the very agent that the runtime gave", () =>
    Effect.gen(function* () {
      const agent = yield* Effect.provideService(ask, CurrentAgent.CurrentAgent, root)
      assert.strictEqual(Option.getOrUndefined(agent), root)
    })
  )

  it.effect("is nobody outside of any agent", () =>
    Effect.gen(function* () {
      assert.isTrue(Option.isNone(yield* ask))
    })
  )
})
