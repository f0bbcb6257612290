import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Redacted from "effect/Redacted"
import { wrongOptions } from "../../../../src/providers/internal/acp/options.ts"

const least = { name: "agent", command: "agent" }
const problems = (options: object) => wrongOptions({ ...least, ...options }).map(String)

describe("wrongOptions", () => {
  it("finds nothing wrong with what the docs say", () => {
    assert.deepStrictEqual(problems({}), [])
    assert.deepStrictEqual(
      problems({
        args: ["--acp"],
        env: { A: "a", B: Redacted.make("b") },
        passEnv: ["C_KEY"],
        cwd: "/project",
        permission: "deny",
        fs: { roots: ["/project"], read: true, write: false },
        mcpServers: [
          { name: "files", command: "/bin/files", args: ["-v"], env: { A: "a" } },
          { type: "http", name: "web", url: "https://example.com", headers: { A: "a" } }
        ],
        mode: "plan",
        model: "fast",
        authMethod: "login",
        timeouts: { start: "5 seconds", idle: Duration.infinity, cancel: 100, close: undefined },
        maxMessageBytes: 1
      }),
      []
    )
  })

  it("finds what is misspelt, at its path", () => {
    for (const [options, path] of [
      [{ permision: "deny" }, "permision"],
      [{ fs: { rots: [] } }, "fs.rots"],
      [{ timeouts: { strat: "1 second" } }, "timeouts.strat"]
    ] as const) {
      assert.deepStrictEqual(problems(options), [`${path}: Expected no excess property`])
    }
  })

  it("finds what is not what it should be", () => {
    for (const [options, path] of [
      [{ command: undefined }, "command"],
      [{ args: "--acp" }, "args"],
      [{ env: { A: 1 } }, "env.A"],
      [{ permission: "alow" }, "permission"],
      [{ fs: true }, "fs"],
      [{ mcpServers: [{ name: "files" }] }, "mcpServers.0"],
      [{ timeouts: { start: "soon" } }, "timeouts.start"],
      [{ maxMessageBytes: 0 }, "maxMessageBytes"]
    ] as const) {
      const found = problems(options)
      assert.isAbove(found.length, 0, path)
      assert.isTrue(
        found.every((problem) => problem.startsWith(path)),
        found.join("; ")
      )
    }
    assert.strictEqual(wrongOptions(undefined).length, 1)
  })
})
