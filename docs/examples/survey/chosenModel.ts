/** The model that the environment names: the offline one, unless `OPENAI_MODEL` is set. */
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { tell } from "./Journal.ts"
import type { Options } from "./Survey.ts"
import { SurveyError } from "./Survey.ts"
import * as SurveyModel from "./SurveyModel.ts"

/** A model, and how it is best used. */
export interface ChosenModel extends Pick<Options, "streaming" | "textLimit"> {
  readonly layer: Layer.Layer<LanguageModel.LanguageModel>
}

const offline: ChosenModel = { layer: SurveyModel.layer }

/** Set, and not to nothing. */
const variable = (name: string) =>
  Config.String(name).pipe(
    Config.option,
    Config.map((value) => Option.getOrUndefined(Option.filter(value, (text) => text.trim() !== "")))
  )

/** Fails if the environment names half a model. A key alone is in many an environment, and chooses nothing. */
export const chosenModel: Effect.Effect<ChosenModel, SurveyError> = Effect.gen(function* () {
  const apiKey = yield* variable("OPENAI_API_KEY")
  const baseUrl = yield* variable("OPENAI_BASE_URL")
  const model = yield* variable("OPENAI_MODEL")
  if (model === undefined) {
    if (baseUrl !== undefined) {
      return yield* new SurveyError({
        message: "OPENAI_BASE_URL is set and OPENAI_MODEL is not: set it to the name of a model of that server"
      })
    }
    if (apiKey !== undefined) yield* tell("OPENAI_API_KEY is set and OPENAI_MODEL is not: the model is the offline one")
    return offline
  }
  if (baseUrl === undefined && apiKey === undefined) {
    return yield* new SurveyError({
      message:
        "OPENAI_MODEL is set: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that needs no key, " +
        "like http://127.0.0.1:11434/v1 for Ollama"
    })
  }
  if (baseUrl !== undefined && !/^https?:$/.test(URL.parse(baseUrl)?.protocol ?? "")) {
    return yield* new SurveyError({ message: "OPENAI_BASE_URL is no http address" })
  }
  yield* tell(`model    ${model} at ${baseUrl === undefined ? "api.openai.com" : new URL(baseUrl).host}`)
  const options = { model, baseUrl, apiKey: apiKey === undefined ? undefined : Redacted.make(apiKey) }
  return {
    // the client is loaded by those alone who use it
    layer: Layer.unwrap(
      Effect.map(
        Effect.promise(() => import("../models/openai.ts")),
        ({ layer }) => layer(options)
      )
    ),
    streaming: true,
    // 25 files of this size are some 30,000 tokens
    textLimit: 4096
  }
}).pipe(Effect.catchTag("ConfigError", ({ message }) => Effect.fail(new SurveyError({ message }))))
