import { assert, describe, it } from "@effect/vitest"
import { Approvals } from "effect-subagent"
import * as Effect from "effect/Effect"
import { type Answer, cancelled, decide } from "../../../../src/providers/internal/acp/permission.ts"

const request = { toolCallId: "c", toolName: "write", input: {} }
const options = (...kinds: ReadonlyArray<string>) => kinds.map((kind, i) => ({ optionId: `${kind}-${i}`, kind }))
const selected = (optionId: string): Answer => ({ outcome: { outcome: "selected", optionId } })

const approver = (decision: Approvals.ApprovalDecision) => {
  const asked: Array<Approvals.ApprovalRequest> = []
  const decide = (request: Approvals.ApprovalRequest) =>
    Effect.sync(() => {
      asked.push(request)
      return decision
    })
  return { asked, provide: Effect.provideService(Approvals.Approvals, { decide }) }
}

describe("a permission", () => {
  it.effect("is chosen by kind, never by position", () =>
    Effect.gen(function* () {
      for (const order of [
        ["reject_once", "allow_once", "allow_always"],
        ["allow_always", "reject_always", "allow_once", "reject_once"]
      ]) {
        const given = options(...order)
        const of = (kind: string) => given.find((option) => option.kind === kind)!.optionId
        assert.deepStrictEqual((yield* decide("allow", request, given)).answer, selected(of("allow_once")))
        assert.deepStrictEqual((yield* decide("deny", request, given)).answer, selected(of("reject_once")))
      }
    })
  )

  it.effect("that the host has given once and for all may be for always", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* decide("allow", request, options("allow_always")), {
        answer: selected("allow_always-0"),
        outcome: "approved"
      })
    })
  )

  it.effect("(19) that an approver gives is for one call, and never more", () =>
    Effect.gen(function* () {
      const yes = approver("approved")
      const once = yield* yes.provide(decide("ask", request, options("allow_always", "allow_once")))
      assert.deepStrictEqual(once, { answer: selected("allow_once-1"), outcome: "approved" })
      assert.deepStrictEqual(yes.asked, [request])
      const always = yield* yes.provide(decide("ask", request, options("allow_always", "reject_once")))
      assert.deepStrictEqual(always, { answer: selected("reject_once-1"), outcome: "no-approver" })
      assert.strictEqual(yes.asked.length, 1)
    })
  )

  it.effect("(19) is denied when an approver denies, and when there is none", () =>
    Effect.gen(function* () {
      const given = options("allow_once", "reject_always")
      const no = approver("denied")
      const denied = yield* no.provide(decide("ask", request, given))
      assert.deepStrictEqual(denied, { answer: selected("reject_always-1"), outcome: "denied" })
      const nobody = yield* decide("ask", request, given)
      assert.deepStrictEqual(nobody, { answer: selected("reject_always-1"), outcome: "no-approver" })
    })
  )

  it.effect("is not picked where two options are of one kind: that is a question", () =>
    Effect.gen(function* () {
      const yes = approver("approved")
      const doubled = options("allow_once", "allow_once", "reject_once", "reject_once")
      for (const policy of ["ask", "allow"] as const) {
        assert.deepStrictEqual(yield* yes.provide(decide(policy, request, doubled)), {
          answer: cancelled,
          outcome: "no-approver"
        })
      }
      assert.deepStrictEqual(yes.asked, [])
    })
  )

  it.effect("is not said by an id that stands for more than one option", () =>
    Effect.gen(function* () {
      const yes = approver("approved")
      const same = ["reject_once", "allow_once"].map((kind) => ({ optionId: "it", kind }))
      assert.deepStrictEqual(yield* decide("deny", request, same), { answer: cancelled, outcome: "denied" })
      assert.deepStrictEqual(yield* yes.provide(decide("ask", request, same)), {
        answer: cancelled,
        outcome: "no-approver"
      })
      assert.deepStrictEqual(yes.asked, [])
    })
  )

  it.effect("that can't be refused in so many words is cancelled", () =>
    Effect.gen(function* () {
      for (const given of [options("allow_once"), options(), options("something_new")]) {
        assert.deepStrictEqual((yield* decide("deny", request, given)).answer, cancelled)
      }
    })
  )
})
