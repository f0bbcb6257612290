/**
 * Random trees under random limits, against sums of what the children have done (20). `LIMITS_SEQUENCES` says how many
 * (250 by default), `LIMITS_SEED` with which to begin. A failure says its seed and steps.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { type Agent, Budget, type Limits, SubagentError, type SubagentResult, type SubagentRun } from "effect-subagent"
import { everySeed, makeRandom, quiesce } from "./utils/randomLives.ts"
import {
  agentOf,
  all,
  completed,
  inSeam,
  type Outcome,
  type Placed,
  type Provider,
  provider,
  reasonOf,
  type Seam
} from "./utils/seam.ts"

const sequences = Number(process.env["LIMITS_SEQUENCES"] ?? 250)
const firstSeed = Number(process.env["LIMITS_SEED"] ?? 1)
const stepsEach = 70

/** The most tokens that one step of a child uses. */
const stepTokens = 20

/** How much time passes in a step, of which every limit is a multiple: what ends, ends when it is over. */
const tick = 10

/** What tokens and runs are counted for: a run and all below it, a root, a budget. */
interface Sum {
  readonly of: string
  readonly maxTokens: number | undefined
  readonly maxRuns: number | undefined
  tokens: number
  runs: number
  isReached: boolean
  /** The runs at work whenever the tokens were used up: each may end its step, and say what it has got. */
  readonly excused: Set<Run>
}

interface Asked {
  readonly maxTokens?: number
  readonly maxRuns?: number
  readonly maxTurns?: number
  readonly timeout?: number
  readonly idleTimeout?: number
}

interface Child {
  readonly placed: Placed
  readonly agent: Agent.Agent
  readonly parent: Child | undefined
  readonly request: Request
  readonly runs: Array<Run>
}

/** What is known of a run before there is one. */
interface Request {
  readonly label: string
  readonly provider: "p" | "q"
  readonly rootId: string
  readonly asked: Asked
  readonly limits: Asked
  readonly budget: ReadonlyArray<Sum>
}

interface Run extends Request {
  readonly child: Child
  readonly handle: SubagentRun.SubagentRun
  readonly scope: Scope.Closeable
  readonly owner: Run | undefined
  readonly above: ReadonlyArray<Sum>
  readonly chain: ReadonlyArray<Sum>
  readonly own: Sum | undefined
  /** The tokens that are reserved for it as long as it is at work. */
  readonly share: number
  readonly result: Fiber.Fiber<SubagentResult.SubagentResult, SubagentError.SubagentError>
  used: number
  turns: number
  state: "idle" | "in a turn" | "wrapping up" | "refused" | "over"
  elapsed: number
  silent: number
}

/** A start, or a resume, that has not come to anything yet. */
interface Coming extends Request {
  readonly child: Child | undefined
  readonly parent: Child | undefined
  readonly owner: Run | undefined
  readonly above: ReadonlyArray<Sum>
  readonly scope: Scope.Closeable
  readonly gate: Deferred.Deferred<void> | undefined
  fiber: Fiber.Fiber<SubagentRun.SubagentRun, SubagentError.SubagentError>
  /** Whether its provider has been asked. */
  isIn: boolean
}

const sum = (of: string, maxTokens?: number, maxRuns?: number): Sum => ({
  of,
  maxTokens,
  maxRuns,
  tokens: 0,
  runs: 0,
  isReached: false,
  excused: new Set()
})

const tightest = (above: Asked, asked: Asked): Asked => {
  const both: Record<string, number> = { ...above }
  for (const [name, limit] of Object.entries(asked)) both[name] = Math.min(limit, both[name] ?? limit)
  return both
}

const isAbove = (above: Run, run: Run | undefined): boolean =>
  run !== undefined && (run === above || isAbove(above, run.owner))

