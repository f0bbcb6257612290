/** The plain tool in two loops that know nothing of it, with their own fake models: same texts, same abort, same mark of an error. */
import { setTracingDisabled } from "@openai/agents"
import {
  assistantMessage,
  functionCall,
  modelResponder,
  type RecordedModelCall,
  ScriptedModel
} from "@openai/agents/testing"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { MockLanguageModelV4 } from "ai/test"
import * as AiSdk from "../../docs/examples/plain-tool-ai-sdk.ts"
import * as OpenAi from "../../docs/examples/plain-tool-openai-agents.ts"
import { calls, says } from "../../docs/examples/models/aiSdk.ts"
import { lineCount, regionOf } from "../utils/regions.ts"
import { untilAborted } from "../fixtures/promiseProvider.ts"

beforeAll(() => setTracingDisabled(true))

const input = { description: "Count", prompt: "How many words are these?" }

type Child = (prompt: string, signal: AbortSignal) => Promise<string>

interface Host {
  /** Asks a parent that delegates once, then repeats what it was told. */
  readonly ask: (
    signal?: AbortSignal
  ) => Promise<{ readonly text: string; readonly told: string; readonly isError: boolean }>
  readonly live: () => Promise<number>
  readonly dispose: () => Promise<void>
}

const hosts: ReadonlyArray<readonly [name: string, file: string, make: (child: Child) => Host]> = [
  [
    "the AI SDK",
    "plain-tool-ai-sdk.ts",
    (child) => {
      let told = { text: "", isError: false }
      const parent = new MockLanguageModelV4({
        doGenerate: async ({ prompt }) => {
          const last = prompt.at(-1)!
          const part = last.role === "tool" ? last.content[0] : undefined
          if (part?.type !== "tool-result") return calls("subagent", input)
          const { output } = part
          if (output.type !== "text" && output.type !== "error-text") return assert.fail(output.type)
          told = { text: output.value, isError: output.type === "error-text" }
          return says(`I was told: ${told.text}`)
        }
      })
      const model = new MockLanguageModelV4({
        doGenerate: async ({ abortSignal, prompt }) => {
          const last = prompt.at(-1)!
          const part = last.role === "user" ? last.content[0] : undefined
          return says(await child(part?.type === "text" ? part.text : "", abortSignal!))
        }
      })
      const { ask, subagents } = AiSdk.host({ parent, child: model })
      return {
        ask: async (signal) => {
          const { text } = await ask("Have somebody count.", signal)
          return { text, told: told.text, isError: told.isError }
        },
        live: async () => (await subagents.live()).length,
        dispose: subagents.dispose
      }
    }
  ],
  [
    "OpenAI Agents",
    "plain-tool-openai-agents.ts",
    (child) => {
      let told = ""
      const lastOf = ({ request }: RecordedModelCall) =>
        (typeof request.input === "string" ? undefined : request.input.at(-1)) as Record<string, unknown> | undefined
      const parent = new ScriptedModel([
        [functionCall("subagent", input, { callId: "1" })],
        modelResponder((call) => {
          const output = lastOf(call)?.["output"] as { readonly text: string }
          told = output.text
          return [assistantMessage(`I was told: ${told}`)]
        })
      ])
      const model = new ScriptedModel([
        modelResponder(async (call) => [
          assistantMessage(await child(String(lastOf(call)?.["content"]), call.request.signal!))
        ])
      ])
      const { ask, subagents } = OpenAi.host({ parent, child: model })
      return {
        ask: async (signal) => {
          const { finalOutput } = await ask("Have somebody count.", signal)
          // this loop has no other mark of an error than the words
          return { text: finalOutput!, told, isError: told.startsWith("PlainToolError: ") }
        },
        live: async () => (await subagents.live()).length,
        dispose: subagents.dispose
      }
    }
  ]
]

for (const [name, file, make] of hosts) {
  describe(`the plain tool in the loop of ${name}`, () => {
    it("is at most 15 lines of glue", () => {
      assert.isAtMost(lineCount(regionOf(file, "glue")), 15)
    })

    it("gives the child's answer to the parent, as it is", async () => {
      const prompts: Array<string> = []
      const host = make(async (prompt) => {
        prompts.push(prompt)
        return "five"
      })
      assert.deepStrictEqual(await host.ask(), { text: "I was told: five", told: "five", isError: false })
      assert.deepStrictEqual(prompts, [input.prompt])
      assert.strictEqual(await host.live(), 0)
      await host.dispose()
    })

    it("marks a child's failure as an error, with what went wrong", async () => {
      const host = make(() => Promise.reject(new Error("no key")))
      const { isError, told } = await host.ask()
      assert.isTrue(isError)
      assert.include(told, "The subagent failed (error).")
      assert.include(told, "no key")
      assert.strictEqual(await host.live(), 0)
      await host.dispose()
    })

    it("stops the child when the parent's loop is aborted", async () => {
      const controller = new AbortController()
      let stopped = 0
      const host = make(async (_, signal) => {
        queueMicrotask(() => controller.abort(new Error("enough")))
        try {
          return await untilAborted(signal)
        } finally {
          stopped++
        }
      })
      const exit = await host.ask(controller.signal).then(
        () => "answered",
        () => "aborted"
      )
      assert.strictEqual(exit, "aborted")
      for (let turns = 0; turns < 1000 && (await host.live()) > 0; turns++) {
        await new Promise((resolve) => setImmediate(resolve))
      }
      assert.strictEqual(await host.live(), 0)
      assert.strictEqual(stopped, 1)
      await host.dispose()
    })
  })
}
