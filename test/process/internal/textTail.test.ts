import { assert, describe, it } from "@effect/vitest"
import { redact, tailBytes, TextTail } from "../../../src/process/internal/textTail.ts"

const encode = (text: string) => new TextEncoder().encode(text)

const tailOf = (chunks: ReadonlyArray<string | Uint8Array>, secrets: ReadonlyArray<string> = []) => {
  const tail = new TextTail(secrets)
  for (const chunk of chunks) tail.add(typeof chunk === "string" ? encode(chunk) : chunk)
  return tail
}

describe("the last words of a process", () => {
  it("are all that it wrote, if that was little, put together as it came", () => {
    const [a, b] = [encode("süß").slice(0, 2), encode("süß").slice(2)]
    assert.strictEqual(tailOf([" one\n", a, b, "\n"]).text(), "one\nsüß")
    assert.strictEqual(tailOf([]).text(), "")
  })

  it("are the end of it, if that was much, and what is kept is bounded", () => {
    const tail = tailOf(Array.from({ length: 1000 }, (_, i) => `${"x".repeat(1000)} line ${i}\n`))
    const text = tail.text()
    assert.isTrue(text.endsWith("line 999"))
    assert.isAtMost(encode(text).length, tailBytes)
    const kept = (tail as unknown as { chunks: ReadonlyArray<Uint8Array> }).chunks
    assert.isAtMost(
      kept.reduce((sum, { length }) => sum + length, 0),
      tailBytes + 1024
    )
  })

  it("are cut on a character", () => {
    assert.strictEqual(tailOf(["€€€"]).text(7), "€€")
  })

  it("have no secrets, also where the cut goes through one", () => {
    assert.strictEqual(
      tailOf(["the key is hunter2-hunter2"], ["hunter2-hunter2", "hunter2"]).text(),
      "the key is [redacted]"
    )
    const text = tailOf(["hunter2-hunter2", "x".repeat(tailBytes - 5)], ["hunter2-hunter2"]).text()
    assert.notInclude(text, "hunter")
    assert.notInclude(text, "er2")
  })

  it("have no colours and no control characters", () => {
    assert.strictEqual(
      tailOf(["\u001B[31mred\u001B[0m\u001B]0;title\u0007 \u0000bell\u0007\r\n\u001Bcend"]).text(),
      "red bell\nend"
    )
  })

  it("are redacted as any text is", () => {
    assert.strictEqual(redact("a b a", ["a"]), "[redacted] b [redacted]")
  })
})
