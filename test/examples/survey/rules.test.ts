import { assert, describe, it } from "@effect/vitest"
import { next } from "../../../docs/examples/survey/rules.ts"
import type { Task } from "../../../docs/examples/survey/tasks.ts"
import { ask, understand } from "../../../docs/examples/survey/tasks.ts"

describe("the offline model", () => {
  it.each<Task>([
    { _tag: "Whole" },
    { _tag: "Folder", path: ".", recursive: false },
    { _tag: "Folder", path: 'a "b" \n\u2028 and below it.', recursive: true },
    { _tag: "Files", paths: ['a "]" \n', "\u2029", "[]"] }
  ])("understands what it asks: %j", (task) => {
    assert.deepStrictEqual(understand(ask(task)), task)
  })

  it("says so when it is asked for anything else, and calls nothing", () => {
    const task = understand("Report on the weather")
    assert.deepStrictEqual(next({ task, answered: () => [] }), {
      say: "I can tell what is in a folder, and nothing else."
    })
  })
})
