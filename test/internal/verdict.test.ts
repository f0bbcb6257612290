import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { SubagentProvider, SubagentResult, SubagentUpdate } from "effect-subagent"
import { SubagentError } from "effect-subagent"
import { issueAt } from "../../src/internal/issues.ts"
import { OutputFold } from "../../src/internal/outputFold.ts"
import { aborted, endOf, errorOf, fault, judge } from "../../src/internal/verdict.ts"

const { fromReason, StartFailed } = SubagentError

const foldOf = (...updates: ReadonlyArray<SubagentUpdate.UnstampedUpdate>) => {
  const fold = new OutputFold()
  for (const update of updates) fold.add(update)
  return fold
}
const said: SubagentUpdate.UnstampedUpdate = { _tag: "Content", block: { type: "text", text: "said" } }
const output = [{ type: "text", text: "said" }]
const outcomeOf = (outcome: object, fold = foldOf(said), spec?: SubagentProvider.OutputSpec) =>
  judge("p", outcome as SubagentProvider.ChildOutcome, fold, spec, undefined)
const specOf = (decode: SubagentProvider.OutputSpec["decode"]): SubagentProvider.OutputSpec => ({
  schema: undefined as never,
  decode
})
const bytes = (text: string | undefined) => new TextEncoder().encode(text).length

