import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { readPrompt, readRequest } from "../../src/internal/readRequest.ts"
import { all, makeSignal, root } from "../utils/seam.ts"

const basis = { prompt: "go", parent: root }
const read = (request: object, capabilities: object = all) =>
  Result.getOrThrow(readRequest({ ...basis, ...request }, capabilities as typeof all))
const problemsOf = (request: unknown, capabilities: object = all) => {
  const result = readRequest(request, capabilities as typeof all)
  return Result.isFailure(result) ? result.failure.map(String) : []
}
const problems = (request: object, capabilities?: object) => problemsOf({ ...basis, ...request }, capabilities)
const paths = (request: object) => {
  const result = readRequest({ ...basis, ...request }, all)
  return Result.isFailure(result) ? result.failure.map(({ path }) => path) : []
}

describe("a request that passes", () => {
  it("has blocks for a string, and nothing that was not asked for", () => {
    const { checked, outputSchema, signal } = read({})
    assert.deepStrictEqual(checked, { prompt: [{ type: "text", text: "go" }], parent: root, agentOptions: {} })
    assert.deepStrictEqual([outputSchema, signal], [undefined, undefined])
  })

  it("takes `undefined` for not asked for, everywhere", () => {
    const request = {
      signal: undefined,
      agentOptions: { model: undefined, systemPrompt: undefined },
      outputSchema: undefined,
      maxDepth: undefined,
      toolFilter: undefined,
      label: undefined
    }
    assert.deepStrictEqual(Object.keys(read(request).checked), ["prompt", "parent", "agentOptions"])
    assert.deepStrictEqual(read(request).checked.agentOptions, {})
    assert.deepStrictEqual(read({ agentOptions: undefined }).checked.agentOptions, {})
    assert.deepStrictEqual(read({ toolFilter: { allow: undefined, deny: ["x"] } }).checked.toolFilter, { deny: ["x"] })
  })

  it("keeps the parent, the signal and the schema by identity", () => {
    class HostAgent {
      readonly #secret = "secret"
      readonly id = "host"
      readonly session = { header: { id: "host-session" } }
      speak() {
        return this.#secret
      }
    }
    const parent = new HostAgent()
    const { signal } = makeSignal()
    const outputSchema = Schema.Struct({ a: Schema.Number })
    const passed = read({ parent, signal, outputSchema })
    assert.strictEqual(passed.checked.parent, parent)
    assert.strictEqual((passed.checked.parent as HostAgent).speak(), "secret")
    assert.strictEqual(passed.signal, signal)
    assert.strictEqual(passed.outputSchema, outputSchema)
  })

  it("takes a signal of the platform and one of another realm", () => {
    assert.strictEqual(problems({ signal: new AbortController().signal }).length, 0)
    assert.strictEqual(problems({ signal: makeSignal().signal }).length, 0)
  })

  it("is a frozen value of its own: the caller's is neither changed nor shared (17)", () => {
    const request = {
      prompt: [{ type: "text", text: "go", annotations: { audience: ["user"] } }],
      agentOptions: { model: "m" },
      toolFilter: { allow: ["a"], deny: ["b"] }
    }
    const before = structuredClone(request)
    const { checked } = read(request)
    request.prompt[0]!.text = "other"
    request.prompt[0]!.annotations.audience.pop()
    request.agentOptions.model = "other"
    request.toolFilter.allow.push("c")
    request.toolFilter.deny.pop()
    const { agentOptions, prompt, toolFilter } = checked
    assert.deepStrictEqual<unknown>({ prompt, agentOptions, toolFilter }, before)
    for (const value of [checked, prompt, agentOptions, toolFilter, toolFilter!.allow, toolFilter!.deny]) {
      assert.isTrue(Object.isFrozen(value))
    }
  })

  it("may be frozen all the way down itself", () => {
    const frozen = Object.freeze({
      prompt: Object.freeze([Object.freeze({ type: "text", text: "go" })]),
      agentOptions: Object.freeze({ model: "m" }),
      toolFilter: Object.freeze({ allow: Object.freeze(["a"]) }),
      maxDepth: 1,
      label: "l"
    })
    assert.deepStrictEqual(problems(frozen), [])
  })

  it("may hide every tool", () => {
    assert.deepStrictEqual(read({ toolFilter: { allow: [] } }).checked.toolFilter, { allow: [] })
  })

  it("takes 0 and large numbers as depth", () => {
    for (const maxDepth of [0, 1, Number.MAX_SAFE_INTEGER])
      assert.strictEqual(read({ maxDepth }).checked.maxDepth, maxDepth)
  })

  it("takes every kind of block", () => {
    const prompt = [
      { type: "text", text: "" },
      { type: "image", data: "aGk=", mimeType: "image/png", uri: "file:a" },
      { type: "audio", data: "aGk=", mimeType: "audio/wav" },
      { type: "resource_link", uri: "file:a", name: "a", size: 3, _meta: { any: 1 } },
      { type: "resource", resource: { uri: "file:a", text: "t" } },
      { type: "resource", resource: { uri: "file:a", blob: "aGk=" }, annotations: { priority: 0.5 } }
    ]
    assert.deepStrictEqual<unknown>(read({ prompt }).checked.prompt, prompt)
  })
})

