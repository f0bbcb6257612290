/**
 * The contract as cases, one entry each: those that are about what a request may ask for beside an answer.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { format } from "effect/Formatter"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { SubagentRun } from "../../SubagentRun.ts"
import type { SubagentUpdate } from "../../SubagentUpdate.ts"
import type { Harness, PromptKind } from "./harness.ts"
import { expect, expectEqual, refusal } from "./harness.ts"
import type { Case } from "./startCases.ts"

/** The tool calls of a run that has ended: their names, and how each ended. */
const toolCallsOf = (run: SubagentRun) =>
  Effect.map(Stream.runCollect(run.updates), (updates: ReadonlyArray<SubagentUpdate>) => {
    const calls = new Map<string, { name?: string; status?: string }>()
    for (const update of updates) {
      if (update._tag !== "ToolCall") continue
      calls.set(update.id, { ...calls.get(update.id), ...update })
    }
    return Array.from(calls.values())
  })

/** A schema whose values are not what is submitted for them: decoded twice, or not at all, they are no counts. */
const Counted = Schema.Struct({ count: Schema.FiniteFromString })

/** A child that is asked for a value and does not come up with one. */
const withoutValue = (kind: PromptKind, kinds: ReadonlyArray<string>): Case["run"] =>
  Effect.fnUntraced(function* (harness: Harness) {
    const run = yield* harness.start(kind, { outputSchema: Counted })
    const result = yield* run.result
    yield* expectEqual(result.stopReason, "error", "the stop reason")
    yield* expect(
      kinds.some((kind) => kind === result.failure?.kind),
      `a failure that is ${kinds.join(" or ")}, and it is ${format(result.failure)}`
    )
    yield* expect(!("structured" in result), "no value")
  })

/** Items 12 and 13. */
export const capabilityCases: ReadonlyArray<Case> = [
  {
    item: 12,
    title: "executes no tool that a filter denies",
    needs: ["callTool"],
    capability: "toolFilter",
    run: Effect.fnUntraced(function* (harness) {
      const free = yield* harness.start("callTool")
      yield* free.result
      const deny = (yield* toolCallsOf(free)).flatMap(({ name }) => (name === undefined ? [] : [name]))
      yield* expect(deny.length > 0, "a tool call with a name among the updates")
      const filtered = yield* harness.start("callTool", { toolFilter: { deny } })
      yield* filtered.result
      const executed = (yield* toolCallsOf(filtered)).filter(
        ({ name, status }) => name !== undefined && deny.includes(name) && status !== "failed"
      )
      yield* expectEqual(executed, [], "the denied tools that were executed")
    })
  },
  ...(["allow", "deny"] as const).map((list): Case => ({
    item: 12,
    title: `is not started with a filter that is to ${list} a tool there is not`,
    needs: ["callTool"],
    capability: "toolFilter",
    run: Effect.fnUntraced(function* (harness) {
      const name = "a tool of the conformance suite"
      const starting = Effect.scoped(harness.start("callTool", { toolFilter: { [list]: [name] } }))
      const reason = yield* refusal(starting, "a filter with a name that no tool has")
      const paths = reason._tag === "InvalidRequest" ? reason.issues.map(({ path }) => path.join(".")) : []
      yield* expectEqual(paths, [`toolFilter.${list}.0`], "where the request is at fault")
    })
  })),
  {
    item: 13,
    title: "gives the value that its child submits, decoded once",
    needs: ["submit"],
    capability: "outputSchema",
    run: Effect.fnUntraced(function* (harness) {
      const run = yield* harness.start("submit", { outputSchema: Counted })
      const { failure, stopReason, structured } = yield* run.result
      yield* expect(stopReason === "completed", `a completed run, and it ended ${stopReason}: ${format(failure)}`)
      yield* expectEqual(structured, { count: 3 }, "the value")
    })
  },
  {
    item: 13,
    title: "gives no value that the schema refuses, and says that it was refused",
    needs: ["submitInvalid"],
    capability: "outputSchema",
    run: withoutValue("submitInvalid", ["schema-invalid"])
  },
  {
    item: 13,
    title: "does not take words for a value",
    needs: ["complete"],
    capability: "outputSchema",
    run: withoutValue("complete", ["schema-missing", "schema-invalid"])
  },
  {
    item: 13,
    title: "gives no value if none was asked for",
    needs: ["complete"],
    run: Effect.fnUntraced(function* (harness) {
      const run = yield* harness.start("complete")
      yield* expect(!("structured" in (yield* run.result)), "no value")
    })
  }
]
