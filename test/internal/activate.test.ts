/** The runs of a child: messages to one at work, and runs that go on with the same child. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { Approvals, Content, SubagentError, type SubagentRun } from "effect-subagent"
import {
  completed,
  inSeam,
  lines,
  logged,
  makeSignal,
  nothing,
  type Outcome,
  provider,
  reasonOf,
  root,
  type Seam,
  tagOf,
  withSeam
} from "../utils/seam.ts"
import { makeSteerable } from "../utils/steerable.ts"

const request = { prompt: "one", parent: root }

type Run = SubagentRun.SubagentRun

const send = (run: Run, content: Parameters<NonNullable<Run["sendMessage"]>>[0]) => run.sendMessage!(content)
const resume = (run: Run, content: Parameters<NonNullable<Run["resume"]>>[0] = "two") => run.resume!(content)
const said = (run: Run) => Effect.map(run.result, ({ output }) => Content.toText(output))
const causeOf = (run: Run) => Effect.map(run.result, ({ cause }) => cause)

/** What became of messages, in order: `messageId state`. */
const receipts = (run: Run) =>
  Effect.map(Stream.runCollect(run.updates), (updates) =>
    updates.flatMap((update) => (update._tag === "Receipt" ? [`${update.messageId} ${update.state}`] : []))
  )

/** A session of one's own in place of the steerable child's. */
const sessionOf = (session: object) => provider({ start: () => Effect.succeed(session as never) })

