import { assert, describe, it } from "@effect/vitest"
import { choose } from "../../../../src/providers/internal/acp/configuration.ts"
import { NewSessionResponse, reader } from "../../../../src/providers/internal/acp/messages.ts"

const session = (fields: object) => reader(NewSessionResponse)({ sessionId: "s", ...fields })!

const modelOption = (options: ReadonlyArray<object>, id = "model") => ({
  id,
  name: "Model",
  category: "model",
  options
})

describe("the mode and the model of a session", () => {
  it("are set as a config option of that category, by value, else by name", () => {
    const newer = session({
      configOptions: [
        { id: "other", name: "Other", category: "mode", options: [{ value: "fast", name: "Fast" }] },
        modelOption([{ value: "m-1", name: "m-2" }, { value: "m-2" }, { value: "m-3", name: "Three" }])
      ],
      models: { availableModels: [{ modelId: "m-2" }] }
    })
    const params = { sessionId: "s", configId: "model" }
    const method = "session/set_config_option"
    assert.deepStrictEqual(choose(newer, "model", "m-2"), {
      _tag: "Available",
      method,
      params: { ...params, value: "m-2" }
    })
    assert.deepStrictEqual(choose(newer, "model", "Three"), {
      _tag: "Available",
      method,
      params: { ...params, value: "m-3" }
    })
  })

  it("are found in groups of options", () => {
    const grouped = session({
      configOptions: [modelOption([{ group: "g", name: "G", options: [{ value: "m-1", name: "One" }] }])]
    })
    assert.strictEqual(choose(grouped, "model", "m-1")._tag, "Available")
  })

  it("are set the older way where that is what there is", () => {
    const older = session({
      modes: { currentModeId: "ask", availableModes: [{ id: "ask" }, { id: "code" }] },
      models: { availableModels: [{ modelId: "m-1" }] }
    })
    assert.deepStrictEqual(choose(older, "mode", "code"), {
      _tag: "Available",
      method: "session/set_mode",
      params: { sessionId: "s", modeId: "code" }
    })
    assert.deepStrictEqual(choose(older, "model", "m-1"), {
      _tag: "Available",
      method: "session/set_model",
      params: { sessionId: "s", modelId: "m-1" }
    })
  })

  it("that are not there are told from those that are", () => {
    const both = session({
      configOptions: [modelOption([{ value: "m-1" }])],
      models: { availableModels: [{ modelId: "m-1" }, { modelId: "m-0" }] }
    })
    assert.deepStrictEqual(choose(both, "model", "m-9"), { _tag: "Unavailable", names: ["m-1", "m-0"] })
    assert.deepStrictEqual(choose(session({}), "mode", "code"), { _tag: "Unavailable", names: [] })
  })
})
