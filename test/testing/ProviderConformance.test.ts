import { assert, describe, it, vi } from "@effect/vitest"
import { Subagents } from "effect-subagent"
import { ProviderConformance, ScriptedProvider } from "effect-subagent/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { broken, keepsAll, prompts, world } from "../fixtures/brokenProviders.ts"
import { failures, itemsOf, mute, register, scripted } from "../utils/conformance.ts"

ProviderConformance.suite("scripted", keepsAll, { describe, it, prompts, world, ...mute })

describe("ProviderConformance", () => {
  for (const [item, how, layer] of broken) {
    it(`a provider that ${how} fails item ${item} and no other`, async () => {
      const failed = await failures(layer, { prompts, world })
      assert.deepStrictEqual(itemsOf(failed), [item], JSON.stringify(failed, null, 2))
    })
  }

  it("ends a case that goes on for too long, and says so", async () => {
    const { tests } = register(scripted({}, [ScriptedProvider.uninterruptible(ScriptedProvider.hang)]), {
      prompts: { complete: "go" },
      timeout: 0,
      ...mute
    })
    const first = tests.find(({ name }) => name.startsWith("(14)"))
    assert.strictEqual(await first?.run().then(() => undefined, String), "Violation: Expected an end within 0")
  })

  it("fails every case of a layer that can't be built", async () => {
    const layer = Layer.effect(Subagents.Subagents, Effect.fail("no such program"))
    const failed = await failures(layer, { prompts: { complete: "go" } })
    assert.isAbove(failed.length, 10)
    assert.deepStrictEqual([...new Set(failed.map(({ error }) => error))], ["no such program"])
  })

  describe("what it registers", () => {
    it("is one test per promise, in the contract's order, under the provider's name", () => {
      const { described, tests } = register(keepsAll, { prompts, ...mute })
      assert.deepStrictEqual(described, ["variation keeps the contract of a provider"])
      const items = tests.map(({ name }) => Number(/^\((\d+)\) /.exec(name)?.[1]))
      assert.deepStrictEqual(
        items,
        items.toSorted((a, b) => a - b)
      )
      assert.deepStrictEqual([...new Set(items)], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19])
      assert.strictEqual(new Set(tests.map(({ name }) => name)).size, tests.length)
    })

    it("is skipped where its prompt is missing, and says which", async () => {
      const { tests } = register(keepsAll, { prompts: { complete: "complete" }, ...mute })
      const skipped = tests.filter(({ skipped }) => skipped)
      assert.include(
        skipped.map(({ name }) => name),
        "(8) reports its child's own failure as a result, with what went wrong [not run: needs prompts.fail]"
      )
      for (const { name, skipped } of tests) assert.strictEqual(name.includes("[not run: "), skipped)
    })

    it("does nothing where its prompt is missing and the test runner has no skip", async () => {
      const layer = Layer.effect(Subagents.Subagents, Effect.die("not built"))
      const { tests } = register(layer, { prompts: { complete: "complete" }, ...mute }, false)
      const idle = tests.filter(({ name }) => name.includes("[not run: "))
      assert.isAbove(idle.length, 0)
      await Promise.all(idle.map(({ run }) => run()))
    })
  })

  describe("the table it prints", () => {
    const lines = (table: string | undefined) =>
      (table ?? "").split("\n").map((line) =>
        line
          .split("|")
          .slice(1, -1)
          .map((cell) => cell.trim())
      )

    it("comes once, when the last case has run, with what became of every one", async () => {
      const tables: Array<string> = []
      const { tests } = register(scripted({}, [ScriptedProvider.stop("refusal")]), {
        prompts: { complete: "go" },
        print: (table) => tables.push(table)
      })
      const toRun = tests.filter(({ skipped }) => !skipped)
      const last = toRun.pop()
      for (const { run } of toRun) await run().catch(() => {})
      assert.deepStrictEqual(tables, [])
      await last?.run()
      assert.strictEqual(tables.length, 1)
      const [head, rule, ...rows] = lines(tables[0])
      assert.deepStrictEqual(head, ["contract", "a provider", "variation"])
      assert.deepStrictEqual(rule, ["---:", "---", "---"])
      assert.deepStrictEqual(
        rows.map(([item, title]) => `(${item}) ${title}`),
        tests.map(({ name }) => name.replace(/ \[not run: .*/, ""))
      )
      const outcome = (item: string) => rows.find(([number]) => number === item)?.[2]
      assert.strictEqual(outcome("1"), "fail")
      assert.strictEqual(outcome("3"), "pass")
      assert.strictEqual(outcome("8"), "not run: prompts.fail")
    })

    it("goes to the console if nobody says where", async () => {
      const log = vi.spyOn(console, "log").mockImplementation(() => {})
      const { tests } = register(scripted(), { prompts: { complete: "go" } })
      for (const { run, skipped } of tests) if (!skipped) await run()
      const printed = log.mock.calls.map(([table]) => String(table))
      log.mockRestore()
      assert.strictEqual(printed.length, 1)
      assert.match(printed[0] ?? "", /^\| contract \| a provider \| variation \|\n/)
    })
  })
})
