/** Draws curves as SVG, both axes logarithmic: a cost that grows in proportion is a straight line that rises by one in one. */

export interface Plot {
  readonly title: string
  /** What is on the axes. */
  readonly of: string
  readonly unit: string
  readonly sizes: ReadonlyArray<number>
  readonly curves: { readonly [name: string]: ReadonlyArray<number> }
}

const width = 640
const height = 320
const area = { left: 84, right: 460, top: 44, bottom: 268 }
const colours = ["#b4460f", "#2b6cb0", "#4a7c59", "#6b6b6b"]

const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

const place =
  (from: number, to: number, start: number, end: number) =>
  (value: number): number =>
    to === from ? (start + end) / 2 : start + ((Math.log(value) - Math.log(from)) / Math.log(to / from)) * (end - start)

/** The round numbers (1, 2 or 5 of a decade) from the one below the least to the one above the most. */
export const ticks = (least: number, most: number): ReadonlyArray<number> => {
  const found: Array<number> = []
  for (let decade = Math.floor(Math.log10(least)); decade <= Math.ceil(Math.log10(most)); decade++) {
    for (const digit of [1, 2, 5]) found.push(Number(`${digit}e${decade}`))
  }
  const first = found.findLastIndex((tick) => tick <= least)
  const last = found.findIndex((tick) => tick >= most)
  return found.slice(first, last + 1)
}

/** Moves labels down until none lies on another. */
const apart = (tops: ReadonlyArray<number>): ReadonlyArray<number> => {
  const placed = [...tops]
  let last = Number.NEGATIVE_INFINITY
  for (const i of tops.map((_, i) => i).toSorted((a, b) => tops[a]! - tops[b]!)) {
    last = placed[i] = Math.max(tops[i]!, last + 15)
  }
  return placed
}

export const draw = ({ curves, of, sizes, title, unit }: Plot): string => {
  const costs = Object.values(curves).flat()
  const marks = ticks(Math.min(...costs), Math.max(...costs))
  const x = place(sizes[0]!, sizes.at(-1)!, area.left, area.right)
  const y = place(marks[0]!, marks.at(-1)!, area.bottom, area.top)
  const at = (value: number): string => value.toFixed(1)
  const label = (text: string, left: number, top: number, anchor: string, colour = "#333"): string =>
    `<text x="${at(left)}" y="${at(top)}" text-anchor="${anchor}" fill="${colour}">${escape(text)}</text>`
  const labels = apart(Object.values(curves).map((curve) => y(curve.at(-1)!) + 4))
  const drawn = Object.entries(curves).map(([name, curve], i) => {
    const colour = colours[i % colours.length]!
    const points = curve.map((cost, k) => `${at(x(sizes[k]!))},${at(y(cost))}`)
    return [
      `<polyline points="${points.join(" ")}" fill="none" stroke="${colour}" stroke-width="2"/>`,
      ...points.map((point) => {
        const [left, top] = point.split(",")
        return `<circle cx="${left}" cy="${top}" r="3" fill="${colour}"/>`
      }),
      label(name, area.right + 14, labels[i]!, "start", colour)
    ].join("\n")
  })
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<title>${escape(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text x="${area.left}" y="24" font-size="15" fill="#111">${escape(title)}</text>`,
    ...marks.flatMap((mark) => [
      `<line x1="${area.left}" x2="${area.right}" y1="${at(y(mark))}" y2="${at(y(mark))}" stroke="#e2e2e2"/>`,
      label(`${mark.toLocaleString("en-US")} ${unit}`, area.left - 8, y(mark) + 4, "end")
    ]),
    ...sizes.map((size) => label(size.toLocaleString("en-US"), x(size), area.bottom + 20, "middle")),
    label(of, (area.left + area.right) / 2, area.bottom + 42, "middle"),
    ...drawn,
    "</svg>"
  ].join("\n")}\n`
}

/** The same figures as a table. */
export const tableOfPlot = ({ curves, of, sizes, unit }: Plot): string =>
  [
    `| ${of} | ${sizes.map((size) => size.toLocaleString("en-US")).join(" | ")} |`,
    `|---|${sizes.map(() => "---:|").join("")}`,
    ...Object.entries(curves).map(
      ([name, curve]) => `| ${name}, ${unit} | ${curve.map((cost) => cost.toFixed(cost < 10 ? 1 : 0)).join(" | ")} |`
    )
  ].join("\n")
