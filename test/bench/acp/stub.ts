/**
 * The agent that all clients are measured with: a prompt is the number of updates to send before the end of the turn. It
 * writes lines that were made before, so that it is the client that has to hurry.
 */
interface Request {
  readonly id: number
  readonly method?: string
  readonly params: { readonly sessionId: string; readonly prompt: ReadonlyArray<{ readonly text: string }> }
}

/** Lines that are written at once. */
const chunk = 500

const write = (text: string): Promise<void> =>
  new Promise((resolve) => {
    if (process.stdout.write(text)) resolve()
    else process.stdout.once("drain", resolve)
  })

const answer = (id: number, result: object): Promise<void> =>
  write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`)

let sessions = 0

const take = async ({ id, method, params }: Request): Promise<void> => {
  if (method === "initialize") return answer(id, { protocolVersion: 1, agentCapabilities: {} })
  if (method === "session/new") return answer(id, { sessionId: `session-${++sessions}` })
  if (method !== "session/prompt") return
  const { prompt, sessionId } = params
  const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "some words " } }
  const line = `${JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update } })}\n`
  for (let left = Number(prompt[0]!.text); left > 0; left -= chunk) await write(line.repeat(Math.min(left, chunk)))
  return answer(id, { stopReason: "end_turn" })
}

let rest = ""
process.stdin.setEncoding("utf8")
process.stdin.on("data", (text: string) => {
  const lines = (rest + text).split("\n")
  rest = lines.pop()!
  for (const line of lines) if (line !== "") void take(JSON.parse(line) as Request)
})
process.stdin.on("end", () => process.exit(0))
