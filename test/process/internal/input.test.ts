import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { Input } from "../../../src/process/internal/input.ts"

const decoder = new TextDecoder()

/** Takes what the stream gives, into a list. */
const reading = (input: Input) =>
  Effect.gen(function* () {
    const taken: Array<string> = []
    const fiber = yield* Stream.runForEach(input.stream, (bytes) =>
      Effect.sync(() => void taken.push(decoder.decode(bytes)))
    ).pipe(Effect.forkChild({ startImmediately: true }))
    return { taken, fiber }
  })

/** Fills it: all that it takes without waiting. */
const fill = (input: Input): ReadonlyArray<string> => {
  const texts: Array<string> = []
  while (input.writeUnsafe(`text ${texts.length}`)) texts.push(`text ${texts.length}`)
  return texts
}

/** A writer that has to wait. */
const waiting = (input: Input, text: string) =>
  Effect.gen(function* () {
    const writer = yield* Effect.forkChild(input.write(text), { startImmediately: true })
    assert.isUndefined(writer.pollUnsafe())
    return writer
  })

describe("the input of a process", () => {
  it.effect("is handed over on the spot to whoever waits for it", () =>
    Effect.gen(function* () {
      const input = new Input()
      const { taken } = yield* reading(input)
      assert.isTrue(input.writeUnsafe("one"))
      assert.deepStrictEqual(taken, ["one"])
      yield* input.write("zwölf")
      assert.deepStrictEqual(taken, ["one", "zwölf"])
    })
  )

  it.effect("is kept until somebody reads, and has room for so much", () =>
    Effect.gen(function* () {
      const input = new Input()
      const texts = fill(input)
      assert.strictEqual(texts.length, 64)
      const { taken } = yield* reading(input)
      assert.deepStrictEqual(taken, texts)
      assert.isTrue(input.writeUnsafe("more"))
      assert.deepStrictEqual(taken, [...texts, "more"])
    })
  )

  it.effect("makes those wait who find it full, and has them in their order, also before what they write next", () =>
    Effect.gen(function* () {
      const input = new Input()
      const texts = fill(input)
      const two = yield* Effect.forkChild(Effect.andThen(input.write("a"), input.write("c")), {
        startImmediately: true
      })
      const one = yield* waiting(input, "b")
      const { taken } = yield* reading(input)
      yield* Fiber.join(one)
      yield* Fiber.join(two)
      assert.deepStrictEqual(taken, [...texts, "a", "b", "c"])
    })
  )

  it.effect("forgets a writer who no longer waits", () =>
    Effect.gen(function* () {
      const input = new Input()
      const texts = fill(input)
      const gone = yield* waiting(input, "gone")
      const stays = yield* waiting(input, "stays")
      yield* Fiber.interrupt(gone)
      const { taken } = yield* reading(input)
      yield* Fiber.join(stays)
      assert.deepStrictEqual(taken, [...texts, "stays"])
    })
  )

  it.effect("ends after all that was written before its end", () =>
    Effect.gen(function* () {
      const input = new Input()
      const texts = fill(input)
      const last = yield* waiting(input, "last")
      input.end()
      input.end()
      yield* Fiber.join(last)
      assert.isFalse(input.writeUnsafe("too late"))
      yield* input.write("too late")
      const { fiber, taken } = yield* reading(input)
      assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.void)
      assert.deepStrictEqual(taken, [...texts, "last"])
    })
  )

  it.effect("ends at once for whoever waits for it", () =>
    Effect.gen(function* () {
      const input = new Input()
      const { fiber, taken } = yield* reading(input)
      input.end()
      assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.void)
      assert.deepStrictEqual(taken, [])
    })
  )

  it.effect("keeps nobody waiting once nobody reads it, and takes nothing in", () =>
    Effect.gen(function* () {
      const input = new Input()
      const busy = yield* Stream.runForEach(input.stream, () => Effect.never).pipe(
        Effect.forkChild({ startImmediately: true })
      )
      input.writeUnsafe("taken")
      fill(input)
      const writer = yield* waiting(input, "never read")
      yield* Fiber.interrupt(busy)
      yield* Fiber.join(writer)
      assert.isFalse(input.writeUnsafe("too late"))
      yield* input.write("too late")
    })
  )
})
