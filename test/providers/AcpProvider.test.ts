import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Agent, Approvals, Content, type SubagentError, Subagents } from "effect-subagent"
import { AcpProvider } from "effect-subagent/providers"
import { ProviderConformance } from "effect-subagent/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { it as plainIt } from "vitest"
import { isAlive, marked, run, script, start, stubCommand, stubLayer } from "../fixtures/acp/harness.ts"
import type { Behaviour } from "../fixtures/acp/stubAgent.ts"
import { reasonOf } from "../utils/seam.ts"

/** The suite over the stub, which is seen from the outside: by its processes and the marks they leave. */
const conformance = (name: string, behaviour: Behaviour, endsTurns: boolean) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "acp-conformance-"))
  const living = (mark: RegExp) =>
    fs.readdirSync(folder).filter((name) => mark.test(name) && isAlive(Number.parseInt(name, 10))).length
  ProviderConformance.suite(name, stubLayer({ folder, ...behaviour }, { timeouts: { close: "300 millis" } }), {
    describe,
    it: plainIt,
    cwd: os.tmpdir(),
    timeout: "20 seconds",
    print: () => {},
    prompts: {
      complete: "say hello",
      hang: script(["hang"]),
      fail: script(["fail", -32603, "no model"]),
      stream: script(["say", "some words"], ["hang"]),
      callTool: script(
        ["say", "let me see"],
        ["update", { sessionUpdate: "tool_call", toolCallId: "t", title: "Look", status: "completed" }],
        ["say", "seen"]
      ),
      ask: script(["ask", {}]),
      submit: script(["say", '{"count":"3"}']),
      submitInvalid: script(["say", '{"count":3}'])
    },
    capabilities: { outputSchema: true, depthLimit: false, toolFilter: false, model: true, content: true },
    world: Effect.sync(() => ({ sessions: living(/^\d+$/), turns: endsTurns ? living(/\.turn$/) : 0 })).pipe(
      // an agent takes a moment to end a turn that was cancelled
      Effect.repeat({ until: ({ turns }) => turns === 0, schedule: Schedule.spaced("20 millis"), times: 100 })
    )
  })
}

conformance("the ACP provider over a well-behaved agent", {}, true)
conformance(
  "the ACP provider over an agent that ignores cancel, the end of its input and SIGTERM",
  { ignoreCancel: true, ignoreEnd: true, ignoreTerm: true },
  false
)

describe("the ACP provider", () => {
  it.live("declares what it can do, and that its children know nothing of the parent", () =>
    Effect.gen(function* () {
      const subagents = yield* Subagents.Subagents
      const { capabilities, inheritsContext } = yield* subagents.get("stub")
      assert.deepStrictEqual(capabilities, {
        outputSchema: true,
        depthLimit: false,
        toolFilter: false,
        model: true,
        content: ["image", "audio", "resource_link", "resource"]
      })
      assert.isFalse(inheritsContext)
    }).pipe(Effect.provide(stubLayer()))
  )

  it.effect("is refused with options that are misspelt, whole", () =>
    Effect.gen(function* () {
      const misspelt = { name: "agent", command: "agent", permission: "alow", fs: { rots: ["/"] } }
      const layer = AcpProvider.layer(misspelt as unknown as AcpProvider.Options)
      const exit = yield* Effect.exit(
        Effect.scoped(Layer.build(layer.pipe(Layer.provide([Subagents.layer, NodeServices.layer]))))
      )
      const { issues } = reasonOf(exit) as SubagentError.InvalidRequest
      assert.deepStrictEqual(
        issues.map(({ path }) => path.join(".")),
        ["permission", "fs.rots"]
      )
    })
  )

  it.live("is there several times side by side, each with its own agent", () =>
    Effect.gen(function* () {
      const subagents = yield* Subagents.Subagents
      assert.deepStrictEqual(yield* subagents.list, ["a", "b"])
      const parent = yield* Agent.root({ cwd: os.tmpdir() })
      const outputs = yield* Effect.forEach(
        ["a", "b"],
        (name) => subagents.run(name, { prompt: "who are you?", parent }),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        outputs.map(({ output }) => Content.toText(output)),
        ["I am a", "I am b"]
      )
    }).pipe(
      Effect.provide(
        Layer.mergeAll(
          AcpProvider.layer({ name: "a", ...stubCommand({ turns: [[["say", "I am a"]]] }) }),
          AcpProvider.layer({ name: "b", ...stubCommand({ turns: [[["say", "I am b"]]] }) })
        ).pipe(Layer.provideMerge(Subagents.layer), Layer.provide(NodeServices.layer))
      )
    )
  )

  it.live("gives every run a process and a session of its own, however many there are", () =>
    Effect.gen(function* () {
      const runs = yield* Effect.forEach(Array.from({ length: 5 }), () => start([["hang"]]), {
        concurrency: "unbounded"
      })
      for (const each of runs) assert.strictEqual(marked(each.runId).length, 1)
      yield* Effect.forEach(runs, (each) => each.dispose, { concurrency: "unbounded" })
      for (const each of runs) assert.deepStrictEqual(marked(each.runId), [])
    }).pipe(Effect.scoped, Effect.provide(stubLayer()))
  )

  it.live("gives an agent this process's environment, without what looks like a secret", () =>
    Effect.gen(function* () {
      const { output } = yield* run([
        ["tell", "env", "STUB_TOKEN"],
        ["say", "|"],
        ["tell", "env", "PASSED_TOKEN"],
        ["say", "|"],
        ["tell", "env", "OWN_TOKEN"]
      ])
      assert.strictEqual(Content.toText(output), "|passed on|own")
    }).pipe(
      Effect.provide(
        Layer.unwrap(
          Effect.acquireRelease(
            Effect.sync(() => Object.assign(process.env, { STUB_TOKEN: "hidden", PASSED_TOKEN: "passed on" })),
            () =>
              Effect.sync(() => {
                delete process.env["STUB_TOKEN"]
                delete process.env["PASSED_TOKEN"]
              })
          ).pipe(Effect.as(stubLayer({}, { passEnv: ["PASSED_TOKEN"], env: { OWN_TOKEN: "own" } })))
        )
      )
    )
  )
})

