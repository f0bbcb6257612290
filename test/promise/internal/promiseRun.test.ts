import { assert, describe, it } from "@effect/vitest"
import { SubagentError, type SubagentRun } from "effect-subagent"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import { handled, promiseRun, valueOf } from "../../../src/promise/internal/promiseRun.ts"

const thrownBy = (call: () => unknown): unknown => {
  try {
    call()
  } catch (thrown) {
    return thrown
  }
  return assert.fail("it did not throw")
}

describe("what a promise gives for an exit", () => {
  it("is the value, the error or the defect itself, or the end of the seam", () => {
    const error = new Error("x")
    assert.strictEqual(valueOf(Exit.succeed(1)), 1)
    assert.strictEqual(
      thrownBy(() => valueOf(Exit.fail(error))),
      error
    )
    assert.strictEqual(
      thrownBy(() => valueOf(Exit.die(error))),
      error
    )
    const closed = thrownBy(() => valueOf(Exit.interrupt(1)))
    assert.instanceOf(closed, SubagentError.SubagentError)
    assert.strictEqual(closed.code, "REGISTRY_CLOSED")
  })

  it("is the same promise, whoever handles it", async () => {
    const promise = Promise.reject(new Error("x"))
    assert.strictEqual(handled(promise), promise)
    assert.strictEqual(await promise.catch((error: Error) => error.message), "x")
  })
})

describe("a run as promises", () => {
  const run = (fields: Partial<SubagentRun.SubagentRun>) =>
    Effect.runPromise(promiseRun(Effect.succeed({ result: Effect.never, ...fields } as SubagentRun.SubagentRun)))

  it("takes back each subscription to its updates that is broken off", async () => {
    let subscribers = 0
    const updates = Stream.unwrap(
      Effect.as(
        Effect.acquireRelease(
          Effect.sync(() => subscribers++),
          () => Effect.sync(() => subscribers--)
        ),
        Stream.concat(Stream.make(1, 2), Stream.never)
      )
    ) as unknown as SubagentRun.SubagentRun["updates"]
    const each = await run({ updates })
    assert.strictEqual(subscribers, 0)
    for await (const _ of each.updates) {
      assert.strictEqual(subscribers, 1)
      break
    }
    assert.strictEqual(subscribers, 0)
    const iterator = each.updates[Symbol.asyncIterator]()
    await iterator.next()
    await iterator.next()
    const waiting = iterator.next()
    await iterator.return!()
    assert.isTrue((await waiting).done)
    assert.strictEqual(subscribers, 0)
  })

  it("disposes once, and keeps the services that it was started with (18)", async () => {
    let disposed = 0
    const clock = { currentTimeMillis: Effect.succeed(7) } as Clock.Clock
    const each = await Effect.runPromise(
      promiseRun(
        Effect.succeed({
          result: Effect.map(Clock.currentTimeMillis, (now) => ({ output: [], stopReason: `${now}` })),
          dispose: Effect.sync(() => disposed++),
          updates: Stream.empty
        } as unknown as SubagentRun.SubagentRun)
      ).pipe(Effect.provideService(Clock.Clock, clock))
    )
    await Promise.all([each.dispose(), each.dispose(), each[Symbol.asyncDispose]()])
    assert.strictEqual(disposed, 1)
    assert.strictEqual((await each.result).stopReason, "7")
  })

  it("can be steered and resumed only if its child can (15) (16)", async () => {
    const bare = await run({ updates: Stream.empty })
    assert.isFalse("sendMessage" in bare || "resume" in bare)
    const error = SubagentError.fromReason(new SubagentError.RegistryClosed())
    const sent: Array<unknown> = []
    const able = await run({
      updates: Stream.empty,
      sendMessage: (content) =>
        Effect.sync(() => {
          sent.push(content)
          return { messageId: "m", state: "queued" as const }
        }),
      resume: (content) =>
        content === "no"
          ? Effect.fail(error)
          : Effect.succeed({ provider: "again", result: Effect.never, updates: Stream.empty } as never)
    })
    assert.deepStrictEqual(await able.sendMessage!("hurry"), { messageId: "m", state: "queued" })
    assert.deepStrictEqual(sent, ["hurry"])
    assert.strictEqual((await able.resume!("go on")).provider, "again")
    assert.strictEqual(await able.resume!("no").catch((thrown: unknown) => thrown), error)
  })
})
