/** What `npm run size` is made of. The package itself is not built here. */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { bundle, type Cost, importTime, table } from "../../scripts/size.ts"

const inFolder = async <A>(files: Record<string, string>, use: (folder: string) => Promise<A>): Promise<A> => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "size-test-"))
  try {
    for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), text)
    return await use(folder)
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

describe("the sizes", () => {
  it("count what an entry brings with it, and not what nobody uses", () =>
    inFolder(
      {
        "package.json": '{ "type": "module", "sideEffects": [] }',
        "entry.js":
          'import { used } from "./other.js"\nimport * as path from "node:path"\nexport const all = [used, path]',
        "other.js": `export const used = "${"u".repeat(2048)}"\nexport const unused = "${"n".repeat(8192)}"`
      },
      async (folder) => {
        const { gzip, min } = await bundle({ name: "entry", file: path.join(folder, "entry.js") })
        assert.isAbove(min, 2)
        assert.isBelow(min, 4)
        assert.isBelow(gzip, 1)
      }
    ))

  it("import an entry in a process of its own", () =>
    inFolder({ "entry.mjs": "globalThis.loaded = true", "broken.mjs": "throw new Error('broken')" }, async (folder) => {
      const { cpu, wall } = importTime({ name: "entry", file: path.join(folder, "entry.mjs") })
      assert.isTrue(cpu >= 0 && wall > 0)
      assert.isFalse("loaded" in globalThis)
      assert.throws(() => importTime({ name: "broken", file: path.join(folder, "broken.mjs") }))
    }))

  it("are put beside the floor and their limits", () => {
    const cost = (gzip: number, limits: object = {}): Cost => ({
      entry: { name: "a", file: "a.js", ...limits },
      min: gzip * 3,
      gzip,
      wall: 100,
      cpu: gzip * 10
    })
    const costs = [cost(10), cost(20, { must: 25, next: 15 }), cost(14, { must: 25, next: 15 }), cost(26, { must: 25 })]
    assert.deepStrictEqual(table(costs).slice(2), [
      "| `a` | 30 | 10.0 | 1.00 |  | 100 | 100 | 1.00 |",
      "| `a` | 60 | 20.0 | 2.00 | must ≤ 25, then ≤ 15: must | 100 | 200 | 2.00 |",
      "| `a` | 42 | 14.0 | 1.40 | must ≤ 25, then ≤ 15: then | 100 | 140 | 1.40 |",
      "| `a` | 78 | 26.0 | 2.60 | must ≤ 25: **missed** | 100 | 260 | 2.60 |"
    ])
  })
})