describe("a request that is refused", () => {
  it("is one that is no object, or can't be read", () => {
    const throwing = Object.defineProperty({ ...basis }, "label", {
      enumerable: true,
      get: () => {
        throw new Error("no")
      }
    })
    const { proxy: parent, revoke } = Proxy.revocable({}, {})
    revoke()
    for (const request of [undefined, null, "go", 1, [], throwing, { ...basis, parent }]) {
      assert.strictEqual(problemsOf(request).length, 1)
    }
  })

  it("has an unknown key anywhere", () => {
    assert.deepStrictEqual(paths({ tools: [] }), [["tools"]])
    assert.deepStrictEqual(paths({ toolFilter: { allow: ["a"], denny: ["b"] } }), [["toolFilter", "denny"]])
    assert.deepStrictEqual(paths({ agentOptions: { modle: "m" } }), [["agentOptions", "modle"]])
    assert.deepStrictEqual(paths({ prompt: [{ type: "text", text: "a", txt: "b" }] }), [["prompt", 0, "txt"]])
  })

  it("has a key that would change what the value is made of, as JSON can have it", () => {
    const parsed = (text: string) => JSON.parse(text) as object
    assert.deepStrictEqual(paths({ agentOptions: parsed('{"__proto__":{"model":"m"}}') }), [
      ["agentOptions", "__proto__"]
    ])
    assert.deepStrictEqual(paths({ toolFilter: parsed('{"allow":[],"__proto__":{"deny":["a"]}}') }), [
      ["toolFilter", "__proto__"]
    ])
    assert.isAbove(problemsOf(parsed('{"prompt":"go","__proto__":{}}')).length, 0)
  })

  it("has a name that is blank", () => {
    assert.deepStrictEqual(problems({ label: " ", agentOptions: { model: "" }, toolFilter: { deny: ["a", "\n"] } }), [
      "toolFilter.deny.1: Expected a string that is not blank",
      "label: Expected a string that is not blank"
    ])
    assert.deepStrictEqual(problems({ agentOptions: { model: "", systemPrompt: " " } }), [
      "agentOptions.model: Expected a string that is not blank",
      "agentOptions.systemPrompt: Expected a string that is not blank"
    ])
  })

  it("has a prompt that says nothing", () => {
    const blank = [
      "",
      " \t\n",
      [],
      [{ type: "text", text: " " }],
      [
        { type: "text", text: "" },
        { type: "text", text: "\n" }
      ]
    ]
    for (const prompt of blank) {
      assert.deepStrictEqual(problems({ prompt }), ["prompt: Expected a prompt that is not blank"])
    }
  })

  it("has a prompt of the wrong shape", () => {
    for (const prompt of [undefined, null, 1, {}, { type: "text", text: "a" }]) {
      assert.deepStrictEqual(problems({ prompt }), ["prompt: Expected a string or an array of content blocks"])
    }
    assert.deepStrictEqual(
      paths({
        prompt: [
          { type: "text", text: "a" },
          { type: "text", text: 1 }
        ]
      }),
      [["prompt", 1, "text"]]
    )
    assert.deepStrictEqual(paths({ prompt: [{ type: "image", data: "aGk=" }] }), [["prompt", 0, "mimeType"]])
    assert.deepStrictEqual(paths({ prompt: ["text"] })[0], ["prompt", 0])
    assert.deepStrictEqual(paths({ prompt: [{ type: "video" }] })[0]!.slice(0, 2), ["prompt", 0])
    assert.deepStrictEqual(paths({ prompt: [{ type: "resource", resource: { uri: "a" } }] })[0]!.slice(0, 2), [
      "prompt",
      0
    ])
  })

  it("has a depth that is none", () => {
    for (const maxDepth of [-1, 0.5, -0, 2 ** 53, Number.POSITIVE_INFINITY, Number.NaN]) {
      assert.deepStrictEqual(problems({ maxDepth }), ["maxDepth: Expected a whole number from 0"], String(maxDepth))
    }
    for (const maxDepth of ["1", null, 1n]) assert.deepStrictEqual(paths({ maxDepth }), [["maxDepth"]])
  })

  it("has a filter that filters nothing, or is none", () => {
    for (const toolFilter of [{}, { allow: undefined }]) {
      assert.deepStrictEqual(problems({ toolFilter }), ["toolFilter: Expected allow, deny or both"])
    }
    assert.deepStrictEqual(paths({ toolFilter: { allow: "a" } }), [["toolFilter", "allow"]])
    assert.deepStrictEqual(paths({ toolFilter: { deny: [1] } }), [["toolFilter", "deny", 0]])
    assert.deepStrictEqual(paths({ toolFilter: ["a"] }), [["toolFilter"]])
  })

  it("has a signal that is none", () => {
    const { signal } = makeSignal()
    const wrong = ["x", null, {}, { ...signal, aborted: "no" }, { ...signal, addEventListener: 1 }, { aborted: false }]
    for (const each of [...wrong, { ...signal, removeEventListener: undefined }, () => signal]) {
      assert.deepStrictEqual(paths({ signal: each }), [["signal"]])
    }
  })

  it("has a schema that is none", () => {
    for (const outputSchema of [null, {}, { type: "object" }, "string"]) {
      assert.deepStrictEqual(paths({ outputSchema }), [["outputSchema"]])
    }
  })

  it("has a parent that can't be read, whatever it is", () => {
    const agent = new Proxy(
      {},
      {
        get: () => {
          throw new Error("no")
        }
      }
    )
    assert.deepStrictEqual(problems({ parent: agent }), [
      "parent.id: Could not be read",
      "parent.session: Could not be read",
      "parent.options: Could not be read"
    ])
  })

  it("is told all its faults at once", () => {
    assert.deepStrictEqual(
      problems({ prompt: "", parent: {}, agentOptions: { model: 1 } }).map((line) => line.split(":")[0]),
      ["prompt", "parent.id", "parent.session", "agentOptions.model"]
    )
    assert.deepStrictEqual(
      paths({ maxDepth: -1, label: "", toolFilter: {}, extra: 1 })
        .map(([key]) => String(key))
        .toSorted(),
      ["extra", "label", "maxDepth", "toolFilter"]
    )
  })
})