const live = (seed: number, hits: Map<string, number>, trace: Array<string>) => {
  const { below, pick } = makeRandom(seed)
  const oneIn = (n: number) => below(n) === 0
  const some = <A>(n: number, value: () => A): A | undefined => (oneIn(n) ? value() : undefined)
  const defined = <A extends object>(fields: A) =>
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

  /** Whether it is about time, more than about tokens. */
  const isTimed = oneIn(3)
  const caps: Limits.MaxConcurrent | undefined = pick<() => Limits.MaxConcurrent | undefined>([
    () => undefined,
    () => ({ overall: 1 + below(4) }),
    () => ({ tree: 1 + below(3) }),
    () => ({ provider: { p: 1 + below(3) } }),
    () => ({ overall: 1 + below(4), tree: 1 + below(3), provider: { p: 1 + below(3) } }),
    () => ({ provider: 1 + below(2) }),
    () => ({ overall: 1 + below(3), provider: 1 + below(2) })
  ])()
  /** Parents of one provider may wait for places of the other's: somebody is let in then. */
  const hasCircles = typeof caps?.provider === "number"
  const host: Asked = defined({
    maxTokens: some(4, () => 30 + below(100)),
    maxTurns: some(4, () => 1 + below(6)),
    timeout: some(isTimed ? 2 : 4, () => tick * (3 + below(12))),
    idleTimeout: some(isTimed ? 2 : 4, () => tick * (2 + below(6)))
  })
  const rootRuns = some(3, () => 3 + below(12))
  const maxQueued = pick([10_000, 10_000, 0, 2])
  const wrapUp = !oneIn(3)
  const limits = defined({ ...host, maxRuns: rootRuns, maxConcurrent: caps, maxDepth: 4, maxQueued, wrapUp })
  trace.push(JSON.stringify(limits))

  const roots = ["root 0", "root 1"].map((id) => ({
    agent: { id, session: { header: { id: `session of ${id}` } } } as Agent.Agent,
    sums: rootRuns === undefined ? [] : [sum(`root ${JSON.stringify(id)}`, undefined, rootRuns)]
  }))
  const budgets: Array<{ readonly budget: Budget.Budget; readonly chain: ReadonlyArray<Sum> }> = []
  const runs: Array<Run> = []
  const children: Array<Child> = []
  const coming = new Set<Coming>()
  const entered = new Map<string, Placed>()
  const outcomes = new Map<string, Deferred.Deferred<Outcome>>()
  let names = 0

  const note = (what: string, about = "") => {
    hits.set(what, (hits.get(what) ?? 0) + 1)
    trace.push(`${what} ${about}`)
  }
  const check = (condition: boolean, what: string) => {
    if (!condition) assert.fail(what)
  }

  const play = (label: string) =>
    Effect.suspend(() => {
      const end = Deferred.makeUnsafe<Outcome>()
      outcomes.set(label, end)
      return Deferred.await(end)
    })
  const makeProvider = (name: "p" | "q"): Provider =>
    provider({
      name,
      capabilities: { ...all, turns: name === "p" },
      start: (placed) =>
        Effect.suspend(() => {
          const label = placed.label!
          entered.set(label, placed)
          for (const each of coming) {
            if (each.label !== label) continue
            each.isIn = true
            for (const sum of each.above) sum.runs++
            if (each.gate !== undefined) return Effect.as(Deferred.await(each.gate), session(label))
          }
          return Effect.succeed(session(label))
        })
    })
  const session = (label: string) => ({ turn: play(label), resumeTurn: () => play(label) })

  const working = () => runs.filter(({ state }) => state !== "over")
  const inStart = () => Array.from(coming).filter(({ isIn }) => isIn)
  const queued = () => Array.from(coming).filter(({ isIn }) => !isIn)
  /** Those at work that wait for nobody. */
  const leaves = () => {
    const others = [...working(), ...inStart()]
    const isWaitedFor = (run: Run) => others.some((other) => other !== run && isAbove(run, other.owner))
    return [...working().filter((run) => !isWaitedFor(run)), ...inStart()]
  }

  /** What is reserved in each sum: a share is, up to the next one that covers it. */
  const reserved = () => {
    const found = new Map<Sum, number>()
    const shares = new Map(working().flatMap((run) => (run.share > 0 ? [[run.own, run] as const] : [])))
    for (const { above, own, share } of shares.values()) {
      for (const each of above) {
        found.set(each, (found.get(each) ?? 0) + Math.max(0, share - own!.tokens))
        if (shares.has(each)) break
      }
    }
    return found
  }
  /** The sums that a run draws on, as far as none of them has its tokens reserved further out. */
  const upToShare = (chain: ReadonlyArray<Sum>) => {
    const shares = new Set(working().flatMap((run) => (run.share > 0 ? [run.own] : [])))
    const last = chain.findIndex((each) => shares.has(each))
    return last === -1 ? chain : chain.slice(0, last + 1)
  }

  /** Why there can be no run, if there can't. */
  const refusal = (above: ReadonlyArray<Sum>, tokens: number): string | undefined => {
    if (above.some(({ maxRuns, runs }) => maxRuns !== undefined && runs >= maxRuns)) return "maxRuns"
    // what is in its start has reserved its share, and the model has not: it may be refused for that
    const held = reserved()
    const isShort = upToShare(above).some(
      (each) =>
        each.maxTokens !== undefined && each.maxTokens - each.tokens - (held.get(each) ?? 0) < Math.max(tokens, 1)
    )
    return isShort ? "maxTokens" : undefined
  }

  /** What it takes of the limits to be let in: the sums above it, and how much is to be reserved. */
  const chainOf = (owner: Run | undefined, rootId: string, budget: ReadonlyArray<Sum>): ReadonlyArray<Sum> => {
    const inherited = owner?.chain ?? roots.find(({ agent }) => agent.id === rootId)!.sums
    return [...budget.filter((each) => !inherited.includes(each)), ...inherited]
  }
  const shareOf = ({ asked, limits }: Request) => (asked.maxTokens === undefined ? 0 : limits.maxTokens!)

  const accept = (each: Coming, handle: SubagentRun.SubagentRun) =>
    Effect.gen(function* () {
      const { above, asked, limits, owner } = each
      const placed = entered.get(each.label)!
      const child: Child = each.child ?? {
        placed,
        agent: agentOf(placed),
        parent: each.parent,
        request: each,
        runs: []
      }
      if (each.child === undefined) children.push(child)
      else for (const sum of above) sum.runs++
      const maxTokens = asked.maxTokens === undefined && owner !== undefined ? undefined : limits.maxTokens
      const maxRuns = asked.maxRuns === undefined ? undefined : limits.maxRuns
      const own = (maxTokens ?? maxRuns) === undefined ? undefined : sum(`run ${handle.runId}`, maxTokens, maxRuns)
      const run: Run = {
        ...each,
        child,
        handle,
        own,
        chain: own === undefined ? above : [own, ...above],
        share: shareOf(each),
        result: yield* Effect.forkDetach(handle.result, { startImmediately: true }),
        used: 0,
        turns: 0,
        state: "idle",
        elapsed: 0,
        silent: 0
      }
      runs.push(run)
      child.runs.push(run)
      note(`${each.child === undefined ? "start" : "resume"} accepted`, each.label)
    })

  const fork = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkDetach(effect, { startImmediately: true })

  const come = (
    asking: Effect.Effect<SubagentRun.SubagentRun, SubagentError.SubagentError, Scope.Scope>,
    fields: Omit<Coming, "fiber" | "isIn" | "scope">
  ) =>
    Effect.gen(function* () {
      const scope = Scope.makeUnsafe()
      const wanted = refusal(fields.above, shareOf(fields))
      const isSure = inStart().length === 0
      const each: Coming = { ...fields, scope, isIn: false, fiber: undefined as never }
      coming.add(each)
      each.fiber = yield* fork(Scope.provide(asking, scope))
      const exit = each.fiber.pollUnsafe()
      const reason = exit !== undefined && Exit.isFailure(exit) ? (reasonOf(exit) as { name?: string }).name : undefined
      if (wanted !== undefined && isSure) check(exit !== undefined && Exit.isFailure(exit), `let in despite ${wanted}`)
      if (isSure && (reason === "maxRuns" || reason === "maxTokens"))
        check(wanted === reason, `refused for ${reason}, not ${wanted}`)
    })

  const start = (seam: Seam) =>
    Effect.suspend(() => {
      const parents = working()
      const owner = parents.length > 0 && !oneIn(4) ? pick(parents) : undefined
      const root = pick(roots)
      const rootId = owner?.rootId ?? root.agent.id
      const parent = owner?.child.agent ?? root.agent
      const asked: Asked = defined({
        maxTokens: some(3, () => 10 + below(90)),
        maxTurns: some(5, () => 1 + below(4)),
        maxRuns: some(6, () => below(4)),
        timeout: some(isTimed ? 3 : 7, () => tick * (1 + below(10))),
        idleTimeout: some(isTimed ? 3 : 7, () => tick * (1 + below(5)))
      })
      const paid = some(2, () => pick(budgets))
      const label = `${names++}`
      const name = pick(["p", "p", "q"] as const)
      const gate = some(5, () => Deferred.makeUnsafe<void>())
      const budget = paid?.chain ?? []
      const inherited = owner?.limits ?? host
      note(
        "start",
        `${label} of ${name} below ${owner?.label ?? rootId}, ${JSON.stringify(asked)} ${paid?.budget.name}`
      )
      const asking = seam.start(name, { prompt: "go", parent, label, ...asked })
      const request = { label, provider: name, rootId, asked, limits: tightest(inherited, asked), budget }
      return come(Effect.provideService(asking, Budget.Current, paid?.budget), {
        ...request,
        child: undefined,
        parent: owner?.child,
        owner,
        above: chainOf(owner, rootId, budget),
        gate
      })
    })

  const resume = Effect.suspend(() => {
    const idle = children.filter(({ runs }) => runs.at(-1)!.state === "over")
    if (idle.length === 0) return Effect.void
    const child = pick(idle)
    const { request } = child
    const owner = child.parent?.runs.at(-1)
    note("resume", request.label)
    return come(child.runs[0]!.handle.resume!("go on"), {
      ...request,
      child,
      parent: child.parent,
      owner,
      above: chainOf(owner, request.rootId, request.budget),
      gate: undefined
    })
  })

  const report = (run: Run, tokens: number) => {
    run.used += tokens
    for (const each of run.chain) each.tokens += tokens
    for (const each of runs) if (isAbove(each, run)) each.silent = 0
    note(`report by ${run.provider}`, `${tokens} by ${run.label}`)
    run.child.placed.emit({ _tag: "Usage", usage: { total: run.used } })
    const isOver = run.chain.some(({ maxTokens, tokens }) => maxTokens !== undefined && tokens > maxTokens)
    if (run.provider === "q" && isOver && upToShare(run.chain).some(({ maxTokens, tokens }) => tokens > maxTokens!)) {
      check(run.result.pollUnsafe() !== undefined, "a child that does not ask was not stopped")
    }
  }

  const finish = (run: Run, exit: Exit.Exit<Outcome> = Exit.succeed(completed)) =>
    Effect.sync(() => {
      run.child.placed.emit({ _tag: "Content", messageId: "m", block: { type: "text", text: "done" } })
      for (const each of runs) if (isAbove(each, run)) each.silent = 0
      Deferred.doneUnsafe(outcomes.get(run.label)!, exit)
    })

  const askTurn = (run: Run) => {
    const { chain, limits } = run
    const refused = run.child.placed.nextTurn()
    const isLast = limits.maxTurns !== undefined && run.turns >= limits.maxTurns
    if (refused === undefined) {
      check(!isLast, "a turn too many")
      const spent = upToShare(chain).find(({ maxTokens, tokens }) => maxTokens !== undefined && tokens >= maxTokens)
      check(spent === undefined, `a turn although the tokens of ${spent?.of} are used up`)
      run.turns++
      run.state = "in a turn"
      return note("turn", run.label)
    }
    const { failure } = refused
    note(`no turn for ${failure.name}`, run.label)
    check(refused.wrapUp === (wrapUp && run.turns > 0), "the last turn")
    if (failure.name === "maxTurns") check(failure.used === run.turns && failure.used === limits.maxTurns, "figures")
    else check(failure.used! <= Math.max(...chain.map(({ tokens }) => tokens)), "tokens that nobody has used")
    run.state = refused.wrapUp ? "wrapping up" : "refused"
  }

  const step = (run: Run) => {
    const { state } = run
    const tokens = below(stepTokens + 1)
    if (run.provider === "q") return Effect.sync(() => report(run, tokens))
    if (state === "in a turn") {
      run.state = "idle"
      return Effect.sync(() => report(run, tokens))
    }
    if (state === "wrapping up") {
      run.state = "refused"
      return Effect.andThen(
        Effect.sync(() => report(run, tokens)),
        oneIn(3) ? Effect.void : finish(run)
      )
    }
    if (state === "refused") {
      // one that takes it for no answer is stopped
      note("ask again", run.label)
      run.child.placed.nextTurn()
      check(run.result.pollUnsafe() !== undefined, "a child that was refused goes on")
      return Effect.void
    }
    return Effect.sync(() => askTurn(run))
  }

  const pass = Effect.suspend(() => {
    note("time")
    for (const run of working()) {
      run.elapsed += tick
      if (!queued().some(({ owner }) => isAbove(run, owner))) run.silent += tick
    }
    return TestClock.adjust(tick)
  })

  /** What has come of those who come, and of those at work. */
  const look = Effect.gen(function* () {
    yield* quiesce
    for (const each of coming) {
      const exit = each.fiber.pollUnsafe()
      if (exit === undefined) continue
      coming.delete(each)
      if (Exit.isSuccess(exit)) {
        yield* accept(each, exit.value)
        continue
      }
      if (each.isIn) for (const sum of each.above) sum.runs--
      const reason = reasonOf(exit) as SubagentError.SubagentErrorReason | Exit.Exit<never>
      note(`refused: ${"_tag" in reason ? reason._tag : ""}`, each.label)
      if (!(reason instanceof SubagentError.LimitReached)) {
        if (reason._tag === "UnsupportedCapability")
          check(each.provider === "q" && each.limits.maxTurns !== undefined, "turns")
        continue
      }
      note(`limit: ${reason.name}`, reason.message)
      if (reason.name === "maxQueued" || reason.name === "maxConcurrent") check(reason.limit <= reason.used, "figures")
      const known = each.above.find(({ of }) => of === reason.of)
      if (reason.name === "maxRuns") check(known!.maxRuns === reason.limit && reason.used === reason.limit, "figures")
      if (reason.name === "maxTokens") check(known!.maxTokens === reason.limit, "figures")
    }
    for (const run of runs) {
      const exit = run.state === "over" ? undefined : run.result.pollUnsafe()
      if (exit === undefined) continue
      run.state = "over"
      if (Exit.isFailure(exit)) {
        note("over: fault", run.label)
        continue
      }
      const { failure, stopReason, usage } = exit.value
      note(`over: ${stopReason} ${failure?.kind ?? ""}`, run.label)
      check((usage?.total ?? 0) === run.used, `usage of ${run.label}: ${usage?.total}, not ${run.used}`)
      if (failure?.kind === "timeout") {
        const name = failure.name as "timeout" | "idleTimeout"
        check(failure.limit === run.limits[name], `${name} of ${run.label}: ${failure.limit}`)
        const time = name === "timeout" ? run.elapsed : run.silent
        check(time === run.limits[name], `${name} of ${run.label} after ${time}`)
      }
    }
  })

  const checkAll = Effect.gen(function* () {
    yield* look
    const held = reserved()
    const sums = new Set([...runs.flatMap(({ chain }) => chain), ...budgets.flatMap(({ chain }) => chain)])
    for (const each of sums) {
      const { maxRuns, maxTokens, of, runs: n, tokens } = each
      if (maxRuns !== undefined) check(n <= maxRuns, `${n} runs of ${of}, of ${maxRuns}`)
      if (maxTokens === undefined) continue
      const isReached = tokens + (held.get(each) ?? 0) >= maxTokens
      if (isReached && !each.isReached) {
        for (const run of runs) if (run.chain.includes(each)) each.excused.add(run)
      }
      each.isReached = isReached
      const inside = runs.filter(({ chain }) => chain.includes(each))
      const excused = new Set([each, ...inside.flatMap(({ own, share }) => (share > 0 ? [own!] : []))])
      const many = new Set(Array.from(excused, (sum) => Array.from(sum.excused)).flat()).size
      check(tokens <= maxTokens + 2 * stepTokens * many, `${tokens} tokens of ${of}, of ${maxTokens}, by ${many}`)
    }
    for (const { budget, chain } of budgets) {
      const spent = yield* budget.spent
      const [own] = chain
      check(spent.tokens === own!.tokens, `${spent.tokens} tokens of budget ${budget.name}, not ${own!.tokens}`)
      check(spent.runs === own!.runs, `${spent.runs} runs of budget ${budget.name}, not ${own!.runs}`)
      if (inStart().some(({ asked }) => asked.maxTokens !== undefined)) continue
      const expected = held.get(own!) ?? 0
      check(spent.reserved === expected, `${spent.reserved} reserved of budget ${budget.name}, not ${expected}`)
    }
    for (const { elapsed, label, limits, silent } of working()) {
      check(elapsed < (limits.timeout ?? Number.POSITIVE_INFINITY), `${label} still works after ${elapsed}`)
      check(silent < (limits.idleTimeout ?? Number.POSITIVE_INFINITY), `${label} has said nothing for ${silent}`)
    }
    const atWork = leaves()
    check(queued().length === 0 || atWork.length > 0, "everybody waits")
    if (caps === undefined || hasCircles) return
    const capOf = (limit: number | undefined, of: typeof atWork) =>
      check(of.length <= (limit ?? Number.POSITIVE_INFINITY), `${of.length} at work under a cap of ${limit}`)
    capOf(caps.overall, atWork)
    for (const { agent } of roots)
      capOf(
        caps.tree,
        atWork.filter(({ rootId }) => rootId === agent.id)
      )
    if (typeof caps.provider === "object")
      capOf(
        caps.provider["p"],
        atWork.filter((each) => each.provider === "p")
      )
  })

  const withRun = (what: string, use: (run: Run) => Effect.Effect<unknown>) =>
    Effect.suspend(() => {
      const some = working()
      if (some.length === 0) return Effect.void
      const run = pick(some)
      if (what !== "") note(what, run.label)
      return use(run)
    })

  const open = Effect.suspend(() => {
    const some = inStart()
    if (some.length === 0) return Effect.void
    note("open")
    return Deferred.succeed(pick(some).gate!, undefined)
  })

  const give = Effect.suspend(() => {
    if (coming.size === 0) return Effect.void
    const each = pick(Array.from(coming))
    note(each.isIn ? "interrupt in its start" : "interrupt while it waits", each.label)
    return Fiber.interrupt(each.fiber)
  })

  const operation = (seam: Seam): Effect.Effect<unknown> => {
    const n = below(30)
    if (n < 6) return start(seam)
    if (n > 23) return isTimed ? pass : withRun("", step)
    if (n < 14) return withRun("", step)
    if (n < 15) return withRun("finish", finish)
    if (n === 15)
      return withRun("crash", (run) => finish(run, oneIn(2) ? Exit.die("oh") : Exit.succeed({ stopReason: "error" })))
    if (n === 16) return withRun("cancel", ({ handle }) => handle.cancel())
    if (n === 17) return withRun("cancel by id", ({ handle }) => seam.cancel(oneIn(2) ? handle.id : handle.runId))
    if (n === 18) return oneIn(2) ? withRun("release", ({ handle }) => handle.dispose) : Effect.void
    if (n === 19) return resume
    if (n < 22) return pass
    return n === 22 ? open : oneIn(2) ? give : open
  }

  /** There are as many places as there were before anybody came. */
  const checkPlaces = (seam: Seam) =>
    Effect.gen(function* () {
      const { overall = Number.POSITIVE_INFINITY, provider, tree = Number.POSITIVE_INFINITY } = caps ?? {}
      const ofP = typeof provider === "object" ? provider["p"]! : (provider ?? Number.POSITIVE_INFINITY)
      const places = Math.min(overall, ofP, tree, rootRuns ?? Number.POSITIVE_INFINITY)
      if (places === Number.POSITIVE_INFINITY) return
      yield* Effect.scoped(
        Effect.gen(function* () {
          const parent: Agent.Agent = { id: "another", session: { header: { id: "another session" } } }
          for (let n = 0; n < places; n++) {
            const starting = yield* Effect.forkScoped(seam.start("p", { prompt: "go", parent, label: `${names++}` }), {
              startImmediately: true
            })
            check(starting.pollUnsafe() !== undefined, `the place ${n} of ${places} is not there`)
            check(Exit.isSuccess(starting.pollUnsafe()!), `the place ${n} of ${places}`)
          }
          const more = yield* Effect.forkScoped(seam.start("p", { prompt: "go", parent, label: `${names++}` }), {
            startImmediately: true
          })
          const exit = more.pollUnsafe()
          check(exit === undefined || Exit.isFailure(exit), `more than ${places} places`)
          yield* Fiber.interrupt(more)
        })
      )
    })

  return Effect.gen(function* () {
    for (let i = 0; i < 4; i++) {
      const parent = budgets.length > 0 && !oneIn(3) ? pick(budgets) : undefined
      const [maxTokens, maxRuns] = [some(2, () => 20 + below(150)), some(3, () => 2 + below(12))]
      const budget = yield* Budget.make({ name: `${i}`, maxTokens, maxRuns, parent: parent?.budget })
      budgets.push({ budget, chain: [sum(`budget "${i}"`, maxTokens, maxRuns), ...(parent?.chain ?? [])] })
      trace.push(`budget ${i} ${JSON.stringify({ maxTokens, maxRuns, parent: parent?.budget.name })}`)
    }
    const { events } = yield* inSeam(
      [makeProvider("p"), makeProvider("q")],
      (seam, scope) =>
        Effect.gen(function* () {
          for (let i = 0; i < stepsEach; i++) {
            yield* operation(seam)
            yield* checkAll
          }
          trace.push("all come to an end")
          for (let i = 0; coming.size + working().length > 0; i++) {
            check(i < 500, "somebody waits for good")
            for (const { gate } of inStart()) yield* Deferred.succeed(gate!, undefined)
            for (const run of leaves()) if ("handle" in run) yield* finish(run)
            yield* checkAll
          }
          for (const { budget } of budgets) check((yield* budget.spent).reserved === 0, "something is still reserved")
          for (const { scope } of runs) yield* Scope.close(scope, Exit.void)
          assert.deepStrictEqual(yield* seam.live, [])
          yield* checkPlaces(seam)
          assert.deepStrictEqual(yield* seam.live, [])
          const closing = yield* fork(Scope.close(scope, Exit.void))
          yield* quiesce
          check(closing.pollUnsafe() !== undefined, "the registry still waits for somebody")
        }),
      { eventCapacity: 10_000, ...limits }
    )
    for (const run of runs) {
      const own = events.filter((event) => "runId" in event && event.runId === run.handle.runId)
      assert.deepStrictEqual(
        own.map(({ type }) => type),
        ["subagent/start", "subagent/end"]
      )
      const all = runs.reduce((total, other) => (isAbove(run, other) ? total + other.used : total), 0)
      const [, end] = own
      if (end?.type === "subagent/end") assert.strictEqual(end.treeUsage?.total ?? 0, all, `the tree of ${run.label}`)
    }
  })
}

