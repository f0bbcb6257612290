/** A child that goes on elsewhere: what is kept of it, who may go on with it, and what holds for it then (16). */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { execFile } from "node:child_process"
import * as path from "node:path"
import { promisify } from "node:util"
import {
  type Agent,
  Content,
  ResumeToken,
  SubagentError,
  type SubagentProvider,
  type SubagentRequest,
  type SubagentRun
} from "effect-subagent"
import { ScriptedProvider } from "effect-subagent/testing"
import {
  agentOf,
  all,
  completed,
  inSeam,
  lines,
  makeSignal,
  type Provider,
  provider,
  reasonOf,
  root,
  type Seam,
  tagOf,
  withSeam
} from "./utils/seam.ts"

type Token = ResumeToken.ResumeToken
type Json = Schema.Json

const request = { prompt: "one", parent: root }

/** A token that somebody has changed. */
const but = (token: Token, fields: object): Token => Object.assign({}, token, fields)
const { hang, run: step, text } = ScriptedProvider

/** Children that count what they are told, here or before. Those labelled `hang` hang. */
const counting = (options: ScriptedProvider.Options = {}, more: ScriptedProvider.Phases = {}) => {
  const script = (placed: SubagentProvider.PlacedRequest, before: number): ScriptedProvider.Phases => {
    let told = before
    const turn = [step(() => Effect.sync(() => told++)), ...(placed.label === "hang" ? [hang] : [text("told")])]
    return { turn, resumed: turn, token: Effect.sync((): Json => ({ told })), ...more }
  }
  return ScriptedProvider.make((placed) => script(placed, 0), {
    continued: (placed, payload) => script(placed, (payload as { readonly told: number }).told),
    ...options
  })
}

const tokenOf = (run: SubagentRun.SubagentRun) => run.token!

/** The token of a child that has ended its turn, out of a seam that is gone. */
const kept = (fields: Partial<SubagentRequest.SubagentStartRequest> = {}) =>
  Effect.gen(function* () {
    const { provider } = yield* counting()
    return yield* withSeam([provider], (seam) =>
      Effect.gen(function* () {
        const run = yield* seam.start("scripted", { ...request, ...fields })
        yield* run.cancel()
        // as it comes back from wherever it was kept
        return JSON.parse(JSON.stringify(yield* tokenOf(run))) as Token
      })
    )
  })

/** Runs the body in another seam, with a provider that goes on with children of elsewhere. */
const elsewhere = <A, E, R>(
  body: (seam: Seam, scripted: ScriptedProvider.ScriptedProvider["Service"]) => Effect.Effect<A, E, R>,
  options: Parameters<typeof inSeam>[2] = {},
  scriptedOptions: ScriptedProvider.Options = {}
) =>
  Effect.flatMap(counting(scriptedOptions), (scripted) =>
    inSeam([scripted.provider], (seam) => body(seam, scripted), options)
  )

const refusal = (seam: Seam, token: unknown, fields: object = {}, content: unknown = "two") =>
  Effect.map(
    Effect.exit(Effect.scoped(seam.resume(token as Token, content as string, { parent: root, ...fields }))),
    (exit) => Object.assign({}, reasonOf(exit) as object) as Record<string, unknown>
  )

