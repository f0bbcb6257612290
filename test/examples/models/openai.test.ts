/** The model on chat completions, over real connections to a server on loopback. */
import { assert, describe, it } from "@effect/vitest"
import { Agent, Content, Subagents } from "effect-subagent"
import { AgentRuntime } from "effect-subagent/agent"
import { SpawnProvider } from "effect-subagent/providers"
import type * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as OpenAi from "../../../docs/examples/models/openai.ts"
import * as Server from "../../fixtures/openai/server.ts"

const Tools = Toolkit.make(
  Tool.make("add", {
    description: "Adds two numbers",
    parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
    success: Schema.Finite
  }),
  Tool.make("fail", { success: Schema.String, failure: Schema.String, failureMode: "return" })
)

const handlers = Tools.toLayer({
  add: ({ a, b }) => Effect.succeed(a + b),
  fail: () => Effect.fail("out of order")
})

type Parts = ReadonlyArray<Response.AnyPart>

/** What a model says whole, and what it says in a stream. */
const kinds = ["generateText", "streamText"] as const

/** Calls the model of a server with tools that it leaves to its caller. */
const call = (
  method: (typeof kinds)[number],
  server: Server.Server,
  prompt: Prompt.RawInput = "Hello",
  options: Partial<OpenAi.Options> & { readonly toolChoice?: LanguageModel.ToolChoice<"add" | "fail"> } = {}
): Effect.Effect<Parts, AiError.AiError> =>
  Effect.gen(function* () {
    const model = yield* OpenAi.make({ model: "m", baseUrl: server.url, ...options })
    const request = {
      prompt,
      toolkit: yield* Tools,
      toolChoice: options.toolChoice ?? "auto",
      disableToolCallResolution: true,
      toolCallValidation: "deferred"
    } as const
    return method === "generateText"
      ? (yield* model.generateText(request)).content
      : yield* Stream.runCollect(model.streamText(request))
  }).pipe(Effect.provide(handlers))

/** Parts without what every one has. */
const plain = (parts: Parts) =>
  parts.map((part) => {
    const { "~effect/ai/Response/Part": _, ...rest } = JSON.parse(JSON.stringify(part)) as Record<string, unknown>
    return rest
  })

const texts = (parts: Parts) =>
  parts.flatMap((part) => (part.type === "text" ? [part.text] : part.type === "text-delta" ? [part.delta] : []))
const calls = (parts: Parts) =>
  parts.flatMap((part) => (part.type === "tool-call" ? [{ id: part.id, name: part.name, params: part.params }] : []))
const finish = (parts: Parts) => {
  const last = parts.at(-1)
  return last?.type === "finish" ? last : assert.fail("no finish at the end")
}

/** The same answer, whole or in bits of a stream. */
const answering = (
  method: (typeof kinds)[number],
  message: Server.Said,
  reason: string | null = "stop",
  usage?: unknown
): Server.Answer => (method === "generateText" ? Server.whole : streamedAsOne)(message, reason, usage)

const streamedAsOne = (message: Server.Said, reason: string | null, usage?: unknown) =>
  Server.streamed([message], reason, usage)

const toolCall = (id: string | undefined, name: string, args: unknown, index?: number) => ({
  ...(id !== undefined && { id }),
  ...(index !== undefined && { index }),
  type: "function",
  function: { name, arguments: args }
})

const usage = {
  prompt_tokens: 10,
  completion_tokens: 7,
  total_tokens: 17,
  prompt_tokens_details: { cached_tokens: 4, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 2 }
}

