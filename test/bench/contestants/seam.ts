/** Ours, without a model layer: the seam, a provider whose child says what it is asked to, and the tool for any loop. */
import { Agent, Content, Limits, type SubagentProvider, Subagents } from "effect-subagent"
import { PlainTool } from "effect-subagent/tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { type MakeContestant, streamChunk } from "../Contestant.ts"
import { childAnswer, type Gate, hostLoop } from "../gate.ts"

type Placed = SubagentProvider.PlacedRequest

const completed: SubagentProvider.ChildOutcome = { stopReason: "completed" }

const provider = (
  name: string,
  turn: (placed: Placed, prompt: string) => Effect.Effect<SubagentProvider.ChildOutcome>
): SubagentProvider.SubagentProvider => ({
  name,
  // it makes no model calls to count, and has nothing to report
  capabilities: { outputSchema: false, depthLimit: true, toolFilter: false, usage: true, turns: true },
  inheritsContext: false,
  start: (placed) => Effect.succeed({ turn: turn(placed, Content.toText(placed.prompt)) })
})

const say = (placed: Placed, text: string): void =>
  placed.emit({ _tag: "Content", messageId: "message", block: { type: "text", text } })

/** Its child calls the model once and says the answer. */
export const answering = (gate: Gate) =>
  provider("answering", (placed, prompt) =>
    Effect.map(gate.pass, () => {
      say(placed, childAnswer(prompt))
      return completed
    })
  )

/** Its child reports as many items as it is asked for. */
const streaming = provider("streaming", (placed, prompt) =>
  Effect.gen(function* () {
    const items = Number(prompt)
    for (let i = 0; i < items; i++) {
      yield* Effect.sync(() => say(placed, "x"))
      if (i % streamChunk === streamChunk - 1) yield* Effect.yieldNow
    }
    return completed
  })
)

/** Every limit there is, and none that is ever reached. */
export const allLimits: Partial<Limits.LimitsOptions> = {
  maxRuns: 1e9,
  maxTokens: 1e12,
  maxTurns: 100,
  startTimeout: "30 seconds",
  timeout: "10 minutes",
  idleTimeout: "1 minute",
  maxConcurrent: { overall: 1e6, tree: 1e6, provider: 1e6 }
}

/** The seam, with one subscriber that counts the events about runs. */
export const makeSeam = Effect.fnUntraced(function* (limits: Partial<Limits.LimitsOptions> = {}) {
  const layer = Subagents.layer.pipe(Layer.provide(Limits.layer(limits)))
  const seam = Context.get(yield* Layer.build(layer), Subagents.Subagents)
  const parent = yield* Agent.root({ cwd: process.cwd() })
  let heard = 0
  yield* Stream.runForEachArray(seam.events, (events) =>
    Effect.sync(() => {
      for (const { type } of events) if (type === "subagent/start" || type === "subagent/end") heard++
    })
  ).pipe(Effect.forkScoped({ startImmediately: true }))
  return { seam, parent, heard: () => heard }
})

/** A scenario of one child of a provider. */
export const childOf =
  (seam: Subagents.Subagents["Service"], name: string, parent: Agent.Agent) =>
  (prompt: string): Effect.Effect<string, unknown> =>
    Effect.map(seam.run(name, { parent, prompt }), ({ output }) => Content.toText(output))

const make = (limits: Partial<Limits.LimitsOptions>): MakeContestant =>
  Effect.fnUntraced(function* (gate) {
    const { heard, parent, seam } = yield* makeSeam(limits)
    yield* seam.register(answering(gate))
    yield* seam.register(streaming)
    const tool = yield* Effect.provideService(PlainTool.make({ provider: "answering" }), Subagents.Subagents, seam)
    return {
      child: childOf(seam, "answering", parent),
      delegation: (prompt) =>
        hostLoop(gate, prompt, (toolArguments) =>
          Effect.map(
            Effect.promise(() => tool.execute(JSON.parse(toolArguments), { parent })),
            ({ text }) => text
          )
        ),
      signalled: (prompt, signal) => Effect.runPromise(seam.run("answering", { parent, prompt, signal })),
      stream: (items) =>
        Effect.scoped(
          Effect.gen(function* () {
            const run = yield* seam.start("streaming", { parent, prompt: String(items) })
            let seen = 0
            yield* Stream.runForEachArray(run.updates, (updates) =>
              Effect.sync(() => {
                for (const { _tag } of updates) if (_tag === "Content") seen++
              })
            )
            yield* run.result
            return seen
          })
        ),
      heard
    }
  })

export const makeOurs = make({})

/** The same with every limit set. */
export const makeLimited = make(allLimits)
