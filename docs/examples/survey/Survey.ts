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
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Agent, Content, SubagentError, Subagents } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { AcpProvider, SpawnProvider } from "effect-subagent/providers"
import { SubagentTool } from "effect-subagent/tool"
import type { Command } from "./commandLine.ts"
import * as FolderTools from "./FolderTools.ts"
import type { RunRecord } from "./Journal.ts"
import { Journal } from "./Journal.ts"
import type { Report } from "./Report.ts"
import { Answer, Findings, makeReport } from "./Report.ts"
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

export interface Options {
  /** The agent that each child is: a command that speaks the Agent Client Protocol. Without it they run in this process. */
  readonly agent?: Command | undefined
  /** Whether the model is asked to stream. A connection that says nothing for minutes is closed by many a server. */
  readonly streaming?: boolean | undefined
  /** How much of a file a model gets to see, in bytes. */
  readonly textLimit?: number | undefined
}

/** What a survey needs of its host. */
export type Services = LanguageModel.LanguageModel | FileSystem.FileSystem | Path.Path | ChildProcessSpawner

/** Asks an agent what is in a folder. */
export const survey = (path: string, options: Options = {}): Effect.Effect<Survey, SurveyError, Services> =>
  Effect.gen(function* () {
    const folder = yield* openFolder(path)
    const root = yield* Agent.root({ cwd: folder })
    const journal = new Journal()
    const report = yield* Effect.scoped(
      Effect.flatMap(Effect.scope, (scope) =>
        follow(journal, scope).pipe(
          Effect.andThen(Effect.scoped(answer(root))),
          Effect.provide(agents(folder, journal, options)),
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

/** The provider of the children. */
const childrenOf = (
  agent: Command | undefined
): Layer.Layer<
  never,
  SubagentError.SubagentError,
  AgentRuntime.AgentRuntime | Subagents.Subagents | ChildProcessSpawner | FileSystem.FileSystem | Path.Path
> =>
  agent === undefined
    ? SpawnProvider.layer()
    : // an agent of another make reads the folder by itself, and may do nothing else
      AcpProvider.layer({ name: "agent", ...agent, permission: "deny", fs: { write: false } })

/** The agents, with all they need but a model and a platform. */
const agents = (folder: string, journal: Journal, { agent, streaming, textLimit }: Options) => {
  const provider = agent === undefined ? "spawn" : "agent"
  // the reports are merged, so none may be cut short
  const subagent = { provider, outputSchema: Findings, maxResultBytes: Number.MAX_SAFE_INTEGER }
  const toolkit = SubagentTool.toolkit([SubagentTool.make(subagent)], { with: FolderTools.FolderTools })
  const runtime = AgentRuntime.layer({ toolkit, systemPrompt, streaming, concurrency: 4 }).pipe(
    Layer.provide([FolderTools.layer(folder, journal, textLimit), SubagentTool.layer(subagent)])
  )
  return childrenOf(agent).pipe(Layer.provideMerge(runtime), Layer.provideMerge(Subagents.layer))
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

/** Opens the root agent, asks it, and takes the answer that it submits. */
const answer = Effect.fnUntraced(function* (root: Agent.Agent) {
  const runtime = yield* AgentRuntime.AgentRuntime
  const agent = yield* runtime.open({
    agent: root,
    options: {},
    policy: AgentRuntime.openPolicy,
    output: { schema: Answer, decode: (submitted) => Effect.mapError(decodeAnswer(submitted), issueOf) },
    emit: () => {}
  })
  const { failure, stopReason, structured } = yield* agent.turn([Content.text(question)])
  if (stopReason !== "completed") {
    return yield* new SurveyError({ message: `The agent did not finish (${stopReason}): ${failure?.message ?? ""}` })
  }
  return makeReport(yield* Effect.orDie(decodeAnswer(structured)))
})

const decodeAnswer = Schema.decodeUnknownEffect(Answer)

const issueOf = ({ message }: Schema.SchemaError) => [new SubagentError.RequestIssue({ path: [], message })]