describe("a model on chat completions", () => {
  it.effect.each(kinds)("asks for what it is asked (%s)", (method) =>
    Effect.gen(function* () {
      const server = yield* Server.serve(answering(method, { content: "Hi" }))
      yield* call(
        method,
        server,
        [
          { role: "system", content: "Be brief." },
          {
            role: "user",
            content: [
              { type: "text", text: "Hello" },
              { type: "text", text: "there" }
            ]
          }
        ],
        { apiKey: Redacted.make("sk-1") }
      )
      const [{ body, headers, path } = assert.fail()] = server.requests
      assert.strictEqual(path, "/v1/chat/completions")
      assert.strictEqual(headers.authorization, "Bearer sk-1")
      const { messages, model, stream, stream_options, tool_choice, tools, ...rest } = body
      assert.deepStrictEqual([model, stream ?? false, rest], ["m", method === "streamText", {}])
      assert.deepStrictEqual(stream_options, method === "streamText" ? { include_usage: true } : undefined)
      assert.deepStrictEqual(messages, [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello\n\nthere" }
      ])
      assert.deepStrictEqual([tool_choice, tools?.map((tool) => tool.function)], [
        "auto",
        [
          {
            name: "add",
            description: "Adds two numbers",
            parameters: {
              type: "object",
              properties: { a: { type: "number" }, b: { type: "number" } },
              required: ["a", "b"],
              additionalProperties: true
            }
          },
          { name: "fail", parameters: { type: "object", additionalProperties: false } }
        ]
      ] as unknown)
    })
  )

  it.effect("sends no key where there is none", () =>
    Effect.gen(function* () {
      const server = yield* Server.serve(Server.whole({ content: "Hi" }))
      yield* call("generateText", server)
      assert.isUndefined(server.requests[0]?.headers.authorization)
    })
  )

  it.effect("answers as a whole, with what it thought and what it used", () =>
    Effect.gen(function* () {
      const server = yield* Server.serve(Server.whole({ content: "Hi", reasoning_content: "Greet." }, "stop", usage))
      assert.deepStrictEqual(plain(yield* call("generateText", server)), [
        { type: "response-metadata", id: "chatcmpl-1", modelId: "model-1", metadata: {} },
        { type: "reasoning", text: "Greet.", metadata: { openai: { field: "reasoning_content" } } },
        { type: "text", text: "Hi", metadata: {} },
        {
          type: "finish",
          reason: "stop",
          usage: {
            inputTokens: { total: 10, cacheRead: 4, uncached: 6 },
            outputTokens: { total: 7, reasoning: 2, text: 5 }
          },
          metadata: {}
        }
      ] as unknown)
    })
  )

  it.effect("answers in a stream, bit by bit", () =>
    Effect.gen(function* () {
      const server = yield* Server.serve(
        Server.streamed(
          [
            { role: "assistant", content: "" },
            { reasoning: "Gr" },
            { reasoning: "eet." },
            { content: "H" },
            { content: "i" }
          ],
          "stop",
          usage
        )
      )
      assert.deepStrictEqual(plain(yield* call("streamText", server)), [
        { type: "response-metadata", id: "chatcmpl-1", modelId: "model-1", metadata: {} },
        { type: "reasoning-start", id: "0", metadata: { openai: { field: "reasoning" } } },
        { type: "reasoning-delta", id: "0", delta: "Gr", metadata: {} },
        { type: "reasoning-delta", id: "0", delta: "eet.", metadata: {} },
        { type: "reasoning-end", id: "0", metadata: {} },
        { type: "text-start", id: "1", metadata: {} },
        { type: "text-delta", id: "1", delta: "H", metadata: {} },
        { type: "text-delta", id: "1", delta: "i", metadata: {} },
        { type: "text-end", id: "1", metadata: {} },
        {
          type: "finish",
          reason: "stop",
          usage: {
            inputTokens: { total: 10, cacheRead: 4, uncached: 6 },
            outputTokens: { total: 7, reasoning: 2, text: 5 }
          },
          metadata: {}
        }
      ] as unknown)
    })
  )

  it.effect("gives each bit of a stream when it comes", () =>
    Effect.gen(function* () {
      const heard = yield* Deferred.make<void>()
      const runtime = yield* Effect.context()
      const server = yield* Server.serve(async (response) => {
        Server.begin(response).write(Server.chunk({ content: "first" }))
        // no more before that has arrived
        await Effect.runPromiseWith(runtime)(Deferred.await(heard))
        response.write(Server.chunk({ content: " last" }, "stop"))
        response.end(Server.event("[DONE]"))
      })
      const model = yield* OpenAi.make({ model: "m", baseUrl: server.url })
      const parts = yield* model.streamText({ prompt: "Hello" }).pipe(
        Stream.tap((part) => (part.type === "text-delta" ? Deferred.succeed(heard, undefined) : Effect.void)),
        Stream.runCollect
      )
      assert.deepStrictEqual(texts(parts), ["first", " last"])
    })
  )

  it.effect.each([
    ["stop", {}, "stop"],
    ["length", { content: "cut" }, "length"],
    ["content_filter", { content: "" }, "content-filter"],
    ["stop", { refusal: "I won't." }, "content-filter"],
    ["tool_calls", { tool_calls: [toolCall("1", "fail", "{}", 0)] }, "tool-calls"],
    ["stop", { tool_calls: [toolCall("1", "fail", "{}", 0)] }, "tool-calls"],
    ["length", { tool_calls: [toolCall("1", "fail", "{}", 0)] }, "length"],
    ["insufficient_system_resource", {}, "other"]
  ] as const)("finishes for a reason: %s %j is %s", ([reason, message, expected]) =>
    Effect.forEach(kinds, (method) =>
      Effect.gen(function* () {
        const server = yield* Server.serve(answering(method, message, reason))
        assert.strictEqual(finish(yield* call(method, server)).reason, expected, method)
      })
    )
  )

  it.effect.each([
    [undefined, {}, {}],
    [null, {}, {}],
    [{ prompt_tokens: 1, completion_tokens: null }, { total: 1 }, {}],
    [
      { prompt_tokens: 9, prompt_cache_hit_tokens: 3, completion_tokens: 2 },
      { total: 9, cacheRead: 3, uncached: 6 },
      { total: 2 }
    ],
    // figures that can't be are not added to
    [{ prompt_tokens: 1, prompt_tokens_details: { cached_tokens: 3 } }, { total: 1, cacheRead: 3 }, {}]
  ])("has the figures that a server gives: %j", ([figures, input, output]) =>
    Effect.forEach(kinds, (method) =>
      Effect.gen(function* () {
        const server = yield* Server.serve(answering(method, { content: "Hi" }, "stop", figures))
        const { inputTokens, outputTokens } = finish(yield* call(method, server)).usage
        assert.deepStrictEqual(JSON.parse(JSON.stringify({ inputTokens, outputTokens })), {
          inputTokens: input,
          outputTokens: output
        })
      })
    )
  )

  it.effect("has the figures of a stream wherever in it they are", () =>
    Effect.gen(function* () {
      const server = yield* Server.serve((response) => {
        Server.begin(response).write(
          Server.event({ choices: [{ delta: { content: "Hi" } }], usage: { prompt_tokens: 1 } })
        )
        response.write(Server.event({ choices: [{ delta: {}, finish_reason: "stop" }], usage: { prompt_tokens: 2 } }))
        response.end(Server.event({ choices: null, usage: null }))
      })
      const { reason, usage } = finish(yield* call("streamText", server))
      assert.deepStrictEqual([reason, usage.inputTokens.total], ["stop", 2])
    })
  )
})

