import { assert, describe, it } from "@effect/vitest"
import { Agent, Approvals, Content, SubagentError, type SubagentProvider, Subagents } from "effect-subagent"
import { ScriptedProvider } from "effect-subagent/testing"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"

const scripted = (script?: ScriptedProvider.Script, options?: ScriptedProvider.Options) =>
  ScriptedProvider.layer(script, options).pipe(Layer.provideMerge(Subagents.layer))

const start = (fields: object = {}, name = "scripted") =>
  Effect.gen(function* () {
    const subagents = yield* Subagents.Subagents
    return yield* subagents.start(name, { prompt: "go", parent: yield* Agent.root(), ...fields })
  })

const run = (fields: object = {}) => Effect.scoped(Effect.flatMap(start(fields), (run) => run.result))

const moments = Effect.gen(function* () {
  const { runs } = yield* ScriptedProvider.ScriptedProvider
  return (yield* runs).map((run) => run.moments.join(" "))
})

/** Updates without what the seam stamped on them. */
const updatesOf = (script: ScriptedProvider.Script, fields: object = {}) =>
  Effect.gen(function* () {
    const run = yield* start(fields)
    const updates = yield* Stream.runCollect(run.updates)
    return Array.from(updates, ({ at: _at, runId: _runId, seq: _seq, ...update }) => update)
  }).pipe(Effect.scoped, Effect.provide(scripted(script)))

const reasonOf = <A, R>(effect: Effect.Effect<A, SubagentError.SubagentError, R>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason)

const fault = (detail: string) => new SubagentError.ProviderFault({ provider: "scripted", detail })
const failed = new SubagentError.StartFailed({ provider: "scripted", detail: "no room" })

const {
  ask,
  die,
  emit,
  end,
  fail,
  hang,
  interrupt,
  nextTurn,
  onInterrupt,
  run: step,
  sleep,
  stop,
  stream,
  submit,
  text,
  thought,
  toolCall,
  uninterruptible,
  usage
} = ScriptedProvider

