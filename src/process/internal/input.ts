/**
 * What a process is to read: a queue of texts between those who write and the one stream that goes into its standard
 * input.
 *
 * A text is handed over on the spot if the stream waits for it, as it mostly does: a turn around the event loop for each
 * text would cost a client more than all else that it does for a request.
 *
 * @since 0.1.0
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

/** How many texts may wait for the process before a writer has to wait. */
const capacity = 64

type Taken = Effect.Effect<Arr.NonEmptyReadonlyArray<Uint8Array>, Cause.Done>

interface Writer {
  readonly text: string
  readonly resume: (written: Effect.Effect<void>) => void
}

/** The input of one process. Its stream is for one reader, and once. */
export class Input {
  private readonly encoder = new TextEncoder()
  private texts: Array<string> = []
  /** Those who wait. There are none while there is room. */
  private writers: Array<Writer> = []
  /** Who waits for a text. There is nobody while there are texts. */
  private reader: ((taken: Taken) => void) | undefined
  private isOver = false

  /** Ends after all that was written before `end`. Once nobody takes from it, what is written goes nowhere. */
  readonly stream: Stream.Stream<Uint8Array> = Stream.fromPull(
    Effect.succeed(
      Effect.callback<Arr.NonEmptyReadonlyArray<Uint8Array>, Cause.Done>((resume) => {
        if (this.texts.length > 0 || this.isOver) resume(this.take())
        else this.reader = resume
      })
    )
  ).pipe(
    Stream.ensuring(
      Effect.sync(() => {
        this.end()
        this.texts = []
      })
    )
  )

  /** Writes if that needs no waiting, and says whether it did. */
  writeUnsafe(text: string): boolean {
    if (this.isOver || this.texts.length >= capacity) return false
    this.texts.push(text)
    this.wake()
    return true
  }

  /** Writes; waits for room. */
  write(text: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.writeUnsafe(text) || this.isOver) return Effect.void
      return Effect.callback<void>((resume) => {
        const writer = { text, resume }
        this.writers.push(writer)
        return Effect.sync(() => {
          this.writers = this.writers.filter((other) => other !== writer)
        })
      })
    })
  }

  /** No more is taken in. Idempotent. */
  end(): void {
    if (this.isOver) return
    this.isOver = true
    this.admit(this.writers.length)
    this.wake()
  }

  private wake(): void {
    const reader = this.reader
    this.reader = undefined
    reader?.(this.take())
  }

  private take(): Taken {
    const { encoder, texts } = this
    if (!Arr.isArrayNonEmpty(texts)) return Cause.done()
    this.texts = []
    this.admit(capacity)
    return Effect.succeed(Arr.map(texts, (text) => encoder.encode(text)))
  }

  /** Takes in what the first of those who wait have to write, all of it before any of them goes on. */
  private admit(count: number): void {
    const writers = this.writers.splice(0, count)
    for (const { text } of writers) this.texts.push(text)
    for (const { resume } of writers) resume(Effect.void)
  }
}