describe("the token of a run", () => {
  it.effect("is a JSON value with all there is to know of the child, and a snapshot", () =>
    Effect.gen(function* () {
      const { provider } = yield* counting()
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("scripted", {
            ...request,
            label: "a",
            maxDepth: 2,
            toolFilter: { deny: ["rm"] },
            agentOptions: { model: "fast" }
          })
          yield* run.result
          const token = yield* tokenOf(run)
          const expected: Token = {
            version: 1,
            provider: "scripted",
            id: run.id,
            header: run.header,
            policy: { maxDepth: 2, toolFilters: [{ deny: ["rm"] }] },
            agentOptions: { model: "fast" },
            label: "a",
            payload: { told: 1 }
          }
          assert.deepStrictEqual(token, expected)
          assert.throws(() => Object.assign(token.payload as object, { told: 7 }), TypeError)
          const next = yield* run.resume!("two")
          yield* next.result
          assert.deepStrictEqual(token, expected)
          assert.deepStrictEqual(yield* tokenOf(next), but(expected, { payload: { told: 2 } }))
          assert.deepStrictEqual(
            Schema.decodeUnknownSync(Schema.fromJsonString(ResumeToken.ResumeToken))(JSON.stringify(token)),
            token
          )
        })
      )
    })
  )

  it.effect("is there only if the child gives one and its provider can go on from one", () =>
    Effect.gen(function* () {
      const { provider: whole } = yield* counting({ name: "whole" })
      const { provider: closed } = yield* counting({ name: "closed", continued: undefined })
      const { provider: mute } = yield* counting({ name: "mute" }, { token: undefined })
      yield* withSeam([whole, closed, mute], (seam) =>
        Effect.gen(function* () {
          assert.property(yield* seam.start("whole", request), "token")
          for (const name of ["closed", "mute"]) assert.notProperty(yield* seam.start(name, request), "token")
        })
      )
    })
  )

  it.effect("fails once the child is gone, and with what is wrong with a provider that can't make one", () =>
    Effect.gen(function* () {
      const circular: Record<string, unknown> = {}
      circular["self"] = circular
      const refused = SubagentError.fromReason(new SubagentError.StartFailed({ provider: "p", detail: "busy" }))
      const attempts: ReadonlyArray<readonly [Effect.Effect<unknown, SubagentError.SubagentError>, string]> = [
        [Effect.fail(refused), "StartFailed"],
        [Effect.die(new Error("oh")), "ProviderFault"],
        [Effect.succeed(undefined), "ProviderFault"],
        [Effect.succeed({ at: new Date(0) }), "ProviderFault"],
        [Effect.succeed([Number.NaN]), "ProviderFault"],
        [Effect.succeed(circular), "ProviderFault"]
      ]
      for (const [token, tag] of attempts) {
        const { provider } = yield* counting({}, { token: token as Effect.Effect<Json> })
        yield* withSeam([provider], (seam) =>
          Effect.gen(function* () {
            const run = yield* seam.start("scripted", request)
            assert.strictEqual(tagOf(yield* Effect.exit(tokenOf(run))), tag)
            yield* run.dispose
            assert.deepInclude(reasonOf(yield* Effect.exit(tokenOf(run))) as object, {
              _tag: "RunReleased",
              runId: run.runId
            })
          })
        )
      }
    })
  )

  it.effect("can't be made of an option that is no JSON", () =>
    Effect.gen(function* () {
      const { provider } = yield* counting({ capabilities: { ...all, extra: true } as object })
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("scripted", { ...request, agentOptions: { extra: () => 1 } as object })
          const reason = reasonOf(yield* Effect.exit(tokenOf(run))) as SubagentError.ProviderFault
          assert.strictEqual(reason._tag, "ProviderFault")
          assert.include(reason.detail, "its child can't be kept")
        })
      )
    })
  )
})

