/** Depth: a child that delegates to a child, and so on. What each of them costs. */
import { Agent, Content, Limits, Subagents } from "effect-subagent"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { check, costOf, timed } from "../measures.ts"
import type { At, Growth } from "./Growth.ts"

const ours: At = Effect.fnUntraced(function* (depth, scale) {
  const options = Limits.layer({ maxDepth: depth })
  const context = yield* Layer.build(Subagents.layer.pipe(Layer.provide(options)))
  const seam = Context.get(context, Subagents.Subagents)
  yield* seam.register({
    name: "nested",
    capabilities: { outputSchema: false, depthLimit: true, toolFilter: false },
    inheritsContext: false,
    start: ({ emit, header, lineage }) =>
      Effect.succeed({
        turn: Effect.gen(function* () {
          let text = "bottom"
          if (lineage.depth < depth) {
            const parent = { id: lineage.id, session: { header } }
            const { output } = yield* seam.run("nested", { parent, prompt: "go on" })
            text = `${lineage.depth} ${Content.toText(output)}`
          }
          emit({ _tag: "Content", messageId: "message", block: { type: "text", text } })
          return { stopReason: "completed" as const }
        })
      })
  })
  const parent = yield* Agent.root({ cwd: process.cwd() })
  const expected = [...Array.from({ length: depth - 1 }, (_, i) => i + 1), "bottom"].join(" ")
  const batch = () =>
    timed(async () => {
      const { output } = await Effect.runPromise(seam.run("nested", { parent, prompt: "begin" }))
      check(Content.toText(output) === expected, () => `depth ${depth} answered "${Content.toText(output)}"`)
    })
  return ((yield* Effect.promise(() => costOf(batch, scale))) * 1000) / depth
})

export const depth: Growth = {
  title: "A child at each depth, each",
  of: "depth",
  unit: "µs",
  sizes: [1, 2, 3, 4, 5, 6, 7, 8],
  lines: { ours }
}
