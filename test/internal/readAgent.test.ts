import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { readAgent } from "../../src/internal/readAgent.ts"

const problems = (agent: unknown) => {
  const read = readAgent(agent, ["parent"])
  return Result.isFailure(read) ? read.failure.map(String) : []
}
const read = (agent: unknown) => Result.getOrThrow(readAgent(agent, ["parent"]))
const header = { id: "s" }

describe("readAgent", () => {
  it("reads the named fields; absent depth is 0", () => {
    assert.deepStrictEqual(read({ id: "a", session: { header } }), {
      id: "a",
      header: { id: "s", delegationDepth: 0 },
      options: {}
    })
    const whole = {
      id: "a",
      session: { header: { id: "s", cwd: "/c", parentSession: "p", delegationDepth: 2 } },
      options: { model: "m", systemPrompt: "not inherited", custom: 1 },
      more: true
    }
    assert.deepStrictEqual(read(whole), { id: "a", header: whole.session.header, options: { model: "m" } })
  })

  it("takes null for nothing, as a host without undefined has it", () => {
    const agent = {
      id: "a",
      session: { header: { id: "s", cwd: null, parentSession: null, delegationDepth: null } },
      options: null
    }
    assert.deepStrictEqual(read(agent), { id: "a", header: { id: "s", delegationDepth: 0 }, options: {} })
    assert.deepStrictEqual(read({ ...agent, options: { model: null } }).options, {})
  })

  it("reads a host's own class, with private fields, getters and methods", () => {
    class HostAgent {
      readonly #id = "private"
      readonly #secret = new Map<string, string>()
      get id() {
        return this.#id
      }
      get session() {
        return { header: { id: `${this.#id}-session`, more: this.#secret } }
      }
      speak() {
        return this.#secret
      }
    }
    assert.deepStrictEqual(read(new HostAgent()), {
      id: "private",
      header: { id: "private-session", delegationDepth: 0 },
      options: {}
    })
  })

  it("reads each field once, and no other", () => {
    const seen: Array<PropertyKey> = []
    const watch = <A extends object>(target: A): A =>
      new Proxy(target, {
        get: (_, key) => {
          seen.push(key)
          return Reflect.get(target, key) as unknown
        }
      })
    read(
      watch({
        id: "a",
        session: watch({ header: watch({ id: "s", cwd: "/c", secret: 1 }), secret: 1 }),
        options: watch({ model: "m", secret: 1 }),
        secret: 1
      })
    )
    assert.deepStrictEqual(seen, [
      "id",
      "session",
      "header",
      "id",
      "cwd",
      "parentSession",
      "delegationDepth",
      "options",
      "model"
    ])
  })

  it("gives a value that no longer depends on the host's object (17)", () => {
    const agent = { id: "a", session: { header: { id: "s", cwd: "/c" } }, options: { model: "m" } }
    const snapshot = read(agent)
    agent.session.header.cwd = "/elsewhere"
    agent.options.model = "other"
    assert.deepStrictEqual(snapshot, {
      id: "a",
      header: { id: "s", cwd: "/c", delegationDepth: 0 },
      options: { model: "m" }
    })
  })

  it("refuses what is no agent", () => {
    for (const agent of [undefined, null, "a", 1, [], () => 1]) {
      assert.deepStrictEqual(problems(agent), ["parent: Expected an agent"])
    }
  })

  it("names every field that is wrong", () => {
    assert.deepStrictEqual(problems({}), [
      "parent.id: Expected a non-blank string",
      "parent.session: Expected an object"
    ])
    assert.deepStrictEqual(problems({ id: " ", session: {} }), [
      "parent.id: Expected a non-blank string",
      "parent.session.header: Expected an object"
    ])
    assert.deepStrictEqual(problems({ id: "a", session: { header: null } }), [
      "parent.session.header: Expected an object"
    ])
    assert.deepStrictEqual(
      problems({
        id: 7,
        session: { header: { id: "", cwd: "\t", parentSession: 1, delegationDepth: -1 } },
        options: { model: "" }
      }),
      [
        "parent.id: Expected a non-blank string",
        "parent.session.header.id: Expected a non-blank string",
        "parent.session.header.cwd: Expected a non-blank string or nothing",
        "parent.session.header.parentSession: Expected a non-blank string or nothing",
        "parent.session.header.delegationDepth: Expected a whole number from 0 or nothing",
        "parent.options.model: Expected a non-blank string or nothing"
      ]
    )
    assert.deepStrictEqual(problems({ id: "a", session: { header }, options: "fast" }), [
      "parent.options: Expected an object or nothing"
    ])
  })

  it("takes no depth that is none", () => {
    for (const delegationDepth of ["1", 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      assert.deepStrictEqual(problems({ id: "a", session: { header: { id: "s", delegationDepth } } }), [
        "parent.session.header.delegationDepth: Expected a whole number from 0 or nothing"
      ])
    }
  })

  it("reports a field that throws like one that is wrong", () => {
    const throwing = (key: string, rest: object) =>
      Object.defineProperty({ ...rest }, key, {
        get: () => {
          throw new Error("no")
        }
      })
    assert.deepStrictEqual(problems(throwing("id", { session: throwing("header", {}) })), [
      "parent.id: Could not be read",
      "parent.session.header: Could not be read"
    ])
  })

  it("refuses an agent that is in order only when it is looked at again", () => {
    let looks = 0
    const agent = {
      get id() {
        return looks++ === 0 ? "" : "a"
      },
      session: { header }
    }
    assert.deepStrictEqual(problems(agent), ["parent: Could not be read"])
  })
})
