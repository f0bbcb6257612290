/** Agents on `effect/ai`: what history and tools cost. */
import { Agent, Content } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { SpawnProvider } from "effect-subagent/providers"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { makeChildModel } from "../contestants/models.ts"
import { childOf, makeSeam } from "../contestants/seam.ts"
import { childAnswer, childSystem, makeGate } from "../gate.ts"
import { check, costOf, runMany, timed } from "../measures.ts"
import type { At, Growth } from "./Growth.ts"

/** So many tools, which nobody calls. */
const makeKit = (count: number) => {
  const tools = Array.from({ length: count }, (_, i) =>
    Tool.make(`tool_${i}`, {
      description: `Does thing ${i}.`,
      parameters: Schema.Struct({ path: Schema.String, line: Schema.Int }),
      success: Schema.String
    })
  )
  const kit = Toolkit.make(...tools)
  const handlers = Object.fromEntries(tools.map(({ name }) => [name, () => Effect.succeed("done")]))
  return Effect.provide(kit, kit.toLayer(handlers))
}

const makeRuntime = Effect.fnUntraced(function* (tools: number) {
  const gate = makeGate()
  const toolkit = yield* makeKit(tools)
  const model = Layer.effect(LanguageModel.LanguageModel, makeChildModel(gate))
  const layer = AgentRuntime.layer({ toolkit, systemPrompt: childSystem }).pipe(Layer.provide(model))
  return { gate, runtime: Context.get(yield* Layer.build(layer), AgentRuntime.AgentRuntime) }
})

type Runtime = AgentRuntime.AgentRuntime["Service"]

const openAgent = (runtime: Runtime, seed?: AgentRuntime.AgentSeed) =>
  Effect.gen(function* () {
    const agent = yield* Agent.root({ cwd: process.cwd() })
    let said = ""
    const emit: AgentRuntime.AgentSpec["emit"] = (update) => {
      if (update._tag === "Content" && update.block.type === "text") said = update.block.text
    }
    const { turn } = yield* runtime.open({
      agent,
      options: {},
      policy: AgentRuntime.openPolicy,
      emit,
      ...(seed !== undefined && { seed })
    })
    return {
      agent,
      turn: (prompt: string) =>
        Effect.andThen(
          turn([Content.text(prompt)]),
          Effect.sync(() => check(said === childAnswer(prompt), () => `"${prompt}" was answered "${said}"`))
        )
    }
  })

/** What an agent remembers that has had so many messages. */
const seedOf = (runtime: Runtime, messages: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { agent, turn } = yield* openAgent(runtime)
      for (let i = 0; i < messages / 2; i++) yield* turn(`question ${i}`)
      return yield* runtime.completedTurns!(agent)
    })
  )

/** A turn of an agent that remembers so many messages. */
const turn: At = Effect.fnUntraced(function* (messages, scale) {
  const { runtime } = yield* makeRuntime(2)
  const seed = yield* seedOf(runtime, messages)
  const batch = async () => {
    const scope = Scope.makeUnsafe()
    const agent = await Effect.runPromise(Scope.provide(openAgent(runtime, seed), scope))
    const cost = await timed(() => Effect.runPromise(agent.turn("and now")))
    await Effect.runPromise(Scope.close(scope, Exit.void))
    return cost
  }
  return (yield* Effect.promise(() => costOf(batch, scale))) * 1000
})

/** Opening an agent that remembers so many messages, as a fork does. */
const fork: At = Effect.fnUntraced(function* (messages, scale) {
  const { runtime } = yield* makeRuntime(2)
  const { agent, turn } = yield* openAgent(runtime)
  for (let i = 0; i < messages / 2; i++) yield* turn(`question ${i}`)
  const forking = Effect.scoped(Effect.flatMap(runtime.completedTurns!(agent), (seed) => openAgent(runtime, seed)))
  const batch = () => timed(() => Effect.runPromise(forking))
  return (yield* Effect.promise(() => costOf(batch, scale))) * 1000
})

/** A call of the model with so many messages, without a loop of ours. */
const call: At = Effect.fnUntraced(function* (messages, scale) {
  const gate = makeGate()
  const model = yield* makeChildModel(gate)
  const toolkit = yield* makeKit(2)
  const history = Prompt.make([
    { role: "system", content: childSystem },
    ...Array.from({ length: messages / 2 }, (_, i) => [
      { role: "user" as const, content: `question ${i}` },
      { role: "assistant" as const, content: `answer ${i}` }
    ]).flat()
  ])
  const asking = Effect.suspend(() => {
    const question = Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: "and now" })] })
    const prompt = Prompt.fromMessages([...history.content, question])
    return model.generateText({ prompt, toolkit, disableToolCallResolution: true })
  })
  const batch = () =>
    timed(async () => {
      const { text } = await Effect.runPromise(asking)
      check(text === childAnswer("and now"), () => `it was answered "${text}"`)
    })
  return (yield* Effect.promise(() => costOf(batch, scale))) * 1000
})

export const history: Growth = {
  title: "A turn, by what the agent remembers",
  of: "messages",
  unit: "µs",
  sizes: [10, 30, 100, 300, 1000],
  lines: { "ours: a turn": turn, "ours: opening a fork": fork, "effect/ai: a model call": call }
}

/** A spawned child of a runtime with so many tools. */
const spawn: At = Effect.fnUntraced(function* (tools, scale) {
  const { gate, runtime } = yield* makeRuntime(tools)
  const { parent, seam } = yield* makeSeam()
  yield* seam.register(SpawnProvider.fromRuntime(runtime))
  const batch = () => runMany("child", childOf(seam, "spawn", parent), gate, 1)
  return (yield* Effect.promise(() => costOf(batch, scale))) * 1000
})

const callWith: At = Effect.fnUntraced(function* (tools, scale) {
  const gate = makeGate()
  const model = yield* makeChildModel(gate)
  const toolkit = yield* makeKit(tools)
  const child = (prompt: string) =>
    Effect.map(
      model.generateText({
        prompt: [
          { role: "system", content: childSystem },
          { role: "user", content: prompt }
        ],
        toolkit,
        disableToolCallResolution: true
      }),
      ({ text }) => text
    )
  const batch = () => runMany("child", child, gate, 1)
  return (yield* Effect.promise(() => costOf(batch, scale))) * 1000
})

export const tools: Growth = {
  title: "A child on effect/ai, by its tools",
  of: "tools",
  unit: "µs",
  sizes: [1, 3, 10, 30, 100],
  lines: { "ours: a spawned child": spawn, "effect/ai: a model call": callWith }
}
