/**
 * Ours. A turn goes through what the provider is made of, over one process with a session for each turn, as the other
 * clients have it; a slow turn is a whole run of the provider, with a subscriber of its updates.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Subagents, type SubagentProvider, type SubagentUpdate } from "effect-subagent"
import { AcpProvider } from "effect-subagent/providers"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { initialize, newSession } from "../../../src/providers/internal/acp/handshake.ts"
import { reach, type Settings } from "../../../src/providers/internal/acp/peer.ts"
import { slowly, stub } from "../acp/client.ts"
import type { MakeContestant } from "../Contestant.ts"
import { makeSeam } from "./seam.ts"

const second = Duration.seconds(1)

const settings: Settings = {
  name: "turns",
  ...stub,
  permission: "deny",
  mcpServers: [],
  maxMessageBytes: 1024 * 1024,
  timeouts: { start: Duration.seconds(60), idle: Duration.infinity, cancel: second, close: second }
}

/** The agent's process, and how a turn of so many updates is run there. */
const openTurns = Effect.fnUntraced(function* (placed: SubagentProvider.PlacedRequest) {
  let seen = 0
  const emit = ({ _tag }: SubagentUpdate.UnstampedUpdate): void => {
    if (_tag === "Content") seen++
  }
  const peer = yield* reach(settings, { ...placed, emit }, process.cwd())
  const initialized = yield* initialize(peer)
  return Effect.fnUntraced(function* (updates: number) {
    seen = 0
    const { sessionId } = yield* newSession(peer, initialized)
    peer.isFor(sessionId)
    peer.updates.begin()
    const prompt = [{ type: "text", text: String(updates) }]
    yield* peer.connection.request("session/prompt", { sessionId, prompt })
    peer.updates.end(true)
    return seen
  })
})

export const makeAcp: MakeContestant = Effect.fnUntraced(function* () {
  const { parent, seam } = yield* makeSeam()
  const services = yield* Layer.build(NodeServices.layer)
  const opened = yield* Deferred.make<Effect.Success<ReturnType<typeof openTurns>>>()
  yield* seam.register({
    name: "turns",
    capabilities: { outputSchema: false, depthLimit: false, toolFilter: false },
    inheritsContext: false,
    start: (placed) =>
      openTurns(placed).pipe(
        Effect.tap((turn) => Deferred.succeed(opened, turn)),
        Effect.as({ turn: Effect.never }),
        Effect.provide(services)
      )
  })
  yield* Layer.build(
    AcpProvider.layer({ name: "agent", ...stub }).pipe(
      Layer.provide(Layer.succeed(Subagents.Subagents, seam)),
      Layer.provide(Layer.succeedContext(services))
    )
  )
  const starting = yield* Effect.cached(seam.start("turns", { parent, prompt: "begin" }))
  const scope = yield* Effect.scope
  return {
    turn: (updates) =>
      Effect.runPromise(
        Effect.provideService(starting, Scope.Scope, scope).pipe(
          Effect.andThen(Deferred.await(opened)),
          Effect.flatMap((turn) => turn(updates))
        )
      ),
    slowTurn: (updates) =>
      Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const run = yield* seam.start("agent", { parent, prompt: String(updates) })
            yield* Stream.runForEach(run.updates, () => Effect.promise(slowly))
            const { output } = yield* run.result
            // a slow subscriber may miss some; the output is whole
            const [block] = output
            return block?.type === "text" ? block.text.length / "some words ".length : Number.NaN
          })
        )
      )
  }
})
