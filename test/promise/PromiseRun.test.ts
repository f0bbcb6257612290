import { assert, describe, it } from "@effect/vitest"
import { Content, type ResumeToken, type SubagentError } from "effect-subagent"
import type { PromiseRun } from "effect-subagent/promise"
import { PromiseSubagents } from "effect-subagent/promise"
import { ScriptedProvider } from "effect-subagent/testing"
import * as Effect from "effect/Effect"
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

  it("goes on in another process from its token, under the same conditions as a start (16)", async () => {
    const scripted = ScriptedProvider.make(
      { turn: [ScriptedProvider.text("first")], token: Effect.succeed("the notes") },
      { continued: (_, payload) => [ScriptedProvider.text(`going on from ${JSON.stringify(payload)}`)] }
    )
    const facade = () => PromiseSubagents.fromProviders([Effect.runSync(scripted).provider])
    const [before, after] = [facade(), facade()]
    const parent = before.root()
    const run = await before.start("scripted", { prompt: "go", parent })
    await run.result
    const token = JSON.parse(JSON.stringify(await run.token?.())) as ResumeToken.ResumeToken
    await before.dispose()

    const resumed = await after.resume(token, "on", { parent })
    assert.strictEqual(resumed.id, run.id)
    assert.notStrictEqual(resumed.runId, run.runId)
    assert.strictEqual(Content.toText((await resumed.result).output), 'going on from "the notes"')
    await resumed.dispose()

    const codeOf = (promise: Promise<unknown>) =>
      promise.then(
        () => "accepted",
        (error: SubagentError.SubagentError) => error.code
      )
    assert.strictEqual(await codeOf(after.resume(token, "on", { parent: after.root() })), "FOREIGN_TOKEN")
    assert.strictEqual(
      await codeOf(after.resume(Object.assign({}, token, { version: 2 }) as never, "on", { parent })),
      "INVALID_REQUEST"
    )
    assert.strictEqual(await codeOf(after.resume(undefined as never, "on", { parent })), "INVALID_REQUEST")
    assert.strictEqual(
      await codeOf(after.resume(token, "on", { parent, outputSchema: { type: "array" } })),
      "INVALID_REQUEST"
    )
    const why = new Error("why")
    const error = await after.resume(token, "on", { parent, signal: AbortSignal.abort(why) }).catch((thrown) => thrown)
    assert.strictEqual(error, why)
    await after.dispose()
    assert.strictEqual(await codeOf(after.resume(token, "on", { parent })), "REGISTRY_CLOSED")
  })
})
