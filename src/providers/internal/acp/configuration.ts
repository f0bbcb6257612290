/**
 * How a new session is told its mode and its model.
 *
 * There is a newer way, config options of a category, and an older one; an agent may offer either, or both, or none.
 *
 * @since 0.1.0
 */
import type { ConfigOption, NewSessionResponse } from "./messages.ts"
import { items } from "./messages.ts"

type Session = typeof NewSessionResponse.Type

/** What can be set. */
export type Setting = "mode" | "model"

/** What was asked for is there, and how to set it; or it isn't, and what there is instead. */
export type Choice =
  | { readonly _tag: "Available"; readonly method: string; readonly params: object }
  | { readonly _tag: "Unavailable"; readonly names: ReadonlyArray<string> }

const values = (option: typeof ConfigOption.Type) =>
  items(option.options).flatMap(({ name, options, value }) =>
    value === undefined ? items(options) : [{ value, ...(name !== undefined && { name }) }]
  )

/** Finds what was asked for, by its id or, in the newer way, by its name. */
export const choose = (session: Session, setting: Setting, wanted: string): Choice => {
  const { sessionId } = session
  const options = items(session.configOptions).filter(({ category }) => category === setting)
  for (const option of options) {
    const found =
      values(option).find(({ value }) => value === wanted) ?? values(option).find(({ name }) => name === wanted)
    if (found !== undefined) {
      const params = { sessionId, configId: option.id, value: found.value }
      return { _tag: "Available", method: "session/set_config_option", params }
    }
  }
  const older =
    setting === "mode"
      ? items(session.modes?.availableModes).map(({ id }) => id)
      : items(session.models?.availableModels).map(({ modelId }) => modelId)
  if (!older.includes(wanted)) {
    const newer = options.flatMap(values).map(({ value }) => value)
    return { _tag: "Unavailable", names: Array.from(new Set([...newer, ...older])) }
  }
  return setting === "mode"
    ? { _tag: "Available", method: "session/set_mode", params: { sessionId, modeId: wanted } }
    : { _tag: "Available", method: "session/set_model", params: { sessionId, modelId: wanted } }
}
