/**
 * The host: it opens a root agent on a folder, lets it delegate, and takes its answer.
 *
 * Everything an agent needs comes from layers. Releasing them stops the whole tree, whether the survey is done, has
 * failed or is interrupted.
 */
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Agent, Content, Subagents, SubagentUpdate } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { SpawnProvider } from "effect-subagent/providers"
import { SubagentTool } from "effect-subagent/tool"
import * as FolderTools from "./FolderTools.ts"
import type { RunRecord } from "./Journal.ts"
import { Journal } from "./Journal.ts"
import { Report } from "./Report.ts"
import { question, systemPrompt } from "./tasks.ts"

export interface Survey {
  /** The real path of the folder. */
  readonly folder: string
  readonly root: { readonly id: string; readonly reads: ReadonlyArray<string> }
  readonly runs: ReadonlyArray<RunRecord>
  readonly report: Report
}

/** There is no report, and why. */
export class SurveyError extends Schema.TaggedError<SurveyError>()("SurveyError", { message: Schema.String }) {}

/** Asks an agent what is in a folder. */
export const survey = (
  path: string
): Effect.Effect<Survey, SurveyError, LanguageModel.LanguageModel | FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const folder = yield* openFolder(path)
    const root = yield* Agent.root({ cwd: folder })
    const journal = new Journal()
    const report = yield* Effect.scoped(
      Effect.flatMap(Effect.scope, (scope) =>
        follow(journal, scope).pipe(
          Effect.andThen(Effect.scoped(answer(root))),
          Effect.provide(agents(folder, journal)),
          Effect.catchTag("SubagentError", ({ message }) => Effect.fail(new SurveyError({ message })))
        )
      )
    )
    return { folder, root: { id: root.id, reads: journal.readsOf(root.id) }, runs: journal.runs, report }
  })

const openFolder = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const shown = JSON.stringify(path)
  const folder = yield* fs.realPath(path).pipe(
    Effect.mapError(
      ({ reason }) =>
        new SurveyError({
          message: reason._tag === "NotFound" ? `There is no folder ${shown}` : `The folder ${shown} can't be opened`
        })
    )
  )
  const { type } = yield* Effect.orDie(fs.stat(folder))
  return type === "Directory" ? folder : yield* new SurveyError({ message: `${shown} is not a folder` })
})

/** The agents, with all they need but a model and a file system. */
const agents = (folder: string, journal: Journal) => {
  // the reports are merged, so none may be cut short
  const subagent = { provider: "spawn", maxResultBytes: Number.MAX_SAFE_INTEGER }
  const toolkit = SubagentTool.toolkit([SubagentTool.make(subagent)], { with: FolderTools.FolderTools })
  const runtime = AgentRuntime.layer({ toolkit, systemPrompt, concurrency: 4 }).pipe(
    Layer.provide([FolderTools.layer(folder, journal), SubagentTool.layer(subagent)])
  )
  return SpawnProvider.layer().pipe(Layer.provideMerge(runtime), Layer.provideMerge(Subagents.layer))
}

/** Notes what happens until the seam is gone. The scope closes when the last of it is noted. */
const follow = (journal: Journal, scope: Scope.Scope) =>
  Effect.gen(function* () {
    const { events } = yield* Subagents.Subagents
    const following = yield* Effect.forkDetach(
      Stream.runForEach(events, (event) => journal.noteEvent(event)),
      { startImmediately: true }
    )
    yield* Scope.addFinalizer(scope, Fiber.await(following))
  }).pipe(Effect.uninterruptible)

/** Opens the root agent, asks it, and reads its answer. */
const answer = Effect.fnUntraced(function* (root: Agent.Agent) {
  const runtime = yield* AgentRuntime.AgentRuntime
  const updates: Array<SubagentUpdate.UnstampedUpdate> = []
  const agent = yield* runtime.open({
    agent: root,
    options: {},
    policy: AgentRuntime.openPolicy,
    emit: (update) => {
      updates.push(update)
    }
  })
  const { failure, stopReason } = yield* agent.turn([Content.text(question)])
  if (stopReason !== "completed") {
    return yield* new SurveyError({ message: `The agent did not finish (${stopReason}): ${failure?.message ?? ""}` })
  }
  return yield* decodeReport(Content.toText(SubagentUpdate.pickOutput(updates))).pipe(
    Effect.mapError(({ message }) => new SurveyError({ message: `The agent's answer is no report: ${message}` }))
  )
})

const decodeReport = Schema.decodeUnknownEffect(Schema.fromJsonString(Report))
