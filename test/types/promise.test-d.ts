/** What the facade infers from a request. */
import type { Agent, SubagentResult } from "effect-subagent"
import type { PromiseRun, PromiseSubagents } from "effect-subagent/promise"
import * as Schema from "effect/Schema"
import { expectTypeOf } from "vitest"

declare const facade: PromiseSubagents.PromiseSubagents
declare const parent: Agent.Agent

const ask = { prompt: "x", parent }

expectTypeOf(facade.run("p", { ...ask, outputSchema: Schema.Struct({ a: Schema.Number }) })).toEqualTypeOf<
  Promise<SubagentResult.SubagentResult<{ readonly a: number }>>
>()
expectTypeOf(facade.run("p", { ...ask, outputSchema: { type: "object" } })).toEqualTypeOf<
  Promise<SubagentResult.SubagentResult>
>()
expectTypeOf(facade.start("p", ask)).toEqualTypeOf<Promise<PromiseRun.PromiseRun<never>>>()

// @ts-expect-error a misspelt key
void facade.run("p", { ...ask, toolfilter: {} })
// @ts-expect-error a misspelt key of a filter must not widen access
void facade.run("p", { ...ask, toolFilter: { dney: ["rm"] } })
// @ts-expect-error there has to be a parent
void facade.run("p", { prompt: "x" })