describe("a message to a child at work (15)", () => {
  it.effect("gives a receipt, and a later update says that the child has it", () =>
    Effect.gen(function* () {
      const { child, provider } = makeSteerable({ isEager: false })
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          const first = yield* send(run, "left")
          assert.deepStrictEqual(first, { messageId: first.messageId, state: "queued" })
          assert.match(first.messageId, /^message_[0-9a-f]{32}$/)
          assert.throws(() => Object.assign(first, { state: "consumed" }), TypeError)
          assert.deepStrictEqual(child().turn().inbox, [
            { messageId: first.messageId, content: [{ type: "text", text: "left" }] }
          ])
          assert.throws(() => Object.assign(child().turn().inbox[0]!, { messageId: "mine" }), TypeError)
          child().turn().read()
          const second = yield* send(run, [Content.text("right")])
          child().turn().finish()
          assert.strictEqual(yield* said(run), "heard right")
          assert.deepStrictEqual(yield* receipts(run), [`${first.messageId} consumed`, `${second.messageId} consumed`])
        })
      )
    })
  )

  it.effect("keeps its place among those of a thousand senders, and each has a receipt of its own", () =>
    Effect.gen(function* () {
      const { child, provider } = makeSteerable({ isEager: false })
      yield* withSeam(
        [provider],
        (seam) =>
          Effect.gen(function* () {
            const run = yield* seam.start("p", request)
            const texts = Array.from({ length: 1000 }, (_, i) => `message ${i}`)
            const sent = yield* Effect.forEach(texts, (text) => send(run, text), { concurrency: "unbounded" })
            const ids = sent.map(({ messageId }) => messageId)
            assert.strictEqual(new Set(ids).size, 1000)
            assert.deepStrictEqual(
              child()
                .turn()
                .inbox.map(({ content, messageId }) => [messageId, Content.toText(content)]),
              texts.map((text, i) => [ids[i], text])
            )
            child().turn().finish()
            assert.deepStrictEqual(
              yield* receipts(run),
              ids.map((id) => `${id} consumed`)
            )
          }),
        { updateCapacity: 4096 }
      )
    })
  )

  it.effect(
    "that the child has not read when the run settles has expired: that is the last there is of its updates",
    () =>
      Effect.gen(function* () {
        for (const how of ["ends", "is cancelled", "is released"] as const) {
          const { child, provider } = makeSteerable({ isEager: false })
          yield* withSeam([provider], (seam) =>
            Effect.gen(function* () {
              const run = yield* seam.start("p", request)
              const read = yield* send(run, "a")
              child().turn().read()
              const late = [yield* send(run, "b"), yield* send(run, "c")]
              child().say("so far")
              if (how === "ends") child().turn().finish(completed, { drop: true })
              yield* how === "is released" ? run.dispose : how === "is cancelled" ? run.cancel() : run.result
              const updates = yield* Stream.runCollect(run.updates)
              assert.deepStrictEqual(
                updates
                  .slice(-2)
                  .map((update) => (update._tag === "Receipt" ? [update.messageId, update.state] : [update._tag])),
                late.map(({ messageId }) => [messageId, "expired"])
              )
              assert.deepStrictEqual(
                updates.map(({ seq }) => seq),
                updates.map((_, i) => i)
              )
              assert.deepStrictEqual((yield* receipts(run))[0], `${read.messageId} consumed`)
              assert.strictEqual(yield* said(run), "so far")
            })
          )
        }
      })
  )

  it.effect("is refused once the run has settled, however it did, also after its release", () =>
    Effect.gen(function* () {
      const { child, provider } = makeSteerable()
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const refused = (run: Run) =>
            Effect.map(Effect.exit(send(run, "hello")), (exit) => {
              assert.deepInclude(reasonOf(exit) as object, { _tag: "RunSettled", runId: run.runId })
            })
          const run = yield* seam.start("p", request)
          child().turn().finish()
          yield* run.result
          yield* refused(run)
          const cancelled = yield* seam.start("p", { ...request, label: "b" })
          yield* cancelled.cancel()
          yield* refused(cancelled)
          yield* run.dispose
          yield* refused(run)
        })
      )
    })
  )

  it.effect("in the tick in which the run settles is taken in or refused, never neither, in both orders [G1]", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable({ isEager: false })
      yield* withSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          for (let i = 0; i < 1000; i++) {
            const run = yield* seam.start("p", request)
            const turn = steerable.children[i]!.turn()
            const cancels = i % 4 < 2
            const settle = cancels ? run.cancel() : Effect.sync(() => turn.finish())
            const sending = Effect.exit(send(run, "hello"))
            const isFirst = i % 2 === 0
            const [first, last] = yield* Effect.all(isFirst ? [sending, settle] : [settle, sending], {
              concurrency: "unbounded"
            })
            const exit = (isFirst ? first : last) as Exit.Exit<{ readonly messageId: string }, unknown>
            if (isFirst) {
              assert.isTrue(Exit.isSuccess(exit))
              const { messageId } = yield* exit as Exit.Exit<{ readonly messageId: string }>
              assert.deepStrictEqual(yield* receipts(run), [`${messageId} ${cancels ? "expired" : "consumed"}`])
            } else {
              assert.strictEqual(tagOf(exit), "RunSettled")
              assert.deepStrictEqual(yield* receipts(run), [])
            }
            yield* run.dispose
          }
        })
      )
    })
  )

  it.effect("must be what a prompt must be, and of a kind that the provider takes", () =>
    Effect.gen(function* () {
      const { child, provider } = makeSteerable({ capabilities: { ...nothing, content: ["image"] } })
      const unreadable = new Proxy([], {
        get: () => {
          throw new Error("no")
        }
      })
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          const attempts: ReadonlyArray<readonly [unknown, string]> = [
            ["", "content: Expected a prompt that is not blank"],
            [" \n", "content: Expected a prompt that is not blank"],
            [[], "content: Expected a prompt that is not blank"],
            [undefined, "content: Expected a string or an array of content blocks"],
            [[{ type: "text", text: 3 }], "content.0.text: Expected string"],
            [unreadable, "content: Could not be read"]
          ]
          const methods: ReadonlyArray<typeof run.resume> = [run.sendMessage as never, run.resume]
          for (const method of methods) {
            const isResume = method === run.resume
            if (isResume) child().turn().finish()
            if (isResume) yield* run.result
            for (const [content, issue] of attempts) {
              const reason = reasonOf(yield* Effect.exit(method!(content as string))) as SubagentError.InvalidRequest
              assert.strictEqual(reason._tag, "InvalidRequest")
              assert.include(String(reason.issues[0]), issue.slice(0, issue.lastIndexOf(" ")))
            }
            const audio: Content.ContentBlock = { type: "audio", data: "", mimeType: "audio/wav" }
            const link: Content.ContentBlock = { type: "resource_link", uri: "file:///a", name: "a" }
            assert.deepInclude(reasonOf(yield* Effect.exit(method!([Content.text("a"), audio, link]))) as object, {
              _tag: "UnsupportedCapability",
              provider: "p",
              capability: "content:audio",
              missing: ["content:audio", "content:resource_link"]
            })
            yield* method!([{ type: "image", data: "", mimeType: "image/png" }])
          }
          assert.strictEqual(child().turns.length, 2)
        })
      )
    })
  )

  it.effect("that the child does not take in is a failure of the one who sends it, and leaves nothing", () =>
    Effect.gen(function* () {
      const refusal = SubagentError.fromReason(new SubagentError.StartFailed({ provider: "p", detail: "full" }))
      const failing: ReadonlyArray<readonly [() => unknown, object]> = [
        [() => Effect.fail(refusal), { _tag: "StartFailed", detail: "full" }],
        [() => Effect.die(new Error("oh")), { _tag: "ProviderFault", provider: "p", detail: "oh" }],
        [() => Effect.interrupt, { _tag: "ProviderFault", detail: "it was interrupted" }],
        [
          () => {
            throw new Error("thrown")
          },
          { _tag: "ProviderFault", detail: "thrown" }
        ]
      ]
      for (const [sendMessage, expected] of failing) {
        const { child, provider } = makeSteerable({
          change: (session) => ({ ...session, sendMessage: sendMessage as never })
        })
        yield* withSeam([provider], (seam) =>
          Effect.gen(function* () {
            const run = yield* seam.start("p", request)
            assert.deepInclude(reasonOf(yield* Effect.exit(send(run, "hello"))) as object, expected)
            child().turn().finish()
            assert.strictEqual((yield* run.result).stopReason, "completed")
            assert.deepStrictEqual(yield* receipts(run), [])
          })
        )
      }
    })
  )

  it.effect("can be given up while the child takes its time, and is not waited for by a run that settles", () =>
    Effect.gen(function* () {
      const interrupted: Array<string> = []
      const { child, provider } = makeSteerable({
        change: (session) => ({
          ...session,
          sendMessage: ({ content }) =>
            Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted.push(Content.toText(content))))
        })
      })
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          const given = yield* Effect.forkChild(send(run, "given up"), { startImmediately: true })
          yield* Fiber.interrupt(given)
          assert.deepStrictEqual(interrupted, ["given up"])
          const waiting = yield* Effect.forkChild(send(run, "too late"), { startImmediately: true })
          child().turn().finish()
          assert.strictEqual(tagOf(yield* Fiber.await(waiting)), "RunSettled")
          assert.deepStrictEqual(interrupted, ["given up", "too late"])
          assert.deepStrictEqual(yield* receipts(run), [])
        })
      )
    })
  )

  it.effect("can't be sent to a child that takes none: there is no such key, nor one that it is resumed by", () =>
    Effect.gen(function* () {
      const turn = Effect.succeed(completed)
      const method = () => Effect.void
      const keys = (session: object) =>
        withSeam([sessionOf(session)], (seam) =>
          Effect.map(seam.start("p", request), (run) =>
            Object.keys(run).filter((key) => key === "sendMessage" || key === "resume")
          )
        )
      assert.deepStrictEqual(yield* keys({ turn }), [])
      assert.deepStrictEqual(yield* keys({ turn, sendMessage: undefined, resumeTurn: undefined }), [])
      assert.deepStrictEqual(yield* keys({ turn, sendMessage: method }), ["sendMessage"])
      assert.deepStrictEqual(yield* keys({ turn, resumeTurn: method }), ["resume"])
      for (const wrong of [
        { turn, sendMessage: 3 },
        { turn, resumeTurn: "no" }
      ]) {
        assert.strictEqual(tagOf(yield* Effect.exit(keys(wrong))), "ProviderFault")
      }
    })
  )
})

