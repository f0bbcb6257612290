/**
 * What is in a folder? A root agent delegates each part of it to a child, the children read the real files, and the
 * root merges what they report.
 *
 *     npm start                        surveys this project's own src
 *     npm start -- PATH                surveys another folder
 *     npm start -- --agent COMMAND     lets an agent that speaks the Agent Client Protocol read each part, in a process each
 *     npm start --silent -- --json     prints JSON only: the runs with what each read, and the report
 *
 * The model is an offline one that follows rules. OPENAI_MODEL names one of a server that speaks OpenAI's chat
 * completions instead: at OPENAI_BASE_URL, by default OpenAI's own, with OPENAI_API_KEY, if it wants a key. It gets to see
 * the files.
 *
 * Progress goes to stderr, the report to stdout. The exit code is 0 if the report is complete, 1 if it is not or if
 * there is none, and 130 after Ctrl-C, which stops every agent first.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Argument from "effect/cli/Argument"
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Path from "effect/Path"
import * as Terminal from "effect/Terminal"
import { chosenModel } from "./survey/chosenModel.ts"
import { splitCommand } from "./survey/commandLine.ts"
import { tell } from "./survey/Journal.ts"
import { printable } from "./survey/printable.ts"
import { render, shortcomings } from "./survey/Report.ts"
import { survey } from "./survey/Survey.ts"

const command = Command.make(
  "survey",
  {
    path: Argument.String("path").pipe(
      Argument.filter(
        (path) => path.trim() !== "",
        () => "a path that is not blank"
      ),
      Argument.withDescription("The folder to survey, by default this project's src"),
      Argument.withDefault(`${import.meta.dirname}/../../src`)
    ),
    agent: Flag.String("agent").pipe(
      Flag.filterMap(splitCommand, () => "Expected: a command, with every quote in it closed"),
      Flag.withMetavar("command"),
      Flag.withDescription(
        "The agent that each child is: a command that speaks the Agent Client Protocol, in quotes if it has arguments. It is started in the surveyed folder"
      ),
      Flag.withDefault(undefined)
    ),
    json: Flag.Boolean("json").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Print the runs and the report as JSON")
    )
  },
  Effect.fnUntraced(function* ({ agent, json, path }) {
    const { resolve } = yield* Path.Path
    const { display } = yield* Terminal.Terminal
    // npm runs its scripts in the project's folder and tells where the user is
    const folder = resolve(process.env["INIT_CWD"] ?? process.cwd(), path)
    const done = yield* Effect.flatMap(chosenModel, ({ layer, ...options }) =>
      Effect.provide(survey(folder, { agent, ...options }), layer)
    ).pipe(
      Effect.mapError((cause) => new CliError.UserError({ cause, userMessage: printable(cause.message) })),
      Effect.onInterrupt(() => tell("Interrupted: every agent has been stopped, and there is no report"))
    )
    // returns when it is written: an exit would cut off what a pipe has not taken yet
    yield* display(`${json ? JSON.stringify(done, undefined, 2) : render(done.folder, done.report)}\n`)
    const missing = shortcomings(done.report)
    if (missing.length > 0) {
      const count = missing.length === 1 ? "1 problem" : `${missing.length} problems, the first of them`
      const userMessage = `The report is not complete: ${count}: ${printable(missing[0]!)}`
      return yield* new CliError.UserError({ cause: missing, userMessage })
    }
  })
).pipe(Command.withDescription("Tells what is in a folder"))

Command.run(command, { version: "0.1.0" }).pipe(Effect.provide(NodeServices.layer), NodeRuntime.runMain)
