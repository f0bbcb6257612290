import { assert, describe, it } from "@effect/vitest"
import { describeText, exportsOf } from "../../../docs/examples/survey/describeText.ts"

describe("the exports of a module", () => {
  it.each<[string, ReadonlyArray<string>]>([
    ["export const a = 1, b = 2\nexport let c\nexport var $d_1", ["a", "c", "$d_1"]],
    ["export function f() {}\nexport function* g() {}\nexport async function h() {}", ["f", "g", "h"]],
    ["export class A {}\nexport abstract class B<T> {}\nexport default class C {}", ["A", "B", "default"]],
    [
      "export type T = 1\nexport interface I {}\nexport enum E {}\nexport declare const enum F {}",
      ["T", "I", "E", "F"]
    ],
    ["export type from = 1\nexport namespace N { export const inner = 1 }", ["from", "N"]],
    ['export { a, b as c, type D } from "x"\nexport type { X as Y }\nexport {\n  e,\n}', ["a", "c", "D", "Y", "e"]],
    ['export * from "./x.ts"\nexport * as ns from "y"', ["* from ./x.ts", "ns"]],
    ["export const { a, b: c, d = 4 } = o", ["a", "c", "d"]],
    ["export import Q = x.y\nexport = Q", ["Q", "default"]],
    ["module.exports = {}\nmodule.exports.a = 1\nexports.b = 2", ["default", "a", "b"]],
    ["exports.a === 1\nfoo.export\nconst o = { export: 1 }\nconst export_ = 1", []],
    ["// export const a\n/* export const b */\nconst s = 'export const c'", []],
    ["const t = `\nexport const a = ${ `x` }\n`\nconst r = /[\"'`{]/g, x = 4 / 2 / 1\nexport const b = 1", ["b"]],
    ["export const a = 1\nexport function a() {}", ["a"]],
    ["const 'unfinished\nexport const ünïcode = 1", ["ünïcode"]]
  ])("of %j are %j", (source, names) => {
    assert.deepStrictEqual(exportsOf(source), names)
  })
})

describe("a text is described by", () => {
  it.each([
    ["a.ts", "export const a = 1", { exports: ["a"] }],
    ["a.ts", "/**\n * What it is for.\n */\nrun()", { heading: "What it is for." }],
    ["a.md", "intro\n```sh\n# no\n```\n## Yes ##\n# Later", { heading: "Yes" }],
    ["a.md", "\n\nNo heading at all\n", { heading: "No heading at all" }],
    ["a.sh", "#!/bin/sh\n\n# Does things\n", { heading: "Does things" }],
    ["a.json", '{\r\n  "name": "x"\r\n}', { heading: '"name": "x"' }],
    ["a.txt", "ä".repeat(101), { heading: `${"ä".repeat(99)}…` }],
    ["export.txt", "export const a = 1", { heading: "export const a = 1" }],
    ["a.txt", "\n{}\n---\n", {}],
    ["a.ts", "", {}]
  ])("its exports, else its heading: %s %j", (path, text, description) => {
    assert.deepStrictEqual(describeText(path, text), description)
  })
})
