/**
 * Text about faults, for people: always bounded, and made of anything without throwing.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"

const ellipsis = "…"

const bytesOf = (character: string): number => {
  const code = character.codePointAt(0)!
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x1_0000 ? 3 : 4
}

/** The most that a `diagnostic` may have. */
export const diagnosticBytes = 4096

/** Cuts a text on a character, so that it has at most `bytes` bytes of UTF-8, an ellipsis included. */
export const bound = (text: string, bytes: number = diagnosticBytes): string => {
  if (text.length * 3 <= bytes) return text
  let used = 0
  let end = 0
  for (const character of text) {
    used += bytesOf(character)
    if (used > bytes) return text.slice(0, end) + ellipsis
    if (used <= bytes - 3) end += character.length
  }
  return text
}

/** A line about anything that was thrown, the thing itself being anything at all. */
export const describeUnknown = (thrown: unknown): string => {
  const line = Result.try(() => String(Predicate.isError(thrown) ? thrown.message || thrown.name : thrown))
  return Result.isSuccess(line) ? bound(line.success, 1024) : "a value that can't be printed"
}

/** A line about the most telling part of a cause. */
export const describeCause = (cause: Cause.Cause<unknown>): string =>
  Cause.hasInterruptsOnly(cause) ? "it was interrupted" : describeUnknown(Cause.squash(cause))
