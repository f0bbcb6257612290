import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import type { ResumeToken } from "effect-subagent"
import { readResume, readToken } from "../../src/internal/readResume.ts"
import { all, root } from "../utils/seam.ts"

const token = {
  version: 1,
  provider: "p",
  id: "child",
  header: { id: "child-session", parentSession: "root-session", delegationDepth: 1 },
  policy: { maxDepth: 3, toolFilters: [{ deny: ["rm"] }] },
  agentOptions: { model: "fast" },
  label: "a",
  payload: null
} as unknown as ResumeToken.ResumeToken

const issues = <A>(read: Result.Result<A, ReadonlyArray<unknown>>) =>
  Result.isFailure(read) ? read.failure.map(String) : []

const but = (token: object, fields: object) => Object.assign({}, token, fields)

// every fault of a token, and what becomes of it, is in ../ResumeToken.test.ts
describe("readToken", () => {
  it("takes a token as it comes out of JSON", () => {
    const read = readToken(JSON.parse(JSON.stringify(token)))
    assert.deepStrictEqual(Result.getOrUndefined(read), token)
  })

  it("reports every fault at once, and what can't be read at all", () => {
    assert.deepStrictEqual(
      issues(readToken(but(token, { version: 3, payload: undefined, more: 1 }))).map((issue) => issue.split(":")[0]),
      ["token.more", "token.version", "token.payload"]
    )
    const circular: Record<string, unknown> = {}
    circular["self"] = circular
    assert.deepStrictEqual(issues(readToken(but(token, { payload: circular }))), ["token.payload: Expected JSON value"])
  })
})

describe("readResume", () => {
  it("is a start's request with what the token says filled in", () => {
    const read = Result.getOrThrow(readResume(token, "go on", { parent: root }, all))
    assert.deepStrictEqual(read.checked, {
      prompt: [{ type: "text", text: "go on" }],
      parent: root,
      agentOptions: { model: "fast" },
      label: "a"
    })
  })

  it("says of the content what a start says of its prompt", () => {
    assert.deepStrictEqual(issues(readResume(token, " ", { parent: 3 }, all)), [
      "content: Expected a prompt that is not blank",
      "parent: Expected an agent"
    ])
  })

  it("lets nothing be asked for that the token decides, and needs a parent", () => {
    assert.deepStrictEqual(issues(readResume(token, "go", { parent: root, maxDepth: 1, prompt: "x" }, all)), [
      "maxDepth: Unexpected key",
      "prompt: Unexpected key"
    ])
    for (const nothing of [undefined, null, 3]) {
      assert.deepStrictEqual(issues(readResume(token, "go", nothing, all)), ["parent: Missing key"])
    }
  })
})