describe("resuming with a token", () => {
  it.effect("goes on with the same child on another seam: its id, header, label, options and limits", () =>
    Effect.gen(function* () {
      const token = yield* kept({
        label: "a",
        maxDepth: 2,
        toolFilter: { deny: ["rm"] },
        agentOptions: { model: "fast", systemPrompt: "Be brief." }
      })
      const { events, value } = yield* elsewhere((seam, { runs }) =>
        Effect.gen(function* () {
          const run = yield* seam.resume(token, [Content.text("two")], { parent: root })
          const result = yield* run.result
          const [{ placed } = { placed: undefined }] = yield* runs
          assert.strictEqual(result.stopReason, "completed")
          assert.deepStrictEqual([run.id, run.header, run.provider], [token.id, token.header, "scripted"])
          const { emit: _emit, lineage, nextTurn: _nextTurn, ...rest } = placed!
          assert.deepStrictEqual(rest, {
            runId: run.runId,
            prompt: [{ type: "text", text: "two" }],
            parent: root,
            parentOptions: {},
            agentOptions: { model: "fast", systemPrompt: "Be brief." },
            label: "a",
            header: token.header,
            policy: { maxDepth: 2, toolFilters: [{ deny: ["rm"] }] }
          })
          assert.deepStrictEqual(lineage, {
            id: token.id,
            runId: run.runId,
            parentId: "root",
            rootId: "root",
            depth: 1,
            label: "a"
          })
          assert.isTrue(Object.isFrozen(placed!.policy.toolFilters[0]))
          assert.deepStrictEqual((yield* tokenOf(run)).payload, { told: 2 })
          // it is a run like any other: it goes on, is kept once more, and gone with its release
          const next = yield* run.resume!("three")
          yield* next.result
          const again = yield* tokenOf(next)
          yield* run.dispose
          const third = yield* seam.resume(again, "four", { parent: root })
          yield* third.result
          assert.deepStrictEqual(yield* tokenOf(third), but(token, { payload: { told: 4 } }))
          const updates = yield* Stream.runCollect(third.updates)
          assert.isTrue(updates.every(({ runId }) => runId === third.runId))
          return run
        })
      )
      assert.deepStrictEqual(lines(events), [
        "start a",
        "end a completed",
        "start a",
        "end a completed",
        "start a",
        "end a completed"
      ])
      assert.isTrue(events.every((event) => !("id" in event) || event.id === value.id))
    })
  )

  it.effect("takes the schema again, and judges by it", () =>
    Effect.gen(function* () {
      const token = yield* kept()
      yield* elsewhere(
        (seam) =>
          Effect.gen(function* () {
            const run = yield* seam.resume(token, "two", { parent: root, outputSchema: Schema.NumberFromString })
            const { structured } = yield* run.result
            assert.strictEqual(structured, 7)
            yield* run.dispose
            const plain = yield* seam.resume(token, "two", { parent: root })
            assert.notProperty(yield* plain.result, "structured")
          }),
        {},
        { structured: "7" }
      )
    })
  )

  it.effect("is stopped by its signal, its cancel, and its scope, and leaves nothing", () =>
    Effect.gen(function* () {
      const token = yield* kept({ label: "hang" })
      const { abort, listeners, signal } = makeSignal()
      yield* elsewhere((seam) =>
        Effect.gen(function* () {
          const cancelled = yield* seam.resume(token, "two", { parent: root })
          yield* cancelled.cancel("enough")
          assert.deepStrictEqual((yield* cancelled.result).cause, { _tag: "Caller", reason: "enough" })
          yield* cancelled.dispose
          const scoped = yield* Effect.scoped(seam.resume(token, "two", { parent: root }))
          assert.deepStrictEqual((yield* scoped.result).cause, { _tag: "Release" })
          const aborted = yield* seam.resume(token, "two", { parent: root, signal })
          abort()
          assert.deepStrictEqual((yield* aborted.result).cause, { _tag: "Signal" })
          yield* aborted.dispose
          assert.deepStrictEqual([listeners(), yield* seam.live], [0, []])
          assert.strictEqual((yield* refusal(seam, token, { signal }))["_tag"], "AbortedBeforeStart")
          assert.strictEqual(
            (yield* refusal(seam, token, { signal: makeSignal(true).signal }))["_tag"],
            "AbortedBeforeStart"
          )
        })
      )
    })
  )
})

