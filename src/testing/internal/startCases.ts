/**
 * The contract as cases, one entry each: those that are about getting a run, or none.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { format } from "effect/Formatter"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type { Capabilities } from "../../Capabilities.ts"
import type { ContentBlock, ContentKind } from "../../Content.ts"
import { text } from "../../Content.ts"
import {
  AbortedBeforeStart,
  DepthExceeded,
  DuplicateProvider,
  ProviderNotFound,
  UnsupportedCapability
} from "../../SubagentError.ts"
import type { SubagentStartRequest } from "../../SubagentRequest.ts"
import { layer as seamLayer, Subagents } from "../../Subagents.ts"
import type { Harness, PromptKind, Violation } from "./harness.ts"
import { expect, expectEqual, makeSignal, observe, refusal } from "./harness.ts"

/** One promise of the contract, and how to see that it holds. */
export interface Case {
  /** Its number in the contract. */
  readonly item: number
  readonly title: string
  /** The prompts without which it can't be run. */
  readonly needs: ReadonlyArray<PromptKind>
  /** The capability without which there is nothing to run. */
  readonly capability?: keyof Capabilities
  readonly run: (harness: Harness) => Effect.Effect<void, unknown, Scope.Scope>
}

/** Nothing is left on the provider's own side, as far as that can be seen. */
export const expectNothingLeft = ({ given }: Harness): Effect.Effect<void, Violation> =>
  given.world === undefined
    ? Effect.void
    : Effect.flatMap(given.world, (world) =>
        expectEqual({ ...world }, { sessions: 0, turns: 0 }, "what is left on the provider's own side")
      )

/** What a refused start leaves: no run, no announcement, no listener, no session. */
const expectNoTrace = Effect.fnUntraced(function* (harness: Harness, signal = makeSignal()) {
  yield* expectEqual((yield* harness.subagents.live).length, 0, "the number of live runs")
  const announced = (yield* harness.events).filter(({ type }) => !type.startsWith("subagent/provider-"))
  yield* expectEqual(announced, [], "what was announced of a start that came to nothing")
  yield* expectEqual(signal.listeners(), 0, "the number of listeners left on the signal")
  yield* expectNothingLeft(harness)
})

/** Requests that ask for one capability each. */
const asking: ReadonlyArray<readonly [string, Partial<SubagentStartRequest>]> = [
  ["outputSchema", { outputSchema: Schema.String }],
  ["depthLimit", { maxDepth: 3 }],
  ["toolFilter", { toolFilter: { deny: ["a"] } }],
  ["model", { agentOptions: { model: "a" } }],
  ["systemPrompt", { agentOptions: { systemPrompt: "a" } }],
  ["usage", { maxTokens: 1_000_000 }],
  ["turns", { maxTurns: 1000 }],
  ...(
    [
      { type: "image", data: "", mimeType: "image/png" },
      { type: "audio", data: "", mimeType: "audio/wav" },
      { type: "resource_link", uri: "file:///a", name: "a" },
      { type: "resource", resource: { uri: "file:///a", text: "a" } }
    ] satisfies ReadonlyArray<ContentBlock>
  ).map((block) => [`content:${block.type}`, { prompt: [text("a"), block] }] as const)
]

const declares = (capabilities: Capabilities, capability: string): boolean =>
  capability.startsWith("content:")
    ? capabilities.content?.includes(capability.slice("content:".length) as ContentKind) === true
    : capabilities[capability as keyof Capabilities] === true

/** Brings a start to a point at which it is not accepted yet, ends it there, and looks for what is left. */
const endBeforeAcceptance = (how: "abort" | "interruption") =>
  Effect.fnUntraced(function* (harness: Harness) {
    const held = observe(harness.provider, `${harness.provider.name} (held)`, { hold: true })
    yield* harness.subagents.register(held.provider)
    // as soon as it waits for something, and when there is a session
    for (const isOpen of [false, true]) {
      const signal = makeSignal()
      const request = yield* harness.request("complete", { signal })
      const starting = yield* Effect.forkChild(Effect.scoped(harness.subagents.start(held.provider.name, request)), {
        startImmediately: true
      })
      const seen = held.seen.at(-1)!
      // a start that fails never opens a session
      if (isOpen) yield* Effect.raceFirst(Deferred.await(seen.opened), Fiber.join(starting))
      if (how === "abort") {
        signal.abort()
        const reason = yield* refusal(Fiber.join(starting), "a start whose signal is aborted")
        yield* expectEqual(reason, new AbortedBeforeStart({ provider: held.provider.name }), "the refusal")
      } else {
        yield* Fiber.interrupt(starting)
      }
      yield* expectEqual(seen.turns, 0, "the number of turns")
      yield* expectNoTrace(harness, signal)
    }
  })

