import { assert, describe, it } from "@effect/vitest"
import {
  Agent,
  Capabilities,
  Content,
  CurrentAgent,
  type SubagentError,
  type SubagentProvider,
  Subagents
} from "effect-subagent"
import { AvailableTo } from "effect-subagent/agent"
import { SubagentTool } from "effect-subagent/tool"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

interface Seen {
  readonly placed: Array<SubagentProvider.PlacedRequest>
  readonly released: Array<string>
}

const provider = (
  seen: Seen,
  turn: (placed: SubagentProvider.PlacedRequest) => SubagentProvider.ChildSession["turn"],
  name = "spawn"
): SubagentProvider.SubagentProvider => ({
  name,
  inheritsContext: false,
  capabilities: { ...Capabilities.none, depthLimit: true, toolFilter: true, model: true },
  start: (placed) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        seen.placed.push(placed)
        return { turn: turn(placed) }
      }),
      () => Effect.sync(() => seen.released.push(placed.runId))
    )
})

const says = (placed: SubagentProvider.PlacedRequest, text: string): void =>
  placed.emit({ _tag: "Content", messageId: "m", block: Content.text(text) })

const answers = (text: string) => (placed: SubagentProvider.PlacedRequest) =>
  Effect.sync(() => {
    says(placed, text)
    return { stopReason: "completed" }
  })

const ends =
  (outcome: SubagentProvider.ChildOutcome, partial = "half a thought") =>
  (placed: SubagentProvider.PlacedRequest) =>
    Effect.sync(() => {
      says(placed, partial)
      return outcome
    })

const seenNothing = (): Seen => ({ placed: [], released: [] })

/** Calls the tool as a loop on `effect/ai` does. */
const callTool = (
  input: unknown,
  options: SubagentTool.Options,
  provider: SubagentProvider.SubagentProvider | undefined,
  asAgent: boolean = true
) =>
  Effect.gen(function* () {
    const kit = yield* SubagentTool.toolkit([SubagentTool.make(options)])
    const parent = yield* Agent.root({ cwd: "/somewhere" })
    const calling = kit
      .handle(options.toolName ?? "subagent", input as never, "call-1")
      .pipe(Effect.flatMap(Stream.runLast))
    const result = yield* asAgent ? Effect.provideService(calling, CurrentAgent.CurrentAgent, parent) : calling
    assert.isTrue(result._tag === "Some")
    return { ...(result._tag === "Some" ? result.value : undefined), parent }
  }).pipe(
    Effect.provide(
      SubagentTool.layer(options).pipe(
        Layer.provideMerge((provider ? Subagents.add(provider) : Layer.empty).pipe(Layer.provideMerge(Subagents.layer)))
      )
    )
  )

const task = { description: "Look around", prompt: "What is here?" }