describe("a token is refused", () => {
  const without = (token: Token, key: keyof Token) => {
    const { [key]: _, ...rest } = Object.assign({}, token)
    return rest
  }

  it.effect("if it is of a version that is not known, or not whole, with the path of each fault", () =>
    Effect.gen(function* () {
      const token = yield* kept({ toolFilter: { deny: ["rm"] } })
      const throwing = {
        get version(): number {
          throw new Error("no")
        }
      }
      const broken: ReadonlyArray<readonly [unknown, string]> = [
        [undefined, "token"],
        [null, "token"],
        ["text", "token"],
        [[], "token"],
        [throwing, "token"],
        [but(token, { version: 2 }), "token.version"],
        [but(token, { version: "1" }), "token.version"],
        [but(token, { extra: true }), "token.extra"],
        [but(token, { provider: " " }), "token.provider"],
        [but(token, { id: 3 }), "token.id"],
        [but(token, { header: { ...token.header, parentSession: "" } }), "token.header.parentSession"],
        [but(token, { header: { ...token.header, delegationDepth: -1 } }), "token.header.delegationDepth"],
        [but(token, { header: { ...token.header, root: true } }), "token.header.root"],
        [but(token, { policy: { maxDepth: 1.5, toolFilters: [] } }), "token.policy.maxDepth"],
        [but(token, { policy: { maxDepth: 1, toolFilters: [{}] } }), "token.policy.toolFilters.0"],
        [but(token, { policy: { maxDepth: 1, toolFilters: [{ alow: ["a"] }] } }), "token.policy.toolFilters.0.alow"],
        [but(token, { agentOptions: { model: () => 1 } }), "token.agentOptions.model"],
        [but(token, { label: "" }), "token.label"],
        [but(token, { payload: undefined }), "token.payload"],
        ...(["version", "provider", "id", "header", "policy", "agentOptions", "payload"] as const).map(
          (key) => [without(token, key), `token.${key}`] as const
        )
      ]
      yield* elsewhere((seam, { runs }) =>
        Effect.gen(function* () {
          for (const [wrong, where] of broken) {
            const { _tag, issues } = (yield* refusal(seam, wrong)) as unknown as SubagentError.InvalidRequest
            assert.strictEqual(_tag, "InvalidRequest", where)
            assert.include(
              issues.map(({ path }) => path.join(".")),
              where
            )
          }
          assert.deepStrictEqual(yield* runs, [])
        })
      )
    })
  )

  it.effect("if the request beside it or its content is not whole, or asks for what a token decides", () =>
    Effect.gen(function* () {
      const token = yield* kept()
      yield* elsewhere((seam) =>
        Effect.gen(function* () {
          const paths = (fields: object, content: unknown = "two") =>
            Effect.map(refusal(seam, token, fields, content), (reason) => {
              const { issues } = reason as unknown as SubagentError.InvalidRequest
              return issues.map(({ path }) => path.join("."))
            })
          assert.deepStrictEqual(yield* paths({}, " "), ["content"])
          assert.deepStrictEqual(yield* paths({}, [{ type: "text" }]), ["content.0.text"])
          assert.deepStrictEqual(yield* paths({ parent: undefined }), ["parent"])
          assert.deepStrictEqual(yield* paths({ signal: 3, outputSchema: 3 }), ["signal", "outputSchema"])
          assert.deepStrictEqual(yield* paths({ toolFilter: { allow: [] }, label: "b" }), ["toolFilter", "label"])
          const throwing = Object.defineProperty({}, "parent", {
            enumerable: true,
            get: () => {
              throw new Error("no")
            }
          })
          const exit = yield* Effect.exit(
            Effect.scoped(seam.resume(token, "two", throwing as { readonly parent: Agent.Agent }))
          )
          assert.strictEqual(tagOf(exit), "InvalidRequest")
        })
      )
    })
  )

  it.effect("if it is of another parent's child, whatever that parent is called", () =>
    Effect.gen(function* () {
      const token = yield* kept()
      const other = { id: root.id, session: { header: { id: "another-session" } } }
      const moved = { id: "renamed", session: { header: root.session.header } }
      yield* elsewhere((seam) =>
        Effect.gen(function* () {
          assert.deepInclude(yield* refusal(seam, token, { parent: other }), {
            _tag: "ForeignToken",
            id: token.id,
            parentId: root.id
          })
          // it is the session that has delegated
          const run = yield* seam.resume(token, "two", { parent: moved })
          assert.strictEqual((yield* run.result).stopReason, "completed")
        })
      )
    })
  )

  it.effect("if it would move its child out of the parent's folder (17)", () =>
    Effect.gen(function* () {
      const token = yield* kept()
      yield* elsewhere((seam) =>
        Effect.gen(function* () {
          const moved = but(token, { header: { ...token.header, cwd: "/etc" } })
          const { header } = root.session
          for (const [cwd, said] of [
            ["/work", "/work"],
            [undefined, "of which it has none"]
          ] as const) {
            const parent = { id: root.id, session: { header: { id: header.id, cwd } } }
            const { issues } = (yield* refusal(seam, moved, { parent })) as unknown as SubagentError.InvalidRequest
            assert.deepStrictEqual(issues.map(String), [`token.header.cwd: Expected the parent's folder, ${said}`])
          }
          const there = { id: root.id, session: { header: { id: header.id, cwd: "/etc" } } }
          const run = yield* seam.resume(moved, "two", { parent: there })
          assert.strictEqual((yield* run.result).stopReason, "completed")
        })
      )
    })
  )

  it.effect("if its child would pass for somebody above it", () =>
    Effect.gen(function* () {
      const token = yield* kept()
      yield* elsewhere((seam) =>
        Effect.gen(function* () {
          for (const name of [root.id, root.session.header.id]) {
            for (const wrong of [but(token, { id: name }), but(token, { header: { ...token.header, id: name } })]) {
              const { issues } = (yield* refusal(seam, wrong)) as unknown as SubagentError.InvalidRequest
              assert.deepStrictEqual(issues.map(String), ["token: Expected the id of a child"])
            }
          }
        })
      )
    })
  )

  it.effect("if there is no such provider, it can't go on, or it lacks what is asked for", () =>
    Effect.gen(function* () {
      const token = yield* kept({ toolFilter: { deny: ["rm"] }, agentOptions: { model: "fast" } })
      const { provider: closed } = yield* counting({ continued: undefined })
      yield* withSeam([closed], (seam) =>
        Effect.gen(function* () {
          assert.deepInclude(yield* refusal(seam, but(token, { provider: "gone" })), {
            _tag: "ProviderNotFound",
            name: "gone"
          })
          assert.deepInclude(yield* refusal(seam, token), {
            _tag: "UnsupportedCapability",
            provider: "scripted",
            capability: "resume",
            missing: ["resume"]
          })
        })
      )
      const lacking: ReadonlyArray<readonly [Provider["capabilities"], string]> = [
        [{ ...all, toolFilter: false }, "toolFilter"],
        [{ ...all, model: false }, "model"],
        [{ ...all, outputSchema: false }, "outputSchema"]
      ]
      for (const [capabilities, capability] of lacking) {
        yield* elsewhere(
          (seam) =>
            Effect.map(refusal(seam, token, { outputSchema: Schema.String }), (reason) =>
              assert.deepInclude(reason, { _tag: "UnsupportedCapability", capability })
            ),
          {},
          { capabilities }
        )
      }
    })
  )

  it.effect("if the child is deeper than what holds today, or held when it was started", () =>
    Effect.gen(function* () {
      const token = yield* kept({ maxDepth: 2 })
      const exceeded = (depth: number, maxDepth: number) => ({ _tag: "DepthExceeded", depth, maxDepth })
      yield* elsewhere(
        (seam) => Effect.map(refusal(seam, token), (reason) => assert.deepInclude(reason, exceeded(1, 0))),
        { maxDepth: 0 }
      )
      yield* elsewhere((seam) =>
        Effect.gen(function* () {
          const { header } = root.session
          const deeper = { id: "root", session: { header: { ...header, delegationDepth: 2 } } }
          assert.deepInclude(yield* refusal(seam, token, { parent: deeper }), exceeded(3, 2))
          assert.deepInclude(
            yield* refusal(seam, but(token, { header: { ...token.header, delegationDepth: 9 } })),
            exceeded(9, 2)
          )
          // a token that is said to be less deep is as deep as it is, and says so from then on
          const { header: placed } = yield* seam.resume(token, "two", {
            parent: { id: "root", session: { header: { ...header, delegationDepth: 1 } } }
          })
          assert.deepStrictEqual(placed, { ...token.header, delegationDepth: 2 })
        })
      )
    })
  )

  it.effect("as long as the child is live here, or somebody else goes on with it", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { provider } = yield* counting(
        {},
        { start: [step(({ prompt }) => (Content.toText(prompt) === "slow" ? Deferred.await(gate) : Effect.void))] }
      )
      yield* withSeam([provider], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.start("scripted", request)
          yield* run.result
          const token = yield* tokenOf(run)
          const busy = (runId: string) => ({ _tag: "ChildBusy", id: token.id, runId })
          assert.deepInclude(yield* refusal(seam, token), busy(run.runId))
          yield* run.dispose
          const starting = yield* Effect.forkChild(Effect.scoped(seam.resume(token, "slow", { parent: root })), {
            startImmediately: true
          })
          const second = yield* refusal(seam, token)
          assert.strictEqual(second["_tag"], "ChildBusy")
          yield* Deferred.succeed(gate, undefined)
          assert.strictEqual((yield* Fiber.join(starting)).runId, second["runId"])
          // free again, also after one that came to nothing
          const given = yield* Effect.forkChild(Effect.scoped(seam.resume(token, "slow", { parent: root })))
          yield* Fiber.interrupt(given)
          const next = yield* seam.resume(token, "two", { parent: root })
          assert.deepInclude(yield* refusal(seam, token), busy(next.runId))
        })
      )
    })
  )

  it.effect("if another child has taken its name while it was being made ready", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const token = yield* kept()
      const slow = provider({
        name: "scripted",
        start: () => Effect.succeed({ id: token.id, turn: Effect.never })
      })
      const resuming: Provider = {
        ...slow,
        resume: () => Effect.as(Deferred.await(gate), { turn: Effect.succeed(completed) })
      }
      yield* withSeam([resuming], (seam) =>
        Effect.gen(function* () {
          const starting = yield* Effect.forkChild(Effect.scoped(seam.resume(token, "two", { parent: root })), {
            startImmediately: true
          })
          const { runId } = yield* seam.start("scripted", request)
          yield* Deferred.succeed(gate, undefined)
          assert.deepInclude(reasonOf(yield* Fiber.await(starting)) as object, {
            _tag: "ChildBusy",
            id: token.id,
            runId
          })
        })
      )
    })
  )

  it.effect("with what the provider says if it can't go on, and leaves nothing", () =>
    Effect.gen(function* () {
      const token = yield* kept()
      const failing: ReadonlyArray<() => unknown> = [
        () => Effect.die(new Error("oh")),
        () => Effect.succeed({}),
        () => Effect.succeed({ turn: Effect.void, token: 3 }),
        () => {
          throw new Error("thrown")
        }
      ]
      for (const resume of failing) {
        const { events } = yield* inSeam([{ ...provider({ name: "scripted" }), resume: resume as never }], (seam) =>
          Effect.map(refusal(seam, token), (reason) => assert.strictEqual(reason["_tag"], "ProviderFault"))
        )
        assert.deepStrictEqual(lines(events), [])
      }
    })
  )

  it.effect("by a registry that has been released", () =>
    Effect.gen(function* () {
      const token = yield* kept()
      const { value: seam } = yield* elsewhere((seam) => Effect.succeed(seam))
      assert.strictEqual((yield* refusal(seam, token))["_tag"], "RegistryClosed")
    })
  )
})

