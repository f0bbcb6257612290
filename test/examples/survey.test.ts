/** The main job: on generated folders in this process, and as the command that users run. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestConsole from "effect/testing/TestConsole"
import { ScriptedModel } from "effect-subagent/testing"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { type Report, shortcomings } from "../../docs/examples/survey/Report.ts"
import { type Survey, survey } from "../../docs/examples/survey/Survey.ts"
import * as SurveyModel from "../../docs/examples/survey/SurveyModel.ts"
import { root, start } from "./command.ts"
import { temporaryFolder } from "./folder.ts"

const ask = (folder: string, model: Layer.Layer<LanguageModel.LanguageModel> = SurveyModel.layer) =>
  survey(folder).pipe(Effect.provide([NodeServices.layer, model]))

const filesOf = ({ parts }: Report) => parts.flatMap(({ files }) => files)

/** The lines of every file in a folder, counted in another way than the tools do. */
const linesBelow = (folder: string): Record<string, number> =>
  Object.fromEntries(
    fs
      .readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry): [string, number] => {
        const file = path.join(entry.parentPath, entry.name)
        const lines = fs.readFileSync(file, "latin1").split("\n")
        return [path.relative(folder, file), lines.length - (lines.at(-1) === "" ? 1 : 0)]
      })
  )

/** Small numbers that follow from a seed. */
const dice = (seed: number) => {
  let state = seed
  return (sides: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * sides)
  }
}

const names = [
  "a.ts",
  "b.md",
  "c d.txt",
  "new\nline",
  "tab\t",
  "\u001b[31m",
  "ünïcode 文",
  "🦕",
  '"q"',
  "'",
  "-rf",
  "...",
  "line\u2028sep",
  "[x]"
]

/** Whatever files may hold. */
const contentOf = (roll: (sides: number) => number): string | Uint8Array => {
  if (roll(8) === 0) return Uint8Array.from({ length: roll(500) }, () => roll(256))
  const lines = Array.from({ length: roll(40) }, () => ["", "# x", "export const y = 1", "ä\r", "plain"][roll(5)])
  return lines.join("\n") + ["", "\n"][roll(2)]
}

/** A folder tree that follows from a seed: paths and their contents. */
const randomTree = (seed: number): Record<string, string | Uint8Array> => {
  const roll = dice(seed)
  const files: Record<string, string | Uint8Array> = {}
  const grow = (folder: string, depth: number) => {
    for (const name of names) {
      const kind = roll(6)
      if (kind < 2) files[folder + name] = contentOf(roll)
      else if (kind === 2 && depth < 3) grow(`${folder}${name}/`, depth + 1)
    }
  }
  grow("", 0)
  return files
}

