/** What stands in for a model with everybody who is measured: it counts its calls, and answers at once, late or never. */
import * as Effect from "effect/Effect"

export interface Gate {
  pace: "at once" | "late" | "never"
  /** How many calls there have been. */
  calls: number
  /** How many of them have no answer yet. */
  waiting: number
  /** One call. */
  readonly pass: Effect.Effect<void>
}

/** How late an answer is, in milliseconds. */
export const lateness = 50

export const makeGate = (): Gate => {
  const gate: Gate = {
    pace: "at once",
    calls: 0,
    waiting: 0,
    pass: Effect.suspend(() => {
      gate.calls++
      if (gate.pace === "at once") return Effect.void
      gate.waiting++
      return Effect.ensuring(
        gate.pace === "late" ? Effect.sleep(lateness) : Effect.never,
        Effect.sync(() => void gate.waiting--)
      )
    })
  }
  return gate
}

/** What a child answers, and what a parent makes of it. Every batch is checked against these. */
export const childAnswer = (prompt: string): string => `child of ${prompt}`
export const parentAnswer = (toolResult: string): string => `after ${toolResult}`

export const childSystem = "You are a careful child."
export const parentSystem = "You delegate with the subagent tool."

/** One model call of a parent without a model layer: it calls the tool, and answers with the result. */
export interface HostMessage {
  readonly role: "user" | "assistant" | "tool"
  readonly content: string
}
export type HostReply = { readonly text: string } | { readonly toolArguments: string }

export const hostModel = (gate: Gate, messages: ReadonlyArray<HostMessage>): Effect.Effect<HostReply> =>
  Effect.map(gate.pass, () => {
    const { content, role } = messages.at(-1)!
    return role === "tool"
      ? { text: parentAnswer(content) }
      : { toolArguments: JSON.stringify({ description: "a task", prompt: content }) }
  })

/** A parent's whole loop without a model layer, given how it executes the tool. */
export const hostLoop = <E, R>(
  gate: Gate,
  prompt: string,
  execute: (toolArguments: string) => Effect.Effect<string, E, R>
): Effect.Effect<string, E, R> =>
  Effect.gen(function* () {
    const messages: Array<HostMessage> = [{ role: "user", content: prompt }]
    for (;;) {
      const reply = yield* hostModel(gate, messages)
      if ("text" in reply) return reply.text
      messages.push({ role: "assistant", content: reply.toolArguments })
      messages.push({ role: "tool", content: yield* execute(reply.toolArguments) })
    }
  })
