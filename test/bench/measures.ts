/**
 * What is measured of a contestant. A measure is prepared once in a process, then sampled as often as is asked for; it
 * checks all that came out, and throws if anything did not.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import type { Contestant, Scenario } from "./Contestant.ts"
import { childAnswer, type Gate, parentAnswer } from "./gate.ts"

/** By name: microseconds of CPU time of all threads per run or item, milliseconds of wall time, or bytes of heap. */
export type Figures = { readonly [name: string]: number }

export interface Measure {
  readonly prepare: () => Promise<void>
  readonly sample: () => Promise<Figures>
}

/** How much is done. The defaults are those of the command; a test takes less. */
export interface Scale {
  /** CPU time that is spent on getting warm, in milliseconds. */
  readonly warm: number
  /** CPU time of a sample, in milliseconds. */
  readonly window: number
  /** Children at once. */
  readonly burst: number
  /** Children that wait for a model that is late. */
  readonly fanOut: number
  /** Items in a stream. */
  readonly items: number
  /** Turns of an agent in a process. */
  readonly turns: number
  /** Updates of an agent in a process: of a long turn, and of a flood. */
  readonly updates: number
  readonly flood: number
  /** Collections of garbage before the heap is measured. */
  readonly collections: number
}

export const full: Scale = {
  warm: 4000,
  window: 250,
  burst: 10_000,
  fanOut: 1000,
  items: 20_000,
  turns: 1000,
  updates: 1000,
  flood: 200_000,
  collections: 4
}

type Make = (contestant: Contestant, gate: Gate, scale: Scale) => Measure

/** CPU time of this process so far, in milliseconds, the collector's and the compiler's threads included. */
export const cpuTime = (): number => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}

export const timed = async (body: () => Promise<unknown>): Promise<{ readonly cpu: number; readonly wall: number }> => {
  const cpu = cpuTime()
  const start = performance.now()
  await body()
  return { wall: performance.now() - start, cpu: cpuTime() - cpu }
}

export const check = (isRight: boolean, wrong: () => string): void => {
  if (!isRight) throw new Error(wrong())
}

let lastPrompt = 0
const nextPrompts = (count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, () => `task ${++lastPrompt}`)

const expected = {
  child: { answer: childAnswer, calls: 1 },
  delegation: { answer: (prompt: string) => parentAnswer(childAnswer(prompt)), calls: 3 }
}
type ScenarioName = keyof typeof expected

/** Runs a scenario so many times, some at once, and checks what came of it. */
export const runMany = async (
  name: ScenarioName,
  scenario: Scenario,
  gate: Gate,
  count: number,
  atOnce = 1
): Promise<{ readonly cpu: number; readonly wall: number }> => {
  const prompts = nextPrompts(count)
  const answers: Array<string> = []
  const before = gate.calls
  const all = Effect.gen(function* () {
    if (atOnce === 1) {
      for (const prompt of prompts) answers.push(yield* scenario(prompt))
      return
    }
    for (let i = 0; i < count; i += atOnce) {
      const wave = prompts.slice(i, i + atOnce)
      answers.push(...(yield* Effect.forEach(wave, scenario, { concurrency: "unbounded" })))
    }
  })
  const time = await timed(() => Effect.runPromise(all))
  const { answer, calls } = expected[name]
  prompts.forEach((prompt, i) =>
    check(answers[i] === answer(prompt), () => `${name} of "${prompt}" answered "${answers[i]}"`)
  )
  check(gate.calls - before === count * calls, () => `${gate.calls - before} model calls of ${count} × ${name}`)
  return time
}

/** Spends CPU time on batches of growing size; gives the CPU time of one run, in milliseconds. */
const warmUp = async (run: (count: number) => Promise<{ readonly cpu: number }>, scale: Scale): Promise<number> => {
  let count = 4
  let each = 0
  for (let spent = 0, first = true; first || spent < scale.warm; first = false) {
    const { cpu } = await run(count)
    spent += cpu
    each = cpu / count
    if (cpu < scale.window / 4) count = Math.min(count * 4, 100_000)
  }
  return each
}

/** What one batch costs, warm, in milliseconds of CPU time. */
export const costOf = async (batch: () => Promise<{ readonly cpu: number }>, scale: Scale): Promise<number> => {
  const repeat = async (count: number) => {
    let cpu = 0
    for (let i = 0; i < count; i++) cpu += (await batch()).cpu
    return { cpu }
  }
  const each = await warmUp(repeat, scale)
  const count = Math.max(1, Math.min(100_000, Math.round(scale.window / each)))
  return (await repeat(count)).cpu / count
}

/** One run after another: what each costs. */
const sequence: Make = (contestant, gate, scale) => {
  const scenarios = (["child", "delegation"] as const).flatMap((name) => {
    const scenario = contestant[name]
    return scenario === undefined
      ? []
      : [{ name, count: 1, run: (count: number) => runMany(name, scenario, gate, count) }]
  })
  return {
    prepare: async () => {
      for (const each of scenarios) {
        const cost = await warmUp(each.run, scale)
        each.count = Math.max(1, Math.min(100_000, Math.round(scale.window / cost)))
      }
    },
    sample: async () => {
      const figures: Record<string, number> = {}
      for (const { count, name, run } of scenarios) figures[name] = ((await run(count)).cpu * 1000) / count
      return figures
    }
  }
}

/** All at once. */
const burst: Make = (contestant, gate, scale) => {
  const run = () => runMany("child", contestant.child!, gate, scale.burst, scale.burst)
  return {
    prepare: async () => {
      for (let i = 0; i < 2; i++) await run()
    },
    sample: async () => ({ burst: ((await run()).cpu * 1000) / scale.burst })
  }
}

