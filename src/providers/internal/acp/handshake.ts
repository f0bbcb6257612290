/**
 * The calls of a start: until there is a session as it was asked for.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Path from "effect/Path"
import type { ContentBlock } from "../../../Content.ts"
import { issueAt } from "../../../internal/issues.ts"
import type { SubagentError } from "../../../SubagentError.ts"
import { AuthRequired, fromReason, InvalidRequest, StartFailed, UnsupportedCapability } from "../../../SubagentError.ts"
import type { PlacedRequest } from "../../../SubagentProvider.ts"
import type { McpServer } from "../../AcpProvider.ts"
import type { Setting } from "./configuration.ts"
import { choose } from "./configuration.ts"
import { codes, print } from "./connection.ts"
import {
  InitializeResponse,
  items,
  KnownSessionResponse,
  NewSessionResponse,
  protocolVersion,
  reader
} from "./messages.ts"
import { describeError } from "./outcome.ts"
import type { Peer, Settings } from "./peer.ts"
import { call, refusal, withLastWords } from "./peer.ts"

/** What an agent says of itself. */
export type Initialized = typeof InitializeResponse.Type

/** What it says of a session. */
export type Session = typeof NewSessionResponse.Type

const readInitialized = reader(InitializeResponse)
const readNewSession = reader(NewSessionResponse)
const readKnownSession = reader(KnownSessionResponse)

/** Where the agent works: never in whatever folder this process happens to be in. */
export const folderOf = Effect.fnUntraced(function* (settings: Settings, placed: PlacedRequest) {
  const cwd = settings.cwd ?? placed.header.cwd
  const { isAbsolute } = yield* Path.Path
  if (cwd !== undefined && isAbsolute(cwd)) return cwd
  const problem = cwd === undefined ? "Expected a working directory" : `Expected an absolute path, not ${cwd}`
  return yield* settings.cwd === undefined
    ? fromReason(new InvalidRequest({ issues: [issueAt(["parent", "session", "header", "cwd"], problem)] }))
    : fromReason(new StartFailed({ provider: settings.name, detail: `cwd: ${problem}` }))
})

/** Makes a call of the start, an error being the end of it. */
const ask = (
  peer: Peer,
  method: string,
  params: object,
  authMethods?: Initialized["authMethods"]
): Effect.Effect<unknown, SubagentError> =>
  Effect.catchTag(call(peer, method, params), "RpcError", (error) => {
    const problem = `It has answered ${method} with an error: ${describeError(error)}`
    return Effect.fail(
      error.code === codes.authRequired ? authRequired(peer, problem, authMethods) : refusal(peer, problem)
    )
  })

const authRequired = (peer: Peer, problem: string, authMethods: Initialized["authMethods"]): SubagentError => {
  const methods = items(authMethods).map(({ description, id, name }) => ({
    id,
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description })
  }))
  return fromReason(new AuthRequired({ provider: peer.settings.name, methods, detail: withLastWords(peer, problem) }))
}

/** Refuses blocks that this agent does not take, as if the provider had never claimed it. */
export const checkContent = (
  { settings }: Peer,
  { agentCapabilities }: Initialized,
  blocks: ReadonlyArray<ContentBlock>
): Effect.Effect<void, SubagentError> => {
  const { audio, embeddedContext, image } = agentCapabilities?.promptCapabilities ?? {}
  const accepted = { text: true, resource_link: true, image, audio, resource: embeddedContext }
  const missing = Array.from(new Set(blocks.map(({ type }) => type)))
    .filter((kind) => accepted[kind] !== true)
    .map((kind) => `content:${kind}`)
  return missing.length === 0
    ? Effect.void
    : Effect.fail(fromReason(new UnsupportedCapability({ provider: settings.name, capability: missing[0]!, missing })))
}

/** Agrees on the version, and on what the prompt is made of. */
export const initialize = Effect.fnUntraced(function* (peer: Peer) {
  const { fs } = peer.settings
  const answer = yield* ask(peer, "initialize", {
    protocolVersion,
    clientCapabilities: {
      fs: {
        readTextFile: fs !== undefined && fs.read !== false,
        writeTextFile: fs !== undefined && fs.write !== false
      },
      terminal: false
    },
    clientInfo: { name: "effect-subagent", version: "0.1.0" }
  })
  const initialized = readInitialized(answer)
  if (initialized?.protocolVersion !== protocolVersion) {
    const version = print(initialized?.protocolVersion ?? null)
    return yield* refusal(
      peer,
      `It speaks version ${version} of the protocol, and version ${protocolVersion} is needed`
    )
  }
  yield* checkContent(peer, initialized, peer.placed.prompt)
  return initialized
})