describe("a token in a tree (11, 12)", () => {
  it.effect("is subject to what its parent inherits today, and to what it inherited then", () =>
    Effect.gen(function* () {
      const { provider: scripted, runs } = yield* counting()
      const open = provider({ name: "open", turn: () => Effect.never })
      yield* withSeam([scripted, open], (seam) =>
        Effect.gen(function* () {
          const parentOf = (fields: object) =>
            Effect.gen(function* () {
              const agents: Array<Agent.Agent> = []
              const keeping: Provider = {
                ...open,
                name: `open ${JSON.stringify(fields)}`,
                start: (placed) => {
                  // the same agent, in one process after the other
                  agents.push({ ...agentOf(placed), session: { header: placed.header } })
                  return open.start(placed)
                }
              }
              yield* seam.register(keeping)
              const run = yield* seam.start(keeping.name, { ...request, ...fields })
              return { agent: agents[0]!, run }
            })
          const before = yield* parentOf({ toolFilter: { deny: ["rm"] }, maxDepth: 3 })
          const child = yield* seam.start("scripted", {
            prompt: "one",
            parent: before.agent,
            toolFilter: { allow: ["read", "write"] }
          })
          yield* child.result
          const token = yield* tokenOf(child)
          yield* child.dispose
          // the parent is another run by now, with other limits, and the same session for the token's sake
          const after = yield* parentOf({ toolFilter: { deny: ["write"] }, maxDepth: 2 })
          const moved = but(token, { header: { ...token.header, parentSession: after.run.header.id } })
          const next = yield* seam.resume(moved, "two", { parent: after.agent })
          const { placed } = (yield* runs).at(-1)!
          assert.deepStrictEqual(placed.policy, {
            maxDepth: 2,
            toolFilters: [{ deny: ["write"] }, { deny: ["rm"] }, { allow: ["read", "write"] }]
          })
          assert.strictEqual(placed.lineage.parentRunId, after.run.runId)
          // what holds above is not held twice, however often the child is kept
          const again = yield* tokenOf(next)
          yield* next.dispose
          yield* seam.resume(again, "three", { parent: after.agent })
          assert.deepStrictEqual((yield* runs).at(-1)!.placed.policy, placed.policy)
          yield* after.run.cancel()
          assert.strictEqual((yield* refusal(seam, again, { parent: after.agent }))["_tag"], "ParentSettled")
        })
      )
    })
  )
})

