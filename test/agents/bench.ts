/** What a scenario works with: one agent, a folder for it to work in, the model behind it, and the provider over it. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import {
  Agent,
  type ResumeToken,
  type SubagentError,
  type SubagentRequest,
  type SubagentRun,
  Subagents
} from "effect-subagent"
import { AcpProvider } from "effect-subagent/providers"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import type { RealAgent } from "./agents.ts"
import type { FakeModel } from "./model/fakeModel.ts"

/** A registry with the agent's provider in it. The same agent delegates to all that a bench makes. */
export interface Delegation {
  /** Starts a run of the agent. */
  readonly start: <S extends SubagentRequest.SchemaSpec = never>(
    prompt: string,
    fields?: { readonly outputSchema: S }
  ) => Effect.Effect<SubagentRun.SubagentRun<SubagentRequest.Structured<S>>, SubagentError.SubagentError, Scope.Scope>
  /** Goes on with a run of another registry. */
  readonly resume: (
    token: ResumeToken.ResumeToken,
    prompt: string
  ) => Effect.Effect<SubagentRun.SubagentRun, SubagentError.SubagentError, Scope.Scope>
  /** What the agent had its client read and write: one `read PATH` or `write PATH` each. */
  readonly files: ReadonlyArray<string>
}

export interface Bench {
  readonly agent: RealAgent
  readonly model: FakeModel
  /** Where the agent works. */
  readonly folder: string
  /** In the environment of whatever the agent starts, and in the name of its folder. */
  readonly mark: string
  /** All that a process of this bench may be known by: the mark, and the names of its runs. */
  readonly marks: Array<string>
  /** How the provider starts the agent. */
  readonly options: AcpProvider.Options
  /** Problems that only show in what the seam announces. */
  readonly problems: Array<string>
  /** Makes a registry, which lives as long as the scope. */
  readonly delegation: (
    options?: Partial<AcpProvider.Options>
  ) => Effect.Effect<Delegation, SubagentError.SubagentError, Scope.Scope>
}

export interface Scenario {
  readonly name: string
  /** What holds, for the docs. */
  readonly says: string
  /** Gives a note, if there is something to say of how it went. */
  readonly run: (bench: Bench) => Effect.Effect<string | void, unknown, Scope.Scope>
}

/** Opens a bench. Its folders go with the scope, after everything else. */
export const open = (agent: RealAgent, bin: string, model: FakeModel): Effect.Effect<Bench, never, Scope.Scope> =>
  Effect.gen(function* () {
    const mark = `acp-agents-${crypto.randomUUID()}`
    const root = yield* Effect.acquireRelease(
      Effect.sync(() => path.join(fs.realpathSync(os.tmpdir()), mark)),
      (root) => Effect.sync(() => fs.rmSync(root, { recursive: true, force: true, maxRetries: 5 }))
    )
    const home = path.join(root, "home")
    const folder = path.join(root, "folder")
    for (const each of [home, folder, `${home}/tmp`]) fs.mkdirSync(each, { recursive: true })
    const { args, command, env, files } = agent.launch({ bin, home, url: model.url })
    for (const [name, text] of Object.entries(files ?? {})) {
      const file = path.join(home, name)
      fs.mkdirSync(path.dirname(file), { recursive: true })
      fs.writeFileSync(file, text)
    }
    const options: AcpProvider.Options = {
      name: agent.name,
      command,
      args,
      cwd: folder,
      env: {
        PATH: `${bin}:${process.env["PATH"]}`,
        HOME: home,
        TMPDIR: `${home}/tmp`,
        XDG_CACHE_HOME: `${home}/.cache`,
        XDG_CONFIG_HOME: `${home}/.config`,
        XDG_DATA_HOME: `${home}/.local/share`,
        XDG_STATE_HOME: `${home}/.local/state`,
        NO_PROXY: "127.0.0.1",
        no_proxy: "127.0.0.1",
        ACP_AGENTS_MARK: mark,
        ...env
      }
    }
    const parent = yield* Agent.root({ cwd: folder })
    const bench = { agent, model, folder, mark, marks: [mark], options, problems: [] }
    return { ...bench, delegation: (over) => delegation(bench, { ...options, ...over }, parent) }
  })

const delegation = (
  { marks, problems }: Pick<Bench, "marks" | "problems">,
  options: AcpProvider.Options,
  parent: Agent.Agent
): Effect.Effect<Delegation, SubagentError.SubagentError, Scope.Scope> =>
  Effect.gen(function* () {
    const files: Array<string> = []
    const context = yield* Layer.build(
      AcpProvider.layer(options).pipe(
        Layer.provideMerge(Subagents.layer),
        Layer.provide(watched(files)),
        Layer.provide(NodeServices.layer)
      )
    )
    const subagents = Context.get(context, Subagents.Subagents)
    yield* subagents.on((event) =>
      Effect.sync(() => {
        if (event.type === "subagent/release-problem")
          problems.push(`A release came to its limit: ${JSON.stringify(event)}`)
      })
    )
    // the shell that watches over a run's process has the run's name in its command line
    const mark = ({ runId }: SubagentRun.SubagentRun) => Effect.sync(() => marks.push(`EFFECT_SUBAGENT_RUN=${runId}`))
    return {
      files,
      start: (prompt, fields) => Effect.tap(subagents.start(options.name, { prompt, parent, ...fields }), mark),
      resume: (token, prompt) => Effect.tap(subagents.resume(token, prompt, { parent }), mark)
    }
  })

/** The file system, telling what is read and written through it. */
const watched = (files: Array<string>): Layer.Layer<FileSystem.FileSystem, never, FileSystem.FileSystem> =>
  Layer.effect(
    FileSystem.FileSystem,
    Effect.map(Effect.service(FileSystem.FileSystem), (real) => ({
      ...real,
      readFile: (file) => {
        files.push(`read ${file}`)
        return real.readFile(file)
      },
      writeFileString: (file, text, options) => {
        files.push(`write ${file}`)
        return real.writeFileString(file, text, options)
      }
    }))
  )
