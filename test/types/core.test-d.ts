/** What the compiler promises of floors 0 to 2. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as SchemaGetter from "effect/SchemaGetter"
import type * as Scope from "effect/Scope"
import {
  Agent,
  Approvals,
  type Capabilities,
  type CurrentAgent,
  Limits,
  type SubagentError,
  type SubagentProvider,
  SubagentRequest,
  type SubagentResult,
  type SubagentRun,
  Subagents
} from "effect-subagent"
import { describe, expectTypeOf, it } from "vitest"

declare const seam: Subagents.Subagents["Service"]
declare const parent: Agent.Agent
declare const provider: SubagentProvider.SubagentProvider
type Error = SubagentError.SubagentError

describe("start and run", () => {
  const Answer = Schema.Struct({ n: Schema.NumberFromString })

  it("type `structured` by the request's schema", () => {
    expectTypeOf(seam.run("p", { prompt: "go", parent, outputSchema: Answer })).toEqualTypeOf<
      Effect.Effect<SubagentResult.SubagentResult<{ readonly n: number }>, Error>
    >()
    expectTypeOf(seam.start("p", { prompt: "go", parent, outputSchema: Answer })).toEqualTypeOf<
      Effect.Effect<SubagentRun.SubagentRun<{ readonly n: number }>, Error, Scope.Scope>
    >()
  })

  it("have no `structured` without a schema", () => {
    expectTypeOf(seam.run("p", { prompt: "go", parent })).toEqualTypeOf<
      Effect.Effect<SubagentResult.SubagentResult<never>, Error>
    >()
    expectTypeOf(seam.start("p", { prompt: "go", parent })).toEqualTypeOf<
      Effect.Effect<SubagentRun.SubagentRun<never>, Error, Scope.Scope>
    >()
  })

  it("know nothing of a widened request, or of a schema that is not known", () => {
    const request: SubagentRequest.SubagentStartRequest = { prompt: "go", parent, outputSchema: Answer }
    expectTypeOf(seam.run("p", request)).toEqualTypeOf<Effect.Effect<SubagentResult.SubagentResult, Error>>()
    const unknown: Schema.Codec<unknown> = Schema.Unknown
    expectTypeOf(seam.run("p", { prompt: "go", parent, outputSchema: unknown })).toEqualTypeOf<
      Effect.Effect<SubagentResult.SubagentResult, Error>
    >()
  })

  it("take no key that is misspelt, wherever it stands", () => {
    // @ts-expect-error
    void seam.run("p", { prompt: "go", parent, toolfilter: {} })
    // @ts-expect-error
    void seam.run("p", { prompt: "go", parent, toolFilter: { alow: [] } })
    // @ts-expect-error
    void seam.run("p", { prompt: "go", parent, agentOptions: { modle: "m" } })
    // @ts-expect-error
    void seam.run("p", { prompt: [{ type: "text", txt: "go" }], parent })
    // @ts-expect-error
    void seam.run("p", { prompt: [{ type: "video", data: "" }], parent })
  })

  it("take no request without prompt or parent, and no schema that needs services", () => {
    // @ts-expect-error
    void seam.run("p", { parent })
    // @ts-expect-error
    void seam.run("p", { prompt: "go" })
    class Database extends Context.Service<Database, string>()("test/Database") {}
    const needy = Schema.String.pipe(
      Schema.decode({
        decode: undefined as never as SchemaGetter.Getter<string, string, Database>,
        encode: undefined as never as SchemaGetter.Getter<string, string>
      })
    )
    // @ts-expect-error
    void seam.run("p", { prompt: "go", parent, outputSchema: needy })
    // @ts-expect-error
    void seam.run("p", { prompt: "go", parent, outputSchema: { type: "object" } })
  })

  it("take `undefined` for not asked for", () => {
    void seam.run("p", {
      prompt: "go",
      parent,
      signal: undefined,
      agentOptions: { model: undefined },
      maxDepth: undefined,
      toolFilter: undefined,
      label: undefined
    })
  })

  it("take the platform's AbortSignal and a host's own agent class", () => {
    class HostAgent {
      readonly #history: Array<string> = []
      readonly id = "host"
      readonly session = { header: { id: "s", cwd: "/" }, more: true }
      private readonly secret = 1
      history() {
        return [this.#history, this.secret]
      }
    }
    void seam.run("p", { prompt: "go", parent: new HostAgent(), signal: new AbortController().signal })
    expectTypeOf<AbortSignal>().toExtend<SubagentRequest.AbortSignalLike>()
    expectTypeOf<HostAgent>().toExtend<Agent.Agent>()
  })
})

describe("the service", () => {
  it("has what it promises, and needs no more than a scope", () => {
    expectTypeOf(seam.register(provider)).toEqualTypeOf<Effect.Effect<void, Error, Scope.Scope>>()
    expectTypeOf(seam.get("p")).toEqualTypeOf<Effect.Effect<SubagentProvider.SubagentProvider, Error>>()
    expectTypeOf(seam.list).toEqualTypeOf<Effect.Effect<ReadonlyArray<string>>>()
    expectTypeOf(seam.live).toEqualTypeOf<Effect.Effect<ReadonlyArray<SubagentRun.LiveRun>>>()
  })

  it("asks for what a listener needs", () => {
    expectTypeOf(seam.on(() => Effect.void)).toEqualTypeOf<Effect.Effect<void, never, Scope.Scope>>()
    const needy = seam.on(() => Effect.service(Subagents.Subagents))
    expectTypeOf(needy).toEqualTypeOf<Effect.Effect<void, never, Scope.Scope | Subagents.Subagents>>()
  })
})

describe("the layers", () => {
  it("need what they need, fail as they fail", () => {
    expectTypeOf(Subagents.layer).toEqualTypeOf<Layer.Layer<Subagents.Subagents>>()
    expectTypeOf(Subagents.make).toEqualTypeOf<Effect.Effect<Subagents.Subagents["Service"], never, Scope.Scope>>()
    expectTypeOf(Limits.layer({ maxDepth: 1 })).toEqualTypeOf<Layer.Layer<never, Error>>()
    expectTypeOf(Subagents.add(provider)).toEqualTypeOf<Layer.Layer<never, Error, Subagents.Subagents>>()
  })

  it("take over what making a provider needs, but for its scope", () => {
    class Host extends Context.Service<Host, SubagentProvider.SubagentProvider>()("test/Host") {}
    const made = Effect.gen(function* () {
      yield* Effect.addFinalizer(() => Effect.void)
      if (Math.PI > 4) return yield* Effect.fail("no" as const)
      return yield* Host
    })
    expectTypeOf(Subagents.addEffect(made)).toEqualTypeOf<
      Layer.Layer<never, "no" | Error, Subagents.Subagents | Host>
    >()
  })

  it("do not run if one is missing", () => {
    const contributed = Subagents.add(provider)
    // @ts-expect-error
    Effect.runFork(Effect.provide(Effect.void, contributed))
    Effect.runFork(Effect.provide(Effect.void, Layer.provide(contributed, Subagents.layer)))
    const program = Effect.flatMap(Subagents.Subagents, (service) => service.run("p", { prompt: "go", parent }))
    // @ts-expect-error
    Effect.runFork(program)
    Effect.runFork(Effect.provide(program, Subagents.layer))
  })

  it("take no option that is misspelt", () => {
    // @ts-expect-error
    Subagents.layerOptions({ updatecapacity: 1 })
    // @ts-expect-error
    Limits.layer({ maxdepth: 1 })
    // @ts-expect-error
    Subagents.layerOptions({ releaseTimeout: "soon" })
  })
})

describe("a provider", () => {
  it("must answer for its capabilities", () => {
    expectTypeOf<{ readonly outputSchema: true; readonly depthLimit: true }>().not.toExtend<Capabilities.Capabilities>()
    expectTypeOf<typeof Capabilities.none>().toExtend<Capabilities.Capabilities>()
  })

  it("must bring what it needs with it, and may fail with our error only", () => {
    const needy = { ...provider, start: () => Effect.as(Subagents.Subagents, { turn: Effect.never }) }
    // @ts-expect-error
    Subagents.add(needy)
    const failing = { ...provider, start: () => Effect.fail("no") }
    // @ts-expect-error
    Subagents.add(failing)
  })

  it("never sees the signal", () => {
    expectTypeOf<SubagentProvider.PlacedRequest>().not.toHaveProperty("signal")
    expectTypeOf<SubagentProvider.PlacedRequest>().not.toHaveProperty("outputSchema")
    expectTypeOf<SubagentProvider.PlacedRequest["prompt"]>().not.toExtend<string>()
    expectTypeOf<SubagentProvider.ChildOutcome>().not.toHaveProperty("output")
  })
})

describe("the words", () => {
  it("brand the ids that the seam makes, and take plain strings from a host", () => {
    expectTypeOf<SubagentRun.SubagentRun["id"]>().toEqualTypeOf<Agent.AgentId>()
    expectTypeOf<SubagentRun.SubagentRun["runId"]>().toEqualTypeOf<Agent.RunId>()
    expectTypeOf<string>().not.toExtend<Agent.RunId>()
    expectTypeOf<Agent.AgentId>().toExtend<Agent.Agent["id"]>()
    expectTypeOf<Agent.ChildHeader>().toExtend<Agent.SessionHeader>()
  })

  it("complete the known stop reasons and take any other", () => {
    expectTypeOf<"odd">().toExtend<SubagentResult.SubagentStopReason>()
    expectTypeOf<keyof SubagentResult.SubagentStopReasonMap>().toEqualTypeOf<
      "completed" | "aborted" | "error" | "max-tokens" | "refusal"
    >()
  })

  it("type `Structured` for all three", () => {
    expectTypeOf<SubagentRequest.Structured<never>>().toEqualTypeOf<never>()
    expectTypeOf<SubagentRequest.Structured<SubagentRequest.SchemaSpec>>().toEqualTypeOf<unknown>()
    expectTypeOf<SubagentRequest.Structured<typeof Schema.NumberFromString>>().toEqualTypeOf<number>()
  })

  it("have an error that tells its reasons apart", () => {
    const named = seam
      .get("p")
      .pipe(Effect.catchReason("SubagentError", "ProviderNotFound", ({ available }) => Effect.succeed(available)))
    expectTypeOf(named).toExtend<Effect.Effect<SubagentProvider.SubagentProvider | ReadonlyArray<string>, Error>>()
    expectTypeOf<SubagentError.SubagentErrorCode>().toExtend<string>()
    expectTypeOf<Error["code"]>().toEqualTypeOf<SubagentError.SubagentErrorCode>()
  })

  it("have constructors, questions and services that need nothing they do not say", () => {
    expectTypeOf(Agent.root()).toEqualTypeOf<Effect.Effect<Agent.Agent>>()
    const question = { toolCallId: "t", toolName: "n", input: 1 }
    expectTypeOf(Approvals.ask(question)).toEqualTypeOf<Effect.Effect<Approvals.ApprovalOutcome>>()
    expectTypeOf(SubagentRequest.allowsTool).parameters.toEqualTypeOf<
      [ReadonlyArray<SubagentRequest.ToolFilter>, string]
    >()
    expectTypeOf<CurrentAgent.CurrentAgent["Service"]>().toEqualTypeOf<Agent.Agent>()
  })
})
