/** Ours, with the scripted provider of the testing kit: it keeps what it saw of every run. */
import { Content } from "effect-subagent"
import { ScriptedProvider } from "effect-subagent/testing"
import * as Effect from "effect/Effect"
import type { MakeContestant } from "../Contestant.ts"
import { childAnswer } from "../gate.ts"
import { childOf, makeSeam } from "./seam.ts"

export const makeScripted: MakeContestant = Effect.fnUntraced(function* (gate) {
  const { parent, seam } = yield* makeSeam()
  const { provider } = yield* ScriptedProvider.make(({ prompt }) => [
    ScriptedProvider.run(() => gate.pass),
    ScriptedProvider.text(childAnswer(Content.toText(prompt)))
  ])
  yield* seam.register(provider)
  return { child: childOf(seam, "scripted", parent) }
})