/** All at once on a model that takes its time: how long it takes. */
const fanOut: Make = (contestant, gate, scale) => {
  const run = () => runMany("child", contestant.child!, gate, scale.fanOut, scale.fanOut)
  return {
    prepare: async () => {
      for (let i = 0; i < 3; i++) await run()
      gate.pace = "late"
      await run()
    },
    sample: async () => {
      // the least of four: a busy machine can only make it longer
      const times: Array<number> = []
      for (let i = 0; i < 4; i++) times.push((await run()).wall)
      return { wall: Math.min(...times) }
    }
  }
}

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void

/** The bytes in use when there is nothing left to collect. */
const heapUsed = async ({ collections }: Scale): Promise<number> => {
  for (let i = 0; i < collections; i++) {
    collect()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { external, heapUsed } = process.memoryUsage()
  return heapUsed + external
}

const untilWaiting = async (gate: Gate, count: number): Promise<void> => {
  for (const limit = performance.now() + 120_000; gate.waiting < count;) {
    check(performance.now() < limit, () => `only ${gate.waiting} of ${count} got to the model`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Many children that wait for a model that never answers: what each holds, and what it costs to interrupt them all. */
const suspended: Make = (contestant, gate, scale) => {
  const round = (count: number) => suspend(contestant.child!, gate, count, scale)
  return {
    prepare: async () => {
      await runMany("child", contestant.child!, gate, Math.min(200, scale.burst))
      gate.pace = "never"
      await round(Math.min(200, scale.burst))
    },
    sample: () => round(scale.burst)
  }
}

/** Starts so many children on a model that never answers, and interrupts them. */
export const suspend = async (child: Scenario, gate: Gate, count: number, scale: Scale) => {
  const prompts = nextPrompts(count)
  const before = await heapUsed(scale)
  const fibers = prompts.map((prompt) => Effect.runFork(child(prompt)))
  await untilWaiting(gate, count)
  const held = (await heapUsed(scale)) - before
  const { cpu } = await timed(() => Effect.runPromise(Fiber.interruptAll(fibers)))
  const failed = fibers.filter((fiber) => Exit.isFailure(fiber.pollUnsafe()!)).length
  check(failed === count, () => `only ${failed} of ${count} were interrupted`)
  check(gate.waiting === 0, () => `${gate.waiting} model calls are still waiting`)
  return { heap: held / count, cancel: (cpu * 1000) / count }
}

/** The same, stopped by a signal each, or by one signal for all. */
const signals: Make = (contestant, gate, scale) => {
  const round = async (count: number, shared: boolean): Promise<number> => {
    const prompts = nextPrompts(count)
    const controllers = Array.from({ length: shared ? 1 : count }, () => new AbortController())
    const ends = prompts.map((prompt, i) =>
      contestant.signalled!(prompt, controllers[shared ? 0 : i]!.signal).then(
        () => true,
        () => true
      )
    )
    await untilWaiting(gate, count)
    const { cpu } = await timed(async () => {
      for (const controller of controllers) controller.abort()
      await Promise.all(ends)
    })
    check(gate.waiting === 0, () => `${gate.waiting} model calls are still waiting`)
    return (cpu * 1000) / count
  }
  return {
    prepare: async () => {
      gate.pace = "never"
      for (const shared of [false, true]) await round(Math.min(200, scale.burst), shared)
    },
    sample: async () => {
      const own = await round(scale.burst, false)
      // with many listeners on one signal plain takes quadratic time
      return contestant.heard === undefined ? { own } : { own, shared: await round(scale.burst, true) }
    }
  }
}

/** What an item of a stream costs, from the child that reports it to the one who hears of it. */
const stream: Make = (contestant, _, scale) => {
  const run = async (items: number) => {
    let seen = 0
    const time = await timed(async () => void (seen = await Effect.runPromise(contestant.stream!(items))))
    check(seen === items, () => `saw ${seen} of ${items} items`)
    return time
  }
  return {
    prepare: async () => void (await warmUp(run, scale)),
    sample: async () => ({ item: ((await run(scale.items)).cpu * 1000) / scale.items })
  }
}

const runTurns = async (contestant: Contestant, count: number, updates: number): Promise<number> => {
  const { cpu } = await timed(async () => {
    for (let i = 0; i < count; i++) {
      const seen = await contestant.turn!(updates)
      check(seen === updates, () => `saw ${seen} of ${updates} updates`)
    }
  })
  return cpu
}

/** An agent in a process: what a short turn costs its client, and what each update of a long one does. */
const acp: Make = (contestant, _, scale) => {
  const { turns, updates } = scale
  const longs = Math.max(1, Math.round(turns / 25))
  return {
    // by number, not by CPU time: most of a turn is waiting, and the agent has to get warm, too
    prepare: async () => {
      await runTurns(contestant, longs, updates)
      await runTurns(contestant, turns * 2, 1)
    },
    sample: async () => ({
      turn: ((await runTurns(contestant, turns, 1)) * 1000) / turns,
      update: ((await runTurns(contestant, longs, updates)) * 1000) / (longs * updates)
    })
  }
}

/** An agent in a process that sends more than its client can take at once: what memory the client's process comes to. */
const flood: Make = (contestant, _, scale) => ({
  prepare: async () => {},
  sample: async () => {
    const came = await contestant.slowTurn!(scale.flood)
    check(came === scale.flood, () => `${came} of ${scale.flood} updates have come`)
    return { rss: process.resourceUsage().maxRSS / 1024 }
  }
})

export const measures = { sequence, burst, fanOut, suspended, signals, stream, acp, flood } satisfies Record<
  string,
  Make
>
export type MeasureName = keyof typeof measures
