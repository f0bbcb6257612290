/**
 * Text that says something: what every name, label and prompt must be.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/** A string that is not only white space. */
export const NonBlank: Schema.Codec<string> = Schema.String.check(
  Schema.makeFilter((text) => text.trim() !== "" || "Expected a string that is not blank")
)