/** Authenticates by the method that the host names, if it names one. */
export const authenticate = Effect.fnUntraced(function* (peer: Peer, { authMethods }: Initialized) {
  const { authMethod } = peer.settings
  if (authMethod === undefined) return
  const methods = items(authMethods)
  const method = methods.find(({ id }) => id === authMethod)
  if (method === undefined || (method.type !== undefined && method.type !== "agent")) {
    const listed = methods.length === 0 ? "none" : methods.map(({ id }) => id).join(", ")
    return yield* refusal(peer, `It can't be told to authenticate by ${authMethod}; its methods: ${listed}`)
  }
  yield* ask(peer, "authenticate", { methodId: authMethod }, authMethods)
})

/** Opens a new session. */
export const newSession = Effect.fnUntraced(function* (peer: Peer, initialized: Initialized) {
  const params = yield* surroundings(peer, initialized)
  const answer = yield* ask(peer, "session/new", params, initialized.authMethods)
  return readNewSession(answer) ?? (yield* refusal(peer, "It has answered session/new without a session"))
})

/**
 * Takes up a session of an earlier process. What is heard of the session until then is history, not news; an agent that
 * tells it all over again may still do so behind its answer, so that is waited for.
 */
export const knownSession = Effect.fnUntraced(function* (peer: Peer, initialized: Initialized, sessionId: string) {
  const method = methodOfResuming(initialized)
  if (method === undefined) {
    const { name: provider } = peer.settings
    return yield* fromReason(new UnsupportedCapability({ provider, capability: "resume", missing: ["resume"] }))
  }
  const params = { sessionId, ...(yield* surroundings(peer, initialized)) }
  peer.forgetsUpdates = true
  const answer = yield* ask(peer, method, params, initialized.authMethods)
  if (method === "session/load") yield* peer.quiet
  peer.forgetsUpdates = false
  return { ...readKnownSession(answer), sessionId }
})

/** How this agent takes up a session of an earlier process; not at all, if it has no way. The first is the quieter. */
export const methodOfResuming = ({ agentCapabilities }: Initialized): string | undefined => {
  if (agentCapabilities?.sessionCapabilities?.resume !== undefined) return "session/resume"
  return agentCapabilities?.loadSession === true ? "session/load" : undefined
}

/** What a session is opened in. */
const surroundings = (
  peer: Peer,
  { agentCapabilities }: Initialized
): Effect.Effect<{ readonly cwd: string; readonly mcpServers: ReadonlyArray<object> }, SubagentError> => {
  const { cwd, settings } = peer
  for (const server of settings.mcpServers) {
    if ("type" in server && agentCapabilities?.mcpCapabilities?.[server.type] !== true) {
      return Effect.fail(refusal(peer, `It does not take MCP servers over ${server.type}`))
    }
  }
  return Effect.succeed({ cwd, mcpServers: settings.mcpServers.map(onWire) })
}

const pairs = (values: { readonly [name: string]: string } | undefined) =>
  Object.entries(values ?? {}).map(([name, value]) => ({ name, value }))

const onWire = (server: McpServer): object =>
  "type" in server
    ? { ...server, headers: pairs(server.headers) }
    : { ...server, args: server.args ?? [], env: pairs(server.env) }

/** Sets the mode or the model of a session. */
export const configure = Effect.fnUntraced(function* (
  peer: Peer,
  session: Session,
  setting: Setting,
  wanted: string | undefined
) {
  if (wanted === undefined) return
  const choice = choose(session, setting, wanted)
  if (choice._tag === "Available") {
    yield* ask(peer, choice.method, choice.params)
    return
  }
  if (choice.names.length === 0 && setting === "model") {
    const { name: provider } = peer.settings
    return yield* fromReason(new UnsupportedCapability({ provider, capability: "model", missing: ["model"] }))
  }
  const names = choice.names.length === 0 ? "none" : choice.names.join(", ")
  return yield* refusal(peer, `It has no ${setting} ${JSON.stringify(wanted)}; those there are: ${names}`)
})
