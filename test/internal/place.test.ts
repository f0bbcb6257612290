import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Agent, SubagentProvider, SubagentRequest } from "effect-subagent"
import type { KnownParent } from "../../src/internal/place.ts"
import { place } from "../../src/internal/place.ts"
import { readRequest } from "../../src/internal/readRequest.ts"
import { all, nothing, root } from "../utils/seam.ts"

const random = Effect.runSync(Random.withSeed(Effect.service(Random.Random), "place"))

interface Options {
  readonly capabilities?: object
  readonly request?: object
  readonly parent?: KnownParent
  readonly maxDepth?: number
  readonly limits?: SubagentRequest.Bounds
}
const placed = ({ capabilities = all, limits, maxDepth = 3, parent, request = {} }: Options) =>
  place({
    provider: "p",
    capabilities: capabilities as typeof all,
    read: Result.getOrThrow(readRequest({ prompt: "go", parent: root, ...request }, capabilities as typeof all)),
    parent,
    maxDepth,
    limits,
    random
  })
const passed = (options: Options) => Result.getOrThrow(placed(options))
const refused = (options: Options) => {
  const result = placed(options)
  return Result.isFailure(result) ? Object.assign({}, result.failure) : assert.fail("it passed")
}
const known = (
  depth: number,
  policy: Partial<SubagentProvider.Policy> = {},
  verdict?: KnownParent["verdict"]
): KnownParent => ({
  lineage: {
    id: "child" as Agent.AgentId,
    runId: "child-run" as Agent.RunId,
    parentId: "root",
    rootId: "top",
    depth
  },
  policy: { maxDepth: 9, toolFilters: [], ...policy },
  asked: undefined,
  header: {
    id: "child-session" as Agent.SessionId,
    parentSession: "root-session" as Agent.SessionId,
    delegationDepth: depth
  },
  verdict
})
const agent = (delegationDepth: number) => ({
  parent: { id: "child", session: { header: { id: "child-session", delegationDepth } } }
})

describe("capabilities (3)", () => {
  const everything = {
    outputSchema: Schema.String,
    maxDepth: 2,
    toolFilter: { deny: ["x"] },
    agentOptions: { systemPrompt: "s", model: "m" },
    prompt: [
      { type: "text", text: "a" },
      { type: "image", data: "aGk=", mimeType: "image/png" },
      { type: "audio", data: "aGk=", mimeType: "audio/wav" },
      { type: "image", data: "aGk=", mimeType: "image/png" }
    ]
  }

  it("that are missing are all listed, in the fixed order, and the first is named", () => {
    const missing = [
      "outputSchema",
      "depthLimit",
      "toolFilter",
      "model",
      "systemPrompt",
      "content:image",
      "content:audio"
    ]
    assert.deepStrictEqual<unknown>(refused({ capabilities: nothing, request: everything }), {
      _tag: "UnsupportedCapability",
      provider: "p",
      capability: "outputSchema",
      missing
    })
  })

  it("that are all there let the request pass", () => {
    assert.isTrue(Result.isSuccess(placed({ request: everything })))
  })

  it("are asked one by one", () => {
    const cases: ReadonlyArray<readonly [object, object, string]> = [
      [{ outputSchema: false }, { outputSchema: Schema.String }, "outputSchema"],
      [{ depthLimit: false }, { maxDepth: 1 }, "depthLimit"],
      [{ toolFilter: false }, { toolFilter: { allow: [] } }, "toolFilter"],
      [{ model: false }, { agentOptions: { model: "m" } }, "model"],
      [{ model: "yes" }, { agentOptions: { model: "m" } }, "model"],
      [{ systemPrompt: undefined }, { agentOptions: { systemPrompt: "s" } }, "systemPrompt"],
      [{ content: ["audio"] }, { prompt: everything.prompt.slice(0, 2) }, "content:image"],
      [{ content: undefined }, { prompt: everything.prompt.slice(1, 2) }, "content:image"],
      [{ effort: false }, { agentOptions: { effort: 1 } }, "effort"]
    ]
    for (const [capabilities, request, capability] of cases) {
      const options = { capabilities: { ...all, ...capabilities }, request }
      assert.deepInclude(refused(options), { capability, missing: [capability] })
      assert.isTrue(Result.isSuccess(placed({ ...options, request: {} })), capability)
    }
    assert.isTrue(
      Result.isSuccess(placed({ capabilities: { ...all, effort: true }, request: { agentOptions: { effort: 1 } } }))
    )
  })
})

