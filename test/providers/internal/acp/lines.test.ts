import { assert, describe, it } from "@effect/vitest"
import { LineSplitter } from "../../../../src/providers/internal/acp/lines.ts"

const encode = (text: string) => new TextEncoder().encode(text)

const split = (pieces: ReadonlyArray<Uint8Array>, limit = 1000) => {
  const splitter = new LineSplitter(limit)
  return pieces.flatMap((piece) => splitter.push(piece))
}

describe("bytes into lines", () => {
  it("are cut at line ends, wherever the pieces are", () => {
    const bytes = encode("one\ntwø\n\nthree\nunfinished")
    for (let size = 1; size <= bytes.length; size++) {
      const pieces = []
      for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
      assert.deepStrictEqual(split(pieces), ["one", "twø", "", "three"], `pieces of ${size}`)
    }
  })

  it("survive what is no UTF-8, and a byte order mark", () => {
    assert.deepStrictEqual(split([Uint8Array.of(0xef, 0xbb, 0xbf, 0x61, 0xff, 0x62, 0x0a)]), ["a\uFFFDb"])
  })

  it("stop at a line over the limit, after those before it", () => {
    assert.deepStrictEqual(split([encode("ok\n12345\n"), encode("123456")], 5), ["ok", "12345", undefined])
    assert.deepStrictEqual(split([encode("ok\n123456\nlost\n")], 5), ["ok", undefined])
    assert.deepStrictEqual(split([encode("123"), encode("456\nlost\n")], 5), [undefined])
  })
})