describe("its tool calls", () => {
  const expected = [
    { id: "a", name: "add", params: { a: 1, b: 2 } },
    { id: "b", name: "fail", params: {} },
    { id: "c", name: "add", params: { a: 3, b: 4 } }
  ]

  it.effect("come several at once, whole", () =>
    Effect.gen(function* () {
      const server = yield* Server.serve(
        Server.whole(
          {
            tool_calls: [
              toolCall("a", "add", '{"a":1,"b":2}'),
              toolCall("b", "fail", ""),
              toolCall("c", "add", { a: 3, b: 4 })
            ]
          },
          "tool_calls"
        )
      )
      assert.deepStrictEqual(calls(yield* call("generateText", server)), expected)
    })
  )

  const pieces = (...deltas: ReadonlyArray<unknown>) => deltas.map((delta) => ({ tool_calls: [delta] }))
  const more = (index: number | undefined, args: string, id?: string) => ({
    ...(index !== undefined && { index }),
    ...(id !== undefined && { id }),
    function: { arguments: args }
  })

  it.effect.each<readonly [how: string, deltas: ReadonlyArray<Server.Said>]>([
    [
      "in pieces, one in another",
      pieces(
        toolCall("a", "add", "", 0),
        more(0, '{"a":'),
        toolCall("b", "fail", "{", 1),
        more(0, '1,"b":2'),
        more(1, "}"),
        more(0, "}"),
        toolCall("c", "add", '{"a":3,"b":4}', 2)
      )
    ],
    [
      "without numbers",
      pieces(
        toolCall("a", "add", '{"a":1,'),
        more(undefined, '"b":2}'),
        toolCall("b", "fail", null),
        toolCall("c", "add", { a: 3, b: 4 })
      )
    ],
    [
      "all with the same number",
      pieces(
        toolCall("a", "add", '{"a":1,', 0),
        more(0, '"b":2}'),
        toolCall("b", "fail", "{}", 0),
        toolCall("c", "add", '{"a":3,"b":4}', 0)
      )
    ],
    [
      "with their ids and names in every piece",
      [
        { tool_calls: [toolCall("a", "add", '{"a":1,', 0), toolCall("b", "fail", "{", 1)] },
        { tool_calls: [toolCall("b", "fail", "}", 1), toolCall("a", "add", '"b":2}', 0)] },
        { tool_calls: [toolCall("c", "add", '{"a":3,"b":4}', 2)] }
      ]
    ],
    [
      "with another id for every piece",
      pieces(
        toolCall("a", "add", '{"a":1,', 0),
        more(0, '"b":2}', "x"),
        toolCall("b", "fail", "{}", 1),
        toolCall("c", "add", '{"a":3,"b":4}', 2)
      )
    ]
  ])("come several at once in a stream, %s", ([, deltas]) =>
    Effect.gen(function* () {
      const server = yield* Server.serve(Server.streamed(deltas, "tool_calls"))
      assert.deepStrictEqual(calls(yield* call("streamText", server)), expected)
    })
  )

  it.effect.each(kinds)("get an id where a server gives none, each its own (%s)", (method) =>
    Effect.gen(function* () {
      const nameless = [toolCall(undefined, "fail", "{}"), toolCall("", "fail", "{}")]
      const server = yield* Server.serve(answering(method, { tool_calls: nameless }, "tool_calls"))
      const ids = calls(yield* call(method, server)).map(({ id }) => id)
      assert.strictEqual(new Set(ids).size, 2)
      assert.isTrue(ids.every((id) => id.length > 5))
    })
  )

  it.effect.each(kinds)("go back with their results, and with the thoughts that led to them (%s)", (method) =>
    Effect.gen(function* () {
      const server = yield* Server.serve(
        answering(
          method,
          {
            content: "Let me see.",
            reasoning_content: "Two calls.",
            tool_calls: [toolCall("a", "add", '{"a":1,"b":2}', 0), toolCall("b", "fail", "{}", 1)]
          },
          "tool_calls"
        ),
        answering(method, { content: "Done.", reasoning_content: "All there." })
      )
      const said = yield* call(method, server, "Add")
      const result = (id: string, name: string, isFailure: boolean, result: unknown) =>
        Prompt.makePart("tool-result", { id, name, isFailure, result, providerExecuted: false })
      const told = Prompt.fromMessages([
        ...Prompt.make("Add").content,
        ...Prompt.fromResponseParts(said).content,
        Prompt.makeMessage("tool", {
          content: [result("a", "add", false, 3), result("b", "fail", true, "out of order")]
        })
      ])
      const done = yield* call(method, server, told)
      yield* call(method, server, Prompt.concat(Prompt.concat(told, Prompt.fromResponseParts(done)), "Thanks"))
      const exchange = (thoughts: object) => [
        { role: "user", content: "Add" },
        {
          role: "assistant",
          content: "Let me see.",
          ...thoughts,
          tool_calls: [
            { id: "a", type: "function", function: { name: "add", arguments: '{"a":1,"b":2}' } },
            { id: "b", type: "function", function: { name: "fail", arguments: "{}" } }
          ]
        },
        { role: "tool", tool_call_id: "a", content: "3" },
        { role: "tool", tool_call_id: "b", content: "Error: out of order" }
      ]
      const [, second, third] = server.requests
      assert.deepStrictEqual(second?.body.messages, exchange({ reasoning_content: "Two calls." }))
      // the next prompt ends a thought
      assert.deepStrictEqual(third?.body.messages, [
        ...exchange({}),
        { role: "assistant", content: "Done." },
        { role: "user", content: "Thanks" }
      ] as unknown)
    })
  )

  it.effect.each([
    ["none", undefined, undefined],
    ["required", "required", ["add", "fail"]],
    [{ tool: "fail" }, { type: "function", function: { name: "fail" } }, ["add", "fail"]],
    [{ oneOf: ["fail"] }, "auto", ["fail"]],
    [{ mode: "required", oneOf: ["add"] }, "required", ["add"]],
    [{ oneOf: [] }, undefined, undefined]
  ] as const)("are of the tools that it may call: %j", ([toolChoice, choice, names]) =>
    Effect.gen(function* () {
      const server = yield* Server.serve(Server.whole({ content: "Hi" }))
      yield* call("generateText", server, "Hello", { toolChoice })
      const { tool_choice, tools } = server.requests[0]!.body
      assert.deepStrictEqual([tool_choice, tools?.map((tool) => tool.function.name)], [choice, names] as unknown)
    })
  )
})