describe("options that a host has merged in", () => {
  it("pass if the provider has declared their name, as what they are", () => {
    const effort = { any: "value" }
    const { agentOptions } = read({ agentOptions: { effort, model: "m" } }, { ...all, effort: true }).checked
    assert.strictEqual((agentOptions as { readonly effort?: unknown }).effort, effort)
    assert.deepStrictEqual(Object.keys(agentOptions).toSorted(), ["effort", "model"])
  })

  it("pass here also if they are declared false: refusing them is a question of capability", () => {
    assert.deepStrictEqual(problems({ agentOptions: { effort: 1 } }, { ...all, effort: false }), [])
  })

  it("are unknown keys if no name is declared, or the name is another capability's", () => {
    assert.strictEqual(problems({ agentOptions: { effort: 1 } }).length, 1)
    for (const key of ["outputSchema", "depthLimit", "toolFilter", "content", "usage", "toString", "__proto__x"]) {
      assert.strictEqual(problems({ agentOptions: { [key]: true } }).length, 1, key)
    }
  })
})

describe("readPrompt", () => {
  it("reads a prompt under the path where it stood", () => {
    const fail = (prompt: unknown) => {
      const result = readPrompt(prompt, ["content"])
      return Result.isFailure(result) ? result.failure.map(({ path }) => path) : []
    }
    assert.deepStrictEqual(fail(7), [["content"]])
    assert.deepStrictEqual(fail([{ type: "text", text: "a" }, { type: "text" }]), [["content", 1, "text"]])
    assert.deepStrictEqual(Result.getOrThrow(readPrompt("hi", [])), [{ type: "text", text: "hi" }])
  })
})
