/** Lint rules. The floors of `src` (AGENTS.md) are the table below: a module may import from its own floor and from those beneath it. */

/** Floors 0 to 2 lie flat in `src` and `src/internal`, so they go by module; test/repository.test.ts compares this with `src`. */
export const modules: ReadonlyArray<ReadonlyArray<string>> = [
  [
    "Agent",
    "Budget",
    "Capabilities",
    "Content",
    "Limits",
    "ResumeToken",
    "SubagentError",
    "SubagentEvent",
    "SubagentRequest",
    "SubagentResult",
    "SubagentUpdate",
    "internal/account",
    "internal/checkOptions",
    "internal/checkProvider",
    "internal/describe",
    "internal/effectOf",
    "internal/fanOut",
    "internal/figures",
    "internal/frozen",
    "internal/id",
    "internal/issues",
    "internal/nonBlank",
    "internal/outputFold",
    "internal/ownCopy",
    "internal/readAgent",
    "internal/readLimits",
    "internal/readRequest",
    "internal/readResume",
    "internal/usage"
  ],
  [
    "Approvals",
    "CurrentAgent",
    "SubagentProvider",
    "SubagentRun",
    "internal/abortSignal",
    "internal/meter",
    "internal/place",
    "internal/places",
    "internal/pools",
    "internal/promised",
    "internal/promisedProvider",
    "internal/updateLog",
    "internal/verdict",
    "internal/watch",
    "internal/watchers"
  ],
  [
    "Subagents",
    "internal/activate",
    "internal/entering",
    "internal/keeper",
    "internal/limiter",
    "internal/runs",
    "internal/startRun",
    "internal/waiting"
  ]
]

/** Floors 3 to 5 are folders. */
export const folders: ReadonlyArray<ReadonlyArray<string>> = [
  ["agent", "json-schema", "process"],
  ["providers"],
  ["promise", "testing", "tool"]
]

/** Effect's modules tagged `@stability unstable`: whole folders, then single modules. A test compares this with the installed effect. */
const unstable =
  "^effect/(?:(?:ai|cli|cluster|crypto|devtools|encoding|eventlog|graphql|http|http-api|net|observability|persistence|process" +
  "|reactivity|rpc|schema|socket|sql|testing|workers|workflow)(?:/|$)|(?:Arbitrary|ByteSize|Bytes|ChannelSchema|ErrorReporter" +
  "|ExecutionPlan|FileSystem|Graph|HashRing|LayerMap|LayerRef|Newtype|PartitionedSemaphore|Path|PlatformError|SemVer|SemVerRange" +
  "|Stdio|Terminal|TxChunk|TxQueue|Version)$)"

interface Pattern {
  readonly regex: string
  readonly message: string
}

const everywhere: ReadonlyArray<Pattern> = [
  { regex: "(^|/)index\\.ts$|^\\.{1,2}/?$", message: "Index files are for users: import the module itself." },
  { regex: "^effect$", message: "Import the module (effect/Effect), not the barrel." },
  { regex: "^effect-subagent(/|$)", message: "Inside src, import by relative path." },
  { regex: "^node:|^@effect/", message: "src runs anywhere Effect runs: ask for a service, not for a platform." }
]

const core: ReadonlyArray<Pattern> = [{ regex: unstable, message: "Floors 0 to 2 import stable Effect modules only." }]

const modulesAbove = (floor: number): ReadonlyArray<Pattern> =>
  modules.slice(floor + 1).map((names, i) => ({
    // a module of src/internal is "./internal/x.ts" from src and "./x.ts" from its neighbours
    regex: `^\\.{1,2}/(internal/)?(${names.map((name) => name.replace("internal/", "")).join("|")})\\.ts$`,
    message: `Floor ${floor} may not import floor ${floor + 1 + i}: imports go down only.`
  }))

const foldersAbove = (floor: number): ReadonlyArray<Pattern> =>
  folders.slice(Math.max(0, floor - 2)).map((names, i) => ({
    regex: `^\\.{1,2}/(${names.join("|")})/`,
    message: `Floor ${floor} may not import floor ${Math.max(3, floor + 1) + i}: imports go down only.`
  }))