/** Items 1 to 4, 11 and 18. */
export const startCases: ReadonlyArray<Case> = [
  {
    item: 1,
    title: "has a name of its own, and goes on working when somebody else wants it",
    needs: ["complete"],
    run: Effect.fnUntraced(function* ({ provider, request, subagents }) {
      const { name } = provider
      yield* expect((yield* subagents.list).includes(name), `${name} to be listed`)
      yield* expect((yield* subagents.get(name)) === provider, "the very same provider each time")
      const reason = yield* refusal(Effect.scoped(subagents.register({ ...provider })), "a second registration")
      yield* expectEqual(reason, new DuplicateProvider({ name }), "the refusal")
      const result = yield* subagents.run(name, yield* request("complete"))
      yield* expectEqual(result.stopReason, "completed", "the stop reason")
    })
  },
  {
    item: 2,
    title: "gives up its name with its registration, and its live runs live on",
    needs: ["hang"],
    run: Effect.fnUntraced(function* ({ given, provider: { name }, request }) {
      const memoMap = yield* Layer.makeMemoMap
      const scope = yield* Effect.scope
      const context = yield* Layer.buildWithMemoMap(seamLayer, memoMap, scope)
      const subagents = Context.get(context, Subagents)
      // the seam is there already, so that this scope is the registration's alone
      const registration = yield* Scope.fork(scope)
      const built = yield* Layer.buildWithMemoMap(given.layer, memoMap, registration)
      yield* expect(Context.get(built, Subagents) === subagents, "a layer over `Subagents.layer` itself")
      const run = yield* subagents.start(name, yield* request("hang"))
      yield* Scope.close(registration, Exit.void)
      const reason = yield* refusal(subagents.get(name), "a provider whose registration has ended")
      yield* expectEqual(reason, new ProviderNotFound({ name, available: [] }), "the refusal")
      const states = (yield* subagents.live).map((live) => [live.runId, live.state])
      yield* expectEqual(states, [[run.runId, "running"]], "the live runs")
      yield* run.cancel()
      yield* expectEqual((yield* run.result).cause, { _tag: "Caller" }, "the cause")
    })
  },
  {
    item: 3,
    title: "declares what it is said to, and is never asked for the rest, nor for what is no request",
    needs: ["complete"],
    run: Effect.fnUntraced(function* (harness) {
      const { given, observed, start } = harness
      const { capabilities, name: provider } = observed.provider
      for (const [capability, isThere] of Object.entries(given.capabilities)) {
        const value = capabilities[capability as keyof Capabilities]
        const declared = capability === "content" ? (capabilities.content ?? []).length > 0 : value === true
        if (isThere !== undefined) yield* expectEqual(declared, isThere, `the declaration of ${capability}`)
      }
      for (const [capability, fields] of asking) {
        if (declares(capabilities, capability)) continue
        const reason = yield* refusal(Effect.scoped(start("complete", fields)), `a request for ${capability}`)
        const expected = new UnsupportedCapability({ provider, capability, missing: [capability] })
        yield* expectEqual(reason, expected, "the refusal")
      }
      const reason = yield* refusal(Effect.scoped(start("complete", { prompt: " " })), "a blank prompt")
      yield* expectEqual(reason._tag, "InvalidRequest", "the refusal")
      yield* expectEqual(observed.seen.length, 0, "the number of starts that reached the provider")
      yield* expectNoTrace(harness)
    })
  },
  {
    item: 4,
    title: "is not started for a signal that has been aborted",
    needs: ["complete"],
    run: Effect.fnUntraced(function* (harness) {
      const signal = makeSignal()
      signal.abort()
      const { name } = harness.observed.provider
      const starting = Effect.scoped(harness.start("complete", { signal }))
      const reason = yield* refusal(starting, "a signal that has been aborted")
      yield* expectEqual(reason, new AbortedBeforeStart({ provider: name }), "the refusal")
      yield* expectEqual(harness.observed.seen.length, 0, "the number of starts that reached the provider")
      yield* expectNoTrace(harness, signal)
    })
  },
  {
    item: 4,
    title: "leaves nothing when the signal is aborted before it has started",
    needs: ["complete"],
    run: endBeforeAcceptance("abort")
  },
  {
    item: 4,
    title: "leaves nothing when it is interrupted before it has started",
    needs: ["complete"],
    run: endBeforeAcceptance("interruption")
  },
  {
    item: 4,
    title: "leaves nothing when its start fails",
    needs: ["failStart"],
    run: Effect.fnUntraced(function* (harness) {
      const reason = yield* refusal(Effect.scoped(harness.start("failStart")), "the prompt that can't be started")
      yield* expect(reason._tag !== "ProviderFault", `a reason of the provider's own, and it is ${format(reason)}`)
      yield* expectNoTrace(harness)
    })
  },
  {
    item: 11,
    title: "puts its child one below the parent",
    needs: ["complete"],
    run: Effect.fnUntraced(function* (harness) {
      const { header: own } = (yield* harness.request("complete")).parent.session
      const parent = { id: "parent", session: { header: { ...own, delegationDepth: 1 } } }
      const { header } = yield* harness.start("complete", { parent })
      const { id: _, ...place } = header
      const cwd = own.cwd === undefined ? undefined : { cwd: own.cwd }
      yield* expectEqual(place, { ...cwd, parentSession: own.id, delegationDepth: 2 }, "the child's place")
    })
  },
  {
    item: 11,
    title: "is not started deeper than the request allows",
    needs: ["complete"],
    capability: "depthLimit",
    run: Effect.fnUntraced(function* (harness) {
      const reason = yield* refusal(Effect.scoped(harness.start("complete", { maxDepth: 0 })), "any child at all")
      yield* expectEqual(reason, new DepthExceeded({ depth: 1, maxDepth: 0 }), "the refusal")
      yield* expectEqual(harness.observed.seen.length, 0, "the number of starts that reached the provider")
      yield* expectNoTrace(harness)
    })
  }
]
