/**
 * `npm run test:agents`: installs real agents and puts them through scenarios over the ACP provider, with a fake model on loopback behind them.
 *
 *     npm run test:agents -- [--agent NAME]… [--scenario NAME]… [--write]
 *
 * Prints a matrix; ends with 1 if something in it failed. `--write` keeps the matrix in docs/agents.md, and takes all agents and scenarios.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import type { RealAgent } from "./agents.ts"
import { agents } from "./agents.ts"
import type { Bench, Scenario } from "./bench.ts"
import { open } from "./bench.ts"
import { install } from "./install.ts"
import type { Cell } from "./matrix.ts"
import { render } from "./matrix.ts"
import type { FakeModel } from "./model/fakeModel.ts"
import { make as makeModel } from "./model/fakeModel.ts"
import { scenarios } from "./scenarios.ts"
import { killAll, living } from "./world.ts"

/** More than any scenario takes on a busy machine. */
const limit = "2 minutes"

const page = path.resolve(import.meta.dirname, "../../docs/agents.md")

/** The part of the page that is written, between two comments. */
const written = /(<!-- matrix -->\n)[\s\S]*?(?=<!-- \/matrix -->)/

const pick = <A extends { readonly name: string }>(all: ReadonlyArray<A>, names: ReadonlyArray<string> = []) => {
  const unknown = names.filter((name) => !all.some((each) => each.name === name))
  if (unknown.length > 0) {
    console.error(`There is no ${unknown.join(", ")}; there are: ${all.map(({ name }) => name).join(", ")}`)
    process.exit(2)
  }
  return names.length === 0 ? all : all.filter(({ name }) => names.includes(name))
}

/** Runs one scenario, and then looks for what it has left. */
const cellOf = (agent: RealAgent, bin: string, model: FakeModel, scenario: Scenario): Effect.Effect<Cell> =>
  Effect.gen(function* (): Effect.fn.Return<Cell> {
    const why = agent.cannot?.[scenario.name]
    if (why !== undefined) return { _tag: "NotOffered", why }
    const problems: Array<string> = []
    const note = yield* Effect.scoped(
      Effect.gen(function* () {
        const bench = yield* open(agent, bin, model)
        const exit = yield* Effect.scoped(scenario.run(bench)).pipe(
          Effect.timeout(limit),
          Effect.exit,
          Effect.onInterrupt(() => Effect.sync(() => leftOf(bench)))
        )
        if (Exit.isFailure(exit)) problems.push(describe(exit.cause))
        problems.push(...bench.problems, ...model.takeProblems(), ...leftOf(bench))
        return Exit.isSuccess(exit) ? exit.value : undefined
      })
    )
    if (problems.length > 0) return { _tag: "Failed", why: problems.join("; ") }
    return { _tag: "Passed", ...(note !== undefined && { note }) }
  })

/** What is left, each as a problem. It is ended here, so that one scenario's fault is not the next one's. */
const leftOf = ({ marks }: Bench): ReadonlyArray<string> => {
  const left = living(...marks)
  killAll(left)
  return left.map(({ command, pid }) => `left behind: ${pid} ${command}`)
}

const describe = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, " ").replaceAll("|", "/").trim()
}

const program = Effect.gen(function* () {
  const { values } = parseArgs({
    options: {
      agent: { type: "string", multiple: true },
      scenario: { type: "string", multiple: true },
      write: { type: "boolean", default: false }
    }
  })
  const [wantedAgents, wantedScenarios] = [pick(agents, values.agent), pick(scenarios, values.scenario)]
  if (values.write && (wantedAgents !== agents || wantedScenarios !== scenarios)) {
    console.error("--write takes all agents and scenarios")
    process.exit(2)
  }
  const model = yield* makeModel
  const cells = new Map<string, Map<string, Cell>>()
  for (const agent of wantedAgents) {
    const bin = yield* install(agent)
    const row = new Map<string, Cell>()
    cells.set(agent.name, row)
    for (const scenario of wantedScenarios) {
      const [duration, cell] = yield* Effect.timed(cellOf(agent, bin, model, scenario))
      row.set(scenario.name, cell)
      const told = { Passed: "ok", Failed: "FAILED", NotOffered: "not offered" }[cell._tag]
      const seconds = Duration.toSeconds(duration).toFixed(1)
      console.log(
        `${agent.name.padEnd(12)}${scenario.name.padEnd(18)}${seconds.padStart(6)} s  ${told}${"why" in cell ? `: ${cell.why}` : ""}`
      )
    }
  }
  const matrix = render(wantedAgents, wantedScenarios, cells)
  console.log(`\n${matrix}`)
  if (values.write) {
    const versions = agents.map(({ about, name, packages }) => {
      const installed = Object.entries(packages).map(([name, version]) => `${name} ${version}`)
      return `- ${name}: ${installed.join(", ")} (${about})`
    })
    const text = [`As of ${new Date().toISOString().slice(0, 10)}:`, "", ...versions, "", matrix, ""].join("\n")
    fs.writeFileSync(
      page,
      fs.readFileSync(page, "utf8").replace(written, (_, opening: string) => `${opening}${text}`)
    )
  }
  const failed = [...cells.values()].some((row) => [...row.values()].some(({ _tag }) => _tag === "Failed"))
  if (failed) process.exitCode = 1
})

NodeRuntime.runMain(Effect.scoped(program).pipe(Effect.provide(NodeServices.layer)))
