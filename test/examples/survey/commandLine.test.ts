import { assert, describe, it } from "@effect/vitest"
import * as Option from "effect/Option"
import { splitCommand } from "../../../docs/examples/survey/commandLine.ts"

describe("a command line", () => {
  it.each<[string, ReadonlyArray<string>]>([
    ["codex-acp", ["codex-acp"]],
    ["  npx \t-y  some-agent\n", ["npx", "-y", "some-agent"]],
    [`node '/a b/c.mjs' "x y"z ''`, ["node", "/a b/c.mjs", "x yz", ""]],
    [`a '{"b":"\\n"}' "it's" '"'`, ["a", '{"b":"\\n"}', "it's", '"']],
    [`a "\\"b\\" \\\\ \\n" \\"c\\' d\\ e \\\\`, ["a", '"b" \\ \\n', "\"c'", "d e", "\\"]],
    ["C:\\agents\\a.exe $HOME *", ["C:\\agents\\a.exe", "$HOME", "*"]],
    ["ünï 🦕", ["ünï", "🦕"]]
  ])("is split at its blanks, but for what is in quotes: %j", (line, words) => {
    const [command, ...args] = words
    assert.deepStrictEqual(splitCommand(line), Option.some({ command: command!, args }))
  })

  it.each(["", "  ", "''", '" "', "a 'b", 'a "b', 'a "b\\"', "a'"])(
    "without a program in it, or with an open quote, is none: %j",
    (line) => {
      assert.deepStrictEqual(splitCommand(line), Option.none())
    }
  )
})
