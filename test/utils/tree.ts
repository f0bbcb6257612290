/** A tree of agents on one scripted model: a root, tools of the host's, and a way to delegate. */
import {
  Agent,
  Content,
  CurrentAgent,
  Limits,
  type SubagentEvent,
  type SubagentProvider,
  type SubagentRequest,
  Subagents,
  SubagentUpdate
} from "effect-subagent"
import { type AgentLoop, type AgentModels, AgentRuntime } from "effect-subagent/agent"
import { ForkProvider, SpawnProvider } from "effect-subagent/providers"
import { ScriptedModel } from "effect-subagent/testing"
import { SubagentTool } from "effect-subagent/tool"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

/** The host's tools: `erase` needs an approval, `wait` never ends. */
const HostTools = Toolkit.make(
  ...(["read", "write", "wait"] as const).map((name) => Tool.make(name, { dependencies: [CurrentAgent.CurrentAgent] })),
  Tool.make("erase", { needsApproval: true, dependencies: [CurrentAgent.CurrentAgent] })
)

export interface Tree {
  readonly seam: Subagents.Subagents["Service"]
  readonly runtime: AgentRuntime.AgentRuntime["Service"]
  readonly root: Agent.Agent
  /** Gives the root a prompt. */
  readonly ask: (prompt: string) => Effect.Effect<SubagentProvider.ChildOutcome, unknown>
  /** What the root has reported. */
  readonly updates: Array<SubagentUpdate.UnstampedUpdate>
  /** What the root has said last. */
  readonly said: () => string
  /** Starts a child of the root's. */
  readonly start: <S extends SubagentRequest.SchemaSpec = never>(
    provider: string,
    prompt: string,
    fields?: Partial<SubagentRequest.SubagentStartRequest<S>>
  ) => ReturnType<typeof Subagents.Subagents.Service.start<S>>
  readonly calls: Effect.Effect<ReadonlyArray<ScriptedModel.ScriptedCall>>
  /** The tools that were executed, and by which agent at which depth. */
  readonly executed: Array<string>
}

type RunEvent = Extract<SubagentEvent.SubagentEvent, { readonly type: "subagent/start" | "subagent/end" }>

interface Options {
  /** By default one to `spawn`. */
  readonly bindings?: ReadonlyArray<SubagentTool.Options>
  readonly loop?: Omit<AgentLoop.Options, "toolkit">
  readonly root?: Partial<AgentRuntime.AgentSpec>
  readonly models?: Layer.Layer<AgentModels.AgentModels>
  readonly others?: ReadonlyArray<SubagentProvider.SubagentProvider>
  readonly limits?: Partial<Limits.LimitsOptions>
}

/** Builds a tree, runs the body, takes it down, and gives what the body gave and all that was announced of runs. */
export const inTree = <A, E>(
  script: ScriptedModel.Script,
  body: (tree: Tree) => Effect.Effect<A, E, Scope.Scope>,
  options: Options = {}
) =>
  Effect.gen(function* () {
    const { bindings = [{ provider: "spawn" }], limits = {}, models = Layer.empty as never, others = [] } = options
    const executed: Array<string> = []
    const note = (name: string) =>
      Effect.map(Effect.service(CurrentAgent.CurrentAgent), ({ session }) => {
        executed.push(`${name}@${session.header.delegationDepth ?? 0}`)
      })
    const host = HostTools.toLayer({
      read: () => note("read"),
      write: () => note("write"),
      erase: () => note("erase"),
      wait: () => Effect.andThen(note("wait"), Effect.never)
    })
    const runtime = AgentRuntime.layer({
      ...options.loop,
      toolkit: SubagentTool.toolkit(bindings.map(SubagentTool.make), { with: HostTools })
    }).pipe(
      Layer.provide([host, ...bindings.map((binding) => SubagentTool.layer(binding))]),
      Layer.provideMerge(ScriptedModel.layer(script)),
      Layer.provide(models)
    )
    const all = Layer.mergeAll(SpawnProvider.layer(), ForkProvider.layer(), ...others.map(Subagents.add)).pipe(
      Layer.provideMerge(runtime),
      Layer.provideMerge(Subagents.layer),
      Layer.provide(Limits.layer(limits))
    )
    const scope = yield* Scope.make()
    const built = yield* Layer.buildWithScope(all, scope)
    const seam = Context.get(built, Subagents.Subagents)
    const events: Array<SubagentEvent.SubagentEvent> = []
    const hearing = yield* Effect.forkChild(
      Stream.runForEach(seam.events, (event) => Effect.sync(() => events.push(event))),
      { startImmediately: true }
    )
    const root = yield* Agent.root({ cwd: "/project" })
    const updates: Array<SubagentUpdate.UnstampedUpdate> = []
    const agents = Context.get(built, AgentRuntime.AgentRuntime)
    const value = yield* Effect.gen(function* () {
      const handle = yield* agents.open({
        agent: root,
        options: {},
        policy: AgentRuntime.openPolicy,
        emit: (update) => {
          updates.push(update)
        },
        ...options.root
      })
      return yield* body({
        seam,
        runtime: agents,
        root,
        ask: (prompt) => handle.turn([Content.text(prompt)]),
        updates,
        said: () => Content.toText(SubagentUpdate.pickOutput(updates)),
        start: (provider, prompt, fields) => seam.start(provider, { prompt, parent: root, ...fields }),
        calls: Context.get(built, ScriptedModel.ScriptedModel).calls,
        executed
      })
    }).pipe(
      Effect.scoped,
      Effect.onExit(() => Scope.close(scope, Exit.void))
    )
    yield* Fiber.join(hearing)
    return {
      value,
      events: events.filter(
        (event): event is RunEvent => event.type === "subagent/start" || event.type === "subagent/end"
      )
    }
  })

/** A call of the subagent tool. */
export const delegate = (prompt: string, name = "subagent"): ScriptedModel.ScriptedToolCall => ({
  name,
  params: { description: "a part", prompt }
})

/** Calls of the host's tools. */
export const calls = (...names: ReadonlyArray<string>): ScriptedModel.Step => ({
  toolCalls: names.map((name) => ({ name, params: {} }))
})