describe("SubagentTool", () => {
  it.effect("answers with the text of a completed child, which is not an error [seed 16]", () =>
    Effect.gen(function* () {
      const seen = seenNothing()
      const result = yield* callTool(task, { provider: "spawn" }, provider(seen, answers("three files")))
      assert.isFalse(result.isFailure)
      assert.strictEqual(result.encodedResult, "three files")
    })
  )

  it("shows the model a description and a prompt, both required, and nothing else [seed 17]", () => {
    const parameters = Tool.getJsonSchema(SubagentTool.make({ provider: "spawn" })) as {
      readonly properties: object
      readonly required: ReadonlyArray<string>
      readonly additionalProperties: boolean
    }
    assert.deepStrictEqual(Object.keys(parameters.properties), ["description", "prompt"])
    assert.deepStrictEqual(parameters.required, ["description", "prompt"])
    assert.isFalse(parameters.additionalProperties)
  })

  it("shows the same schema for every provider, and one sentence of the description may differ", () => {
    const spawn = SubagentTool.make({ provider: "spawn" })
    const fork = SubagentTool.make({ provider: "fork", inheritsContext: true, maxDepth: 1 })
    assert.strictEqual(JSON.stringify(Tool.getJsonSchema(spawn)), JSON.stringify(Tool.getJsonSchema(fork)))
    const sentences = (tool: { readonly description?: string | undefined }) => tool.description!.split(". ")
    assert.strictEqual(sentences(spawn)[0], sentences(fork)[0])
    assert.notStrictEqual(sentences(spawn)[1], sentences(fork)[1])
  })

  it("is offered to agents that may delegate, and to no other (11)", () => {
    const offeredAt = (delegationDepth: number | undefined, maxDepth: number, options = {}) =>
      Context.get(SubagentTool.make({ provider: "spawn", ...options }).annotations, AvailableTo.AvailableTo)(
        { id: "a", session: { header: { id: "s", delegationDepth } } },
        { maxDepth, toolFilters: [] }
      )
    assert.deepStrictEqual(
      [offeredAt(undefined, 1), offeredAt(undefined, 0), offeredAt(0, 1), offeredAt(1, 1), offeredAt(2, 3)],
      [true, false, true, false, true]
    )
    assert.deepStrictEqual([offeredAt(0, 3, { maxDepth: 1 }), offeredAt(1, 3, { maxDepth: 1 })], [true, false])
  })

  it("is named subagent, or what the host says", () => {
    assert.strictEqual(SubagentTool.make({ provider: "spawn" }).name, "subagent")
    assert.strictEqual(SubagentTool.make({ provider: "spawn", toolName: "ask_expert" }).name, "ask_expert")
  })

  const failure = { kind: "model", retryable: false, message: "401 from the model" }
  const stops: ReadonlyArray<readonly [string, SubagentProvider.ChildOutcome, ReadonlyArray<string>]> = [
    ["aborted [seed 18]", { stopReason: "aborted" }, ["aborted", "on its own side"]],
    [
      "error [seed 19]",
      { stopReason: "error", failure, diagnostic: "see the log" },
      ["error", "401 from the model", "see the log"]
    ],
    ["max-tokens [seed 20]", { stopReason: "max-tokens" }, ["max-tokens"]],
    ["refusal [seed 21]", { stopReason: "refusal", failure: { kind: "model", retryable: false } }, ["refusal"]],
    ["an unknown stop reason [seed 22]", { stopReason: "sabotage" }, ["sabotage", "not known here"]]
  ]
  for (const [name, outcome, words] of stops) {
    it.effect(`gives an error result that says which, with the partial output labelled, for ${name}`, () =>
      Effect.gen(function* () {
        const seen = seenNothing()
        const result = yield* callTool(task, { provider: "spawn" }, provider(seen, ends(outcome)))
        assert.isTrue(result.isFailure)
        for (const word of words) assert.include(result.encodedResult, word)
        assert.include(result.encodedResult, "Partial output, not a finished answer:\nhalf a thought")
        assert.lengthOf(seen.released, 1)
      })
    )
  }

  it.effect("says nothing of partial output where there is none", () =>
    Effect.gen(function* () {
      const result = yield* callTool(
        task,
        { provider: "spawn" },
        provider(seenNothing(), ends({ stopReason: "max-tokens" }, " "))
      )
      assert.isTrue(result.isFailure)
      assert.notInclude(result.encodedResult, "Partial output")
    })
  )

  it.effect("reaches two providers through two bindings with two names [seed 23]", () => {
    const left = { provider: "left", toolName: "ask_left" } as const
    const right = { provider: "right", toolName: "ask_right" } as const
    const providers = Layer.mergeAll(
      Subagents.add(provider(seenNothing(), answers("from the left"), "left")),
      Subagents.add(provider(seenNothing(), answers("from the right"), "right"))
    )
    return Effect.gen(function* () {
      const kit = yield* SubagentTool.toolkit([SubagentTool.make(left), SubagentTool.make(right)])
      const parent = yield* Agent.root()
      const say = (name: "ask_left" | "ask_right") =>
        kit.handle(name, task, name).pipe(
          Effect.flatMap(Stream.runCollect),
          Effect.map((results) => results.map((result) => result.encodedResult)),
          Effect.provideService(CurrentAgent.CurrentAgent, parent)
        )
      assert.deepStrictEqual(yield* say("ask_left"), ["from the left"])
      assert.deepStrictEqual(yield* say("ask_right"), ["from the right"])
    }).pipe(
      Effect.provide(
        Layer.mergeAll(SubagentTool.layer(left), SubagentTool.layer(right)).pipe(
          Layer.provide(providers.pipe(Layer.provideMerge(Subagents.layer)))
        )
      )
    )
  })

  it.effect("refuses the same name twice, also against the host's own tools [seed 23]", () =>
    Effect.gen(function* () {
      const twice = yield* Effect.flip(
        SubagentTool.toolkit([SubagentTool.make({ provider: "a" }), SubagentTool.make({ provider: "b" })])
      )
      assert.strictEqual(twice.code, "DUPLICATE_TOOL")
      const host = Toolkit.make(Tool.make("subagent", { success: Schema.String }))
      const taken = yield* Effect.flip(SubagentTool.toolkit([SubagentTool.make({ provider: "a" })], { with: host }))
      assert.strictEqual(taken.message, 'There are two tools named "subagent"')
    }).pipe(Effect.provide(Layer.empty as Layer.Layer<Tool.Handler<"subagent">>))
  )

  it.effect("keeps the host's tools beside its own", () =>
    Effect.gen(function* () {
      const host = Toolkit.make(Tool.make("clock", { success: Schema.String }))
      const kit = yield* SubagentTool.toolkit([SubagentTool.make({ provider: "spawn" })], { with: host }).pipe(
        Effect.provide(
          Layer.mergeAll(
            SubagentTool.layer({ provider: "spawn" }),
            host.toLayer({ clock: () => Effect.succeed("noon") })
          ).pipe(Layer.provide(Subagents.layer))
        )
      )
      assert.deepStrictEqual(Object.keys(kit.tools), ["clock", "subagent"])
    })
  )

  it.effect("hands the options of its configuration to the request [seed 24]", () =>
    Effect.gen(function* () {
      const seen = seenNothing()
      yield* callTool(
        task,
        { provider: "spawn", agentOptions: { model: "fast" }, toolFilter: { deny: ["rm"] }, maxDepth: 2 },
        provider(seen, answers("done"))
      )
      const placed = seen.placed[0]!
      assert.deepStrictEqual(placed.agentOptions, { model: "fast" })
      assert.deepStrictEqual(placed.toolFilter, { deny: ["rm"] })
      assert.strictEqual(placed.policy.maxDepth, 2)
    })
  )

  it.effect("asks for nothing that is not configured [seed 25]", () =>
    Effect.gen(function* () {
      const seen = seenNothing()
      const { parent } = yield* callTool(task, { provider: "spawn" }, provider(seen, answers("done")))
      const placed = seen.placed[0]!
      assert.strictEqual(placed.parent, parent)
      assert.deepStrictEqual(placed.agentOptions, {})
      for (const key of ["toolFilter", "maxDepth", "output"]) assert.isFalse(key in placed)
      assert.strictEqual(placed.label, task.description)
    })
  )

  it.effect("answers with the value that its configuration asks for, as JSON (13)", () =>
    Effect.gen(function* () {
      const outputSchema = Schema.Struct({ when: Schema.Date, lines: Schema.FiniteFromString })
      const value = { when: "2026-11-30T00:00:00.000Z", lines: "12" }
      const structured = (): SubagentProvider.ChildSession["turn"] =>
        Effect.succeed({ stopReason: "completed", structured: value })
      const able = provider(seenNothing(), structured)
      const result = yield* callTool(
        task,
        { provider: "spawn", outputSchema },
        { ...able, capabilities: { ...able.capabilities, outputSchema: true } }
      )
      assert.isFalse(result.isFailure)
      assert.deepStrictEqual(JSON.parse(result.encodedResult as string), value)
    })
  )

  it.effect("gives an error result without a calling agent [seed 26]", () =>
    Effect.gen(function* () {
      const seen = seenNothing()
      const result = yield* callTool(task, { provider: "spawn" }, provider(seen, answers("done")), false)
      assert.isTrue(result.isFailure)
      assert.include(result.encodedResult, "No agent is running")
      assert.lengthOf(seen.placed, 0)
    })
  )

  it.effect("names a provider that is not there at the time of the call [seed 27]", () =>
    Effect.gen(function* () {
      const result = yield* callTool(task, { provider: "nowhere" }, undefined)
      assert.isTrue(result.isFailure)
      assert.include(result.encodedResult, '"nowhere"')
    })
  )

  it.effect("refuses arguments it does not know, and blank ones, with their paths", () =>
    Effect.gen(function* () {
      const seen = seenNothing()
      const call = (input: unknown) => callTool(input, { provider: "spawn" }, provider(seen, answers("done")))
      const wrong: ReadonlyArray<readonly [unknown, string]> = [
        [{ ...task, provider: "acp" }, "provider"],
        [{ ...task, prompt: "  " }, "prompt"],
        [{ ...task, description: "" }, "description"],
        [{ prompt: "x" }, "description"],
        ["just text", "Expected"]
      ]
      for (const [input, path] of wrong) {
        const result = yield* call(input)
        assert.isTrue(result.isFailure)
        assert.include(result.encodedResult, `Invalid arguments: ${path}`)
      }
      assert.lengthOf(seen.placed, 0)
    })
  )

  /** Calls the tool and looks, while the layers still live, at what is left of the run. */
  const callAndLook = (
    turn: (placed: SubagentProvider.PlacedRequest) => SubagentProvider.ChildSession["turn"],
    call: (
      handle: Effect.Effect<{ readonly isFailure: boolean; readonly encodedResult: unknown }>
    ) => Effect.Effect<unknown>
  ) => {
    const seen = seenNothing()
    return Effect.gen(function* () {
      const kit = yield* SubagentTool.toolkit([SubagentTool.make({ provider: "spawn" })])
      const parent = yield* Agent.root()
      const answer = yield* call(
        kit.handle("subagent", task as never, "call-1").pipe(
          Effect.flatMap(Stream.runCollect),
          Effect.map((results) => results.at(-1)!),
          Effect.provideService(CurrentAgent.CurrentAgent, parent),
          Effect.orDie
        )
      )
      const { live } = yield* Subagents.Subagents
      return { answer, live: (yield* live).length, released: seen.released.length }
    }).pipe(
      Effect.provide(
        SubagentTool.layer({ provider: "spawn" }).pipe(
          Layer.provideMerge(Subagents.add(provider(seen, turn)).pipe(Layer.provideMerge(Subagents.layer)))
        )
      )
    )
  }

  it.effect("releases the run exactly once before it answers, on success [seed 28] and on failure [seed 29]", () =>
    Effect.gen(function* () {
      for (const turn of [
        answers("done"),
        () => Effect.die("broken"),
        () => Effect.succeed({ stopReason: "refusal" })
      ]) {
        const { live, released } = yield* callAndLook(turn, (handle) => handle)
        assert.deepStrictEqual({ live, released }, { live: 0, released: 1 })
      }
    })
  )

  it.effect("stops and releases the run when the call is interrupted [seed 30]", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      let stopped = false
      const hang = () =>
        Effect.andThen(Deferred.succeed(begun, undefined), Effect.never).pipe(
          Effect.onInterrupt(() => Effect.sync(() => (stopped = true)))
        )
      const { answer, live, released } = yield* callAndLook(hang, (handle) =>
        Effect.gen(function* () {
          const calling = yield* Effect.forkChild(handle)
          yield* Deferred.await(begun)
          yield* Fiber.interrupt(calling)
          return Exit.hasInterrupts(yield* Fiber.await(calling))
        })
      )
      assert.deepStrictEqual({ answer, live, released, stopped }, { answer: true, live: 0, released: 1, stopped: true })
    })
  )

  it.effect("refuses options that are none, each with its path: a misspelt filter never widens access", () =>
    Effect.gen(function* () {
      const wrong: ReadonlyArray<readonly [object, string]> = [
        [{}, "provider"],
        [{ provider: " " }, "provider"],
        [{ provider: "spawn", tolFilter: { allow: [] } }, "tolFilter"],
        [{ provider: "spawn", toolFilter: { alow: [] } }, "toolFilter.alow"],
        [{ provider: "spawn", toolFilter: {} }, "toolFilter"],
        [{ provider: "spawn", toolName: "" }, "toolName"],
        [{ provider: "spawn", maxDepth: -1 }, "maxDepth"],
        [{ provider: "spawn", maxResultBytes: 0 }, "maxResultBytes"],
        ...(["maxTurns", "maxTokens"] as const).map((limit) => [{ provider: "spawn", [limit]: 0 }, limit] as const),
        ...(["startTimeout", "timeout", "idleTimeout"] as const).map(
          (limit) => [{ provider: "spawn", [limit]: Number.NaN }, limit] as const
        ),
        [{ provider: "spawn", maxRuns: -1 }, "maxRuns"],
        [{ provider: "spawn", outputSchema: {} }, "outputSchema"],
        [{ provider: "spawn", agentOptions: "fast" }, "agentOptions"]
      ]
      for (const [options, path] of wrong) {
        const layer = SubagentTool.layer(options as SubagentTool.Options)
        const error = yield* Effect.flip(Layer.build(Layer.provide(layer, Subagents.layer)))
        assert.strictEqual(error.code, "INVALID_REQUEST")
        assert.include(error.message, `${path}: `)
      }
    })
  )

  it("can't be had without the service, says the compiler [seed 32]", () => {
    // @ts-expect-error the layer needs Subagents
    const layer: Layer.Layer<Tool.Handler<"subagent">, SubagentError.SubagentError> = SubagentTool.layer({
      provider: "spawn"
    })
    assert.isTrue(Layer.isLayer(layer))
  })

  it.effect("names blocks that a text can't carry", () =>
    Effect.gen(function* () {
      const blocks: ReadonlyArray<Content.ContentBlock> = [
        Content.text("See: "),
        { type: "image", data: "AA==", mimeType: "image/png" },
        { type: "audio", data: "AA==", mimeType: "audio/wav" },
        { type: "resource_link", uri: "file:///a", name: "a" },
        { type: "resource", resource: { uri: "file:///b", text: "inline" } },
        { type: "resource", resource: { uri: "file:///c", blob: "AA==" } }
      ]
      const result = yield* callTool(
        task,
        { provider: "spawn" },
        provider(seenNothing(), (placed) =>
          Effect.sync(() => {
            for (const block of blocks) placed.emit({ _tag: "Content", messageId: "m", block })
            return { stopReason: "completed" }
          })
        )
      )
      assert.strictEqual(
        result.encodedResult,
        "See: [image: image/png][audio: audio/wav][resource: a file:///a]inline[resource: file:///c]"
      )
    })
  )

  it.effect("lets calls overlap", () =>
    Effect.gen(function* () {
      const both = yield* Deferred.make<void>()
      let running = 0
      const meets = provider(seenNothing(), (placed) =>
        Effect.suspend(() => (++running === 2 ? Deferred.succeed(both, undefined) : Effect.void)).pipe(
          Effect.andThen(Deferred.await(both)),
          Effect.andThen(answers("met")(placed))
        )
      )
      const results = yield* Effect.gen(function* () {
        const kit = yield* SubagentTool.toolkit([SubagentTool.make({ provider: "spawn" })])
        const call = kit.handle("subagent", task as never, "call").pipe(Effect.flatMap(Stream.runLast))
        return yield* Effect.all([call, call], { concurrency: "unbounded" })
      }).pipe(
        Effect.provideService(CurrentAgent.CurrentAgent, yield* Agent.root()),
        Effect.provide(
          SubagentTool.layer({ provider: "spawn" }).pipe(
            Layer.provideMerge(Subagents.add(meets).pipe(Layer.provideMerge(Subagents.layer)))
          )
        )
      )
      assert.deepStrictEqual(
        results.map((result) => result._tag === "Some" && result.value.encodedResult),
        ["met", "met"]
      )
    })
  )

  it.effect("caps its answer, and says so", () =>
    Effect.gen(function* () {
      const options = { provider: "spawn", maxResultBytes: 10 }
      const result = yield* callTool(task, options, provider(seenNothing(), answers("a long answer")))
      assert.isFalse(result.isFailure)
      assert.strictEqual(
        result.encodedResult,
        "a long …\n\n[This answer was longer than 10 bytes; the rest was cut off.]"
      )
    })
  )
})