describe("depth (11)", () => {
  it("is one more than the parent's, 0 for a root, and refused over the request's or the configured cap", () => {
    const table: ReadonlyArray<
      readonly [KnownParent | undefined, number, number, number | undefined, number | string]
    > = [
      // the parent, the depth in its header, the configured cap, the request's
      [undefined, 0, 3, undefined, 1],
      [undefined, 0, 3, 0, "1 > 0"],
      [undefined, 0, 3, 1, 1],
      [undefined, 0, 3, 2, 1],
      [undefined, 0, 0, undefined, "1 > 0"],
      [undefined, 0, 0, 5, "1 > 0"],
      [undefined, 2, 3, undefined, 3],
      [undefined, 3, 3, undefined, "4 > 3"],
      [undefined, 3, 3, 9, "4 > 3"],
      [known(1), 1, 3, 0, "2 > 0"],
      [known(1), 1, 3, 1, "2 > 1"],
      [known(1), 1, 3, 2, 2],
      [known(1, { maxDepth: 1 }), 1, 3, undefined, "2 > 1"],
      [known(1, { maxDepth: 1 }), 1, 3, 3, "2 > 1"],
      [known(1, { maxDepth: 2 }), 1, 3, 1, "2 > 1"],
      // a header that lies: lower is ignored, deeper counts
      [known(3), 0, 3, undefined, "4 > 3"],
      [known(1), 0, 3, undefined, 2],
      [known(1), 2, 3, undefined, 3],
      [known(1), 5, 3, undefined, "6 > 3"]
    ]
    for (const [parent, headerDepth, maxDepth, asked, expected] of table) {
      const result = placed({
        ...(parent && { parent }),
        maxDepth,
        request: { ...agent(headerDepth), maxDepth: asked }
      })
      const actual = Result.isSuccess(result)
        ? result.success.lineage.depth
        : "maxDepth" in result.failure && `${result.failure.depth} > ${result.failure.maxDepth}`
      assert.strictEqual(actual, expected)
    }
  })

  it("caps only tighten on the way down", () => {
    assert.strictEqual(passed({}).policy.maxDepth, 3)
    assert.strictEqual(passed({ request: { maxDepth: 2 } }).policy.maxDepth, 2)
    assert.strictEqual(passed({ request: { maxDepth: 7 } }).policy.maxDepth, 3)
    assert.strictEqual(passed({ parent: known(1, { maxDepth: 2 }), request: { maxDepth: 3 } }).policy.maxDepth, 2)
    assert.strictEqual(passed({ parent: known(1, { maxDepth: 3 }), request: { maxDepth: 2 } }).policy.maxDepth, 2)
  })
})

describe("limits (20)", () => {
  it("are the host's below a root, the parent's below a child, and in both cases also what is asked for", () => {
    const limits = { maxTurns: 5, timeout: 1000 }
    const asked = { maxTurns: 3, timeout: "2 seconds", maxRuns: 0 }
    assert.isUndefined(passed({}).policy.limits)
    assert.strictEqual(passed({ limits }).policy.limits, limits)
    const own = passed({ limits, request: asked })
    assert.deepStrictEqual(own.policy.limits, { maxTurns: 3, timeout: 1000, maxRuns: 0 })
    assert.deepStrictEqual(own.asked, { maxTurns: 3, timeout: 2000, maxRuns: 0 })
    assert.isUndefined(passed({ limits }).asked)
    const parent = known(1, { limits: { maxTurns: 4, idleTimeout: 7 } })
    assert.strictEqual(passed({ limits, parent }).policy.limits, parent.policy.limits)
    const child = passed({ limits, parent, request: { ...asked, idleTimeout: 9 } }).policy.limits
    assert.deepStrictEqual(child, { maxTurns: 3, idleTimeout: 7, timeout: 2000, maxRuns: 0 })
    assert.isTrue(Object.isFrozen(child))
  })

  it("of depth say what was asked for where something tighter holds, by the request or by the parent's", () => {
    const parent = { ...known(2, { maxDepth: 2 }), asked: { maxDepth: 5 } }
    assert.notProperty(refused({ maxDepth: 0 }), "asked")
    assert.notProperty(refused({ request: { maxDepth: 0 } }), "asked")
    assert.deepInclude(refused({ maxDepth: 0, request: { maxDepth: 4 } }), { maxDepth: 0, asked: 4 })
    assert.deepInclude(refused({ parent }), { maxDepth: 2, asked: 5 })
    assert.deepInclude(refused({ parent, request: { maxDepth: 3 } }), { maxDepth: 2, asked: 5 })
    assert.deepInclude(refused({ parent, request: { maxDepth: 6 } }), { maxDepth: 2, asked: 6 })
  })
})