describe("the ACP provider and the protocol's own SDK", () => {
  const sdk = (options: Partial<AcpProvider.Options> = {}, ...args: ReadonlyArray<string>) =>
    AcpProvider.layer({
      name: "stub",
      command: process.execPath,
      args: [path.join(import.meta.dirname, "../fixtures/acp/sdkAgent.ts"), ...args],
      authMethod: "key",
      mode: "ask",
      model: "large",
      mcpServers: [{ name: "m", command: "/bin/false" }],
      ...options
    }).pipe(Layer.provideMerge(Subagents.layer), Layer.provide(NodeServices.layer))

  it.live("agree on a turn", () =>
    Effect.gen(function* () {
      const result = yield* run("", {
        prompt: [Content.text("hello"), { type: "image", data: "", mimeType: "image/png" }]
      })
      assert.deepStrictEqual([result.stopReason, Content.toText(result.output)], ["completed", "you said: hello"])
    }).pipe(Effect.provide(sdk()))
  )

  it.live("agree on permissions and files", () =>
    Effect.gen(function* () {
      const cwd = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "acp-sdk-")))
      const file = path.join(cwd, "new", "file.txt")
      const write = run(`write ${file}`, { parent: yield* Agent.root({ cwd }) })
      const denied = yield* write
      assert.strictEqual(Content.toText(denied.output), "not allowed")
      const allowed = yield* Effect.provideService(write, Approvals.Approvals, {
        decide: () => Effect.succeed("approved" as const)
      })
      assert.strictEqual(Content.toText(allowed.output), "written")
      assert.strictEqual(fs.readFileSync(file, "utf8"), "written")
    }).pipe(Effect.provide(sdk({ fs: {} })))
  )

  for (const how of ["loads", "resumes"]) {
    it.live(`agree on a session that goes on in another process, which ${how} it (16)`, () =>
      Effect.gen(function* () {
        const parent = yield* Agent.root({ cwd: os.tmpdir() })
        const token = yield* start("hello", { parent }).pipe(
          Effect.flatMap((first) => Effect.andThen(first.result, first.token!)),
          Effect.scoped,
          Effect.provide(sdk({}, how))
        )
        assert.deepStrictEqual(token.payload, { sessionId: "sdk-session", cwd: os.tmpdir(), agent: "sdk-stub" })
        const second = yield* Effect.gen(function* () {
          const subagents = yield* Subagents.Subagents
          return yield* (yield* subagents.resume(token, "more", { parent })).result
        }).pipe(Effect.scoped, Effect.provide(sdk({}, how)))
        assert.strictEqual(Content.toText(second.output), "you said: more")
      })
    )
  }

  it.live("agree on a cancel, and nothing is left", () =>
    Effect.gen(function* () {
      const run = yield* start("hang")
      yield* run.updates.pipe(
        Stream.filter((update) => update._tag === "Content"),
        Stream.runHead
      )
      yield* run.cancel()
      assert.strictEqual((yield* run.result).stopReason, "aborted")
      yield* run.dispose
      assert.deepStrictEqual(marked(run.runId), [])
    }).pipe(Effect.scoped, Effect.provide(sdk()))
  )
})
