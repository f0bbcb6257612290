/** What the property tests of lives share: numbers that follow from a seed, and ways to look at each step. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/** Numbers that follow from a seed alone, so that a failure can be had again. */
export const makeRandom = (seed: number) => {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  const below = (n: number) => Math.floor(next() * n)
  return { below, pick: <A>(items: ReadonlyArray<A>): A => items[below(items.length)]! }
}

/** Every fiber goes as far as it gets. */
export const quiesce = Effect.repeat(Effect.yieldNow, { times: 10 })

/** Both are the same text: a comparison for every step, so a cheap one. */
export const same = (actual: unknown, expected: unknown, what: string) =>
  assert.strictEqual(JSON.stringify(actual), JSON.stringify(expected), what)

/** Lives one life for each seed; the first that is not as it should be fails, with how to have it again, and its steps. */
export const everySeed = (
  { first, name, sequences }: { readonly name: string; readonly first: number; readonly sequences: number },
  live: (seed: number, trace: Array<string>) => Effect.Effect<unknown, unknown>
): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let seed = first; seed < first + sequences; seed++) {
      const trace: Array<string> = []
      const exit = yield* Effect.exit(Effect.suspend(() => live(seed, trace)))
      if (Exit.isFailure(exit)) {
        const again = `${name}_SEED=${seed} ${name}_SEQUENCES=1`
        assert.fail(`seed ${seed} (${again})\n${trace.join("\n")}\n${String(exit.cause)}`)
      }
    }
  })
