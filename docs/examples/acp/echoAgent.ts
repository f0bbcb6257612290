/** The least agent that speaks the Agent Client Protocol: it repeats what it is told. */
import { createInterface } from "node:readline"

const send = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line)
  switch (method) {
    case "initialize":
      return send({ id, result: { protocolVersion: 1 } })
    case "session/new":
      return send({ id, result: { sessionId: "echo" } })
    case "session/prompt": {
      const [content] = params.prompt
      const update = { sessionUpdate: "agent_message_chunk", content }
      send({ method: "session/update", params: { sessionId: "echo", update } })
      return send({ id, result: { stopReason: "end_turn" } })
    }
  }
  return undefined
})