describe("judge", () => {
  it.effect("takes a turn that completed at its word if the child said something", () =>
    Effect.gen(function* () {
      const usage = { input: 1, output: 2 }
      const result = yield* outcomeOf({ stopReason: "completed", diagnostic: "d", usage, more: 1 })
      assert.deepStrictEqual<unknown>(result, { output, stopReason: "completed", diagnostic: "d", usage })
      assert.isTrue(Object.isFrozen(result) && Object.isFrozen(result.usage))
    })
  )

  it.effect("never lets an empty or unbalanced end be a completed one (14)", () =>
    Effect.gen(function* () {
      const empty = yield* outcomeOf({ stopReason: "completed" }, foldOf())
      assert.deepInclude(empty as object, { stopReason: "error", output: [] })
      assert.deepInclude(empty.failure, { kind: "empty", retryable: true })
      const open: SubagentUpdate.UnstampedUpdate = { _tag: "ToolCall", id: "t", status: "running" }
      const spec = specOf(Effect.succeed)
      const unbalanced = yield* outcomeOf({ stopReason: "completed", structured: 1 }, foldOf(said, open), spec)
      assert.deepInclude(unbalanced as object, { stopReason: "error", output })
      assert.deepInclude(unbalanced.failure, { kind: "unbalanced" })
    })
  )

  it.effect("keeps any other stop reason, known or not, with what the provider knows of the failure", () =>
    Effect.gen(function* () {
      const failure: SubagentResult.SubagentFailure = { kind: "model", retryable: true, status: 429, retryAfter: 1000 }
      const limited = yield* outcomeOf({ stopReason: "error", failure, structured: 1 })
      assert.deepStrictEqual<unknown>(limited, { output, stopReason: "error", failure })
      for (const stopReason of ["max-tokens", "refusal", "error", "odd"]) {
        const result = yield* outcomeOf({ stopReason })
        assert.strictEqual(result.stopReason, stopReason)
        assert.deepStrictEqual(result.failure, {
          kind: "model",
          retryable: false,
          message: `The child stopped: ${stopReason}`
        })
      }
    })
  )

  it.effect("says of a child that was stopped on its own side that it was its own", () =>
    Effect.gen(function* () {
      const result = yield* outcomeOf({ stopReason: "aborted", failure: { kind: "x", retryable: false } })
      assert.deepStrictEqual<unknown>(result, { output, stopReason: "aborted", cause: { _tag: "Child" } })
    })
  )

  it.effect("refuses an outcome that is none (8)", () =>
    Effect.gen(function* () {
      const ended = (fields: object) => ({ stopReason: "error", ...fields })
      for (const outcome of [
        undefined,
        null,
        "completed",
        [],
        {},
        { stopReason: 1 },
        { stopReason: " " },
        ended({ usage: "many" }),
        ended({ diagnostic: {} }),
        ended({ diagnostic: null }),
        ended({ failure: "bad" }),
        ended({ failure: { retryable: false } }),
        ended({ failure: { kind: "model" } }),
        ended({ failure: { kind: "model", retryable: false, message: 1 } })
      ]) {
        const error = yield* Effect.flip(outcomeOf(outcome as object))
        assert.deepInclude(error.reason, {
          _tag: "ProviderFault",
          detail: "its turn ended with something that is not an outcome"
        })
      }
    })
  )

  it.effect("gives nobody a part of it to change (17)", () =>
    Effect.gen(function* () {
      const failure = { kind: "model", retryable: false, details: { tries: [1] } }
      const usage = { input: 1 }
      const result = yield* outcomeOf({ stopReason: "error", failure, usage })
      failure.details.tries.push(2)
      usage.input = 2
      assert.deepStrictEqual<unknown>(result.failure, { kind: "model", retryable: false, details: { tries: [1] } })
      assert.deepStrictEqual(result.usage, { input: 1 })
      assert.isTrue(Object.isFrozen((result.failure as unknown as typeof failure).details.tries))
    })
  )

  it.effect("bounds every text for people", () =>
    Effect.gen(function* () {
      const long = "€".repeat(3000)
      const result = yield* outcomeOf({
        stopReason: "error",
        diagnostic: long,
        failure: { kind: "model", retryable: false, message: long }
      })
      assert.deepStrictEqual([bytes(result.diagnostic), bytes(result.failure?.message)], [4095, 4095])
    })
  )

  it.effect("takes usage from the updates if the outcome has none", () =>
    Effect.gen(function* () {
      const fold = foldOf(said, { _tag: "Usage", usage: { total: 7 } })
      assert.deepStrictEqual((yield* outcomeOf({ stopReason: "completed" }, fold)).usage, { total: 7 })
      const own = yield* outcomeOf({ stopReason: "completed", usage: { total: 9 } }, fold)
      assert.deepStrictEqual(own.usage, { total: 9 })
      assert.notProperty(yield* outcomeOf({ stopReason: "completed" }), "usage")
      // nothing that can't be added up is usage
      const lie = { total: 5n, input: "5", parts: { cached: 1 } }
      assert.deepStrictEqual((yield* outcomeOf({ stopReason: "completed", usage: lie }, fold)).usage, { total: 7 })
      assert.notProperty(yield* outcomeOf({ stopReason: "completed", usage: lie }), "usage")
    })
  )
})

