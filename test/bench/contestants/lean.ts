/**
 * A bare agent loop on `effect/ai`: it executes its tools itself and keeps the model's decoder in its one slot, with a
 * model for the parent and another for the child. It has no ids, no events and no table of what is live: what ours
 * is compared with is this and `lifecycle`, added.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type { MakeContestant } from "../Contestant.ts"
import { childSystem, parentSystem } from "../gate.ts"
import { makeChildModel, makeParentModel } from "./models.ts"

const Echo = Tool.make("echo", { parameters: Schema.Struct({ text: Schema.String }), success: Schema.String })
const Arguments = Schema.Struct({ description: Schema.String, prompt: Schema.String })
const Subagent = Tool.make("subagent", { description: "Delegates.", parameters: Arguments, success: Schema.String })
const decodeArguments = Schema.decodeUnknownEffect(Arguments)
const unused = () => Effect.die("executed by the model layer")

export const makeLean: MakeContestant = Effect.fnUntraced(function* (gate) {
  const childKit = Toolkit.make(Echo)
  const childTools = yield* Effect.provide(childKit, childKit.toLayer({ echo: unused }))
  const parentKit = Toolkit.make(Subagent)
  const parentTools = yield* Effect.provide(parentKit, parentKit.toLayer({ subagent: unused }))
  const childModel = yield* makeChildModel(gate)
  const parentModel = yield* makeParentModel(gate)
  const child = Effect.fnUntraced(function* (prompt: string) {
    const scope = yield* Scope.make()
    const result = yield* Deferred.make<string, unknown>()
    const turn = childModel.generateText({
      prompt: [
        { role: "system", content: childSystem },
        { role: "user", content: prompt }
      ],
      toolkit: childTools,
      disableToolCallResolution: true
    })
    yield* Effect.forkIn(
      Deferred.into(
        Effect.map(turn, ({ text }) => text),
        result
      ),
      scope,
      { startImmediately: true }
    )
    return yield* Effect.ensuring(Deferred.await(result), Scope.close(scope, Exit.void))
  })
  const delegation = Effect.fnUntraced(function* (prompt: string) {
    let history = Prompt.make([
      { role: "system", content: parentSystem },
      { role: "user", content: prompt }
    ])
    for (;;) {
      const reply = yield* parentModel.generateText({
        prompt: history,
        toolkit: parentTools,
        disableToolCallResolution: true
      })
      if (reply.toolCalls.length === 0) return reply.text
      const results: Array<Prompt.ToolResultPart> = []
      for (const { id, name, params } of reply.toolCalls) {
        const { prompt } = yield* decodeArguments(params)
        const result = yield* child(prompt)
        results.push(Prompt.makePart("tool-result", { id, name, isFailure: false, providerExecuted: false, result }))
      }
      history = Prompt.fromMessages([
        ...history.content,
        ...Prompt.fromResponseParts(reply.content).content,
        Prompt.makeMessage("tool", { content: results })
      ])
    }
  })
  return { child, delegation }
})
