/** A child that goes on after it was stopped. Run it as it is: the child is scripted. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Agent, Content, Subagents } from "effect-subagent"
import { ScriptedProvider } from "effect-subagent/testing"

const { hang, text } = ScriptedProvider

const program = Effect.gen(function* () {
  const subagents = yield* Subagents.Subagents
  const parent = yield* Agent.root()
  // #region resume
  const first = yield* subagents.start("scripted", { prompt: "Read all of it.", parent })
  yield* first.cancel("the user has another question")
  const stopped = yield* first.result
  yield* Console.log(stopped.stopReason, Content.toText(stopped.output))

  if (first.resume !== undefined) {
    const second = yield* first.resume("What have you found until now?")
    const answered = yield* second.result
    yield* Console.log(answered.stopReason, Content.toText(answered.output))
    yield* Console.log(second.id === first.id, second.runId === first.runId) // the same child, another run
  }
  // #endregion
})

const layer = ScriptedProvider.layer({
  turn: [text("Three chapters so far."), hang],
  resumed: [text("That the butler did not do it.")]
})

NodeRuntime.runMain(Effect.scoped(program).pipe(Effect.provide(layer.pipe(Layer.provideMerge(Subagents.layer)))))
