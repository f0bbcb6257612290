import type * as nodeTest from "node:test"
import type * as effectVitest from "@effect/vitest"
import type { ProviderConformance } from "effect-subagent/testing"
import { describe, expectTypeOf, it } from "vitest"
import type * as vitest from "vitest"

type Runner = Pick<ProviderConformance.Options, "describe" | "it">

describe("ProviderConformance", () => {
  it("takes the test runners there are as they are", () => {
    expectTypeOf<typeof vitest>().toExtend<Runner>()
    expectTypeOf<typeof effectVitest>().toExtend<Runner>()
    expectTypeOf<typeof nodeTest>().toExtend<Runner>()
  })
})
