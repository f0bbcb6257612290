import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { childEnvironment, HostEnvironment, isSecret } from "../../../src/process/internal/environment.ts"

describe("the environment of a child process", () => {
  it("leaves out what looks like a secret by its name", () => {
    for (const name of [
      "OPENAI_API_KEY",
      "GITHUB_TOKEN",
      "db_password",
      "AWS_SECRET_ACCESS",
      "SSH_AUTH_SOCK",
      "Cookie"
    ]) {
      assert.isTrue(isSecret(name, "x"), name)
    }
  })

  it("leaves out what has a password in an address", () => {
    assert.isTrue(isSecret("DATABASE", "postgres://user:hunter2@db/app"))
    assert.isTrue(isSecret("HTTP_PROXY", "http://:pw@proxy:3128"))
  })

  it("keeps what a program needs to run", () => {
    for (const [name, value] of [
      ["PATH", "/usr/bin:/bin"],
      ["HOME", "/home/me"],
      ["PWD", "/home/me"],
      ["LANG", "C.UTF-8"],
      ["HTTP_PROXY", "http://proxy:3128"]
    ] as const) {
      assert.isFalse(isSecret(name, value), name)
    }
  })

  it("lets the names through that it is told to, and adds values that outrank the host's", () => {
    const { secrets, variables } = childEnvironment(
      { PATH: "/bin", A_KEY: "key-of-a", B_KEY: "key-of-b", EDITOR: "vi", GONE: undefined },
      {
        passEnv: ["A_KEY", "GONE"],
        env: { EDITOR: "ed", C_TOKEN: "token-of-c", HIDDEN: Redacted.make("redacted value") }
      }
    )
    assert.deepStrictEqual(variables, {
      PATH: "/bin",
      A_KEY: "key-of-a",
      EDITOR: "ed",
      C_TOKEN: "token-of-c",
      HIDDEN: "redacted value"
    })
    assert.deepStrictEqual(secrets, ["redacted value", "token-of-c", "key-of-a"])
  })

  it("is the host's own if nothing is added", () => {
    assert.deepStrictEqual(childEnvironment({ PATH: "/bin" }, {}), { variables: { PATH: "/bin" }, secrets: [] })
  })

  it("is nothing but what is added where there is none", () => {
    assert.deepStrictEqual(childEnvironment(undefined, { env: { A: "1" } }), { variables: { A: "1" }, secrets: [] })
  })

  it("takes no short value for a secret that has to be hidden", () => {
    assert.deepStrictEqual(childEnvironment({}, { env: { A_KEY: "1" } }), { variables: { A_KEY: "1" }, secrets: [] })
  })

  it.effect("is made of this process's own by default", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* HostEnvironment)?.["PATH"], process.env["PATH"])
    })
  )
})