describe("a survey", () => {
  it.effect.each(Array.from({ length: 20 }, (_, seed) => seed))(
    "of a generated folder has every file with its lines, read by the children and not by the root (seed %i)",
    (seed) =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder(randomTree(seed))
        const expected = linesBelow(folder)
        const paths = Object.keys(expected).toSorted()
        const done = yield* ask(folder)
        const { parts, totals } = done.report

        assert.deepStrictEqual(
          Object.fromEntries(filesOf(done.report).map(({ lines, path }) => [path, lines])),
          expected
        )
        assert.strictEqual(filesOf(done.report).length, paths.length)
        assert.deepStrictEqual(shortcomings(done.report), [])
        assert.strictEqual(totals.files, paths.length)
        assert.strictEqual(
          totals.lines,
          Object.values(expected).reduce((a, b) => a + b, 0)
        )
        for (const { files, totals } of parts) {
          assert.strictEqual(totals.files, files.length)
          assert.strictEqual(
            totals.lines,
            files.reduce((sum, { lines = 0 }) => sum + lines, 0)
          )
        }

        const tops = new Set(paths.map((path) => (path.includes("/") ? `${path.split("/")[0]}/` : "files at the top")))
        assert.deepStrictEqual(new Set(parts.map(({ name }) => name)), tops)
        const children = done.runs.filter(({ parentId }) => parentId === done.root.id)
        assert.deepStrictEqual(children.map(({ label }) => label ?? "").toSorted(), Array.from(tops).toSorted())
        for (const child of children) {
          const slices = done.runs.filter(({ parentRunId }) => parentRunId === child.runId)
          const files = parts.find(({ name }) => name === child.label)?.files.map(({ path }) => path)
          assert.deepStrictEqual([child, ...slices].flatMap(({ reads }) => reads).toSorted(), files?.toSorted())
          assert.deepStrictEqual([child.depth, ...slices.map(({ depth }) => depth)], [1, ...slices.map(() => 2)])
        }
        assert.isTrue(done.runs.every(({ end }) => end?.stopReason === "completed"))
        assert.deepStrictEqual(done.root.reads, [])
        assert.deepStrictEqual(JSON.parse(JSON.stringify(done)), done)
      })
  )

  it.effect("says what each file exports or is headed by", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder({
        "lib/a.ts": "export const one = 1\nexport type Two = 2\n",
        "README.md": "# A title\n",
        "data.bin": "\0\0\n",
        "long.ts": `export const first = 1\n${"// and so on\n".repeat(30_000)}export const last = 1\n`
      })
      const { report } = yield* ask(folder)
      assert.deepStrictEqual(filesOf(report), [
        { path: "lib/a.ts", kind: "text", lines: 2, bytes: 41, exports: ["one", "Two"] },
        { path: "README.md", kind: "text", lines: 1, bytes: 10, heading: "A title" },
        { path: "data.bin", kind: "binary", lines: 1, bytes: 3 },
        {
          path: "long.ts",
          kind: "text",
          lines: 30_002,
          bytes: 390_045,
          exports: ["first"],
          note: "only its first 262142 characters were looked at"
        }
      ])
    })
  )

  it.effect("names what is no file, follows no link, and is complete for all that", () =>
    Effect.gen(function* () {
      const outside = yield* temporaryFolder({ secret: "the secret\n" })
      const folder = yield* temporaryFolder({ "sub/file": "x\n" })
      fs.symlinkSync(path.join(outside, "secret"), path.join(folder, "sub/out"))
      fs.symlinkSync(".", path.join(folder, "loop"))
      fs.symlinkSync("nowhere", path.join(folder, "sub/dangling"))
      execFileSync("mkfifo", [path.join(folder, "fifo")])
      fs.mkdirSync(path.join(folder, "empty"))
      const { report } = yield* ask(folder)
      assert.deepStrictEqual(
        report.parts.map(({ files, name }) => [
          name,
          files.map(({ kind, lines, note, path }) => [path, kind, lines ?? note])
        ]),
        [
          ["empty/", []],
          [
            "sub/",
            [
              ["sub/file", "text", 1],
              ["sub/dangling", "link", "nowhere"],
              ["sub/out", "link", path.join(outside, "secret")]
            ]
          ],
          [
            "files at the top",
            [
              ["fifo", "other", "FIFO"],
              ["loop", "link", "."]
            ]
          ]
        ]
      )
      assert.deepStrictEqual(shortcomings(report), [])
      assert.notInclude(JSON.stringify(report), "the secret")
    })
  )

  it.effect("of an empty folder is empty, and delegates nothing", () =>
    Effect.gen(function* () {
      const { report, runs } = yield* ask(yield* temporaryFolder())
      assert.deepStrictEqual([report.parts, report.totals, runs], [[], { files: 0, lines: 0, bytes: 0 }, []])
    })
  )

  it.effect(
    "of ten thousand files is shared out in slices, so that no agent has more than a hundred to read",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder(
          Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`many/${i}.txt`, `${i}\n`.repeat(i % 7)]))
        )
        const { report, root, runs } = yield* ask(folder)
        assert.deepStrictEqual(
          Object.fromEntries(filesOf(report).map(({ lines, path }) => [path, lines])),
          linesBelow(folder)
        )
        const [part, ...slices] = runs
        assert.deepStrictEqual([part?.depth, part?.parentId, part?.reads], [1, root.id, []])
        assert.strictEqual(slices.length, 100)
        for (const slice of slices) {
          assert.deepStrictEqual([slice.depth, slice.parentRunId, slice.reads.length], [2, part?.runId, 100])
        }
        assert.isTrue(runs.every(({ end }) => end?.stopReason === "completed"))
      }),
    120_000
  )

  /** The offline model, but whoever is asked about the folder `name` is answered by something else. */
  const modelBut = (name: string, elsewhere: Effect.Effect<never, AiError.AiError>) =>
    Layer.effect(
      LanguageModel.LanguageModel,
      Effect.map(Effect.service(LanguageModel.LanguageModel), (model) => {
        const generate = model.generateText as (options: unknown) => Effect.Effect<unknown, unknown>
        const generateText = (options: { readonly prompt: Prompt.RawInput }) => {
          const asked = Prompt.make(options.prompt).content.filter(({ role }) => role === "user")
          return JSON.stringify(asked).includes(JSON.stringify(`"${name}"`).slice(1, -1))
            ? elsewhere
            : generate(options)
        }
        // its type follows from the tools of each call
        return { ...model, generateText: generateText as typeof model.generateText }
      })
    ).pipe(Layer.provide(SurveyModel.layer))

  it.effect("in which one child fails has the parts of the others, and says what is missing", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder({ "bad/a": "x", "good/b": "x", c: "x" })
      const refused = new AiError.AiError({
        module: "Test",
        method: "generateText",
        reason: new AiError.AuthenticationError({ kind: "ExpiredKey" })
      })
      const { report, runs } = yield* ask(folder, modelBut("bad", Effect.fail(refused)))
      assert.deepStrictEqual(
        report.parts.map(({ files, name }) => [name, files.map(({ path }) => path)]),
        [
          ["bad/", []],
          ["good/", ["good/b"]],
          ["files at the top", ["c"]]
        ]
      )
      const [problem, ...others] = shortcomings(report)
      assert.match(String(problem), /^bad\/: The subagent failed \(error\)\./)
      assert.deepStrictEqual(others, [])
      const ends = Object.fromEntries(runs.map(({ end, label }) => [label, end]))
      assert.deepStrictEqual(ends["good/"], { stopReason: "completed" })
      assert.deepInclude(ends["bad/"]?.failure, { kind: "model", retryable: false, status: 401 })
    })
  )

  it.effect("that is interrupted stops every agent, and tells of each one's end before it ends itself (9)", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder({ "slow/a": "x", "slower/b": "x" })
      const isWorking = yield* Deferred.make<void>()
      const stopped: Array<string> = []
      const hang = Deferred.succeed(isWorking, undefined).pipe(
        Effect.andThen(Effect.never),
        Effect.onInterrupt(() => Effect.sync(() => stopped.push("slow")))
      )
      const fiber = yield* Effect.forkChild(ask(folder, modelBut("slow", hang)))
      yield* Deferred.await(isWorking)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(stopped, ["slow"])
      const told = yield* TestConsole.errorLines
      assert.include(told, "started  slow/ (spawn, depth 1)")
      assert.include(told, "ended    slow/: aborted")
    })
  )

  it.effect.each([
    ["The agent did not finish (error): ", { finishReason: "error", text: "x" }],
    ["The agent did not finish (error): The agent submitted no result", { text: "There are files in it." }],
    [
      'The agent did not finish (error): Missing key\n  at ["parts"]',
      { toolCalls: [{ name: "submit_result", params: { problems: [] } }] }
    ]
  ] as const)("without a report fails with: %s", ([message, step]) =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder({ a: "x" })
      const failed = yield* Effect.flip(
        ask(
          folder,
          ScriptedModel.layer(() => step)
        )
      )
      assert.strictEqual(failed.message.slice(0, message.length), message)
    })
  )
})

