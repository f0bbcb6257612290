/** The survey on a model behind chat completions: the command that users run, against a server on loopback. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as TestConsole from "effect/testing/TestConsole"
import * as OpenAi from "../../docs/examples/models/openai.ts"
import { chosenModel } from "../../docs/examples/survey/chosenModel.ts"
import { shortcomings } from "../../docs/examples/survey/Report.ts"
import { type Survey, survey } from "../../docs/examples/survey/Survey.ts"
import * as SurveyModel from "../../docs/examples/survey/SurveyModel.ts"
import { stubCommand } from "../fixtures/acp/harness.ts"
import * as Server from "../fixtures/openai/server.ts"
import { folderOf, surveyor } from "../fixtures/openai/surveyor.ts"
import { start } from "./command.ts"
import { temporaryFolder } from "./folder.ts"

const environment = ({ url }: Server.Server) => ({
  OPENAI_BASE_URL: url,
  OPENAI_MODEL: "surveyor-1",
  OPENAI_API_KEY: "sk-secret-1"
})

/** The same in this process. */
const ask = (folder: string, { url }: Server.Server) =>
  survey(folder, { streaming: true, textLimit: 4096 }).pipe(
    Effect.provide([NodeServices.layer, OpenAi.layer({ model: "surveyor-1", baseUrl: url })])
  )

const files = { "lib/a.ts": "export const a = 1\n", "lib/b.md": "# B\n", "doc/c.md": "# C\n\nText\n", "d.txt": "D\n" }

describe("a survey on a model behind chat completions", () => {
  it.live("reads the files with the model's own tool calls, and has the same report as the offline one", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder(files)
      const server = yield* Server.serve(surveyor)
      const { code, stderr, stdout } = yield* start(["--json", folder], { env: environment(server) })
      assert.strictEqual(code, 0, stderr)
      const done = JSON.parse(stdout) as Survey
      const offline = yield* Effect.provide(survey(folder), [NodeServices.layer, SurveyModel.layer])
      assert.deepStrictEqual(done.report, offline.report)
      assert.deepStrictEqual(Object.fromEntries(done.runs.map(({ label, reads }) => [label, reads.toSorted()])), {
        "doc/": ["doc/c.md"],
        "files at the top": ["d.txt"],
        "lib/": ["lib/a.ts", "lib/b.md"]
      })
      assert.isTrue(done.runs.every(({ end }) => end?.stopReason === "completed"))
      assert.include(stderr, `model    surveyor-1 at ${new URL(server.url).host}`)
      // each agent: list, read or delegate, submit
      assert.strictEqual(server.requests.length, 4 * 3)
      for (const { body, headers } of server.requests) {
        assert.deepStrictEqual(
          [body.model, body.stream, headers.authorization],
          ["surveyor-1", true, "Bearer sk-secret-1"]
        )
        assert.include(String(body.messages[0]?.content), "You survey folders.")
      }
      assert.deepStrictEqual([server.open(), server.dropped()], [0, 0])
      assert.notInclude(stdout + stderr, "sk-secret-1")
    })
  )

  it.live("shows a model the beginning of a long file, and counts all of it", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder({ "long.ts": `export const a = 1\n${"// more\n".repeat(10_000)}` })
      const server = yield* Server.serve(surveyor)
      const { report } = yield* ask(folder, server)
      const [part] = report.parts
      assert.deepStrictEqual(part?.totals, { files: 1, lines: 10_001, bytes: 80_019 })
      assert.include(part?.files[0]?.note, "only its first 409")
      const told = server.requests.flatMap(({ body }) => body.messages).filter(({ role }) => role === "tool")
      assert.isTrue(told.every(({ content }) => String(content).length < 6000))
    })
  )

  it.live("can lead agents of another make", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder({ "lib/a.ts": "x\n" })
      const server = yield* Server.serve(surveyor)
      const findings = { files: [{ path: "lib/a.ts", kind: "text", lines: 1, bytes: 2 }], problems: [] }
      const { args, command } = stubCommand({ turns: [[["say", JSON.stringify(findings)]]] })
      const agent = [command, ...args].map((word) => `'${word}'`).join(" ")
      const { code, stderr, stdout } = yield* start([folder, "--agent", agent], { env: environment(server) })
      assert.strictEqual(code, 0, stderr)
      assert.include(stdout, "1  lib/a.ts\n")
      assert.strictEqual(server.requests.length, 3)
    })
  )

  it.live("in which one agent's calls fail has the parts of the others, and says what is missing", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder(files)
      const server = yield* Server.serve((response, request) =>
        folderOf(request) === "lib"
          ? Server.status(400, { error: { message: "This is too long for me" } })(response, request)
          : surveyor(response, request)
      )
      const { report, runs } = yield* ask(folder, server)
      assert.deepInclude(runs.find(({ label }) => label === "lib/")?.end?.failure, { kind: "model", status: 400 })
      assert.deepStrictEqual(
        report.parts.map(({ files, name }) => [name, files.length]),
        [
          ["doc/", 1],
          ["lib/", 0],
          ["files at the top", 1]
        ]
      )
      assert.match(shortcomings(report).join(), /^lib\/: The subagent failed \(error\)\.[^]*This is too long for me/)
    })
  )

  it.live.each<readonly [message: string, answer: Server.Answer]>([
    [
      'The agent did not finish (error): Invalid request. 404 model "surveyor-1" not found',
      Server.status(404, { error: { message: 'model "surveyor-1" not found' } })
    ],
    [
      "The agent did not finish (error): The agent submitted no result",
      Server.streamed([{ content: "There are files in it." }])
    ]
  ])("without a report says why: %s", ([message, answer]) =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip(ask(yield* temporaryFolder(files), yield* Server.serve(answer)))
      assert.strictEqual(failed.message, message)
    })
  )

  it.live("fails with a wrong key, and does not tell it", () =>
    Effect.gen(function* () {
      const refusal = { error: { message: "Incorrect API key provided", code: "invalid_api_key" } }
      const server = yield* Server.serve(Server.status(401, refusal))
      const { code, stderr, stdout } = yield* start([yield* temporaryFolder(files)], { env: environment(server) })
      assert.deepStrictEqual([code, stdout], [1, ""])
      assert.include(
        stderr,
        "The agent did not finish (error): InvalidKey: Verify your API key is correct. 401 Incorrect API key provided"
      )
      assert.notInclude(stderr, "sk-secret-1")
      assert.notInclude(stderr, "    at ")
      assert.strictEqual(server.requests.length, 1)
    })
  )

  it.live("that is stopped by Ctrl-C closes its connections", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder(files)
      // the root delegates, and no child is ever answered
      const server = yield* Server.serve((response, request) =>
        folderOf(request) === undefined
          ? surveyor(response, request)
          : Server.hang({ reasoning_content: "Hm." })(response, request)
      )
      const stop = async (process: { readonly kill: (signal: "SIGINT") => boolean }) => {
        while (server.open() < 3) await new Promise((resolve) => setImmediate(resolve))
        process.kill("SIGINT")
      }
      let stopping: Promise<void> | undefined
      const { code, stderr, stdout } = yield* start([folder], {
        env: environment(server),
        watch: (process) => {
          stopping ??= stop(process)
        }
      })
      yield* Effect.promise(() => stopping!)
      assert.deepStrictEqual([code, stdout], [130, ""])
      assert.include(stderr, "Interrupted: every agent has been stopped, and there is no report")
      assert.strictEqual(stderr.split("\n").filter((line) => /^ended .*: aborted$/.test(line)).length, 3)
      yield* Effect.promise(async () => {
        while (server.open() > 0) await new Promise((resolve) => setImmediate(resolve))
      })
      assert.strictEqual(server.dropped(), 3)
    })
  )
})

