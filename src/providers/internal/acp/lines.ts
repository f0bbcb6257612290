/**
 * Bytes into lines.
 *
 * @since 0.1.0
 */

const newline = 0x0a

/** Cuts a stream of bytes at its line ends. A line may be split anywhere, also within a character. */
export class LineSplitter {
  private readonly limit: number
  private readonly decoder = new TextDecoder()
  private pieces: Array<Uint8Array> = []
  private size = 0

  constructor(limit: number) {
    this.limit = limit
  }

  /**
   * The lines that a piece completes, without their ends; nothing after a line that is over the limit, which is what
   * `undefined` stands for. Bytes that are no UTF-8 become replacement characters, a byte order mark is left out.
   */
  push(bytes: Uint8Array): ReadonlyArray<string | undefined> {
    const lines: Array<string | undefined> = []
    let start = 0
    for (;;) {
      const end = bytes.indexOf(newline, start)
      const piece = bytes.subarray(start, end === -1 ? undefined : end)
      this.size += piece.length
      if (this.size > this.limit) {
        this.pieces = []
        lines.push(undefined)
        return lines
      }
      if (piece.length > 0) this.pieces.push(piece)
      if (end === -1) return lines
      lines.push(this.take())
      start = end + 1
    }
  }

  private take(): string {
    const line = this.pieces.length === 1 ? this.pieces[0]! : concat(this.pieces, this.size)
    this.pieces = []
    this.size = 0
    return this.decoder.decode(line)
  }
}

const concat = (pieces: ReadonlyArray<Uint8Array>, size: number): Uint8Array => {
  const whole = new Uint8Array(size)
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}
