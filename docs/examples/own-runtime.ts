/** A host with agents and a loop of its own, neither of which knows Effect or `effect/ai`, gets `spawn` by being an `AgentRuntime`. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Agent, Capabilities, Content, type SubagentProvider, Subagents } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { SpawnProvider } from "effect-subagent/providers"

/** The host's agents: all that the library reads of one is its `id`, `session` and `options`. */
class Clerk implements Agent.Agent {
  readonly id: string
  readonly session: Agent.Agent["session"]
  readonly #heard: Array<string> = []

  constructor({ id, session }: Agent.Agent) {
    this.id = id
    this.session = session
  }

  /** The host's loop. A real one calls a model and tools; this one counts, and can be told to wait and to fail. */
  async *answer(prompt: string, signal: AbortSignal): AsyncGenerator<string> {
    this.#heard.push(prompt)
    if (prompt === "fail") throw new Error("The clerk is out of forms")
    yield `Request ${this.#heard.length}: `
    if (prompt === "wait") await new Promise((_, reject) => signal.addEventListener("abort", reject, { once: true }))
    yield `${prompt.split(/\s+/).length} words.`
  }
}

export const runtime = Layer.succeed(AgentRuntime.AgentRuntime, {
  capabilities: { ...Capabilities.none, depthLimit: true }, // a clerk starts nobody
  open: ({ agent, emit }) =>
    Effect.sync(() => {
      const clerk = new Clerk(agent)
      return {
        turn: (prompt) =>
          Effect.tryPromise(async (signal): Promise<SubagentProvider.ChildOutcome> => {
            for await (const text of clerk.answer(Content.toText(prompt), signal)) {
              emit({ _tag: "Content", messageId: "answer", block: Content.text(text) })
            }
            return { stopReason: "completed" }
          }).pipe(
            Effect.catch(({ cause }) => {
              const failure = { kind: "model", retryable: false, message: String(cause) }
              return Effect.succeed<SubagentProvider.ChildOutcome>({ stopReason: "error", failure })
            })
          )
      }
    })
})

export const layer = SpawnProvider.layer().pipe(Layer.provide(runtime), Layer.provideMerge(Subagents.layer))

if (import.meta.main) {
  const parent = new Clerk({ id: "front desk", session: { header: { id: "today" } } })
  const asked = Effect.flatMap(Subagents.Subagents, ({ run }) => run("spawn", { prompt: "count these words", parent }))
  const { output, stopReason } = await Effect.runPromise(Effect.provide(asked, layer))
  console.log(stopReason, Content.toText(output))
}