describe("ScriptedProvider", () => {
  it.effect("plays its script and returns it [seed 34]", () =>
    Effect.gen(function* () {
      const result = yield* run()
      assert.deepStrictEqual(result, { output: [Content.text("one two")], stopReason: "completed" })
      assert.deepStrictEqual(yield* moments, [
        "start-begun start-ended turn-begun turn-ended release-begun release-ended"
      ])
    }).pipe(Effect.provide(scripted([text("first"), text("one ", "two")])))
  )

  for (const [title, script] of [
    ["no script", undefined],
    ["an empty script", []],
    ["phases without a turn", {}]
  ] as const) {
    it.effect(`says "done" and completes with ${title}`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* run(), { output: [Content.text("done")], stopReason: "completed" })
      }).pipe(Effect.provide(scripted(script)))
    )
  }

  it.effect("has the name, the capabilities and the context it was told to [seed 35]", () =>
    Effect.gen(function* () {
      const subagents = yield* Subagents.Subagents
      const { provider } = yield* ScriptedProvider.ScriptedProvider
      assert.deepStrictEqual(yield* subagents.list, ["other"])
      assert.strictEqual(yield* subagents.get("other"), provider)
      assert.strictEqual(provider.inheritsContext, true)
      assert.strictEqual(provider.capabilities.toolFilter, false)
      assert.strictEqual(provider.capabilities.outputSchema, true)
    }).pipe(Effect.provide(scripted([], { name: "other", capabilities: { toolFilter: false }, inheritsContext: true })))
  )

  it.effect("by default takes everything that can be asked for, and inherits no context", () =>
    Effect.gen(function* () {
      const asked = {
        prompt: [
          Content.text("see"),
          { type: "image", data: "", mimeType: "image/png" },
          { type: "audio", data: "", mimeType: "audio/wav" },
          { type: "resource_link", uri: "a:b", name: "b" },
          { type: "resource", resource: { uri: "a:b", text: "" } }
        ],
        agentOptions: { model: "m", systemPrompt: "s" },
        outputSchema: Schema.Number,
        maxDepth: 2,
        toolFilter: { allow: [] }
      }
      assert.strictEqual((yield* run(asked)).stopReason, "completed")
      const { provider, runs } = yield* ScriptedProvider.ScriptedProvider
      const [seen] = yield* runs
      assert.deepStrictEqual<unknown>(seen?.placed.prompt, asked.prompt)
      assert.deepStrictEqual(seen?.placed.agentOptions, asked.agentOptions)
      assert.strictEqual(provider.inheritsContext, false)
    }).pipe(Effect.provide(scripted([], { structured: 1 })))
  )

  describe("structured values [seed 36]", () => {
    const When = Schema.DateFromString

    it.effect("gives the value of its options when a schema is asked for", () =>
      Effect.gen(function* () {
        const result = yield* run({ outputSchema: When })
        assert.deepStrictEqual(result.structured, new Date(0))
      }).pipe(Effect.provide(scripted([], { structured: new Date(0).toISOString() })))
    )

    it.effect("gives the value that a step submits instead", () =>
      Effect.gen(function* () {
        const result = yield* run({ outputSchema: When })
        assert.deepStrictEqual(result.structured, new Date(5))
      }).pipe(Effect.provide(scripted([submit(new Date(5).toISOString())], { structured: "never" })))
    )

    it.effect("gives none when no schema is asked for", () =>
      Effect.gen(function* () {
        const { provider } = yield* ScriptedProvider.make([], { structured: 1 })
        const subagents = yield* Subagents.Subagents
        const outcomes: Array<unknown> = []
        yield* subagents.register({
          ...provider,
          start: (placed) =>
            Effect.map(provider.start(placed), (session) => ({
              turn: Effect.tap(session.turn, (outcome) => Effect.sync(() => outcomes.push(outcome)))
            }))
        })
        yield* run()
        assert.deepStrictEqual(outcomes, [{ stopReason: "completed" }])
      }).pipe(Effect.provide(Subagents.layer))
    )

    it.effect("has nothing to give without a script for it", () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* run({ outputSchema: When })).failure?.kind, "schema-missing")
      }).pipe(Effect.provide(scripted()))
    )
  })

  for (const [capability, asked] of [
    ["outputSchema", { outputSchema: Schema.Number }],
    ["depthLimit", { maxDepth: 1 }],
    ["toolFilter", { toolFilter: { deny: ["x"] } }]
  ] as const) {
    it.effect(`refuses what it was told to lack: ${capability} [seed 37]`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(
          yield* reasonOf(run(asked)),
          new SubagentError.UnsupportedCapability({ provider: "scripted", capability, missing: [capability] })
        )
        assert.deepStrictEqual(yield* moments, [])
      }).pipe(Effect.provide(scripted([], { capabilities: { [capability]: false } })))
    )
  }

  it.effect("gives the stop reason it was told to, with all that belongs to it, and plays no further [seed 38]", () =>
    Effect.gen(function* () {
      const failure = { kind: "model", retryable: true, status: 429 } as const
      const fields = { failure, diagnostic: "slow down", usage: { total: 3 } }
      for (const stopReason of ["max-tokens", "refusal", "error", "lost-interest"]) {
        const result = yield* run().pipe(
          Effect.provide(scripted([text("so far"), stop(stopReason, fields), text("never said")]))
        )
        assert.deepStrictEqual(result, {
          output: [Content.text("so far")],
          stopReason,
          ...fields,
          treeUsage: fields.usage
        })
      }
    })
  )

  it.effect("is cancelled before it settles, and the result is aborted [seed 39]", () =>
    Effect.gen(function* () {
      const child = yield* start()
      yield* child.cancel("enough")
      assert.deepStrictEqual(yield* child.result, {
        output: [Content.text("so far")],
        stopReason: "aborted",
        cause: { _tag: "Caller", reason: "enough" }
      })
      yield* child.dispose
      assert.deepStrictEqual(yield* moments, [
        "start-begun start-ended turn-begun turn-interrupted release-begun release-ended"
      ])
    }).pipe(Effect.provide(scripted([text("so far"), hang])))
  )

  it.effect("is gone when its scope is closed [seed 40]", () =>
    Effect.gen(function* () {
      const subagents = yield* Subagents.Subagents
      const scope = yield* Scope.make()
      yield* Layer.buildWithScope(ScriptedProvider.layer(), scope)
      assert.deepStrictEqual(yield* subagents.list, ["scripted"])
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* subagents.list, [])
    }).pipe(Effect.provide(Subagents.layer))
  )

  it.effect("picks a script for each request, so that one provider serves many prompts", () =>
    Effect.gen(function* () {
      assert.strictEqual(Content.toText((yield* run({ prompt: "a" })).output), "A")
      assert.strictEqual((yield* run({ prompt: "b" })).stopReason, "refusal")
      const { runs } = yield* ScriptedProvider.ScriptedProvider
      assert.deepStrictEqual(
        (yield* runs).map(({ placed }) => Content.toText(placed.prompt)),
        ["a", "b"]
      )
    }).pipe(
      Effect.provide(
        scripted(({ prompt }) => (Content.toText(prompt) === "a" ? [text("A")] : { turn: [stop("refusal")] }))
      )
    )
  )

  it.effect("reports whatever it is told to: messages, stray text, thoughts, tool calls, usage, raw values", () =>
    Effect.gen(function* () {
      const script = [
        stream("a", "b"),
        thought("hm"),
        toolCall({ id: "1", name: "look", input: { at: 1 }, output: "seen" }),
        toolCall({ id: "2", name: "fall", status: "failed" }),
        usage({ total: 7 }),
        emit({ _tag: "Raw", kind: "x", value: 1 }),
        emit("garbage"),
        emit(null),
        text("end")
      ]
      const updates = yield* updatesOf(script)
      const messageId = (updates.at(-1) as { messageId?: string }).messageId
      assert.deepStrictEqual<unknown>(updates, [
        { _tag: "Content", block: Content.text("a") },
        { _tag: "Content", block: Content.text("b") },
        { _tag: "Thought", text: "hm" },
        { _tag: "ToolCall", id: "1", name: "look", status: "running", input: { at: 1 } },
        { _tag: "ToolCall", id: "1", name: "look", status: "completed", output: "seen" },
        { _tag: "ToolCall", id: "2", name: "fall", status: "running", input: undefined },
        { _tag: "ToolCall", id: "2", name: "fall", status: "failed", output: undefined },
        { _tag: "Usage", usage: { total: 7 } },
        { _tag: "Raw", kind: "x", value: 1 },
        { _tag: "MessageStarted", messageId },
        { _tag: "Content", messageId, block: Content.text("end") }
      ])
    })
  )

  it.effect("takes its ids from Random: the same seed, the same ids (18)", () =>
    Effect.gen(function* () {
      const once = updatesOf([text("a"), toolCall({ name: "x" })]).pipe(Random.withSeed("s"))
      const other = updatesOf([text("a"), toolCall({ name: "x" })]).pipe(Random.withSeed("t"))
      assert.deepStrictEqual(yield* once, yield* once)
      assert.notDeepEqual(yield* once, yield* other)
    })
  )

  it.effect("leaves a tool call unanswered if it is told to, which is no completed end (14)", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* run()).failure?.kind, "unbalanced")
    }).pipe(Effect.provide(scripted([toolCall({ name: "x", status: undefined }), text("done")])))
  )

  it.effect("asks for an approval, and makes the call only with one (19)", () =>
    Effect.gen(function* () {
      const script = [ask({ id: "1", name: "rm", input: 1, output: "gone" }), text("end")]
      const asked: Array<Approvals.ApprovalRequest> = []
      const decide = (decision: Approvals.ApprovalDecision) =>
        Effect.provideService(updatesOf(script), Approvals.Approvals, {
          decide: (request) =>
            Effect.as(
              Effect.sync(() => asked.push(request)),
              decision
            )
        })
      const call = { _tag: "ToolCall", id: "1", name: "rm" }
      const begun = [
        { ...call, status: "running", input: 1 },
        { _tag: "Permission", toolCallId: "1" }
      ]
      const expected = (outcome: string, last: object) => [
        ...begun,
        { _tag: "Permission", toolCallId: "1", outcome },
        { ...call, ...last }
      ]
      const answered = (updates: ReadonlyArray<unknown>) => updates.slice(0, 4)
      assert.deepStrictEqual(
        answered(yield* decide("approved")),
        expected("approved", { status: "completed", output: "gone" })
      )
      assert.deepStrictEqual(
        answered(yield* decide("denied")),
        expected("denied", { status: "failed", output: "denied" })
      )
      assert.deepStrictEqual(
        answered(yield* updatesOf(script)),
        expected("no-approver", { status: "failed", output: "no-approver" })
      )
      assert.deepStrictEqual(
        asked.map(({ input, lineage, toolCallId, toolName }) => ({
          input,
          depth: lineage?.depth,
          toolCallId,
          toolName
        })),
        [1, 2].map(() => ({ input: 1, depth: 1, toolCallId: "1", toolName: "rm" }))
      )
    })
  )

  it.effect("takes its time by the clock, and waits at the test's own gates", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const script: ScriptedProvider.Script = {
        start: [sleep("1 minute")],
        turn: [step(() => Deferred.await(gate)), sleep("1 hour"), text("late")]
      }
      yield* Effect.gen(function* () {
        const starting = yield* Effect.forkChild(start(), { startImmediately: true })
        assert.deepStrictEqual(yield* moments, ["start-begun"])
        yield* TestClock.adjust("1 minute")
        const child = yield* Fiber.join(starting)
        const waiting = yield* Effect.forkChild(child.result, { startImmediately: true })
        yield* TestClock.adjust("1 hour")
        assert.strictEqual(waiting.pollUnsafe(), undefined)
        yield* Deferred.succeed(gate, undefined)
        yield* TestClock.adjust("1 hour")
        assert.strictEqual(Content.toText((yield* Fiber.join(waiting)).output), "late")
      }).pipe(Effect.provide(scripted(script)))
    })
  )

  describe("turns that are counted", () => {
    const failure = { kind: "limit", retryable: false, name: "maxTurns", limit: 2, used: 2 }
    /** Runs a script under a limit of two turns. */
    const limited = (script: ScriptedProvider.Script, wrapUp: boolean) =>
      Effect.gen(function* () {
        const { provider } = yield* ScriptedProvider.make(script)
        let used = 0
        const subagents = yield* Subagents.Subagents
        yield* subagents.register({
          ...provider,
          start: (placed) =>
            provider.start({ ...placed, nextTurn: () => (++used > 2 ? { failure, wrapUp } : undefined) })
        })
        const { output, stopReason, ...rest } = yield* run()
        return [Content.toText(output), stopReason, rest.failure]
      }).pipe(Effect.provide(Subagents.layer))
    const turns = (n: number, wrapUp?: ReadonlyArray<ScriptedProvider.Step>) => [
      ...Array.from({ length: n }, (_, index) => nextTurn([text(`turn ${index + 1}`)], wrapUp && { wrapUp })),
      text("all done")
    ]

    it.effect("are played as long as they are allowed", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* limited(turns(2), true), ["all done", "completed", undefined])
      })
    )

    it.effect("end for the limit when one is refused", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* limited(turns(3), true), ["turn 2", "error", failure])
        assert.deepStrictEqual(yield* limited(turns(3, [text("so far")]), false), ["turn 2", "error", failure])
      })
    )

    it.effect("end for it after one more to wrap up, if that is left to them", () =>
      Effect.gen(function* () {
        const wrapUp = [text("so far"), stop("completed"), text("and on")]
        assert.deepStrictEqual(yield* limited(turns(3, wrapUp), true), ["so far", "error", failure])
      })
    )

    it.effect("end where a step of theirs ends the turn", () =>
      Effect.gen(function* () {
        const script = [nextTurn([text("enough"), stop("completed"), text("more")]), text("still more")]
        assert.deepStrictEqual(yield* limited(script, true), ["enough", "completed", undefined])
      })
    )

    it.effect("are not limited where nobody has set a limit", () =>
      Effect.gen(function* () {
        const { output } = yield* run()
        assert.deepStrictEqual(output, [Content.text("all done")])
      }).pipe(Effect.provide(scripted(turns(100))))
    )
  })

  describe("what goes wrong", () => {
    const starts: ReadonlyArray<[string, ScriptedProvider.Step, SubagentError.SubagentErrorReason, string]> = [
      ["fails", fail(failed), failed, "failed"],
      ["dies", die(new Error("boom")), fault("boom"), "failed"],
      ["interrupts itself", interrupt, fault("its start interrupted itself"), "interrupted"]
    ]
    for (const [how, bad, reason, ended] of starts) {
      for (const [when, steps] of [
        ["at once", [bad]],
        ["later", [sleep("1 second"), bad]]
      ] as const) {
        it.effect(`a start that ${how} ${when}, and is cleaned up`, () =>
          Effect.gen(function* () {
            const starting = yield* Effect.forkChild(reasonOf(Effect.scoped(start())), { startImmediately: true })
            yield* TestClock.adjust("1 second")
            assert.deepStrictEqual(yield* Fiber.join(starting), reason)
            assert.deepStrictEqual(yield* moments, [`start-begun start-${ended} release-begun release-ended`])
          }).pipe(Effect.provide(scripted({ start: steps })))
        )
      }
    }

    it.effect("a start that throws, because its script does", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* reasonOf(Effect.scoped(start())), fault("boom"))
        assert.deepStrictEqual(yield* moments, [""])
      }).pipe(
        Effect.provide(
          scripted(() => {
            throw new Error("boom")
          })
        )
      )
    )

    it.effect("a start that hangs until it is interrupted", () =>
      Effect.gen(function* () {
        const starting = yield* Effect.forkChild(Effect.scoped(start()), { startImmediately: true })
        yield* Fiber.interrupt(starting)
        assert.deepStrictEqual(yield* moments, ["start-begun start-interrupted release-begun release-ended"])
      }).pipe(Effect.provide(scripted({ start: [hang] })))
    )

    for (const [how, bad, reason, ended] of [
      ["fails", fail(failed), failed, "failed"],
      ["dies", die("boom"), fault("boom"), "failed"],
      ["interrupts itself", interrupt, fault("its turn interrupted itself"), "interrupted"],
      ["ends with no outcome", end(42), fault("its turn ended with something that is not an outcome"), "ended"],
      ["ends for no reason", stop(" "), fault("its turn ended with something that is not an outcome"), "ended"]
    ] as const) {
      it.effect(`a turn that ${how}, for which there is no verdict (8)`, () =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* reasonOf(run()), reason)
          assert.deepStrictEqual(yield* moments, [
            `start-begun start-ended turn-begun turn-${ended} release-begun release-ended`
          ])
        }).pipe(Effect.provide(scripted([text("so far"), bad])))
      )
    }

    for (const [how, bad] of [
      ["fails", fail(failed)],
      ["dies", die("boom")]
    ] as const) {
      it.effect(`a turn's finalizer that ${how}`, () =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* reasonOf(run()), how === "fails" ? failed : fault("boom"))
        }).pipe(Effect.provide(scripted({ turnFinalizer: [bad] })))
      )

      it.effect(`a session's finalizer that ${how}, which hides nothing (10)`, () =>
        Effect.gen(function* () {
          assert.strictEqual((yield* run()).stopReason, "completed")
          assert.deepStrictEqual(yield* moments, [
            "start-begun start-ended turn-begun turn-ended release-begun release-failed"
          ])
        }).pipe(Effect.provide(scripted({ release: [bad] })))
      )
    }

    for (const [what, script] of [
      ["a turn that hangs, deaf to interruption", [uninterruptible(hang)]],
      ["a release that hangs", { release: [hang] }]
    ] as const) {
      it.effect(`${what}, which the seam waits for no longer than it must (10)`, () =>
        Effect.gen(function* () {
          const child = yield* start()
          const disposing = yield* Effect.forkChild(child.dispose, { startImmediately: true })
          assert.strictEqual(disposing.pollUnsafe(), undefined)
          yield* TestClock.adjust("10 seconds")
          yield* Fiber.join(disposing)
          const [seen] = yield* moments
          assert.notInclude(seen, "release-ended")
        }).pipe(Effect.provide(scripted(script)))
      )
    }

    it.effect("what a child does when it is interrupted, and what it says too late (7)", () =>
      Effect.gen(function* () {
        const child = yield* start()
        yield* child.cancel()
        yield* child.dispose
        assert.deepStrictEqual((yield* child.result).output, [Content.text("so far")])
        assert.deepStrictEqual(yield* moments, [
          "start-begun start-ended turn-begun turn-interrupted release-begun release-ended"
        ])
      }).pipe(Effect.provide(scripted([text("so far"), onInterrupt(hang, text("too late"))])))
    )

    it.effect("acquires in its start what the session's release takes back", () =>
      Effect.gen(function* () {
        const log: Array<string> = []
        const acquire = step(() =>
          Effect.acquireRelease(
            Effect.sync(() => log.push("acquired")),
            () => Effect.sync(() => log.push("released"))
          )
        )
        const child = yield* start().pipe(
          Effect.provide(scripted({ start: [acquire], turn: [acquire, text("done")], id: "theirs" }))
        )
        assert.strictEqual<string>(child.id, "theirs")
        assert.deepStrictEqual(log, ["acquired", "acquired", "released", "released"])
      })
    )
  })

  it.effect("can be made without a layer, to be registered by hand", () =>
    Effect.gen(function* () {
      const subagents = yield* Subagents.Subagents
      const { provider } = yield* ScriptedProvider.make(() => [text("by hand")], { name: "hand" })
      yield* subagents.register(provider satisfies SubagentProvider.SubagentProvider)
      const child = yield* start({}, "hand")
      assert.strictEqual(Content.toText((yield* child.result).output), "by hand")
    }).pipe(Effect.provide(Subagents.layer))
  )
})