describe("the survey command", () => {
  it.live("surveys this project's src, and tells its progress apart from the report", () =>
    Effect.gen(function* () {
      const { code, stderr, stdout } = yield* start([])
      assert.strictEqual(code, 0, stderr)
      assert.include(stdout, `In ${path.join(root, "src")}: `)
      const lines = fs.readFileSync(path.join(root, "src/CurrentAgent.ts"), "utf8").split("\n").length - 1
      assert.match(stdout, new RegExp(`^ +${lines}  CurrentAgent\\.ts\\n +exports CurrentAgent$`, "m"))
      for (const line of ["started  tool/ (spawn, depth 1)", "read     CurrentAgent.ts", "ended    tool/: completed"]) {
        assert.include(stderr.split("\n"), line)
        assert.notInclude(stdout, line)
      }
    })
  )

  it.live("finds a folder from where the user is, and prints nothing but JSON if asked to", () =>
    Effect.gen(function* () {
      const name = "a b/\u001b[31mred\n.txt"
      const folder = yield* temporaryFolder({ [`here/${name}`]: "\u001b[2Jx\n" })
      const json = yield* start(["--json", "here"], { cwd: folder })
      assert.strictEqual(json.code, 0, json.stderr)
      const done = JSON.parse(json.stdout) as Survey
      assert.strictEqual(done.folder, path.join(folder, "here"))
      assert.deepStrictEqual(
        filesOf(done.report).map(({ path }) => path),
        [name]
      )
      assert.deepStrictEqual(
        done.runs.map(({ label, reads }) => [label, reads]),
        [["a b/", [name]]]
      )

      const human = yield* start(["here"], { cwd: folder })
      assert.strictEqual(human.code, 0, human.stderr)
      assert.notInclude(human.stdout + human.stderr, "\u001b[31m")
      assert.notInclude(human.stdout, "\u001b[2J")
      assert.include(human.stdout, "1  a b/\\u001b[31mred\\n.txt\n")
    })
  )

  it.live.each<readonly [ReadonlyArray<string>, string]>([
    [["missing\n"], 'There is no folder "FOLDER/missing\\n"'],
    [["file"], '"FOLDER/file" is not a folder'],
    [["self"], 'The folder "FOLDER/self" can\'t be opened'],
    [["--bogus"], "Unrecognized flag: --bogus"],
    [[""], "Expected: a path that is not blank"],
    [["one", "two"], 'Unexpected positional argument: "two"']
  ])("says what is wrong with its arguments, and fails: %j", ([args, message]) =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder({ file: "x" })
      fs.symlinkSync("self", path.join(folder, "self"))
      const { code, stderr, stdout } = yield* start(args, { cwd: folder })
      assert.strictEqual(code, 1)
      assert.include(stderr, message.replace("FOLDER", folder))
      assert.notInclude(stdout + stderr, "    at ")
    })
  )

  it.live("fails when the report is not complete, and prints it", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder({ file: "x\n" })
      // a name that is not UTF-8 can be listed and can't be asked for
      fs.writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.of(0xff)]), "x")
      const { code, stderr, stdout } = yield* start([folder])
      assert.strictEqual(code, 1)
      assert.include(stderr, "The report is not complete: 1 problem: \ufffd: ENOENT: no such file or directory")
      assert.include(stdout, "        1  file\n")
      assert.include(stdout, "Not complete:\n  \ufffd: ENOENT: no such file or directory\n")
    })
  )

  it.live("writes a long report whole into a slow pipe, also when it fails", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder({
        "a.ts": "export const someName = 1\n".replace("someName", "x".repeat(200_000))
      })
      fs.writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.of(0xff)]), "x")
      const { code, stdout } = yield* start([folder])
      assert.strictEqual(code, 1)
      assert.isTrue(stdout.endsWith("no such file or directory\n"))
    })
  )

  it.live("is stopped by Ctrl-C with all its agents, and says so", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder(
        Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`many/${i}.txt`, "x"]))
      )
      let isStopped = false
      const { code, signal, stderr, stdout } = yield* start([folder], {
        watch: (process, { stderr }) => {
          if (isStopped || !stderr.includes("\nread ")) return
          isStopped = process.kill("SIGINT")
        }
      })
      assert.deepStrictEqual([code, signal, stdout], [130, null, ""])
      const told = stderr.trimEnd().split("\n")
      assert.strictEqual(told.at(-1), "Interrupted: every agent has been stopped, and there is no report")
      const count = (pattern: RegExp) => told.filter((line) => pattern.test(line)).length
      assert.isAtLeast(count(/^ended .*: aborted$/), 2)
      assert.strictEqual(count(/^started /), count(/^ended /))
      assert.isBelow(count(/^read /), 1000)
    })
  )
})
