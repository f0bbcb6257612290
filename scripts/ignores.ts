/** Prints how many coverage-ignore comments `src` has, and where, so that a growing number is seen. */
import * as fs from "node:fs"
import * as path from "node:path"

const root = path.resolve(import.meta.dirname, "..")
const found = fs
  .readdirSync(path.join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .toSorted()
  .flatMap((name) =>
    fs
      .readFileSync(path.join(root, "src", name), "utf8")
      .split("\n")
      .flatMap((line, i) => (/(?:v8|c8|istanbul) ignore/.test(line) ? [`  src/${name}:${i + 1} ${line.trim()}`] : []))
  )
console.log([`coverage-ignore comments in src: ${found.length}`, ...found].join("\n"))
