/** A child that goes on in another process. Run it as it is: it starts itself once more, with the token of its child. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { execFileSync } from "node:child_process"
import { type Agent, Capabilities, Content, ResumeToken, type SubagentProvider, Subagents } from "effect-subagent"

// #region provider
const Notes = Schema.Array(Schema.String)

/** A child that notes what it is told. Its token is its notes. */
const session = (
  { emit, prompt }: SubagentProvider.PlacedRequest,
  before: ReadonlyArray<string>
): SubagentProvider.ChildSession => {
  let notes = before
  const turn = (prompt: ReadonlyArray<Content.ContentBlock>) =>
    Effect.sync((): SubagentProvider.ChildOutcome => {
      notes = [...notes, Content.toText(prompt)]
      emit({ _tag: "Content", messageId: `note ${notes.length}`, block: Content.text(`I know: ${notes.join(" ")}`) })
      return { stopReason: "completed" }
    })
  return { turn: turn(prompt), resumeTurn: turn, token: Effect.sync(() => notes) }
}

const notebook: SubagentProvider.SubagentProvider = {
  name: "notebook",
  capabilities: Capabilities.none,
  inheritsContext: false,
  start: (placed) => Effect.succeed(session(placed, [])),
  resume: (placed, payload) => Effect.succeed(session(placed, Schema.decodeUnknownSync(Notes)(payload)))
}
// #endregion

/** The same agent in both processes: its session's id says so. */
const parent: Agent.Agent = { id: "main", session: { header: { id: "main-session" } } }

// #region token
const firstProcess = Effect.gen(function* () {
  const subagents = yield* Subagents.Subagents
  const run = yield* subagents.start("notebook", { prompt: "The key is under the mat.", parent })
  yield* run.result
  return run.token === undefined ? undefined : JSON.stringify(yield* run.token)
})

const secondProcess = Effect.fnUntraced(function* (kept: string) {
  const subagents = yield* Subagents.Subagents
  const token = yield* Schema.decodeEffect(Schema.fromJsonString(ResumeToken.ResumeToken))(kept)
  const run = yield* subagents.resume(token, "The door is blue.", { parent })
  const { output } = yield* run.result
  return Content.toText(output)
})
// #endregion

const program = Effect.gen(function* () {
  const [, script, kept] = process.argv
  if (kept !== undefined) return yield* Console.log(`process 2: ${yield* secondProcess(kept)}`)
  const token = yield* firstProcess
  yield* Console.log(`process 1: ${token}`)
  yield* Effect.sync(() =>
    execFileSync(process.execPath, [...process.execArgv, script!, token!], { stdio: ["ignore", "inherit", "inherit"] })
  )
})

const layer = Subagents.add(notebook).pipe(Layer.provideMerge(Subagents.layer))
NodeRuntime.runMain(Effect.scoped(program).pipe(Effect.provide(layer)))
