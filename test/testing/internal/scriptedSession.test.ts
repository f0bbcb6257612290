import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Content, type SubagentRun } from "effect-subagent"
import { ScriptedProvider } from "effect-subagent/testing"
import { root, tagOf, withSeam } from "../../utils/seam.ts"

const { end, hang, receive, run, stop, submit, text } = ScriptedProvider

const request = { prompt: "one", parent: root }

const play = <A, E, R>(
  script: ScriptedProvider.Script,
  body: (run: SubagentRun.SubagentRun, moments: Effect.Effect<string>) => Effect.Effect<A, E, R>,
  options?: ScriptedProvider.Options
) =>
  Effect.gen(function* () {
    const { provider, runs } = yield* ScriptedProvider.make(script, options)
    const moments = Effect.map(runs, ([first]) => first!.moments.join(" "))
    return yield* withSeam([provider], (seam) =>
      Effect.flatMap(seam.start(provider.name, request), (run) => body(run, moments))
    )
  })

const said = (run: SubagentRun.SubagentRun) => Effect.map(run.result, ({ output }) => Content.toText(output))
const receipts = (run: SubagentRun.SubagentRun) =>
  Effect.map(Stream.runCollect(run.updates), (updates) =>
    updates.flatMap((update) => (update._tag === "Receipt" ? [update.state] : []))
  )

describe("a scripted child that takes messages (15)", () => {
  it.effect("reads one after the other, and does what the script makes of each", () =>
    play(
      {
        takesMessages: true,
        turn: [receive(), receive(({ content }) => [text("heard "), text(`heard ${Content.toText(content)}`)])]
      },
      (run) =>
        Effect.gen(function* () {
          for (const message of ["a", "b"]) yield* run.sendMessage!(message)
          assert.strictEqual(yield* said(run), "heard b")
          assert.deepStrictEqual(yield* receipts(run), ["consumed", "consumed"])
        })
    )
  )

  it.effect("ends where what it makes of one does", () =>
    play({ takesMessages: true, turn: [receive(() => [text("enough"), stop("completed"), text("more")])] }, (run) =>
      Effect.gen(function* () {
        yield* run.sendMessage!("a")
        assert.strictEqual(yield* said(run), "enough")
      })
    )
  )

  it.effect("lets those expire that no step reads, and takes none any more while its turn is on its way out", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const closing = yield* Deferred.make<void>()
      const step = run(() => Effect.andThen(Deferred.succeed(closing, undefined), Deferred.await(gate)))
      yield* play({ takesMessages: true, turn: [receive(), text("done")], turnFinalizer: [step] }, (run) =>
        Effect.gen(function* () {
          const [first] = yield* Effect.all([run.sendMessage!("a"), run.sendMessage!("b")])
          yield* Deferred.await(closing)
          assert.strictEqual((yield* Effect.exit(run.sendMessage!("c")))._tag, "Failure")
          assert.strictEqual(tagOf(yield* Effect.exit(run.sendMessage!("c"))), "RunSettled")
          yield* Deferred.succeed(gate, undefined)
          assert.strictEqual(yield* said(run), "done")
          assert.deepStrictEqual(yield* receipts(run), ["consumed", "expired"])
          assert.strictEqual(first.state, "queued")
        })
      )
    })
  )

  it.effect("has no such method if its script does not say so", () =>
    play([hang], (run) => Effect.sync(() => assert.notProperty(run, "sendMessage")))
  )
})

describe("a scripted child that can be resumed (16)", () => {
  it.effect("plays its further turns by their prompts, each from a fresh start", () =>
    play(
      {
        takesMessages: true,
        turn: [text("first"), submit("1"), stop("max-tokens"), text("never")],
        resumed: (prompt) => (Content.toText(prompt) === "wait" ? [receive(), text("waited")] : [])
      },
      (run, moments) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* run.result).stopReason, "max-tokens")
          assert.strictEqual(tagOf(yield* Effect.exit(run.sendMessage!("late"))), "RunSettled")
          const second = yield* run.resume!("again")
          assert.strictEqual(yield* said(second), "done")
          const third = yield* second.resume!("wait")
          yield* third.sendMessage!("now")
          assert.strictEqual(yield* said(third), "waited")
          assert.deepStrictEqual(yield* receipts(third), ["consumed"])
          const fourth = yield* run.resume!("wait")
          yield* fourth.cancel()
          assert.strictEqual((yield* fourth.result).stopReason, "aborted")
          assert.strictEqual(
            yield* moments,
            "start-begun start-ended turn-begun turn-ended turn-begun turn-ended turn-begun turn-ended turn-begun turn-interrupted"
          )
        })
    )
  )

  it.effect("submits in each turn what it is configured to", () =>
    Effect.gen(function* () {
      const { provider } = yield* ScriptedProvider.make(
        { resumed: [end({ stopReason: "completed" })] },
        { structured: "1" }
      )
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const outputSchema = Schema.NumberFromString
          const run = yield* seam.start("scripted", { ...request, outputSchema })
          assert.strictEqual((yield* run.result).structured, 1)
          const second = yield* run.resume!("again")
          assert.strictEqual((yield* second.result).failure?.kind, "schema-missing")
        })
      )
    })
  )

  it.effect("has no such method if its script has no further turn", () =>
    play([hang], (run) => Effect.sync(() => assert.notProperty(run, "resume")))
  )

  it.effect("acquires what it needs in the session's scope, in every turn", () =>
    Effect.gen(function* () {
      const open: Array<string> = []
      const acquire = (name: string) =>
        run(() =>
          Effect.acquireRelease(
            Effect.sync(() => open.push(name)),
            () => Effect.sync(() => open.splice(open.indexOf(name), 1))
          )
        )
      yield* play({ turn: [acquire("first"), text("a")], resumed: [acquire("second"), text("b")] }, (run) =>
        Effect.gen(function* () {
          yield* run.result
          const next = yield* Effect.scoped(Effect.tap(run.resume!("two"), ({ result }) => result))
          assert.isTrue(Exit.isSuccess(yield* Effect.exit(next.result)))
          assert.deepStrictEqual(open, ["first", "second"])
          const disposing = yield* Effect.forkChild(run.dispose)
          yield* Fiber.join(disposing)
          assert.deepStrictEqual(open, [])
        })
      )
    })
  )
})
