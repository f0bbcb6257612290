/**
 * Fresh ids from the `Random` service, so that a test that seeds it knows them.
 *
 * @since 0.1.0
 */
import type * as Random from "effect/Random"

const bytes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"))

/** 32 random bits, byte by byte: printing a number in another base is slow. */
const word = (random: Random.Random): string => {
  const bits = random.nextDoubleUnsafe() * 0x1_0000_0000
  return bytes[bits >>> 24]! + bytes[(bits >>> 16) & 0xff]! + bytes[(bits >>> 8) & 0xff]! + bytes[bits & 0xff]!
}

/** 128 random bits as 32 hexadecimal digits. Unique, not secret: nothing may take one as proof of anything. */
export const makeId = (random: Random.Random): string => word(random) + word(random) + word(random) + word(random)