describe("its prompts", () => {
  const file = (mediaType: string, data: string | Uint8Array | URL) =>
    Prompt.make([
      {
        role: "user",
        content: [
          { type: "text", text: "See" },
          { type: "file", mediaType, data }
        ]
      }
    ])

  it.effect.each([
    ["image/png", "AAAA", { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }],
    ["image/png", Uint8Array.of(0, 0, 0), { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }],
    ["image/*", new URL("https://a.b/c.png"), { type: "image_url", image_url: { url: "https://a.b/c.png" } }],
    ["audio/wav", "AAAA", { type: "input_audio", input_audio: { format: "wav", data: "AAAA" } }],
    ["audio/mpeg", Uint8Array.of(0, 0, 0), { type: "input_audio", input_audio: { format: "mp3", data: "AAAA" } }]
  ] as const)("have images and sounds in them: %s", ([mediaType, data, expected]) =>
    Effect.gen(function* () {
      const server = yield* Server.serve(Server.whole({ content: "Hi" }))
      yield* call("generateText", server, file(mediaType, data))
      assert.deepStrictEqual(server.requests[0]?.body.messages[0]?.content, [
        { type: "text", text: "See" },
        expected
      ] as unknown)
    })
  )

  const assistant = (part: Prompt.AssistantMessagePart) =>
    Prompt.fromMessages([Prompt.makeMessage("assistant", { content: [part] })])

  it.effect.each<readonly [string, Prompt.RawInput]>([
    ["a file of type application/pdf", file("application/pdf", "AAAA")],
    ["a file of type audio/wav", file("audio/wav", new URL("https://a.b/c.wav"))],
    ["a file of the assistant's", assistant(Prompt.makePart("file", { mediaType: "image/png", data: "AAAA" }))],
    [
      "tools that a server has executed itself",
      assistant(Prompt.makePart("tool-call", { id: "1", name: "search", params: {}, providerExecuted: true }))
    ]
  ])("are refused with what there is no place for, and nothing is sent: %s", ([what, prompt]) =>
    Effect.forEach(kinds, (method) =>
      Effect.gen(function* () {
        const server = yield* Server.serve(Server.silent)
        const { isRetryable, reason } = yield* Effect.flip(call(method, server, prompt))
        assert.strictEqual(reason._tag, "InvalidUserInputError")
        assert.include(reason.message, `Chat completions have no place for ${what}`)
        assert.deepStrictEqual([isRetryable, server.requests.length], [false, 0])
      })
    )
  )

  it.effect("may ask for a value of a schema", () =>
    Effect.gen(function* () {
      const server = yield* Server.serve(Server.whole({ content: '{"sum":3}' }))
      const model = yield* OpenAi.make({ model: "m", baseUrl: server.url })
      const schema = Schema.Struct({ sum: Schema.Finite })
      const { value } = yield* model.generateObject({ prompt: "1 + 2", schema, objectName: "sum" })
      assert.deepStrictEqual(value, { sum: 3 })
      assert.deepStrictEqual(server.requests[0]?.body["response_format"], {
        type: "json_schema",
        json_schema: {
          name: "sum",
          strict: true,
          schema: {
            type: "object",
            properties: { sum: { type: "number" } },
            required: ["sum"],
            additionalProperties: false
          }
        }
      })
    })
  )
})

