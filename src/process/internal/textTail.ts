/**
 * The last words of a child process: all that it writes is taken in, and only the end of it is kept.
 *
 * @since 0.1.0
 */

/** What is kept, in bytes. */
export const tailBytes = 8192

/** Kept beyond that, so that a secret that the cut would go through is still known as one. */
const marginBytes = 1024

/** A text without these secrets, the longest of which come first. */
export const redact = (text: string, secrets: ReadonlyArray<string>): string =>
  secrets.reduce((rest, secret) => rest.replaceAll(secret, "[redacted]"), text)

/** Keeps the end of a stream of bytes, as text without secrets, colours or control characters. */
export class TextTail {
  private readonly secrets: ReadonlyArray<string>
  private chunks: Array<Uint8Array> = []
  private size = 0

  constructor(secrets: ReadonlyArray<string>) {
    this.secrets = secrets
  }

  add(chunk: Uint8Array): void {
    this.chunks.push(chunk)
    this.size += chunk.length
    if (this.size > 8 * (tailBytes + marginBytes)) this.trim()
  }

  /** The text, at most `bytes` of it. */
  text(bytes: number = tailBytes): string {
    this.trim()
    let text = redact(new TextDecoder().decode(this.chunks[0]), this.secrets)
    // oxlint-disable-next-line no-control-regex -- these are what is taken out: terminal sequences, then other controls
    text = text.replaceAll(/\u001B(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001B]*(?:\u0007|\u001B\\)?|.)/g, "")
    // oxlint-disable-next-line no-control-regex -- likewise
    text = text.replaceAll(/[\u0000-\u0008\u000B-\u001F\u007F]/g, "").trim()
    const encoded = new TextEncoder().encode(text)
    if (encoded.length <= bytes) return text
    let start = encoded.length - bytes
    while ((encoded[start]! & 0xc0) === 0x80) start++
    return new TextDecoder().decode(encoded.subarray(start)).trim()
  }

  private trim(): void {
    const kept = new Uint8Array(Math.min(this.size, tailBytes + marginBytes))
    let end = kept.length
    for (let i = this.chunks.length - 1; end > 0; i--) {
      const chunk = this.chunks[i]!
      const part = chunk.subarray(Math.max(0, chunk.length - end))
      end -= part.length
      kept.set(part, end)
    }
    this.chunks = [kept]
    this.size = kept.length
  }
}
