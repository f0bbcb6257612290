/** The bytes themselves: splits lines and parses them, checks nothing, and reads on when its consumer has the last ones. */
import * as Effect from "effect/Effect"
import { slowly, startStub } from "../acp/client.ts"
import type { MakeContestant } from "../Contestant.ts"

interface Message {
  readonly id: number
  readonly method?: string
  readonly result: { readonly sessionId: string; readonly stopReason?: string }
}

export const makeAcpRaw: MakeContestant = () =>
  Effect.map(startStub, (agent) => {
    let lastId = 0
    let onUpdate = (): Promise<void> | void => {}
    const pending = new Map<number, (result: Message["result"]) => void>()
    const request = (method: string, params: object): Promise<Message["result"]> =>
      new Promise((resolve) => {
        pending.set(++lastId, resolve)
        agent.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: lastId, method, params })}\n`)
      })
    const listen = async (): Promise<void> => {
      let rest = ""
      agent.stdout.setEncoding("utf8")
      for await (const text of agent.stdout) {
        const lines = `${rest}${text}`.split("\n")
        rest = lines.pop()!
        for (const line of lines) {
          const message = JSON.parse(line) as Message
          if (message.method === undefined) {
            pending.get(message.id)?.(message.result)
            pending.delete(message.id)
          } else {
            const taken = onUpdate()
            if (taken !== undefined) await taken
          }
        }
      }
    }
    void listen()
    const ready = request("initialize", { protocolVersion: 1, clientCapabilities: {} })
    const turn = async (updates: number, take: () => Promise<void> | void): Promise<number> => {
      await ready
      let seen = 0
      onUpdate = () => {
        seen++
        return take()
      }
      const { sessionId } = await request("session/new", { cwd: process.cwd(), mcpServers: [] })
      const prompt = [{ type: "text", text: String(updates) }]
      const { stopReason } = await request("session/prompt", { sessionId, prompt })
      return stopReason === "end_turn" ? seen : Number.NaN
    }
    return {
      turn: (updates) => turn(updates, () => {}),
      slowTurn: (updates) => turn(updates, slowly)
    }
  })