describe("a second process", () => {
  it.live("goes on with the child of the first, from its token", () =>
    Effect.promise(async () => {
      const example = path.resolve(import.meta.dirname, "../docs/examples/resume-token.ts")
      const { stdout } = await promisify(execFile)(process.execPath, ["--conditions=effect-subagent-source", example])
      assert.match(stdout, /^process 1: \{"version":1,/)
      assert.include(stdout, "process 2: I know: The key is under the mat. The door is blue.")
    })
  )
})

describe("what ends a child that goes on from a token", () => {
  it.effect("is judged as ever", () =>
    Effect.gen(function* () {
      const token = yield* kept()
      const failing: Provider = {
        ...provider({ name: "scripted" }),
        resume: (placed) =>
          Effect.succeed({
            turn: Effect.sync(() => {
              placed.emit({ _tag: "Content", block: Content.text("so far") })
              return { stopReason: "error", failure: { kind: "model", retryable: true } }
            })
          })
      }
      yield* withSeam([failing], (seam) =>
        Effect.gen(function* () {
          const run = yield* seam.resume(token, "two", { parent: root })
          const result = yield* Effect.exit(run.result)
          assert.isTrue(Exit.isSuccess(result))
          assert.deepInclude(yield* run.result, { stopReason: "error", output: [Content.text("so far")] })
        })
      )
    })
  )
})
