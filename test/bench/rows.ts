/** The rows of the table: what ours costs, what it is compared with, and what the ratio has to be. */
import { lateness } from "./gate.ts"
import type { MeasureName } from "./measures.ts"
import type { ContestantName } from "./open.ts"
import type { WeighedName } from "./sizes.ts"

/** Which measure gives a figure. */
export const measureOf = {
  child: "sequence",
  delegation: "sequence",
  burst: "burst",
  heap: "suspended",
  cancel: "suspended",
  own: "signals",
  shared: "signals",
  wall: "fanOut",
  item: "stream",
  turn: "acp",
  update: "acp",
  rss: "flood",
  gzip: "size",
  importing: "size"
} satisfies Record<string, MeasureName | "size">

type FigureOf<Measures> = {
  [F in keyof typeof measureOf]: (typeof measureOf)[F] extends Measures ? F : never
}[keyof typeof measureOf]

/** A figure of a contestant. */
export type Measured = readonly [who: ContestantName, figure: FigureOf<MeasureName>]

/** A figure of what is weighed. */
export type Weighed = readonly [who: WeighedName, figure: FigureOf<"size">]

export type Figure = Measured | Weighed

export interface Row {
  /** For `--row`. */
  readonly name: string
  readonly what: string
  readonly unit: "µs" | "ms" | "B" | "KB" | "MB"
  readonly ours: Figure
  /** Figures to add, or one that is known. */
  readonly floor: ReadonlyArray<Figure> | number
  readonly floorName: string
  readonly isInReadme?: true
  /** The most that the ratio may be. */
  readonly must?: number
  /** What it is to be next. */
  readonly next?: number
}