describe("its failures", () => {
  const error = (message: string, fields: object = {}) => ({ error: { message, ...fields } })
  const busy = error("Slow down", { type: "requests", code: "rate_limit_exceeded" })

  it.effect.each<
    readonly [
      tag: AiError.AiErrorReason["_tag"],
      status: number | undefined,
      isRetryable: boolean,
      message: string,
      answer: Server.Answer,
      retryAfter?: Duration.Input
    ]
  >([
    ["RateLimitError", 429, true, "Rate limit", Server.status(429, busy, { "retry-after": "7" }), "7 seconds"],
    ["RateLimitError", 429, true, "", Server.status(429, busy, { "retry-after-ms": "250", "retry-after": "1" }), 250],
    ["RateLimitError", 429, true, "", Server.status(429, busy, { "retry-after": "Thu, 01 Jan 1970 00:00:00 GMT" }), 0],
    ["RateLimitError", 429, true, "Rate limit", Server.status(429, busy, { "retry-after": "soon" })],
    ["RateLimitError", 429, true, "Rate limit", Server.status(429, "<html>busy</html>")],
    ["QuotaExhaustedError", 429, false, "Quota", Server.status(429, error("Pay", { code: "insufficient_quota" }))],
    ["QuotaExhaustedError", 402, false, "Quota", Server.status(402, error("Insufficient Balance"))],
    ["AuthenticationError", 401, false, "Incorrect API key", Server.status(401, error("Incorrect API key: sk-***1"))],
    ["AuthenticationError", 403, false, "Not yours", Server.status(403, error("Not yours"))],
    [
      "InvalidRequestError",
      400,
      false,
      "No tools here",
      Server.status(400, error("No tools here", { param: "tools" }))
    ],
    ["ContentPolicyError", 400, false, "Unsafe", Server.status(400, error("Unsafe", { code: "content_filter" }))],
    ["InvalidRequestError", 404, false, "model 'm' not found", Server.status(404, { error: "model 'm' not found" })],
    ["InvalidRequestError", 404, false, "404 page not found", Server.status(404, "404 page not found")],
    ["InternalProviderError", 408, true, "408", Server.status(408, "")],
    ["InternalProviderError", 500, true, "Oops", Server.status(500, error("Oops"))],
    ["InternalProviderError", 502, true, "<html>", Server.status(502, "<html>".repeat(1000))],
    ["RateLimitError", 503, true, "", Server.status(503, error("Loading"), { "retry-after": "3" }), "3 seconds"],
    ["NetworkError", undefined, true, "other side closed", (response) => void response.destroy()],
    ["InvalidResponseError", undefined, false, "Expected", Server.status(200, "<html>A page</html>")],
    ["InvalidResponseError", undefined, false, "choices", Server.status(200, {})],
    ["InvalidResponseError", undefined, false, "JSON", Server.status(200, "{", { "content-type": "application/json" })]
  ])("say whether they will pass, and when: %s %s %s %s", ([tag, status, isRetryable, message, answer, retryAfter]) =>
    Effect.gen(function* () {
      const server = yield* Server.serve(answer)
      const failed = yield* Effect.flip(call("generateText", server))
      const { reason } = failed
      assert.strictEqual(reason._tag, tag, reason.message)
      assert.strictEqual(failed.isRetryable, isRetryable)
      assert.strictEqual("http" in reason ? reason.http?.response?.status : undefined, status)
      assert.include(failed.message, message)
      assert.isBelow(failed.message.length, 1000)
      assert.deepStrictEqual(
        failed.retryAfter && Duration.toMillis(failed.retryAfter),
        retryAfter === undefined ? undefined : Duration.toMillis(retryAfter)
      )
      assert.strictEqual(server.requests.length, 1)
    })
  )

  it.effect("are the same where a stream was asked for", () =>
    Effect.gen(function* () {
      const server = yield* Server.serve(
        Server.status(429, busy, { "retry-after": "7" }),
        Server.status(401, error("No"))
      )
      const first = yield* Effect.flip(call("streamText", server))
      assert.deepStrictEqual(first.reason._tag, "RateLimitError")
      assert.deepStrictEqual(first.retryAfter, Duration.seconds(7))
      assert.strictEqual((yield* Effect.flip(call("streamText", server))).reason._tag, "AuthenticationError")
    })
  )

  const amid =
    (data: unknown): Server.Answer =>
    (response) => {
      Server.begin(response).write(Server.chunk({ content: "Hi" }))
      response.end(Server.event(data))
    }

  it.effect.each<readonly [string, Server.Answer, AiError.AiErrorReason["_tag"], boolean, string]>([
    ["a connection that breaks", Server.cut({ content: "Hi" }), "NetworkError", true, "terminated"],
    [
      "an end before the end",
      Server.streamed([{ content: "Hi" }], null),
      "NetworkError",
      true,
      "The stream ended before"
    ],
    [
      "a call that is cut off",
      Server.streamed([{ tool_calls: [toolCall("1", "fail", "{", 0)] }], null),
      "NetworkError",
      true,
      ""
    ],
    [
      "an error of the server's",
      amid(error("Overloaded", { type: "server_error" })),
      "InternalProviderError",
      true,
      "Overloaded"
    ],
    ["a limit", amid(error("Slow down", { code: "rate_limit_exceeded" })), "RateLimitError", true, "Rate limit"],
    ["a status as a code", amid(error("Too long", { code: 400 })), "InvalidRequestError", false, "Too long"],
    [
      "a bad request",
      amid(error("Too long", { type: "invalid_request_error" })),
      "InvalidRequestError",
      false,
      "Too long"
    ],
    ["garbage", amid("{]"), "InvalidResponseError", false, "JSON"],
    ["something else", amid({ choices: "none" }), "InvalidResponseError", false, "choices"]
  ])("amid a stream keep what was said, and say the same: %s", ([, answer, tag, isRetryable, message]) =>
    Effect.gen(function* () {
      const server = yield* Server.serve(answer)
      const model = yield* OpenAi.make({ model: "m", baseUrl: server.url })
      const heard: Array<string> = []
      const toolkit = yield* Tools
      const failed = yield* model.streamText({ prompt: "Hello", toolkit, toolCallValidation: "deferred" }).pipe(
        Stream.runForEach((part) => Effect.sync(() => heard.push(part.type))),
        Effect.flip
      )
      assert.strictEqual(failed.reason._tag, tag, failed.message)
      assert.strictEqual(failed.isRetryable, isRetryable)
      assert.include(failed.message, message)
      assert.notInclude(heard, "tool-call")
      assert.notInclude(heard, "finish")
    }).pipe(Effect.provide(handlers))
  )

  it.effect("name the address where nobody is, and none of its secrets", () =>
    Effect.gen(function* () {
      const closed = yield* Effect.scoped(Server.serve(Server.silent))
      const failed = yield* Effect.flip(call("generateText", closed))
      assert.strictEqual(failed.reason._tag, "NetworkError")
      assert.include(failed.message, "ECONNREFUSED")
      assert.include(failed.message, `POST ${closed.url}/chat/completions`)
    })
  )
})

