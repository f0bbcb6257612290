/**
 * Values that cross between a model and what is outside of it: as JSON has them, and shared with nobody.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"

/** A value as JSON has it, shared with nobody; nothing, if JSON can't write it. */
export const jsonCopy = (value: unknown): unknown =>
  typeof value === "string"
    ? value
    : Result.getOrUndefined(Result.try(() => JSON.parse(JSON.stringify(value)) as unknown))