describe("an inherited filter (12)", () => {
  const toolFilters = [{ allow: ["a", "b"] }]

  it("counts as asked for: a filtered child can't delegate to a provider that can't filter", () => {
    const capabilities = { ...all, toolFilter: false }
    assert.deepInclude(refused({ capabilities, parent: known(1, { toolFilters }) }), {
      _tag: "UnsupportedCapability",
      missing: ["toolFilter"]
    })
    assert.isTrue(Result.isSuccess(placed({ capabilities, parent: known(1) })))
  })

  it("holds before the request's own, whatever that says", () => {
    const own = { allow: ["a", "c"] }
    const { policy } = passed({ parent: known(1, { toolFilters }), request: { toolFilter: own } })
    assert.deepStrictEqual(policy.toolFilters, [...toolFilters, own])
    assert.isTrue(Object.isFrozen(policy) && Object.isFrozen(policy.toolFilters))
    assert.deepStrictEqual(passed({ parent: known(1, { toolFilters }) }).policy.toolFilters, toolFilters)
    assert.deepStrictEqual(passed({}).policy.toolFilters, [])
  })

  it("of a token holds beside those of today, and not twice where it is one of them", () => {
    const parent = known(1, { toolFilters })
    const resumed = (before: ReadonlyArray<SubagentRequest.ToolFilter>) => {
      const token = {
        version: 1,
        provider: "p",
        id: "kept" as Agent.AgentId,
        header: { ...parent.header, id: "kept-session" as Agent.SessionId, parentSession: parent.header.id },
        policy: { maxDepth: 9, toolFilters: before },
        agentOptions: {},
        payload: null
      } as const
      return Result.getOrThrow(
        place({
          provider: "p",
          capabilities: all,
          read: Result.getOrThrow(readRequest({ prompt: "go", parent: root }, all)),
          parent,
          maxDepth: 9,
          limits: undefined,
          random,
          token
        })
      ).policy.toolFilters
    }
    assert.strictEqual(resumed([{ allow: ["a", "b"] }]), toolFilters)
    assert.deepStrictEqual(resumed([{ allow: ["a", "b"] }, { deny: ["b"] }]), [...toolFilters, { deny: ["b"] }])
  })
})

describe("the order of the checks (3)", () => {
  it("is capabilities, a settled parent, depth, an inherited filter", () => {
    const settled = known(3, { toolFilters: [{ deny: ["x"] }] }, Exit.succeed({ output: [], stopReason: "completed" }))
    const capabilities = { ...all, outputSchema: false, toolFilter: false }
    const request = { outputSchema: Schema.String }
    assert.deepInclude(refused({ capabilities, parent: settled, request }), { missing: ["outputSchema"] })
    assert.deepStrictEqual<unknown>(refused({ capabilities, parent: settled }), {
      _tag: "ParentSettled",
      parentId: "root",
      parentRunId: "child-run"
    })
    const parent = { ...settled, verdict: undefined }
    assert.deepInclude(refused({ capabilities, parent }), { _tag: "DepthExceeded", depth: 4, maxDepth: 3 })
    assert.deepInclude(refused({ capabilities, parent, maxDepth: 4 }), { missing: ["toolFilter"] })
  })
})

describe("the place of a run", () => {
  it("is a fresh, frozen value below a root", () => {
    const parent = { id: "a", session: { header: { id: "s", cwd: "/c", parentSession: "other" } } }
    const { header, lineage } = passed({ request: { parent, label: "l" } })
    assert.deepStrictEqual(lineage, {
      id: lineage.id,
      runId: lineage.runId,
      parentId: "a",
      rootId: "a",
      depth: 1,
      label: "l"
    })
    assert.deepStrictEqual<unknown>(header, { id: header.id, cwd: "/c", parentSession: "s", delegationDepth: 1 })
    assert.strictEqual(new Set([lineage.id, lineage.runId, header.id]).size, 3)
    assert.isTrue(Object.isFrozen(lineage) && Object.isFrozen(header))
  })

  it("is the live table's word below a child, not the caller's", () => {
    const liar = { id: "child", session: { header: { id: "forged", cwd: "/c", delegationDepth: 0 } } }
    const { header, lineage } = passed({ parent: known(1), request: { parent: liar } })
    assert.deepInclude(lineage as object, { parentId: "child", parentRunId: "child-run", rootId: "top", depth: 2 })
    assert.deepInclude(header as object, { parentSession: "child-session", delegationDepth: 2 })
  })

  it("has no keys for what there is not", () => {
    const parent = { id: "a", session: { header: { id: "s" } } }
    const { header, lineage } = passed({ request: { parent } })
    assert.deepStrictEqual(Object.keys(header), ["id", "parentSession", "delegationDepth"])
    assert.deepStrictEqual(Object.keys(lineage), ["id", "runId", "parentId", "rootId", "depth"])
  })
})
