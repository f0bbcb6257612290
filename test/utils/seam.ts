/** A seam with small providers of the test's own, and all it has announced. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Agent } from "effect-subagent"
import {
  type Capabilities,
  Limits,
  type SubagentError,
  type SubagentEvent,
  type SubagentProvider,
  Subagents
} from "effect-subagent"

export type Provider = SubagentProvider.SubagentProvider
export type Placed = SubagentProvider.PlacedRequest
export type Outcome = SubagentProvider.ChildOutcome
export type Seam = Subagents.Subagents["Service"]
export type Event = SubagentEvent.SubagentEvent

/** Everything there is to declare. */
export const all: Capabilities.Capabilities = {
  outputSchema: true,
  depthLimit: true,
  toolFilter: true,
  model: true,
  systemPrompt: true,
  content: ["image", "audio", "resource_link", "resource"],
  usage: true
}

/** Nothing that must be declared is honoured. */
export const nothing: Capabilities.Capabilities = { outputSchema: false, depthLimit: false, toolFilter: false }

export const completed: Outcome = { stopReason: "completed" }

/** The turn of a child that says one thing and is done. */
export const say =
  (text: string) =>
  (placed: Placed): Effect.Effect<Outcome> =>
    Effect.sync(() => {
      placed.emit({ _tag: "Content", messageId: "m1", block: { type: "text", text } })
      return completed
    })

/** A provider whose child does what `turn` says, by default: says "done". */
export const provider = (
  options: {
    readonly name?: string
    readonly capabilities?: Capabilities.Capabilities
    readonly turn?: (placed: Placed) => Effect.Effect<Outcome, SubagentError.SubagentError, Scope.Scope>
    readonly start?: Provider["start"]
  } = {}
): Provider => ({
  name: options.name ?? "p",
  capabilities: options.capabilities ?? all,
  inheritsContext: false,
  start:
    options.start ??
    ((placed) =>
      Effect.map(Effect.scope, (scope) => ({ turn: Scope.provide((options.turn ?? say("done"))(placed), scope) })))
})

/** An agent that nobody delegated to. */
export const root: Agent.Agent = {
  id: "root",
  session: { header: { id: "root-session", cwd: "/project", delegationDepth: 0 } }
}

/** The child of a placed request as an agent, as a runtime would hand it to the child's own tools. */
export const agentOf = (placed: Placed): Agent.Agent => ({ id: placed.lineage.id, session: { header: placed.header } })

/** How a seam works, and its limits. */
export type SeamOptions = Partial<Subagents.SubagentsOptions & Limits.LimitsOptions>

/** Builds a seam with these providers, runs the body, releases the seam, and gives what the body gave and all events. */
export const inSeam = <A, E, R>(
  providers: ReadonlyArray<Provider>,
  body: (seam: Seam, scope: Scope.Closeable) => Effect.Effect<A, E, R>,
  options: SeamOptions = {}
): Effect.Effect<{ readonly value: A; readonly events: ReadonlyArray<Event> }, E | SubagentError.SubagentError, R> =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const { eventCapacity, releaseTimeout, updateCapacity, ...limits } = options
    const own = {
      ...(eventCapacity !== undefined && { eventCapacity }),
      ...(releaseTimeout !== undefined && { releaseTimeout }),
      ...(updateCapacity !== undefined && { updateCapacity })
    }
    const services = yield* Layer.buildWithScope(
      Subagents.layer.pipe(Layer.provide([Subagents.layerOptions(own), Limits.layer(limits)])),
      scope
    )
    const seam = Context.get(services, Subagents.Subagents)
    const hearing = yield* Effect.forkChild(Stream.runCollect(seam.events), { startImmediately: true })
    const value = yield* Effect.forEach(providers, (each) => Scope.provide(seam.register(each), scope)).pipe(
      Effect.andThen(body(seam, scope)),
      Effect.onExit((exit) => Scope.close(scope, exit))
    )
    return { value, events: yield* Fiber.join(hearing) }
  })

/** The same, for who wants the body's value only. */
export const withSeam = <A, E, R>(
  providers: ReadonlyArray<Provider>,
  body: (seam: Seam, scope: Scope.Closeable) => Effect.Effect<A, E, R>,
  options: SeamOptions = {}
): Effect.Effect<A, E | SubagentError.SubagentError, R> =>
  Effect.map(inSeam(providers, body, options), ({ value }) => value)

/** The events about runs, each as a line. */
export const lines = (events: ReadonlyArray<Event>): ReadonlyArray<string> =>
  events.flatMap((event) => {
    if (event.type === "subagent/start") return [`start ${event.label ?? event.provider}`]
    if (event.type === "subagent/end") {
      return [`end ${event.label ?? event.provider} ${event.stopReason}${event.cause ? ` ${event.cause._tag}` : ""}`]
    }
    if (event.type === "subagent/release-problem") return [`problem ${event.problem}`]
    return []
  })

/** The reason of a typed failure; anything else is given as it is. */
export const reasonOf = (exit: Exit.Exit<unknown, unknown>): unknown => {
  const error = Exit.findErrorOption(exit)
  const { value } = error as { readonly value?: { readonly reason?: unknown } }
  return value?.reason ?? exit
}

/** The tag of the reason of a typed failure, or how else it ended. */
export const tagOf = (exit: Exit.Exit<unknown, unknown>): string => {
  const reason = reasonOf(exit) as { readonly _tag: string }
  return reason._tag
}

/** A signal as a plain object, which knows its listeners. */
export const makeSignal = (aborted = false) => {
  const listeners = new Set<() => void>()
  let added = 0
  const signal = {
    aborted,
    addEventListener: (_type: "abort", listener: () => void) => {
      added++
      listeners.add(listener)
    },
    removeEventListener: (_type: "abort", listener: () => void) => {
      listeners.delete(listener)
    }
  }
  return {
    signal,
    abort: () => {
      signal.aborted = true
      for (const listener of Array.from(listeners)) listener()
    },
    listeners: () => listeners.size,
    added: () => added
  }
}

/** Runs an effect and gives what was logged, as `LEVEL message`. */
export const logged = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<readonly [A, ReadonlyArray<string>], E, R> =>
  Effect.suspend(() => {
    const messages: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => {
      messages.push(`${logLevel} ${Array.isArray(message) ? message.map(String).join(" ") : String(message)}`)
    })
    return effect.pipe(
      Effect.provide(Logger.layer([logger])),
      Effect.provideService(References.MinimumLogLevel, "All"),
      Effect.map((value) => [value, messages] as const)
    )
  })