describe("the model of a survey", () => {
  const choose = (env: Readonly<Record<string, string>>) =>
    Effect.provide(chosenModel, ConfigProvider.layer(ConfigProvider.fromEnv({ env })))

  it.effect.each<readonly [env: Readonly<Record<string, string>>, message: string]>([
    [
      { OPENAI_MODEL: "m" },
      "OPENAI_MODEL is set: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that needs no key"
    ],
    [{ OPENAI_MODEL: "m", OPENAI_API_KEY: "" }, "OPENAI_MODEL is set: set OPENAI_API_KEY, or OPENAI_BASE_URL"],
    [{ OPENAI_BASE_URL: "http://127.0.0.1:1/v1", OPENAI_MODEL: " " }, "OPENAI_BASE_URL is set and OPENAI_MODEL is not"],
    [{ OPENAI_BASE_URL: "localhost:1", OPENAI_MODEL: "m" }, "OPENAI_BASE_URL is no http address"]
  ])("is not half of one, and says what is missing: %j", ([env, message]) =>
    Effect.gen(function* () {
      assert.include((yield* Effect.flip(choose(env))).message, message)
    })
  )

  it.effect.each<readonly [env: Readonly<Record<string, string>>, told: ReadonlyArray<string>]>([
    [{}, []],
    [{ OPENAI_API_KEY: "sk-1" }, ["OPENAI_API_KEY is set and OPENAI_MODEL is not: the model is the offline one"]]
  ])("is the offline one unless another is named: %j", ([env, told]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* choose(env), { layer: SurveyModel.layer })
      assert.deepStrictEqual(yield* TestConsole.errorLines, told)
    })
  )

  it.effect.each<readonly [env: Readonly<Record<string, string>>, host: string]>([
    [{ OPENAI_MODEL: "m", OPENAI_API_KEY: "sk-1" }, "api.openai.com"],
    [{ OPENAI_MODEL: "m", OPENAI_BASE_URL: "http://user:secret@127.0.0.1:1/v1?key=secret" }, "127.0.0.1:1"]
  ])("is told with where it is, and without its secrets: %j", ([env, host]) =>
    Effect.gen(function* () {
      const { streaming } = yield* choose(env)
      assert.isTrue(streaming)
      assert.deepStrictEqual(yield* TestConsole.errorLines, [`model    m at ${host}`])
    })
  )
})
