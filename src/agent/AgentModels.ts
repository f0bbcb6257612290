/**
 * The models that agents of the default runtime can be run on, by name.
 *
 * A host names its `LanguageModel` layers once; `agentOptions.model` then picks one of them for a child, and what the
 * child starts inherits it. An agent that names none is run on the `LanguageModel` in the context.
 *
 * @since 0.1.0
 */
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/**
 * The models by name. A runtime that finds this in its context declares the capability `model`.
 *
 * @category services
 * @since 0.1.0
 */
export class AgentModels extends Context.Service<AgentModels, ReadonlyMap<string, LanguageModel.LanguageModel>>()(
  "effect-subagent/AgentModels"
) {}

/**
 * Builds each model once, for as long as the layer lives: `AgentModels.layer({ fast: layerA, deep: layerB })`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <
  const Models extends { readonly [name: string]: Layer.Layer<LanguageModel.LanguageModel, unknown, unknown> }
>(
  models: Models
): Layer.Layer<AgentModels, Layer.Error<Models[keyof Models]>, Layer.Services<Models[keyof Models]>> =>
  // each entry may fail and need what its own layer does, which the entries of a record do not tell
  Layer.effect(
    AgentModels,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      // one for all of them, so that a layer that comes twice is built once
      const memoMap = Layer.CurrentMemoMap.forkOrCreate(yield* Effect.context())
      const built = new Map<string, LanguageModel.LanguageModel>()
      for (const [name, model] of Object.entries(models)) {
        const context = yield* Layer.buildWithMemoMap(model, memoMap, scope)
        built.set(name, Context.get(context, LanguageModel.LanguageModel))
      }
      return built
    })
  ) as Layer.Layer<AgentModels, Layer.Error<Models[keyof Models]>, Layer.Services<Models[keyof Models]>>
