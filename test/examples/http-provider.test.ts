/** The provider over HTTP keeps the contract, over real connections to a real server. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Content, Subagents } from "effect-subagent"
import { PromiseSubagents } from "effect-subagent/promise"
import { ProviderConformance } from "effect-subagent/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { httpProvider, serve } from "../../docs/examples/http-provider.ts"

let remote: Awaited<ReturnType<typeof serve>>
beforeAll(async () => {
  remote = await serve()
})
afterAll(() => {
  remote.server.closeAllConnections()
  remote.server.close()
})

/** A connection that has been broken off takes a moment to be noticed on its other side. */
const world = Effect.promise(async () => {
  for (let turns = 0; turns < 10_000 && remote.world.turns > 0; turns++) {
    await new Promise((resolve) => setImmediate(resolve))
  }
  return remote.world
})

const layer = Subagents.addEffect(Effect.sync(() => httpProvider("remote", remote.url)))

ProviderConformance.suite("http", layer.pipe(Layer.provideMerge(Subagents.layer)), {
  describe,
  it,
  prompts: { complete: "hello", hang: "wait", stream: "go on", fail: "fail" },
  capabilities: { outputSchema: false, depthLimit: false, toolFilter: false },
  world,
  print: () => {}
})

describe("a provider over HTTP", () => {
  it("tells a status as data, and whether it is worth a retry (8)", async () => {
    const subagents = PromiseSubagents.fromProviders([httpProvider("remote", remote.url)])
    const { failure, stopReason } = await subagents.run("remote", { prompt: "fail", parent: subagents.root() })
    assert.strictEqual(stopReason, "error")
    assert.deepStrictEqual(failure, { kind: "transport", retryable: true, status: 503, message: "no agent is free" })
    await subagents.dispose()
  })

  it("refuses a start if nobody is there (4)", async () => {
    const subagents = PromiseSubagents.fromProviders([httpProvider("remote", "http://127.0.0.1:1")])
    const starting = subagents.start("remote", { prompt: "hello", parent: subagents.root() })
    assert.strictEqual(await starting.catch((error: { readonly code: string }) => error.code), "START_FAILED")
    await subagents.dispose()
  })

  it("goes on with the same session (16)", async () => {
    const subagents = PromiseSubagents.fromProviders([httpProvider("remote", remote.url)])
    const run = await subagents.start("remote", { prompt: "hello", parent: subagents.root() })
    await run.result
    const { sessions } = remote.world
    const next = await run.resume!("and again")
    assert.strictEqual(Content.toText((await next.result).output), "You said: and again")
    assert.strictEqual(remote.world.sessions, sessions)
    await subagents.dispose()
    assert.strictEqual(remote.world.sessions, sessions - 1)
  })
})