describe("trees under limits (20)", () => {
  it.effect(
    "use no more than a step of each child then at work beyond them, hold nothing at the end, and never wait for good",
    () =>
      Effect.gen(function* () {
        const hits = new Map<string, number>()
        yield* everySeed({ name: "LIMITS", first: firstSeed, sequences }, (seed, trace) => live(seed, hits, trace))
        if (sequences < 250) return
        const reached = [
          ...["start", "resume"].map((what) => `${what} accepted`),
          ...["maxRuns", "maxTokens", "maxQueued", "maxConcurrent"].map((name) => `limit: ${name}`),
          ...["maxTurns", "maxTokens"].map((name) => `no turn for ${name}`),
          ..."turn,ask again,report by p,report by q,open,release,cancel,cancel by id,crash".split(","),
          ...["in its start", "while it waits"].map((when) => `interrupt ${when}`),
          ...["completed ", "aborted ", "error limit", "error timeout", "error model", "fault"].map(
            (how) => `over: ${how}`
          ),
          ...["UnsupportedCapability", "ParentSettled", "RunReleased"].map((tag) => `refused: ${tag}`)
        ]
        for (const what of reached) assert.isAtLeast(hits.get(what) ?? 0, 10, what)
      }),
    120_000 + sequences * 200
  )
})
