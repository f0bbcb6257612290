/** The benchmark itself: everybody does the work that is measured, and the table says what was measured. No test is timed. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { growths } from "./growth/all.ts"
import type { Growth } from "./growth/Growth.ts"
import type { Scale } from "./measures.ts"
import { open } from "./open.ts"
import { draw, type Plot, tableOfPlot, ticks } from "./plot.ts"
import { figuresOf, isWeighed, type Measured, measureOf, type Row, rows } from "./rows.ts"
import { medians, resultOf, shortOf, tableOf, together } from "./table.ts"
import { between } from "./write.ts"

const tiny: Scale = {
  warm: 0,
  window: 1,
  burst: 3,
  fanOut: 3,
  items: 250,
  turns: 2,
  updates: 20,
  flood: 300,
  collections: 1
}

/** What the rows read of each contestant, by measure. */
const read = new Map<string, Array<Measured>>()
for (const figure of rows.flatMap(figuresOf)) {
  // what is weighed has a test of its own
  if (isWeighed(figure)) continue
  const title = `${measureOf[figure[1]]} of ${figure[0]}`
  read.set(title, [...(read.get(title) ?? []), figure])
}

describe("the benchmark", () => {
  for (const [title, figures] of read) {
    it(`measures ${title}`, async () => {
      const [who, figure] = figures[0]!
      const { close, measure } = await open(who)
      const { prepare, sample } = measure(measureOf[figure], tiny)
      await prepare()
      const sampled = await sample()
      for (const [, name] of figures) assert.isTrue(Number.isFinite(sampled[name]), `${name} ${sampled[name]}`)
      await close()
    })
  }

  for (const name of ["plain", "lifecycle", "lean", "seam", "agents"] as const) {
    it(`lets ${name} do the same work as the others`, async () => {
      const { close, contestant, gate, measure } = await open(name)
      await measure("sequence", tiny).sample()
      // one of a child, three of a delegation
      assert.strictEqual(gate.calls, 4)
      if (contestant.heard !== undefined) {
        await Effect.runPromise(Effect.repeat(Effect.yieldNow, { times: 10 }))
        // one event when a run starts and one when it ends, of a child and of a delegation's
        assert.strictEqual(contestant.heard(), 4)
      }
      await close()
    })
  }

  it("refuses an answer that is wrong, a model call too many, and an item that is lost", async () => {
    const { close, contestant, gate, measure } = await open("plain")
    const { child, stream } = contestant
    const wrong = async (changes: object, name: "sequence" | "stream"): Promise<string> => {
      Object.assign(contestant, { child, stream, ...changes })
      return measure(name, tiny)
        .sample()
        .then(String, (error: unknown) => String(error))
    }
    assert.match(await wrong({ child: () => Effect.as(gate.pass, "no") }, "sequence"), /answered "no"/)
    const twice = (prompt: string) => Effect.andThen(gate.pass, child!(prompt))
    assert.match(await wrong({ child: twice }, "sequence"), /2 model calls of 1 × child/)
    assert.match(await wrong({ stream: () => Effect.succeed(249) }, "stream"), /saw 249 of 250 items/)
    await close()
  })

  it("prints medians, ratios round by round, and what was reached", () => {
    const row: Row = {
      name: "a",
      what: "a child",
      unit: "µs",
      ours: ["seam", "child"],
      floor: [
        ["lean", "child"],
        ["lifecycle", "child"]
      ],
      floorName: "both",
      must: 2,
      next: 1.5
    }
    const round = (seam: number, lean: number, lifecycle: number) => ({
      seam: medians([{ child: seam }, { child: 0 }, { child: 1e9 }]),
      ...together({ lean: { child: lean } }, { lean: { item: 1 }, lifecycle: { child: lifecycle } })
    })
    const rounds = [round(30, 10, 10), round(4000, 1000, 1000), round(9, 5, 5)]
    const of = (changes: Partial<Row>) => tableOf([resultOf({ ...row, ...changes }, rounds)]).split("\n")[2]
    assert.strictEqual(of({}), "| a child | 30 µs | both: 20 µs | 1.50 × | ≤ 2 × | ≤ 1.5 × | then |")
    assert.strictEqual(of({ next: 1.2 }), "| a child | 30 µs | both: 20 µs | 1.50 × | ≤ 2 × | ≤ 1.2 × | must |")
    assert.strictEqual(of({ must: 1.3, next: 1.2 })?.split(" | ").at(-1), "**missed** |")
    const ideal: Row = { name: "b", what: "b", unit: "ms", ours: ["seam", "child"], floor: 5, floorName: "5", next: 1 }
    assert.strictEqual(
      tableOf([resultOf(ideal, [round(5250, 1, 1)])]).split("\n")[2],
      "| b | 5,250 ms | 5: 5.0 ms | 1050.00 × |  | ≤ 1 × | not yet |"
    )
  })

  it("shows the README the rows that are meant for it", () => {
    const results = rows.map((row) => ({ row, ours: 10, floor: 5, ratio: 2 }))
    const shown = shortOf(results).split(" · ")
    assert.strictEqual(shown.length, rows.filter(({ isInReadme }) => isInReadme).length + 1)
    assert.strictEqual(shown[0], "a child, no model layer: 10 µs, 2.00 × lifecycle")
  })

  it("writes between its marks, and nowhere else", () => {
    const text = "a\n<!-- bench x -->\nold\n<!-- /bench x -->\nb <!-- bench y --><!-- /bench y -->"
    const written = "a\n<!-- bench x -->\nnew\n<!-- /bench x -->\nb <!-- bench y --><!-- /bench y -->"
    assert.strictEqual(between(text, "x", "new"), written)
    assert.strictEqual(between(written, "x", "new"), written)
    assert.throws(() => between(text, "z", "new"), /there is no <!-- bench z -->/)
  })

  it("has marks for every plot and both tables in the docs", () => {
    const read = (file: string) => fs.readFileSync(path.join(import.meta.dirname, "../..", file), "utf8")
    const page = read("docs/performance.md")
    for (const name of Object.keys(growths)) assert.include(between(page, name, "here"), "\nhere\n", name)
    assert.include(between(page, "table", "here"), "\nhere\n")
    assert.include(between(read("README.md"), "table", "here"), "\nhere\n")
  })

  it("draws curves between round numbers", () => {
    assert.deepStrictEqual(ticks(3, 180), [2, 5, 10, 20, 50, 100, 200])
    assert.deepStrictEqual(ticks(10, 10), [10])
    assert.deepStrictEqual(ticks(0.15, 1), [0.1, 0.2, 0.5, 1])
    const plot: Plot = {
      title: "Cost & <size>",
      of: "children",
      unit: "µs",
      sizes: [1, 100],
      curves: { ours: [10, 1000], floor: [10, 20] }
    }
    const svg = draw(plot)
    assert.include(svg, "<title>Cost &amp; &lt;size&gt;</title>")
    // from the least to the most of both axes: the lower left corner and the upper right one
    assert.include(svg, '<polyline points="84.0,268.0 460.0,44.0"')
    assert.strictEqual(svg.match(/<circle /g)?.length, 4)
    const near = draw({ ...plot, curves: { ours: [10, 100], floor: [10, 100], plain: [10, 1000] } })
    const tops = [...near.matchAll(/x="474.0" y="([0-9.]+)"/g)].map(([, top]) => Number(top))
    assert.deepStrictEqual(
      tops.map((top) => top - tops[2]!),
      [112, 127, 0]
    )
    assert.strictEqual(
      tableOfPlot(plot),
      "| children | 1 | 100 |\n|---|---:|---:|\n| ours, µs | 10 | 1000 |\n| floor, µs | 10 | 20 |"
    )
  })

  for (const [name, growth] of Object.entries<Growth>(growths)) {
    it(`measures how a cost grows: ${name}`, async () => {
      const [size = 0] = growth.sizes
      for (const at of Object.values(growth.lines)) {
        const costs = [size, growth.sizes[1]!].map((each) => Effect.runPromise(Effect.scoped(at(each, tiny))))
        for (const cost of await Promise.all(costs)) assert.isTrue(Number.isFinite(cost), String(cost))
      }
    })
  }
})