const restrict = (floor: number, files: ReadonlyArray<string>) => ({
  files,
  rules: {
    "no-restricted-imports": [
      "error",
      { patterns: [...everywhere, ...(floor < 3 ? core : []), ...modulesAbove(floor), ...foldersAbove(floor)] }
    ]
  }
})

/** What the WebWorker lib (src/tsconfig.json) declares and src must not use. `name` and `close` are there because a forgotten variable would compile. */
const globals = [
  ...["setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval", "queueMicrotask", "Date"].map(
    (name) => ({ name, message: "Time comes from Clock and Effect.sleep, so that a test controls it." })
  ),
  ...["crypto", "performance"].map((name) => ({ name, message: "Randomness and time come from Effect services." })),
  ...["self", "globalThis", "navigator", "location", "name", "close", "origin", "fetch", "caches", "indexedDB"].map(
    (name) => ({ name, message: "Not a global of every runtime Effect runs on." })
  ),
  ...["postMessage", "onmessage", "onerror", "addEventListener", "removeEventListener", "dispatchEvent"].map(
    (name) => ({ name, message: "Not a global of every runtime Effect runs on." })
  )
]

export default {
  plugins: ["typescript", "unicorn", "oxc", "import", "vitest"],
  categories: { correctness: "error", suspicious: "error", perf: "error" },
  options: { typeAware: true, denyWarnings: true, reportUnusedDisableDirectives: "error" },
  ignorePatterns: ["dist", "coverage"],
  rules: {
    eqeqeq: ["error", "always", { null: "ignore" }],
    "import/no-cycle": "error",
    // the compiler sees a missing name, and sees it in src; this rule looks into a dist that may be of yesterday
    "import/namespace": "off",
    "prefer-const": "error",
    "typescript/consistent-type-imports": "error",
    "typescript/no-explicit-any": "error",
    // `_tag` and unused `_` parameters are Effect's way
    "no-underscore-dangle": "off",
    // closures in generators, and `name` or `id` in inner functions, read better than invented names
    "no-shadow": "off",
    "unicorn/consistent-function-scoping": "off",
    // a cast carries a reason instead; immutable records are copied by spread
    "typescript/no-unsafe-type-assertion": "off",
    "oxc/no-map-spread": "off",
    // filter, then flatMap, says what it does
    "unicorn/prefer-array-flat-map": "off",
    // type parameters that appear once carry inference in Effect signatures; services are classes
    "typescript/no-unnecessary-type-parameters": "off",
    "typescript/no-extraneous-class": "off",
    // an exhaustive switch needs no return after it; the compiler (noImplicitReturns) sees when one is not
    "typescript/consistent-return": "off",
    // these know `expect` and plain `it` only
    "vitest/expect-expect": "off",
    "vitest/no-standalone-expect": "off"
  },
  overrides: [
    {
      files: ["src/**/*.ts"],
      rules: {
        "no-console": "error",
        "no-restricted-globals": ["error", ...globals],
        "no-restricted-properties": [
          "error",
          { object: "Math", property: "random", message: "Randomness comes from Effect's Random." }
        ]
      }
    },
    // the edges to plain JavaScript
    {
      files: ["src/promise/**/*.ts", "src/tool/PlainTool.ts", "src/internal/abortSignal.ts"],
      rules: { "no-restricted-globals": "off" }
    },
    { files: ["src/**/index.ts"], rules: { "unicorn/require-module-specifiers": "off" } },
    // steps of a script come one after the other
    { files: ["scripts/**", "test/**", "docs/**"], rules: { "no-await-in-loop": "off" } },
    { files: ["**/*.cjs"], rules: { "no-var": "off" } },
    // the flat files default to the top of the core, so that a module missing from the table is not without rules
    restrict(2, ["src/*.ts", "src/internal/**/*.ts"]),
    ...[0, 1].map((floor) =>
      restrict(
        floor,
        (modules[floor] ?? []).map((name) => `src/${name}.ts`)
      )
    ),
    ...folders.map((names, i) =>
      restrict(
        i + 3,
        names.map((name) => `src/${name}/**/*.ts`)
      )
    )
  ]
}