describe("a model that is interrupted", () => {
  /** Waits for the other side to notice. */
  const until = (condition: () => boolean) =>
    Effect.promise(async () => {
      for (let turns = 0; turns < 100_000 && !condition(); turns++)
        await new Promise((resolve) => setImmediate(resolve))
    })

  it.effect.each<readonly [string, (typeof kinds)[number], Server.Answer]>([
    ["before anything is said", "generateText", Server.silent],
    ["before a stream begins", "streamText", Server.silent],
    ["amid a stream", "streamText", Server.hang({ content: "Hi" })],
    ["before the first word of a stream", "streamText", Server.hang()]
  ])("closes its connection: %s", ([, method, answer]) =>
    Effect.gen(function* () {
      const server = yield* Server.serve(answer)
      const fiber = yield* Effect.forkChild(call(method, server))
      yield* until(() => server.open() === 1 && server.requests.length === 1)
      yield* Fiber.interrupt(fiber)
      yield* until(() => server.open() === 0)
      assert.deepStrictEqual([server.open(), server.dropped(), server.requests.length], [0, 1, 1])
    })
  )

  it.effect("closes its connection when no more of a stream is wanted", () =>
    Effect.gen(function* () {
      const server = yield* Server.serve(Server.hang({ content: "Hi" }, { content: " there" }))
      const model = yield* OpenAi.make({ model: "m", baseUrl: server.url })
      const parts = yield* Stream.runCollect(Stream.take(model.streamText({ prompt: "Hello" }), 3))
      assert.deepStrictEqual(texts(parts), ["Hi"])
      yield* until(() => server.open() === 0)
      assert.deepStrictEqual([server.open(), server.dropped()], [0, 1])
    })
  )
})

