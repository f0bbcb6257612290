import { assert, describe, it } from "@effect/vitest"
import type { PromiseRun } from "effect-subagent/promise"
import { PromiseSubagents } from "effect-subagent/promise"
import { make } from "../fixtures/promiseProvider.ts"

describe("PromiseRun", () => {
  it("is a value that nobody can change (17)", async () => {
    const facade = PromiseSubagents.fromProviders([make("p").provider])
    const run: PromiseRun.PromiseRun = await facade.start("p", { prompt: "complete", parent: facade.root() })
    const keys = ["cancel", "dispose", "header", "id", "provider", "result", "resume", "runId", "updates"]
    assert.deepStrictEqual(Object.keys(run).toSorted(), keys)
    assert.isTrue(Object.isFrozen(run) && Object.isFrozen(run.header) && Object.isFrozen(await run.result))
    await facade.dispose()
  })
})
