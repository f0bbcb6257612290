/**
 * Fresh ids from the `Random` service, so that a test that seeds it knows them.
 *
 * @since 0.1.0
 */
import type * as Random from "effect/Random"

const word = (random: Random.Random): string =>
  Math.floor(random.nextDoubleUnsafe() * 0x1_0000_0000)
    .toString(16)
    .padStart(8, "0")

/** 128 random bits as 32 hexadecimal digits. Unique, not secret: nothing may take one as proof of anything. */
export const makeId = (random: Random.Random): string => word(random) + word(random) + word(random) + word(random)
