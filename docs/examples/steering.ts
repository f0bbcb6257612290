/** Messages to a child at work. Run it as it is: the child is scripted. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { Agent, Content, Subagents } from "effect-subagent"
import { ScriptedProvider } from "effect-subagent/testing"

const { receive, text } = ScriptedProvider

const program = Effect.gen(function* () {
  const subagents = yield* Subagents.Subagents
  const parent = yield* Agent.root()
  // #region steering
  const run = yield* subagents.start("scripted", { prompt: "Look for the cause.", parent })
  if (run.sendMessage !== undefined) {
    const receipt = yield* run.sendMessage("It happens on Windows only.")
    yield* Console.log(receipt.state) // queued: the child has taken it in
  }
  yield* Stream.runForEach(
    run.updates,
    (update) => (update._tag === "Receipt" ? Console.log(update.state) : Effect.void) // consumed: the child has read it
  )
  const { output } = yield* run.result
  // #endregion
  yield* Console.log(Content.toText(output))
})

const layer = ScriptedProvider.layer({
  takesMessages: true,
  turn: [
    text("Looking everywhere."),
    receive(({ content }) => [text(`Heard: ${Content.toText(content)} It is the path separator.`)])
  ]
})

NodeRuntime.runMain(Effect.scoped(program).pipe(Effect.provide(layer.pipe(Layer.provideMerge(Subagents.layer)))))
