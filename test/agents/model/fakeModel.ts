/**
 * A model server on loopback that plays scripts. Each play has a prompt of its own; a model call whose conversation has that prompt in it is
 * answered with the play's next answer. So one server serves any number of agents at once, and a scenario sees each call as it comes.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import type { ToolCall } from "../agents.ts"
import type { Writer } from "./dialects.ts"
import { dialects, toolsOf } from "./dialects.ts"

/** What the model does when it is called. */
export type Answer =
  | { readonly _tag: "Say"; readonly text: string }
  | { readonly _tag: "Call"; readonly call: ToolCall }
  /** Never begins to answer. */
  | { readonly _tag: "Stall" }
  /** Says a word now and then, and never ends. */
  | { readonly _tag: "Ramble" }

export const say = (text: string): Answer => ({ _tag: "Say", text })
export const call = (call: ToolCall): Answer => ({ _tag: "Call", call })
export const stall: Answer = { _tag: "Stall" }
export const ramble: Answer = { _tag: "Ramble" }

/** A script that is being played. */
export interface Play {
  /** What to tell the agent, so that its model plays this. */
  readonly prompt: string
  /** The model calls of this play as they come: each one's conversation, as JSON. */
  readonly calls: Queue.Dequeue<string>
}

export interface FakeModel {
  /** Its address, without a path. */
  readonly url: string
  /** Plays these answers to a prompt of its own, and after the last one says that it is done. */
  readonly play: (...answers: ReadonlyArray<Answer>) => Play
  /** What agents asked for that there is not: a route, a tool. Emptied by taking. */
  readonly takeProblems: () => ReadonlyArray<string>
}

/** How long it takes to say the next word, in milliseconds. */
const pace = 50

interface Playing {
  readonly prompt: string
  readonly answers: Array<Answer>
  readonly calls: Queue.Queue<string>
}

/** Starts the server. It ends with the scope, and with it all that is being answered. */
export const make: Effect.Effect<FakeModel, never, Scope.Scope> = Effect.gen(function* () {
  // the newest first: a conversation that goes on has the earlier prompts in it, too
  const plays: Array<Playing> = []
  const problems: Array<string> = []

  const answer = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
    const path = new URL(`http://model${request.url}`).pathname
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const dialect = dialects.find(({ route }) => route.test(path))
    if (dialect === undefined || request.method !== "POST") {
      problems.push(`The model was asked for ${request.method} ${path}`)
      response.writeHead(404).end("{}")
      return
    }
    const body = JSON.parse(text) as { readonly stream?: boolean }
    const tools = toolsOf(body)
    const playing = tools.length === 0 ? undefined : plays.find(({ prompt }) => text.includes(prompt))
    const next = playing?.answers.shift() ?? say("A title")
    if (body.stream !== true && !path.includes(":stream")) {
      response.writeHead(200, { "content-type": "application/json" })
      response.end(JSON.stringify(dialect.whole(next._tag === "Say" ? next.text : "")))
      return
    }
    if (next._tag === "Call" && !tools.includes(next.call.name)) {
      problems.push(`There is no tool ${next.call.name}; those there are: ${tools.join(", ")}`)
    }
    if (playing !== undefined) Queue.offerUnsafe(playing.calls, text)
    stream(dialect.writer(), next, response)
  }

  const server = yield* Effect.acquireRelease(
    Effect.callback<http.Server>((resume) => {
      const server = http.createServer((request, response) => {
        answer(request, response).catch((error: unknown) => {
          problems.push(`The model failed: ${String(error)}`)
          response.destroy()
        })
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    play: (...answers) => {
      const prompt = `Do what play ${crypto.randomUUID()} says.`
      const calls = Effect.runSync(Queue.unbounded<string>())
      plays.unshift({ prompt, answers: [...answers, ...Array.from({ length: 10 }, () => say("Done."))], calls })
      return { prompt, calls }
    },
    takeProblems: () => problems.splice(0)
  }
})

const stream = (writer: Writer, answer: Answer, response: http.ServerResponse): void => {
  if (answer._tag === "Stall") return
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" })
  const write = (frames: ReturnType<Writer["begin"]>): void => {
    for (const { data, event } of frames) {
      const text = typeof data === "string" ? data : JSON.stringify(data)
      response.write(`${event === undefined ? "" : `event: ${event}\n`}data: ${text}\n\n`)
    }
  }
  write(writer.begin())
  if (answer._tag === "Ramble") {
    let words = 0
    const timer = setInterval(() => write(writer.text(`word ${++words} `)), pace)
    response.once("close", () => clearInterval(timer))
    return
  }
  if (answer._tag === "Call") write(writer.call(answer.call))
  else for (const word of answer.text.match(/\S+\s*/g) ?? []) write(writer.text(word))
  write(writer.end())
  response.end()
}