/** The ends after which a child can be resumed. */
const ends: Readonly<Record<string, Outcome>> = {
  completed,
  "max-tokens": { stopReason: "max-tokens" },
  error: { stopReason: "error", failure: { kind: "model", retryable: true } },
  refusal: { stopReason: "refusal" },
  aborted: { stopReason: "aborted" }
}

describe("a run that resumes a child (16)", () => {
  it.effect("goes on with the same child, whatever became of the run before", () =>
    Effect.gen(function* () {
      for (const [stopReason, outcome] of Object.entries(ends)) {
        const { child, provider } = makeSteerable()
        const { events } = yield* inSeam([provider], (seam) =>
          Effect.gen(function* () {
            const run = yield* seam.start("p", { ...request, label: "a", toolFilter: { deny: ["rm"] }, maxDepth: 2 })
            child("a").turn().finish(outcome)
            assert.strictEqual((yield* run.result).stopReason, stopReason)
            const next = yield* resume(run)
            assert.notStrictEqual(next.runId, run.runId)
            assert.deepStrictEqual(
              [next.id, next.header, next.provider],
              [run.id, run.header, run.provider],
              "the child stays who it is"
            )
            const live = (yield* seam.live).map(({ header, id, label, runId, state }) => ({
              header,
              id,
              label,
              runId,
              state
            }))
            const { header, id } = run
            assert.deepStrictEqual(live, [
              { header, id, label: "a", runId: run.runId, state: "settled" },
              { header, id, label: "a", runId: next.runId, state: "running" }
            ])
            child("a").turn().finish()
            assert.strictEqual(yield* said(next), "on two")
            assert.strictEqual((yield* run.result).stopReason, stopReason)
            assert.deepStrictEqual(
              child("a").turns.map(({ prompt }) => prompt),
              ["one", "two"]
            )
          })
        )
        const about = events.flatMap((event) =>
          event.type === "subagent/start" || event.type === "subagent/end" ? [[event.type, event.id, event.runId]] : []
        )
        const [first, , second] = about
        assert.strictEqual(first![1], second![1])
        assert.notStrictEqual(first![2], second![2])
        assert.deepStrictEqual(about, [
          ["subagent/start", first![1], first![2]],
          ["subagent/end", first![1], first![2]],
          ["subagent/start", first![1], second![2]],
          ["subagent/end", first![1], second![2]]
        ])
      }
    })
  )

  it.effect("may follow a run whose result failed, and one that was cancelled by each will there is", () =>
    Effect.gen(function* () {
      const { abort, listeners, signal } = makeSignal()
      const steerable = makeSteerable()
      yield* withSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const failed = yield* seam.start("p", request)
          steerable.children[0]!.turn().finish(Exit.die(new Error("oh")))
          assert.strictEqual(tagOf(yield* Effect.exit(failed.result)), "ProviderFault")
          const cancelled = yield* seam.start("p", request)
          yield* cancelled.cancel()
          const aborted = yield* seam.start("p", { ...request, signal })
          abort()
          for (const [i, run] of [failed, cancelled, aborted].entries()) {
            const next = yield* resume(run)
            steerable.children[i]!.turn().finish()
            assert.strictEqual(yield* said(next), "on two")
          }
          assert.strictEqual(listeners(), 0)
        })
      )
    })
  )

  it.effect("can be resumed itself, a hundred times, from any of its runs", () =>
    Effect.gen(function* () {
      const { child, provider } = makeSteerable()
      const { events } = yield* inSeam([provider], (seam) =>
        Effect.gen(function* () {
          const first = yield* seam.start("p", request)
          child().turn().finish()
          yield* first.result
          let last: Run = first
          const ids = new Set<string>([first.runId])
          for (let i = 0; i < 100; i++) {
            const run = i % 2 === 0 ? first : last
            yield* Effect.scoped(
              Effect.gen(function* () {
                last = yield* resume(run, `prompt ${i}`)
                ids.add(last.runId)
                child().turn().finish()
                assert.strictEqual(yield* said(last), `on prompt ${i}`)
                assert.deepStrictEqual(
                  (yield* Stream.runCollect(last.updates)).map(({ runId, seq }) => [runId, seq]),
                  [[last.runId, 0]]
                )
              })
            )
            assert.deepStrictEqual(
              (yield* seam.live).map(({ runId }) => runId),
              [first.runId]
            )
          }
          assert.strictEqual(ids.size, 101)
          assert.isTrue(child().isOpen)
        })
      )
      assert.strictEqual(lines(events).length, 202)
      assert.isFalse(child().isOpen)
    })
  )

  it.effect(
    "is one of two that are asked for at once: the other is told that the child is busy, and it is free again [O3]",
    () =>
      Effect.gen(function* () {
        const { child, provider } = makeSteerable()
        yield* withSeam([provider], (seam) =>
          Effect.gen(function* () {
            const run = yield* seam.start("p", request)
            assert.deepInclude(reasonOf(yield* Effect.exit(resume(run))) as object, {
              _tag: "ChildBusy",
              id: run.id,
              runId: run.runId
            })
            child().turn().finish()
            yield* run.result
            const both = yield* Effect.all([Effect.exit(resume(run, "two")), Effect.exit(resume(run, "three"))], {
              concurrency: "unbounded"
            })
            const [won, lost] = both
            const next = yield* won
            assert.deepInclude(reasonOf(lost) as object, { _tag: "ChildBusy", id: run.id, runId: next.runId })
            assert.strictEqual(tagOf(yield* Effect.exit(resume(next))), "ChildBusy")
            child().turn().finish()
            yield* next.result
            const third = yield* resume(run, "three")
            child().turn().finish()
            assert.strictEqual(yield* said(third), "on three")
            assert.strictEqual(child().turns.length, 3)
          })
        )
      })
  )

  it.effect("asked for in the tick in which the run settles has the child or is told that it is busy [O3]", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      yield* withSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          for (let i = 0; i < 200; i++) {
            const run = yield* seam.start("p", request)
            const settle = i % 4 < 2 ? run.cancel() : Effect.sync(() => steerable.children[i]!.turn().finish())
            const asked = Effect.exit(Effect.scoped(resume(run)))
            const isFirst = i % 2 === 0
            const [first, last] = yield* Effect.all(
              isFirst ? [asked, settle] : [Effect.andThen(settle, Effect.yieldNow), asked],
              { concurrency: 1 }
            )
            if (isFirst) assert.strictEqual(tagOf(first as Exit.Exit<unknown>), "ChildBusy")
            else assert.isTrue(Exit.isSuccess(last as Exit.Exit<unknown>))
            yield* run.dispose
          }
        })
      )
    })
  )

  it.effect("waits for a stopped turn that is still on its way out, and so do the messages to it", () =>
    Effect.gen(function* () {
      const { child, provider } = makeSteerable({ isDeaf: true })
      const [, messages] = yield* logged(
        withSeam([provider], (seam) =>
          Effect.gen(function* () {
            const run = yield* seam.start("p", request)
            yield* run.cancel()
            const next = yield* resume(run)
            const sending = yield* Effect.forkChild(send(next, "hello"), { startImmediately: true })
            assert.deepStrictEqual([child().turns.length, child().turn().state], [1, "stopped"])
            child().say("too late")
            child().turn().letGo()
            yield* Fiber.join(sending)
            assert.strictEqual(child().turns.length, 2)
            child().turn().finish()
            assert.strictEqual(yield* said(next), "heard hello")
            assert.strictEqual(yield* said(run), "on one")
          })
        )
      )
      assert.strictEqual(messages.filter((line) => line.includes("dropped 1 updates")).length, 1)
    })
  )

  it.effect("that is cancelled while it waits for that turn leaves the next one waiting for it", () =>
    Effect.gen(function* () {
      const { child, provider } = makeSteerable({ isDeaf: true })
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          yield* run.cancel()
          const waiting = yield* resume(run, "two")
          const sending = yield* Effect.forkChild(send(waiting, "hello"), { startImmediately: true })
          yield* waiting.cancel("not this one")
          assert.strictEqual(tagOf(yield* Fiber.await(sending)), "RunSettled")
          assert.deepStrictEqual(yield* causeOf(waiting), { _tag: "Caller", reason: "not this one" })
          const next = yield* resume(waiting, "three")
          assert.strictEqual(child().turns.length, 1)
          child().turn().letGo()
          yield* Effect.yieldNow
          child().turn().finish()
          assert.strictEqual(yield* said(next), "on three")
          assert.deepStrictEqual(
            child().turns.map(({ prompt }) => prompt),
            ["one", "three"]
          )
        })
      )
    })
  )

  it.effect("may follow a run that was cancelled before its turn had begun, by whoever heard of it", () =>
    Effect.gen(function* () {
      const prompts = new Set<string>()
      // a fiber that yields all the time, so that the cancellation comes at every point there is
      for (let ops = 8; ops < 60; ops++) {
        const { children, provider } = makeSteerable()
        yield* withSeam([provider], (seam) =>
          Effect.gen(function* () {
            const cancelled = yield* Deferred.make<void>()
            yield* seam.on(({ type }) =>
              type === "subagent/start" && !Deferred.isDoneUnsafe(cancelled)
                ? Effect.flatMap(seam.live, (live) => Effect.forEach(live, ({ cancel }) => cancel())).pipe(
                    Effect.andThen(Deferred.succeed(cancelled, undefined))
                  )
                : Effect.void
            )
            const run = yield* Effect.provideService(seam.start("p", request), References.MaxOpsBeforeYield, ops)
            yield* Deferred.await(cancelled)
            const next = yield* resume(run)
            yield* Stream.runHead(next.updates)
            children[0]!.turn().finish()
            assert.deepStrictEqual([yield* causeOf(run), yield* said(next)], [{ _tag: "Caller" }, "on two"])
            prompts.add(children[0]!.turns.map(({ prompt }) => prompt).join())
          })
        )
      }
      assert.deepStrictEqual(Array.from(prompts).toSorted(), ["one,two", "two"])
    })
  )

  it.effect("does nothing to the messages of the run before: those have expired", () =>
    Effect.gen(function* () {
      const { child, provider } = makeSteerable({ isEager: false })
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          const { messageId } = yield* send(run, "hello")
          yield* run.cancel()
          const next = yield* resume(run)
          child().turn().finish()
          assert.deepStrictEqual([yield* receipts(run), yield* receipts(next)], [[`${messageId} expired`], []])
        })
      )
    })
  )

  it.effect("has a release, a cancel and a scope of its own: the child lives on", () =>
    Effect.gen(function* () {
      const { child, provider } = makeSteerable()
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          child().turn().finish()
          yield* run.result
          const cancelled = yield* resume(run)
          yield* cancelled.cancel("enough")
          assert.deepStrictEqual(yield* causeOf(cancelled), { _tag: "Caller", reason: "enough" })
          const released = yield* resume(run)
          yield* released.dispose
          assert.deepStrictEqual(yield* causeOf(released), { _tag: "Release" })
          const scope = yield* Scope.make()
          const scoped = yield* Scope.provide(resume(run), scope)
          yield* Scope.close(scope, Exit.void)
          assert.deepStrictEqual(yield* causeOf(scoped), { _tag: "Release" })
          const owner = yield* Effect.forkChild(
            Effect.scoped(Effect.flatMap(resume(run), (next) => Effect.as(Effect.never, next))),
            { startImmediately: true }
          )
          assert.strictEqual((yield* seam.live).at(-1)!.state, "running")
          yield* Fiber.interrupt(owner)
          assert.deepStrictEqual(
            child().turns.map(({ state }) => state),
            ["ended", "stopped", "stopped", "stopped", "stopped"]
          )
          assert.deepStrictEqual(
            (yield* seam.live).map(({ runId }) => runId),
            [run.runId, cancelled.runId]
          )
          const last = yield* resume(run)
          child().turn().finish()
          assert.strictEqual((yield* last.result).stopReason, "completed")
          assert.isTrue(child().isOpen)
        })
      )
    })
  )

  it.effect("ends with the first run, which holds the child: it is told so, and then there is none", () =>
    Effect.gen(function* () {
      const { child, provider } = makeSteerable()
      const { events } = yield* inSeam([provider], (seam, scope) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", { ...request, label: "a" })
          child("a").turn().finish()
          yield* run.result
          const next = yield* Scope.provide(resume(run), scope)
          const grandchild = yield* seam.start("p", { prompt: "deep", parent: child("a").agent, label: "b" })
          yield* run.dispose
          assert.deepStrictEqual(yield* causeOf(next), { _tag: "Release" })
          assert.deepStrictEqual(yield* causeOf(grandchild), { _tag: "Parent", runId: next.runId })
          assert.strictEqual((yield* run.result).stopReason, "completed")
          assert.deepStrictEqual([child("a").isOpen, child("b").isOpen], [false, false])
          assert.deepStrictEqual(yield* seam.live, [])
          for (const each of [run, next]) {
            assert.deepInclude(reasonOf(yield* Effect.exit(resume(each))) as object, {
              _tag: "RunReleased",
              runId: run.runId
            })
          }
        })
      )
      assert.deepStrictEqual(lines(events), [
        "start a",
        "end a completed",
        "start a",
        "start b",
        "end b aborted Parent",
        "end a aborted Release"
      ])
    })
  )

  it.effect("ends with the first run also if it had settled, with what it left behind", () =>
    Effect.gen(function* () {
      const { child, provider } = makeSteerable()
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", { ...request, label: "a" })
          child("a").turn().finish()
          const second = yield* resume(run)
          const left = yield* seam.start("p", { prompt: "deep", parent: child("a").agent, label: "b" })
          child("a").turn().finish()
          yield* second.result
          const third = yield* resume(run)
          yield* run.dispose
          assert.deepStrictEqual(yield* causeOf(left), { _tag: "Parent", runId: second.runId })
          assert.deepStrictEqual(yield* causeOf(third), { _tag: "Release" })
          assert.deepStrictEqual(yield* seam.live, [])
          assert.strictEqual(child("b").turn().state, "stopped")
        })
      )
    })
  )

  it.effect("keeps the child's session open until its own turn has ended (10)", () =>
    Effect.gen(function* () {
      const { child, provider } = makeSteerable({ isDeaf: true })
      const { events } = yield* inSeam(
        [provider],
        (seam) =>
          Effect.gen(function* () {
            const run = yield* seam.start("p", request)
            child().turn().finish()
            yield* run.result
            yield* resume(run)
            const releasing = yield* Effect.forkChild(run.dispose, { startImmediately: true })
            yield* Effect.yieldNow
            assert.deepStrictEqual([child().turn().state, child().isOpen], ["stopped", true])
            child().turn().letGo()
            yield* Fiber.join(releasing)
            assert.isFalse(child().isOpen)
            // and one that is not let go in time is announced, as what still lives
            const other = yield* seam.start("p", { ...request, label: "b" })
            child("b").turn().finish()
            yield* other.result
            const hanging = yield* resume(other)
            const early = yield* Effect.forkChild(hanging.dispose, { startImmediately: true })
            yield* TestClock.adjust("1 second")
            yield* Fiber.join(early)
            const late = yield* Effect.forkChild(other.dispose, { startImmediately: true })
            yield* TestClock.adjust("1 second")
            yield* Fiber.join(late)
            assert.isTrue(child("b").isOpen)
            child("b").turn().letGo()
            yield* Effect.yieldNow
            assert.isFalse(child("b").isOpen)
          }),
        { releaseTimeout: "1 second" }
      )
      assert.deepStrictEqual(
        events.flatMap((event) =>
          event.type === "subagent/release-problem" ? [`${event.problem} ${event.detail}`] : []
        ),
        ["timed-out its turn has not ended", "timed-out its turn has not ended"]
      )
    })
  )

  it.effect("ends with the registry, which then takes none", () =>
    Effect.gen(function* () {
      const { child, provider } = makeSteerable()
      const held = yield* withSeam([provider], (seam, scope) =>
        Effect.gen(function* () {
          const outside = yield* Scope.make()
          const run = yield* Scope.provide(seam.start("p", request), outside)
          child().turn().finish()
          yield* run.result
          const next = yield* Scope.provide(resume(run), outside)
          yield* Scope.close(scope, Exit.void)
          assert.deepStrictEqual(yield* causeOf(next), { _tag: "Release" })
          return run
        })
      )
      assert.strictEqual(tagOf(yield* Effect.exit(resume(held))), "RunReleased")
      assert.isFalse(child().isOpen)
    })
  )

  it.effect("is refused as soon as the registry is being released, also before its turn to be released comes", () =>
    Effect.gen(function* () {
      const { child, provider: steerable } = makeSteerable()
      let resuming: Effect.Effect<unknown, SubagentError.SubagentError> | undefined
      const tags: Array<string> = []
      const first = provider({
        name: "first",
        turn: () =>
          Effect.onInterrupt(Effect.never, () =>
            Effect.map(Effect.exit(resuming!), (exit) => {
              tags.push(tagOf(exit))
            })
          )
      })
      yield* withSeam([first, steerable], (seam) =>
        Effect.gen(function* () {
          yield* seam.start("first", request)
          const run = yield* seam.start("p", request)
          child().turn().finish()
          yield* run.result
          resuming = Effect.scoped(resume(run))
        }).pipe(Scope.provide(Scope.makeUnsafe()))
      )
      assert.deepStrictEqual(tags, ["RegistryClosed"])
    })
  )

  it.effect("has no part in the signal of the first run, nor in its caller's scope", () =>
    Effect.gen(function* () {
      const { abort, listeners, signal } = makeSignal()
      const { child, provider } = makeSteerable()
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", { ...request, signal })
          child().turn().finish()
          yield* run.result
          const next = yield* resume(run)
          assert.strictEqual(listeners(), 0)
          abort()
          child().turn().finish()
          assert.strictEqual((yield* next.result).stopReason, "completed")
          const closed = Scope.makeUnsafe()
          yield* Scope.close(closed, Exit.void)
          const stillborn = yield* Scope.provide(resume(run), closed)
          assert.deepStrictEqual(yield* causeOf(stillborn), { _tag: "Release" })
          assert.strictEqual(child().turns.length, 2)
        })
      )
    })
  )

  it.effect(
    "fails with a fault of the provider whose resumed turn dies, throws or is none, and the child can go on",
    () =>
      Effect.gen(function* () {
        let next: () => unknown = () => Effect.succeed(completed)
        const { child, provider } = makeSteerable({
          change: (session) => ({ ...session, resumeTurn: () => next() as never })
        })
        yield* withSeam([provider], (seam) =>
          Effect.gen(function* () {
            const run = yield* seam.start("p", request)
            child().turn().finish()
            yield* run.result
            const broken: ReadonlyArray<() => unknown> = [
              () => Effect.die(new Error("oh")),
              () => {
                throw new Error("thrown")
              },
              () => 3,
              () => Effect.interrupt,
              () => Effect.succeed("no outcome")
            ]
            for (const each of broken) {
              next = each
              const failed = yield* resume(run)
              assert.strictEqual(tagOf(yield* Effect.exit(failed.result)), "ProviderFault")
            }
            next = () => Effect.sync(() => (child().say("still here"), completed))
            assert.strictEqual(yield* said(yield* resume(run)), "still here")
          })
        )
      })
  )

  it.effect("is judged by the schema that the first run was given", () =>
    Effect.gen(function* () {
      const { child, provider } = makeSteerable()
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const outputSchema = Schema.Struct({ n: Schema.NumberFromString })
          const run = yield* seam.start("p", { ...request, outputSchema })
          child()
            .turn()
            .finish({ stopReason: "completed", structured: { n: "1" } })
          assert.deepStrictEqual((yield* run.result).structured, { n: 1 })
          const missing = yield* run.resume!("two")
          child().turn().finish()
          assert.strictEqual((yield* missing.result).failure?.kind, "schema-missing")
          const again = yield* missing.resume!("three")
          child()
            .turn()
            .finish({ stopReason: "completed", structured: { n: "2" } })
          assert.strictEqual((yield* again.result).structured?.n, 2)
        })
      )
    })
  )

  it.effect("asks for approvals as the run it is, of whoever is there for it (19)", () =>
    Effect.gen(function* () {
      const asked: Array<readonly [string, Approvals.ApprovalRequest]> = []
      const approver = (name: string): Approvals.Approver => ({
        decide: (request) => Effect.sync(() => (asked.push([name, request]), "approved" as const)),
        timeout: "1 minute"
      })
      const asking = (id: string, lineage: Approvals.ApprovalRequest["lineage"]) =>
        Approvals.ask({ toolCallId: id, toolName: "rm", input: {}, ...(lineage && { lineage }) })
      const { child, provider } = makeSteerable({
        change: (session, { placed, say }) => ({
          ...session,
          resumeTurn: () =>
            Effect.gen(function* () {
              say(yield* asking("own", placed.lineage))
              yield* asking("other", { ...placed.lineage, id: "other" as typeof placed.lineage.id })
              yield* asking("none", undefined)
              return completed
            })
        })
      })
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* Effect.provideService(seam.start("p", request), Approvals.Approvals, approver("first"))
          child().turn().finish()
          yield* run.result
          const second = yield* resume(run)
          assert.strictEqual(yield* said(second), "approved")
          const third = yield* Effect.provideService(resume(run), Approvals.Approvals, approver("second"))
          yield* third.result
          assert.deepStrictEqual(
            asked.map(([name, { lineage, toolCallId }]) => [name, toolCallId, lineage?.runId]),
            [
              ["first", "own", second.runId],
              ["first", "other", run.runId],
              ["first", "none", undefined],
              ["second", "own", third.runId],
              ["second", "other", run.runId],
              ["second", "none", undefined]
            ]
          )
        })
      )
      const inherited = makeSteerable({
        change: (session, { placed, say }) => ({
          ...session,
          resumeTurn: (prompt) =>
            Content.toText(prompt) === "wait"
              ? Effect.never
              : Effect.map(asking(placed.label!, placed.lineage), (outcome) => (say(outcome), completed))
        })
      })
      asked.splice(0)
      yield* withSeam([inherited.provider], (seam) =>
        Effect.gen(function* () {
          const { child } = inherited
          const parent = yield* seam.start("p", { ...request, label: "parent" })
          const run = yield* seam.start("p", { prompt: "one", parent: child("parent").agent, label: "child" })
          for (const label of ["child", "parent"]) child(label).turn().finish()
          yield* parent.result
          yield* Effect.provideService(resume(parent, "wait"), Approvals.Approvals, approver("the parent's"))
          assert.strictEqual(yield* said(yield* resume(run)), "approved")
          assert.deepStrictEqual(
            asked.map(([name, { toolCallId }]) => [name, toolCallId]),
            [["the parent's", "child"]]
          )
        })
      )
      const nobody = makeSteerable({
        change: (session, { placed, say }) => ({
          ...session,
          resumeTurn: () => Effect.map(asking("own", placed.lineage), (outcome) => (say(outcome), completed))
        })
      })
      yield* withSeam([nobody.provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("p", request)
          nobody.child().turn().finish()
          yield* run.result
          assert.strictEqual(yield* said(yield* resume(run)), "no-approver")
        })
      )
    })
  )
})