describe("an agent on it", () => {
  const agents = (server: Server.Server, options: { readonly streaming: boolean; readonly times?: number }) =>
    SpawnProvider.layer().pipe(
      Layer.provide(
        AgentRuntime.layer({ toolkit: Tools, streaming: options.streaming, retry: Schedule.recurs(options.times ?? 0) })
      ),
      Layer.provideMerge(Subagents.layer),
      Layer.provide([handlers, OpenAi.layer({ model: "m", baseUrl: server.url })])
    )

  const run = (server: Server.Server, options: { readonly streaming: boolean; readonly times?: number }) =>
    Effect.gen(function* () {
      const subagents = yield* Subagents.Subagents
      const run = yield* subagents.start("spawn", { parent: yield* Agent.root(), prompt: "Add 1 and 2" })
      const result = yield* run.result
      return { result, updates: yield* Stream.runCollect(run.updates) }
    }).pipe(Effect.scoped, Effect.provide(agents(server, options)))

  const methodOf = (streaming: boolean) => kinds[streaming ? 1 : 0]

  it.live.each([false, true])("calls tools, hears of what was malformed, and answers (streaming: %s)", (streaming) =>
    Effect.gen(function* () {
      const say = (message: Server.Said, reason = "tool_calls") =>
        answering(methodOf(streaming), message, reason, usage)
      const server = yield* Server.serve(
        say({
          tool_calls: [
            toolCall("1", "add", '{"a":1,"b":', 0),
            toolCall("2", "subtract", '{"a":1}', 1),
            toolCall("3", "add", '{"a":1,"b":"2"}', 2),
            toolCall("4", "add", '{"a":1,"b":2,"__proto__":{"c":3}}', 3)
          ]
        }),
        say({ tool_calls: [toolCall("5", "add", '{"a":1,"b":2}', 0), toolCall("6", "fail", "", 1)] }),
        say({ content: "It is 3.", reasoning: "Easy." }, "stop")
      )
      const { result, updates } = yield* run(server, { streaming })
      assert.strictEqual(result.stopReason, "completed", JSON.stringify(result.failure))
      assert.strictEqual(Content.toText(result.output), "It is 3.")
      assert.deepStrictEqual(result.usage, { input: 30, output: 21, cacheRead: 12, reasoning: 6, total: 51 })
      assert.isTrue(updates.some(({ _tag }) => _tag === "Thought"))
      const [, second, third] = server.requests
      const told = second?.body.messages.filter(({ role }) => role === "tool").map(({ content }) => content) ?? []
      assert.match(String(told[0]), /^Error: Invalid arguments/)
      assert.match(String(told[1]), /^Error: There is no tool "subtract"; the tools there are: "add", "fail"/)
      assert.match(String(told[2]), /^Error: Invalid arguments: b/)
      assert.match(String(told[3]), /^Error: Invalid arguments/)
      // whatever it had said, what goes back is JSON of an object
      const given = second?.body.messages.find(({ role }) => role === "assistant")?.tool_calls
      assert.deepStrictEqual(JSON.parse(given![0]!.function.arguments), { malformed: '{"a":1,"b":' })
      assert.isNull(second?.body.messages.find(({ role }) => role === "assistant")?.content)
      assert.deepStrictEqual(
        third?.body.messages.slice(-2).map(({ content }) => content),
        ["3", "Error: out of order"]
      )
    })
  )

  it.live.each([false, true])("waits as long as a server asks, and goes on (streaming: %s)", (streaming) =>
    Effect.gen(function* () {
      const server = yield* Server.serve(
        Server.status(429, { error: { message: "Slow down" } }, { "retry-after-ms": "40" }),
        Server.status(500, { error: { message: "Oops" } }),
        streaming ? Server.cut({ content: "Hal" }) : (response) => void response.destroy(),
        answering(methodOf(streaming), { content: "3" })
      )
      const { result, updates } = yield* run(server, { streaming, times: 3 })
      assert.deepStrictEqual([result.stopReason, Content.toText(result.output)], ["completed", "3"])
      const retries = updates.flatMap((update) =>
        update._tag === "Raw" && update.kind === "model-retry" ? [update.value] : []
      )
      assert.deepStrictEqual(
        retries
          .map((value) => value as { delay: number; failure: { status?: number; retryable: boolean } })
          .map(({ delay, failure }) => [delay, failure.status, failure.retryable]),
        [
          [40, 429, true],
          [0, 500, true],
          [0, undefined, true]
        ]
      )
      assert.strictEqual(server.requests.length, 4)
    })
  )

  it.live.each<readonly [stopReason: string, failure: object, answer: Server.Answer]>([
    [
      "error",
      { kind: "model", retryable: false, status: 401 },
      Server.status(401, { error: { message: "Incorrect API key provided: sk-***1" } })
    ],
    [
      "error",
      { kind: "model", retryable: true, status: 429, retryAfter: 9000 },
      Server.status(429, { error: { message: "Slow down" } }, { "retry-after": "9" })
    ],
    ["error", { kind: "model", retryable: true, status: 500 }, Server.status(500, { error: { message: "Oops" } })],
    [
      "refusal",
      { kind: "model", retryable: false, status: 400 },
      Server.status(400, { error: { message: "Unsafe", code: "content_filter" } })
    ],
    ["max-tokens", { kind: "model", retryable: false }, Server.whole({ content: "Hal" }, "length")],
    ["refusal", { kind: "model", retryable: false }, Server.whole({ refusal: "I won't." })]
  ])("that gives up says how it failed, as data: %s %j", ([stopReason, failure, answer]) =>
    Effect.gen(function* () {
      const { result } = yield* run(yield* Server.serve(answer), { streaming: false })
      const { message, ...rest } = result.failure!
      assert.deepStrictEqual([result.stopReason, rest], [stopReason, failure] as unknown)
      assert.isString(message)
    })
  )
})
