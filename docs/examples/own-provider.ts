/** A provider of one's own: each child is a connection to some remote agent. Run it as it is: the remote agent is a fake. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Agent, Capabilities, Content, SubagentError, type SubagentProvider, Subagents } from "effect-subagent"

/** What stands for any client library: it connects, asks, and can be told to stop. */
interface Connection {
  readonly ask: (prompt: string) => Stream.Stream<string, Lost>
  readonly stop: Effect.Effect<void>
}

class Lost extends Data.TaggedError("Lost")<{ readonly why: string }> {}

type Connect = Effect.Effect<Connection, Lost, Scope.Scope>

// #region provider
export const make = (name: string, connect: Connect): SubagentProvider.SubagentProvider => ({
  name,
  capabilities: Capabilities.none,
  inheritsContext: false,
  start: (placed) =>
    connect.pipe(
      Effect.mapError(({ why }) =>
        SubagentError.fromReason(new SubagentError.StartFailed({ provider: name, detail: why }))
      ),
      Effect.map((connection) => ({
        turn: connection.ask(Content.toText(placed.prompt)).pipe(
          Stream.runForEach((text) =>
            Effect.sync(() => placed.emit({ _tag: "Content", messageId: "answer", block: Content.text(text) }))
          ),
          Effect.match({
            onSuccess: (): SubagentProvider.ChildOutcome => ({ stopReason: "completed" }),
            onFailure: ({ why }): SubagentProvider.ChildOutcome => ({
              stopReason: "error",
              failure: { kind: "transport", retryable: true, message: why }
            })
          }),
          Effect.onInterrupt(() => connection.stop)
        )
      }))
    )
})

export const layer = (
  name: string,
  connect: Connect
): Layer.Layer<never, SubagentError.SubagentError, Subagents.Subagents> => Subagents.add(make(name, connect))
// #endregion

/** A remote agent that repeats what it hears. It can be told to wait, to go on talking, and to lose the connection. */
export const fake: Connect = Effect.succeed({
  ask: (prompt) => {
    switch (prompt) {
      case "wait":
        return Stream.never
      case "go on":
        return Stream.concat(Stream.make("Well, "), Stream.never)
      case "fail":
        return Stream.fail(new Lost({ why: "the line is dead" }))
      default:
        return Stream.make("You said: ", prompt)
    }
  },
  stop: Effect.void
})

if (import.meta.main) {
  const program = Effect.gen(function* () {
    const subagents = yield* Subagents.Subagents
    const result = yield* subagents.run("remote", { prompt: "hello", parent: yield* Agent.root() })
    yield* Console.log(result.stopReason, Content.toText(result.output))
  })
  NodeRuntime.runMain(Effect.provide(program, layer("remote", fake).pipe(Layer.provideMerge(Subagents.layer))))
}