describe("a structured value (13)", () => {
  it.effect("is decoded once, and its end may be without words", () =>
    Effect.gen(function* () {
      let calls = 0
      const spec = specOf((encoded) => Effect.sync(() => [++calls, encoded]))
      const result = yield* outcomeOf({ stopReason: "completed", structured: "a" }, foldOf(), spec)
      assert.deepStrictEqual(result, { output: [], stopReason: "completed", structured: [1, "a"] })
      assert.strictEqual(calls, 1)
    })
  )

  it.effect("may be false, 0 or null, but is missing if it is undefined", () =>
    Effect.gen(function* () {
      for (const structured of [false, 0, null, ""]) {
        const result = yield* outcomeOf({ stopReason: "completed", structured }, foldOf(), specOf(Effect.succeed))
        assert.strictEqual(result.structured, structured)
      }
      const missing = yield* outcomeOf(
        { stopReason: "completed", structured: undefined },
        foldOf(said),
        specOf(Effect.die)
      )
      assert.deepInclude(missing as object, { stopReason: "error", output })
      assert.deepInclude(missing.failure, { kind: "schema-missing", retryable: true })
      assert.notProperty(missing, "structured")
    })
  )

  it.effect("that does not satisfy the schema is an error with paths; so is a schema that dies", () =>
    Effect.gen(function* () {
      const outcome = { stopReason: "completed", structured: 1 }
      const issues = [issueAt(["a", 0], "Bad"), issueAt([], "Worse")]
      const invalid = yield* outcomeOf(
        outcome,
        foldOf(said),
        specOf(() => Effect.fail(issues))
      )
      assert.notProperty(invalid, "structured")
      assert.deepStrictEqual(invalid.failure, { kind: "schema-invalid", retryable: true, message: "a.0: Bad; Worse" })
      const dying = yield* outcomeOf(
        outcome,
        foldOf(said),
        specOf(() => Effect.die(new Error("boom")))
      )
      assert.deepInclude(dying.failure, { kind: "schema-invalid", message: "boom" })
    })
  )

  it.effect("is not there if nobody asked for it, or the child did not complete", () =>
    Effect.gen(function* () {
      assert.notProperty(yield* outcomeOf({ stopReason: "completed", structured: 1 }), "structured")
      const cut = yield* outcomeOf({ stopReason: "max-tokens", structured: 1 }, foldOf(said), specOf(Effect.die))
      assert.notProperty(cut, "structured")
    })
  )
})

describe("aborted", () => {
  it("keeps what was said and whose will it was", () => {
    const result = aborted(foldOf(said, { _tag: "Usage", usage: { total: 1 } }), { _tag: "Caller", reason: "r" })
    assert.deepStrictEqual<unknown>(result, {
      output,
      stopReason: "aborted",
      cause: { _tag: "Caller", reason: "r" },
      usage: { total: 1 }
    })
    assert.isTrue(Object.isFrozen(result) && Object.isFrozen(result.cause))
  })
})

describe("errorOf (8)", () => {
  it("is the provider's own error if it is one of ours", () => {
    const error = fromReason(new StartFailed({ provider: "p", detail: "d" }))
    assert.strictEqual(errorOf("p", Cause.combine(Cause.die("x"), Cause.fail(error))), error)
  })

  it("is else a fault, bounded", () => {
    const detail = (cause: Cause.Cause<unknown>) => {
      const { reason } = errorOf("p", cause)
      return reason._tag === "ProviderFault" ? reason.detail : assert.fail(reason._tag)
    }
    assert.strictEqual(detail(Cause.die(new Error("boom"))), "boom")
    assert.strictEqual(detail(Cause.fail("not ours")), "not ours")
    assert.isAtMost(bytes(detail(Cause.die("y".repeat(9999)))), 1024)
    assert.isAtMost(bytes((fault("p", "y".repeat(9999)).reason as SubagentError.ProviderFault).detail), 4096)
  })
})

describe("endOf (5)", () => {
  it("says of a result how it ended, without its words or figures", () => {
    const result: SubagentResult.SubagentResult = {
      output: [{ type: "text", text: "said" }],
      structured: 1,
      stopReason: "error",
      diagnostic: "d",
      failure: { kind: "model", retryable: false },
      usage: { total: 1 }
    }
    const { failure, stopReason } = result
    assert.deepStrictEqual<unknown>(endOf(Exit.succeed(result)), { stopReason, failure })
    const cause = { _tag: "Signal" } as const
    assert.deepStrictEqual(endOf(Exit.succeed({ output: [], stopReason: "aborted", cause })), {
      stopReason: "aborted",
      cause
    })
    assert.deepStrictEqual(endOf(Exit.succeed({ output: [], stopReason: "completed" })), {
      stopReason: "completed"
    })
  })

  it("says `error` of a result that fails", () => {
    assert.deepStrictEqual(endOf(Exit.fail(fault("p", "broke"))), {
      stopReason: "error",
      failure: { kind: "provider", retryable: false, message: 'Provider "p" is at fault: broke' }
    })
  })
})
