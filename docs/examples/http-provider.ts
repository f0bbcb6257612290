/** A remote agent over HTTP as a provider, and a server to try it on: a session per child, a turn as a streamed answer. */
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { SubagentProvider } from "effect-subagent"
import { PromiseSubagents } from "effect-subagent/promise"

// #region provider
const request = async (url: string, method: string, body?: string, signal?: AbortSignal) => {
  const response = await fetch(url, { method, body: body ?? null, signal: signal ?? null })
  if (!response.ok) throw Object.assign(new Error(await response.text()), { status: response.status })
  return response
}

export const httpProvider = (name: string, url: string) =>
  SubagentProvider.fromPromise({
    name,
    canResume: true,
    // not aborted halfway: a session that nobody knows of could not be closed
    open: async () => `${url}/${await (await request(url, "POST")).text()}`,
    run: async ({ onText, prompt, session, signal }) => {
      const { body } = await request(session, "POST", prompt, signal)
      for await (const text of body!.pipeThrough(new TextDecoderStream())) onText(text)
    },
    close: (session) => request(session, "DELETE")
  })
// #endregion

/** An agent that repeats what it hears, and can be told to wait, to go on talking and to fail. */
export const serve = async () => {
  const world = { sessions: 0, turns: 0 }
  const turn = async (asked: IncomingMessage, answer: ServerResponse) => {
    world.turns++
    answer.on("close", () => world.turns--)
    const prompt = (await asked.toArray()).join("")
    if (prompt === "fail") return answer.writeHead(503).end("no agent is free")
    if (prompt !== "wait") answer.write("You said: ")
    return prompt === "wait" || prompt === "go on" ? answer : answer.end(prompt)
  }
  const server = createServer((asked, answer) => {
    if (asked.method === "DELETE") answer.end(String(world.sessions--))
    else if (asked.url === "/") answer.end(String(world.sessions++))
    else turn(asked, answer).catch(() => answer.destroy())
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, world }
}

if (import.meta.main) {
  const { server, url } = await serve()
  const subagents = PromiseSubagents.fromProviders([httpProvider("remote", url)])
  const { output, stopReason } = await subagents.run("remote", { prompt: "hello", parent: subagents.root() })
  console.log(stopReason, output)
  await subagents.dispose()
  server.close()
}
