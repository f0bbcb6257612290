/**
 * A language model on any server that speaks OpenAI's chat completions: OpenAI, Ollama, vLLM, DeepSeek and many others.
 *
 * It makes one request per call and leaves it to its caller to make another: errors say whether that is of use, and when.
 * Interrupting a call closes its connection.
 */
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import { toCodecOpenAI } from "effect/ai/OpenAiStructuredOutput"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import OpenAI from "openai"
import { brokenOff, reasonOf } from "./openai/failures.ts"
import { messagesOf } from "./openai/messages.ts"
import { partsOf } from "./openai/parts.ts"
import { Streamed } from "./openai/streamed.ts"
import { formatOf, toolsOf } from "./openai/tools.ts"
import { Chunk, Completion } from "./openai/wire.ts"

// #region options
export interface Options {
  /** The model's name, as the server knows it. */
  readonly model: string
  /** Servers of one's own often need none. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** @default "https://api.openai.com/v1" */
  readonly baseUrl?: string | undefined
}
// #endregion

export const make = ({
  apiKey,
  baseUrl = "https://api.openai.com/v1",
  model
}: Options): Effect.Effect<LanguageModel.LanguageModel> => {
  const url = `${baseUrl.replace(/\/+$/, "")}/chat/completions`
  const client = new OpenAI({
    baseURL: baseUrl,
    maxRetries: 0,
    // what is wrong is told by the error
    logLevel: "off",
    // the client insists on a key, and sends none if it is told not to
    apiKey: apiKey === undefined ? "none" : Redacted.value(apiKey),
    ...(apiKey === undefined && { defaultHeaders: { Authorization: null } })
  })

  const fail =
    (method: string) =>
    (reason: AiError.AiErrorReason): AiError.AiError =>
      new AiError.AiError({ module: "OpenAI", method, reason })

  const bodyOf = (options: LanguageModel.ProviderOptions) =>
    Result.gen(function* () {
      const messages = yield* messagesOf(options.prompt)
      return { model, messages, ...(yield* toolsOf(options)), ...(yield* formatOf(options.responseFormat)) }
    })

  const generateText = Effect.fnUntraced(function* (options: LanguageModel.ProviderOptions) {
    const body = yield* Effect.fromResult(bodyOf(options))
    const answer = yield* Effect.tryPromise({
      try: (signal) => client.chat.completions.create(body, { signal }),
      catch: (error) => reasonOf(error, url)
    })
    return partsOf(yield* read(Completion, answer))
  })

  const streamText = (options: LanguageModel.ProviderOptions) =>
    Stream.unwrap(
      Effect.gen(function* () {
        const body = yield* Effect.fromResult(bodyOf(options))
        // aborted with the scope of the stream, so that nobody waits for a server that says nothing
        const signal = yield* Effect.abortSignal
        const chunks = yield* Effect.tryPromise({
          try: () =>
            client.chat.completions.create(
              { ...body, stream: true, stream_options: { include_usage: true } },
              { signal }
            ),
          catch: (error) => reasonOf(error, url)
        })
        const answer = new Streamed()
        const end = Effect.suspend(() =>
          Effect.mapError(Effect.fromResult(answer.end()), (description) => brokenOff(url, description))
        )
        return Stream.fromAsyncIterable(chunks, (error) => reasonOf(error, url)).pipe(
          Stream.mapEffect((chunk) => read(Chunk, chunk)),
          Stream.map((chunk) => answer.add(chunk)),
          Stream.concat(Stream.fromEffect(end)),
          Stream.flattenIterable
        )
      })
    )

  return LanguageModel.make({
    codecTransformer: toCodecOpenAI,
    generateText: (options) => Effect.mapError(generateText(options), fail("generateText")),
    streamText: (options) => Stream.mapError(streamText(options), fail("streamText"))
  })
}

const read = <A>(schema: Schema.Codec<A, unknown>, answer: unknown): Effect.Effect<A, AiError.InvalidResponseError> =>
  Effect.mapError(Schema.decodeUnknownEffect(schema)(answer), (error) =>
    AiError.InvalidResponseError.fromSchemaError(error)
  )

export const layer = (options: Options): Layer.Layer<LanguageModel.LanguageModel> =>
  Layer.effect(LanguageModel.LanguageModel, make(options))