describe("a resumed run in a tree (9, 11, 12, 16)", () => {
  /** A parent and its child, both of whom have ended their first turn. */
  const family = Effect.fnUntraced(function* (seam: Seam, steerable: ReturnType<typeof makeSteerable>) {
    const a = yield* seam.start("p", { ...request, label: "a", maxDepth: 2, toolFilter: { allow: ["read", "write"] } })
    const b = yield* seam.start("p", {
      prompt: "one",
      parent: steerable.child("a").agent,
      label: "b",
      toolFilter: { deny: ["write"] }
    })
    steerable.child("b").turn().finish()
    yield* b.result
    return { a, b }
  })

  it.effect("keeps what holds for the child: what it starts is as deep and as limited as before", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      yield* withSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const a = yield* seam.start("p", { ...request, label: "a", maxDepth: 2, toolFilter: { deny: ["rm"] } })
          const { agent, turn } = steerable.child("a")
          turn().finish()
          yield* a.result
          const again = yield* resume(a)
          const b = yield* seam.start("p", { prompt: "one", parent: agent, label: "b" })
          const { lineage, policy } = steerable.child("b").placed
          assert.deepStrictEqual(
            [lineage.parentId, lineage.parentRunId, lineage.rootId, lineage.depth],
            [a.id, again.runId, root.id, 2]
          )
          assert.deepStrictEqual(policy, { maxDepth: 2, toolFilters: [{ deny: ["rm"] }] })
          const deeper = seam.start("p", { prompt: "one", parent: steerable.child("b").agent })
          assert.deepInclude(reasonOf(yield* Effect.exit(deeper)) as object, {
            _tag: "DepthExceeded",
            depth: 3,
            maxDepth: 2
          })
          yield* again.cancel()
          assert.deepStrictEqual(yield* causeOf(b), { _tag: "Parent", runId: again.runId })
        })
      )
    })
  )

  it.effect("is stopped with its parent's run, however that is stopped", () =>
    Effect.gen(function* () {
      for (const stop of ["cancel", "dispose"] as const) {
        const steerable = makeSteerable()
        const { events } = yield* inSeam([steerable.provider], (seam) =>
          Effect.gen(function* () {
            const { a, b } = yield* family(seam, steerable)
            const next = yield* resume(b)
            yield* stop === "cancel" ? a.cancel() : a.dispose
            assert.deepStrictEqual(yield* causeOf(next), { _tag: "Parent", runId: a.runId })
            assert.strictEqual((yield* b.result).stopReason, "completed")
            assert.strictEqual(steerable.child("b").turn().state, "stopped")
            const reason = tagOf(yield* Effect.exit(resume(b)))
            assert.strictEqual(reason, stop === "cancel" ? "ParentSettled" : "RunReleased")
          })
        )
        assert.deepStrictEqual(lines(events).slice(-2), [
          "end b aborted Parent",
          `end a aborted ${stop === "cancel" ? "Caller" : "Release"}`
        ])
      }
    })
  )

  it.effect(
    "belongs to the run that its parent is in: not to one that has settled, and to the next once there is one [O5]",
    () =>
      Effect.gen(function* () {
        const steerable = makeSteerable()
        const { events } = yield* inSeam([steerable.provider], (seam) =>
          Effect.gen(function* () {
            const { a, b } = yield* family(seam, steerable)
            steerable.child("a").turn().finish()
            yield* a.result
            assert.deepInclude(reasonOf(yield* Effect.exit(resume(b))) as object, {
              _tag: "ParentSettled",
              parentId: a.id,
              parentRunId: a.runId
            })
            const again = yield* resume(a)
            const next = yield* resume(b)
            const starts = yield* seam.live
            assert.strictEqual(starts.length, 4)
            yield* again.cancel()
            assert.deepStrictEqual(yield* causeOf(next), { _tag: "Parent", runId: again.runId })
            yield* again.dispose
            // the child of the first run lives on in it
            assert.isTrue(steerable.child("b").isOpen)
            const third = yield* resume(a)
            const last = yield* resume(b)
            steerable.child("b").turn().finish()
            assert.strictEqual((yield* last.result).stopReason, "completed")
            steerable.child("a").turn().finish()
            yield* third.result
            yield* a.dispose
            assert.isFalse(steerable.child("b").isOpen)
            assert.deepStrictEqual(yield* seam.live, [])
          })
        )
        const parents = events.flatMap((event) =>
          event.type === "subagent/start" && event.label === "b" ? [event.parentRunId] : []
        )
        const runs = events.flatMap((event) =>
          event.type === "subagent/start" && event.label === "a" ? [event.runId] : []
        )
        assert.deepStrictEqual(parents, [runs[0], runs[1], runs[2]])
      })
  )

  it.effect("of a child that a resumed run had started goes with that run", () =>
    Effect.gen(function* () {
      const steerable = makeSteerable()
      yield* withSeam([steerable.provider], (seam) =>
        Effect.gen(function* () {
          const a = yield* seam.start("p", { ...request, label: "a" })
          steerable.child("a").turn().finish()
          yield* a.result
          const again = yield* resume(a)
          const b = yield* seam.start("p", { prompt: "one", parent: steerable.child("a").agent, label: "b" })
          yield* again.dispose
          assert.deepStrictEqual(yield* causeOf(b), { _tag: "Parent", runId: again.runId })
          assert.deepStrictEqual([steerable.child("a").isOpen, steerable.child("b").isOpen], [true, false])
        })
      )
    })
  )
})
