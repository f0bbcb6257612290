import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { SubagentError as E } from "effect-subagent"

const issues = [new E.RequestIssue({ path: ["toolFilter", "allow", 0], message: "Bad" })]
const table: ReadonlyArray<readonly [E.SubagentErrorReason, E.SubagentErrorCode, string]> = [
  [
    new E.ProviderNotFound({ name: "x", available: ["a", 'b"'] }),
    "NO_PROVIDER",
    'There is no provider "x"; available: "a", "b\\""'
  ],
  [new E.ProviderNotFound({ name: "x", available: [] }), "NO_PROVIDER", 'There is no provider "x"; available: none'],
  [new E.DuplicateProvider({ name: "x" }), "DUPLICATE_PROVIDER", 'A provider "x" is registered already'],
  [new E.InvalidProvider({ issues }), "INVALID_PROVIDER", "Not a provider: toolFilter.allow.0: Bad"],
  [
    new E.UnsupportedCapability({ provider: "x", capability: "model", missing: ["model", "usage"] }),
    "UNSUPPORTED_CAPABILITY",
    'Provider "x" does not support model, usage'
  ],
  [
    new E.InvalidRequest({ issues: [...issues, new E.RequestIssue({ path: [], message: "Worse" })] }),
    "INVALID_REQUEST",
    "Invalid request: toolFilter.allow.0: Bad; Worse"
  ],
  [new E.DepthExceeded({ depth: 4, maxDepth: 3 }), "DEPTH_EXCEEDED", "Delegation depth 4 exceeds the limit of 3"],
  [
    new E.ParentSettled({ parentId: "a", parentRunId: "r" }),
    "PARENT_SETTLED",
    `The run of parent "a" has settled; it can't start subagents any more`
  ],
  [
    new E.AbortedBeforeStart({ provider: "x" }),
    "ABORTED_BEFORE_START",
    'The signal was aborted before provider "x" had started a run'
  ],
  [
    new E.StartFailed({ provider: "x", detail: "no such file" }),
    "START_FAILED",
    'Provider "x" could not start a run: no such file'
  ],
  [new E.StartTimeout({ provider: "x", timeout: 300 }), "START_TIMEOUT", 'Provider "x" had no answer within 300 ms'],
  [
    new E.StartTimeout({ provider: "x", timeout: 300, asked: 500 }),
    "START_TIMEOUT",
    'Provider "x" had no answer within 300 ms; 500 asked for'
  ],
  [
    new E.StartTimeout({ provider: "x", timeout: 300, step: "initialize", detail: "loading" }),
    "START_TIMEOUT",
    'Provider "x" had no answer to initialize within 300 ms\nloading'
  ],
  [
    new E.AuthRequired({ provider: "x", methods: [] }),
    "AUTH_REQUIRED",
    'Provider "x" needs to be authenticated; its methods: none'
  ],
  [
    new E.AuthRequired({
      provider: "x",
      methods: [{ id: "key", name: "Key", description: "An API key" }, { id: "login" }],
      detail: "who are you?"
    }),
    "AUTH_REQUIRED",
    'Provider "x" needs to be authenticated; its methods: "key", "login": who are you?'
  ],
  [new E.HistoryUnavailable({ agentId: "a" }), "HISTORY_UNAVAILABLE", 'The history of agent "a" is not known here'],
  [new E.ProviderFault({ provider: "x", detail: "boom" }), "PROVIDER_FAULT", 'Provider "x" is at fault: boom'],
  [new E.RunSettled({ runId: "r" }), "RUN_SETTLED", "Run r has settled"],
  [new E.RunReleased({ runId: "r" }), "RUN_RELEASED", "Run r has been released, and its child with it"],
  [new E.ChildBusy({ id: "c", runId: "r" }), "CHILD_BUSY", 'Child "c" is at work in run r'],
  [new E.ForeignToken({ id: "c", parentId: "a" }), "FOREIGN_TOKEN", 'Child "c" is not one that "a" has delegated to'],
  [new E.DuplicateTool({ name: "t" }), "DUPLICATE_TOOL", 'There are two tools named "t"'],
  [
    new E.RegistryClosed(),
    "REGISTRY_CLOSED",
    "The Subagents layer has been released; nothing can be registered or started"
  ]
]

describe("SubagentError [seed 15]", () => {
  it("has a code and a message for each reason, and is an Error with that cause", () => {
    for (const [reason, code, message] of table) {
      const error = E.fromReason(reason)
      assert.instanceOf(error, E.SubagentError)
      assert.instanceOf(error, Error)
      assert.deepStrictEqual(
        [error._tag, error.code, error.message, reason.message],
        ["SubagentError", code, message, message]
      )
      assert.strictEqual(error.reason, reason)
      assert.strictEqual(error.cause, reason)
    }
  })

  it("has a code of its own for each reason", () => {
    const tags = new Set(table.map(([reason]) => reason._tag))
    assert.strictEqual(tags.size, 19)
    assert.strictEqual(new Set(table.map(([, code]) => code)).size, tags.size)
  })

  it.effect("is told apart by its reason, with its fields", () =>
    Effect.gen(function* () {
      const failing = (reason: E.SubagentErrorReason) =>
        Effect.fail(E.fromReason(reason)).pipe(
          Effect.catchReason("SubagentError", "ProviderNotFound", ({ available }) => Effect.succeed(available)),
          Effect.catchTag("SubagentError", ({ code }) => Effect.succeed(code))
        )
      assert.deepStrictEqual(yield* failing(table[0]![0]), ["a", 'b"'])
      assert.strictEqual(yield* failing(table[2]![0]), "DUPLICATE_PROVIDER")
    })
  )

  it("survives a wire", () => {
    for (const [reason, code, message] of table) {
      const wire: unknown = JSON.parse(JSON.stringify(Schema.encodeSync(E.SubagentError)(E.fromReason(reason))))
      const error = Schema.decodeUnknownSync(E.SubagentError)(wire)
      assert.deepStrictEqual([error.code, error.message, error.reason._tag], [code, message, reason._tag])
    }
  })
})

describe("RequestIssue", () => {
  it("reads as a line with its path, or without one", () => {
    assert.strictEqual(String(issues[0]), "toolFilter.allow.0: Bad")
    assert.strictEqual(String(new E.RequestIssue({ path: [], message: "Bad" })), "Bad")
  })
})
