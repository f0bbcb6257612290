/** The survey whose children are agents of another make: `--agent`, over the stub agent. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import type { Command } from "../../docs/examples/survey/commandLine.ts"
import { type Findings, shortcomings } from "../../docs/examples/survey/Report.ts"
import { type Survey, survey } from "../../docs/examples/survey/Survey.ts"
import * as SurveyModel from "../../docs/examples/survey/SurveyModel.ts"
import { isAlive, stubCommand } from "../fixtures/acp/harness.ts"
import type { Behaviour } from "../fixtures/acp/stubAgent.ts"
import { start } from "./command.ts"
import { temporaryFolder } from "./folder.ts"

/** A command line as a user writes it. */
const commandLine = (behaviour: Behaviour): string => {
  const { args, command } = stubCommand(behaviour)
  return [command, ...args].map((word) => `'${word.replaceAll("'", `'"'"'`)}'`).join(" ")
}

const findings: Findings = { files: [{ path: "lib/a.ts", kind: "text", lines: 1, bytes: 19 }], problems: [] }

/** What is not complete of a survey in this process. */
const problemsOf = (folder: string, agent: Command | Behaviour) =>
  survey(folder, { agent: "command" in agent ? agent : stubCommand(agent) }).pipe(
    Effect.map(({ report }) => shortcomings(report)),
    Effect.provide([NodeServices.layer, SurveyModel.layer])
  )

/** The agents that have left their marks in this folder, and how many of them live. */
const agentsOf = (marks: string) => {
  const pids = fs.readdirSync(marks).filter((name) => !name.includes("."))
  return { count: pids.length, alive: pids.filter((pid) => isAlive(Number(pid))).length }
}

const files = { "lib/a.ts": "export const a = 1\n", "doc/b.md": "# B\n" }

describe("a survey with --agent", () => {
  it.live("gives each part to an agent in a process of its own, in the folder, and merges what they submit", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder(files)
      const marks = yield* temporaryFolder()
      const agent = commandLine({
        folder: marks,
        turns: [
          [
            ["say", "I'll look."],
            ["tell", "prompt"]
          ],
          [["say", JSON.stringify(findings)]]
        ]
      })
      const { code, stderr, stdout } = yield* start(["--json", folder, "--agent", agent])
      assert.strictEqual(code, 0, stderr)
      const { report, root, runs } = JSON.parse(stdout) as Survey
      assert.deepStrictEqual(
        report.parts.map(({ files, name }) => [name, files]),
        [
          ["doc/", findings.files],
          ["lib/", findings.files]
        ]
      )
      assert.deepStrictEqual(report.totals, { files: 2, lines: 2, bytes: 38 })
      assert.deepStrictEqual(
        runs.map(({ depth, end, parentId, provider }) => [provider, depth, parentId, end]),
        runs.map(() => ["agent", 1, root.id, { stopReason: "completed" }])
      )
      assert.include(stderr, "started  lib/ (agent, depth 1)")
      assert.deepStrictEqual(agentsOf(marks), { count: 2, alive: 0 })
    })
  )

  it.live("starts it in the surveyed folder, and tells it all that it has to know", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder({ "lib/a.ts": "x" })
      // what an agent had said when it went away is in the report
      const [problem] = yield* problemsOf(folder, {
        turns: [
          [
            ["tell", "cwd"],
            ["tell", "prompt"],
            ["exit", 1]
          ]
        ]
      })
      assert.include(problem, folder)
      assert.include(problem, "Report on every file in the folder")
      assert.include(problem, "Relative to the surveyed folder.")
    })
  )

  it.live("denies whatever it wants to be permitted", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder({ "lib/a.ts": "x" })
      const write = { sessionId: "$SESSION", path: `${folder}/made`, content: "x" }
      const [problem] = yield* problemsOf(folder, {
        turns: [
          [
            ["ask", {}],
            ["request", "fs/write_text_file", write],
            ["exit", 1]
          ]
        ]
      })
      assert.include(problem, "selected no")
      assert.deepStrictEqual(fs.readdirSync(folder), ["lib"])
    })
  )

  it.live.each<readonly [what: string, agent: Command | Behaviour, message: string]>([
    [
      "no such command",
      { command: "/no/such/agent", args: ["--acp"] },
      'lib/: The subagent could not be run: Provider "agent" could not start a run: /no/such/agent can\'t be run: there is no such file'
    ],
    [
      "no agent",
      { command: process.execPath, args: ["-e", "process.exit(3)"] },
      "The agent has ended with exit code 3"
    ],
    ["one that is killed", { turns: [[["kill"]]] }, "SIGKILL"],
    ["one without a report", { turns: [[["say", "A"]], [["say", "B"]], [["say", "C"]]] }, "schema-missing"]
  ])("says what is wrong with it: %s", ([, agent, message]) =>
    Effect.gen(function* () {
      const problems = yield* problemsOf(yield* temporaryFolder({ "lib/a.ts": "x" }), agent)
      assert.strictEqual(problems.length, 1)
      assert.include(problems[0], message)
    })
  )

  it.live("fails with an agent that dies, keeps its last words, and leaves nothing running", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder(files)
      const marks = yield* temporaryFolder()
      const agent = commandLine({
        folder: marks,
        turns: [
          [
            ["start", "child"],
            ["stderr", "out of tokens"],
            ["exit", 4]
          ]
        ]
      })
      const { code, stderr, stdout } = yield* start([folder, "--agent", agent])
      assert.strictEqual(code, 1)
      assert.include(
        stderr,
        "The report is not complete: 2 problems, the first of them: doc/: The subagent failed (error)."
      )
      assert.include(stderr, "out of tokens")
      assert.notInclude(stdout + stderr, "    at ")
      assert.deepStrictEqual(agentsOf(marks), { count: 2, alive: 0 })
    })
  )

  it.live("fails with a command that can't be read", () =>
    Effect.gen(function* () {
      const { code, stderr } = yield* start([yield* temporaryFolder(files), "--agent", "codex 'acp"])
      assert.strictEqual(code, 1)
      assert.include(
        stderr,
        'Invalid value for flag --agent: "codex \'acp". Expected: a command, with every quote in it closed'
      )
    })
  )

  it.live("that is stopped by Ctrl-C leaves no agent running, whatever they ignore", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder(files)
      const marks = yield* temporaryFolder()
      const agent = commandLine({ folder: marks, ignoreEnd: true, ignoreCancel: true, turns: [[["hang"]]] })
      let isStopped = false
      const { code, stderr, stdout } = yield* start([folder, "--agent", agent], {
        watch: (process, { stderr }) => {
          if (isStopped || stderr.split("\nstarted ").length < 2) return
          isStopped = process.kill("SIGINT")
        }
      })
      assert.deepStrictEqual([code, stdout], [130, ""])
      assert.include(stderr, "Interrupted: every agent has been stopped, and there is no report")
      assert.strictEqual(agentsOf(marks).alive, 0)
    })
  )
})