export const rows: ReadonlyArray<Row> = [
  {
    name: "child",
    what: "a child, no model layer",
    isInReadme: true,
    unit: "µs",
    ours: ["seam", "child"],
    floor: [["lifecycle", "child"]],
    floorName: "lifecycle",
    must: 2,
    next: 1.6
  },
  {
    name: "child-scripted",
    what: "a child of `ScriptedProvider`, which keeps what it saw",
    unit: "µs",
    ours: ["scripted", "child"],
    floor: [["lifecycle", "child"]],
    floorName: "lifecycle"
  },
  {
    name: "child-ai",
    what: "a child on `effect/ai`, spawned",
    isInReadme: true,
    unit: "µs",
    ours: ["agents", "child"],
    floor: [
      ["lean", "child"],
      ["lifecycle", "child"]
    ],
    floorName: "lean + lifecycle",
    must: 1.3,
    next: 1.1
  },
  {
    name: "delegation-ai",
    what: "a delegation on `effect/ai`, one model for parent and child",
    unit: "µs",
    ours: ["agents", "delegation"],
    floor: [
      ["lean", "delegation"],
      ["lifecycle", "delegation"]
    ],
    floorName: "lean + lifecycle",
    must: 1.5,
    next: 1.2
  },
  {
    name: "delegation",
    what: "a delegation by the tool, in a loop without a model layer",
    unit: "µs",
    ours: ["seam", "delegation"],
    floor: [["lifecycle", "delegation"]],
    floorName: "lifecycle",
    must: 2,
    next: 1.3
  },
  {
    name: "limits",
    what: "a child, no model layer, with every limit set",
    unit: "µs",
    ours: ["limited", "child"],
    floor: [["seam", "child"]],
    floorName: "without limits"
  },
  {
    name: "limits-ai",
    what: "a child on `effect/ai`, with every limit set",
    unit: "µs",
    ours: ["limitedAgents", "child"],
    floor: [["agents", "child"]],
    floorName: "without limits",
    must: 1.2
  },
  {
    name: "limits-delegation",
    what: "a delegation on `effect/ai`, with every limit set",
    unit: "µs",
    ours: ["limitedAgents", "delegation"],
    floor: [["agents", "delegation"]],
    floorName: "without limits",
    must: 1.2
  },
  {
    name: "burst",
    what: "10,000 children at once, each",
    unit: "µs",
    ours: ["seam", "burst"],
    floor: [["seam", "child"]],
    floorName: "one after another",
    must: 3,
    next: 2
  },
  {
    name: "heap",
    what: "heap of a suspended child, no model layer",
    unit: "B",
    ours: ["seam", "heap"],
    floor: [["plain", "heap"]],
    floorName: "plain",
    must: 2,
    next: 1.4
  },
  {
    name: "heap-ai",
    what: "heap of a suspended child on `effect/ai`",
    unit: "B",
    ours: ["agents", "heap"],
    floor: [["lean", "heap"]],
    floorName: "lean",
    must: 1.2
  },
  {
    name: "cancel",
    what: "interrupting 10,000 live children, each",
    unit: "µs",
    ours: ["seam", "cancel"],
    floor: [["plain", "cancel"]],
    floorName: "plain",
    must: 1.5,
    next: 1.2
  },
  {
    name: "cancel-signals",
    what: "aborting 10,000 live children by a signal each, each",
    unit: "µs",
    ours: ["seam", "own"],
    floor: [["plain", "own"]],
    floorName: "plain, by `runPromise`",
    must: 1.5,
    next: 1.2
  },
  {
    name: "cancel-shared",
    what: "aborting 10,000 live children by one signal, each",
    unit: "µs",
    ours: ["seam", "shared"],
    floor: [["seam", "own"]],
    floorName: "a signal each",
    must: 1.2
  },
  {
    name: "fan-out",
    what: "1,000 children on a model that takes 50 ms, all of them",
    unit: "ms",
    ours: ["seam", "wall"],
    floor: [["plain", "wall"]],
    floorName: "plain",
    must: 1.3
  },
  {
    name: "fan-out-ideal",
    what: "the same",
    unit: "ms",
    ours: ["seam", "wall"],
    floor: lateness,
    floorName: "the model alone",
    next: 1.3
  },
  {
    name: "updates",
    what: "an update, from the child to a subscriber",
    unit: "µs",
    ours: ["seam", "item"],
    floor: [["lifecycle", "item"]],
    floorName: "lifecycle",
    must: 1.2
  },
  {
    name: "updates-queue",
    what: "the same",
    unit: "µs",
    ours: ["seam", "item"],
    floor: [["plain", "item"]],
    floorName: "a bare queue",
    next: 2
  },
  {
    name: "acp-turn",
    what: "ACP: a session, a prompt and an update",
    unit: "µs",
    ours: ["acp", "turn"],
    floor: [["acpSdk", "turn"]],
    floorName: "official client",
    must: 1,
    next: 0.65
  },
  {
    name: "acp-update",
    what: "ACP: an update of a turn of 1,000, decoded",
    isInReadme: true,
    unit: "µs",
    ours: ["acp", "update"],
    floor: [["acpSdk", "update"]],
    floorName: "official client",
    must: 1,
    next: 0.5
  },
  {
    name: "acp-memory",
    what: "ACP: most memory at 200,000 updates and a slow consumer",
    unit: "MB",
    ours: ["acp", "rss"],
    floor: [["acpSdk", "rss"]],
    floorName: "official client",
    must: 1
  },
  {
    name: "acp-memory-raw",
    what: "the same",
    unit: "MB",
    ours: ["acp", "rss"],
    floor: [["acpRaw", "rss"]],
    floorName: "a line reader",
    next: 1.2
  },
  {
    name: "import",
    what: "importing the core entry",
    unit: "ms",
    ours: ["core", "importing"],
    floor: [["coreFloor", "importing"]],
    floorName: "Effect alone",
    must: 1.3,
    next: 1.1
  },
  {
    name: "size",
    what: "a bundle of the whole core entry, after gzip",
    unit: "KB",
    ours: ["core", "gzip"],
    floor: [["coreFloor", "gzip"]],
    floorName: "Effect alone",
    must: 1.4
  },
  {
    name: "size-limit",
    what: "the same",
    unit: "KB",
    ours: ["core", "gzip"],
    floor: 45,
    floorName: "limit",
    must: 1,
    next: 0.84
  },
  {
    name: "size-ai",
    what: "a bundle of a host with agents on `effect/ai`, after gzip",
    unit: "KB",
    ours: ["agentsHost", "gzip"],
    floor: 85,
    floorName: "limit",
    must: 1
  }
]

/** The figures that a row reads. */
export const figuresOf = ({ floor, ours }: Row): ReadonlyArray<Figure> => [
  ours,
  ...(typeof floor === "number" ? [] : floor)
]

export const isWeighed = (figure: Figure): figure is Weighed => measureOf[figure[1]] === "size"
