/** The protocol's official client. */
import { client, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk"
import type { InitializeResponse, NewSessionResponse, PromptResponse } from "@agentclientprotocol/sdk"
import * as Effect from "effect/Effect"
import { Readable, Writable } from "node:stream"
import { slowly, startStub } from "../acp/client.ts"
import type { MakeContestant } from "../Contestant.ts"

export const makeAcpSdk: MakeContestant = () =>
  Effect.map(startStub, (stub) => {
    let onUpdate = (_sessionId: string): Promise<void> | void => {}
    const app = client({ name: "bench" }).onNotification(methods.client.session.update, ({ params }) =>
      onUpdate(params.sessionId)
    )
    const input = Readable.toWeb(stub.stdout) as ReadableStream<Uint8Array>
    const output = Writable.toWeb(stub.stdin) as WritableStream<Uint8Array>
    const { agent } = app.connect(ndJsonStream(output, input))
    const ready = agent.request<InitializeResponse>(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: {}
    })
    const turn = async (updates: number, take: () => Promise<void> | void): Promise<number> => {
      await ready
      const { sessionId } = await agent.request<NewSessionResponse>(methods.agent.session.new, {
        cwd: process.cwd(),
        mcpServers: []
      })
      let seen = 0
      onUpdate = (session) => {
        if (session === sessionId) seen++
        return take()
      }
      const { stopReason } = await agent.request<PromptResponse>(methods.agent.session.prompt, {
        sessionId,
        prompt: [{ type: "text", text: String(updates) }]
      })
      return stopReason === "end_turn" ? seen : Number.NaN
    }
    return {
      turn: (updates) => turn(updates, () => {}),
      slowTurn: (updates) => turn(updates, slowly)
    }
  })
