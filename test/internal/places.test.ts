/** Who gets a place under the caps, and when: tables and single cases. What holds whatever happens is in places.property.test.ts. */
import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import type { Limits } from "effect-subagent"
import * as Places from "../../src/internal/places.ts"

interface Asked extends Partial<Places.Wanted> {
  readonly name: string
  readonly below?: Places.Ticket | undefined
  readonly whenGranted?: () => void
}

/** Places, and a log of who was granted one later than at once. */
const makeWorld = (caps: Limits.MaxConcurrent, maxQueued = 100_000) => {
  const places = Places.make(caps, maxQueued)
  const log: Array<string> = []
  /** A root's start, or one below a ticket: its parent's key is the name after which it was called. */
  const attempt = ({ name, below, whenGranted, ...wanted }: Asked) =>
    places.ask({ provider: "x", rootId: "root", parentKey: "root", parent: below, ...wanted }, () => {
      log.push(name)
      whenGranted?.()
    })
  const ask = (asked: Asked): Places.Ticket => Result.getOrThrow(attempt(asked))
  return { places, log, attempt, ask, clear: () => log.splice(0) }
}

const nothing: Places.Counts = { granted: 0, queued: 0, overall: 0, trees: new Map(), providers: new Map() }

const scopes: ReadonlyArray<{
  readonly scope: "overall" | "tree" | "provider"
  readonly caps: (limit: number) => Limits.MaxConcurrent
  /** A start that doesn't share the scope. */
  readonly elsewhere?: Partial<Places.Wanted>
}> = [
  { scope: "overall", caps: (limit) => ({ overall: limit }) },
  { scope: "tree", caps: (limit) => ({ tree: limit }), elsewhere: { rootId: "other", parentKey: "other" } },
  { scope: "provider", caps: (limit) => ({ provider: limit }), elsewhere: { provider: "y" } },
  { scope: "provider", caps: (limit) => ({ provider: { x: limit } }), elsewhere: { provider: "y" } }
]

describe("a cap", () => {
  for (const { caps, elsewhere, scope } of scopes) {
    for (const limit of [1, 2]) {
      it(`of ${limit} lets ${limit} in and the next when one has given back: ${scope}, ${JSON.stringify(caps(limit))}`, () => {
        const { ask, log, places } = makeWorld(caps(limit))
        const first = Array.from({ length: limit }, (_, i) => ask({ name: `first ${i}` }))
        assert.isTrue(first.every(({ isGranted }) => isGranted))
        const next = ask({ name: "next" })
        const last = ask({ name: "last" })
        assert.deepStrictEqual([next.isGranted, last.isGranted, log], [false, false, []])
        if (elsewhere !== undefined) assert.isTrue(ask({ name: "elsewhere", ...elsewhere }).isGranted)
        first[0]!.giveBack()
        assert.deepStrictEqual(
          [first[0]!.isGranted, next.isGranted, last.isGranted, log],
          [false, true, false, ["next"]]
        )
        next.giveBack()
        assert.deepStrictEqual(log, ["next", "last"])
        const { granted, queued } = places.counts()
        assert.deepStrictEqual([granted, queued], [elsewhere === undefined ? limit : limit + 1, 0])
      })
    }
  }

  it("of a scope that has none holds up nobody", () => {
    for (const caps of [{}, { provider: { y: 1 } }]) {
      const { ask, places } = makeWorld(caps)
      const tickets = Array.from({ length: 10 }, (_, i) => ask({ name: `${i}` }))
      // a name that objects have by nature is not a cap
      tickets.push(ask({ name: "constructor", provider: "constructor" }))
      assert.isTrue(tickets.every(({ isGranted }) => isGranted))
      assert.deepStrictEqual(places.counts(), { ...nothing, granted: 11 })
      for (const ticket of tickets) ticket.giveBack()
      assert.deepStrictEqual(places.counts(), nothing)
    }
  })

  it("holds with others: a start takes all its places or none", () => {
    const { ask, clear, log, places } = makeWorld({ overall: 3, tree: 2, provider: { x: 1 } })
    const a = ask({ name: "a" })
    const waits = ask({ name: "waits for x" })
    assert.isFalse(waits.isGranted)
    // what it waits for with is not taken
    assert.deepStrictEqual(places.counts(), {
      granted: 1,
      queued: 1,
      overall: 1,
      trees: new Map([["root", 1]]),
      providers: new Map([["x", 1]])
    })
    const b = ask({ name: "b", provider: "y" })
    const c = ask({ name: "c", provider: "y", rootId: "other", parentKey: "other" })
    assert.deepStrictEqual([b.isGranted, c.isGranted], [true, true])
    const d = ask({ name: "d", provider: "y", rootId: "third", parentKey: "third" })
    b.giveBack()
    assert.deepStrictEqual(clear(), ["d"])
    a.giveBack()
    assert.deepStrictEqual(clear(), ["waits for x"])
    for (const ticket of [waits, c, d]) ticket.giveBack()
    assert.deepStrictEqual([log, places.counts()], [[], nothing])
  })

  it("of 2 runs fifty, one after the other (I1)", () => {
    const { ask, places } = makeWorld({ overall: 2, tree: 2, provider: 2 })
    for (let i = 0; i < 50; i++) {
      const ticket = ask({ name: `${i}` })
      assert.isTrue(ticket.isGranted)
      ticket.giveBack()
    }
    assert.deepStrictEqual(places.counts(), nothing)
  })
})

describe("a ticket", () => {
  it("that leaves the queue is never granted, and those behind it move up (A9)", () => {
    const { ask, log, places } = makeWorld({ overall: 1 })
    const running = ask({ name: "running" })
    const waiting = ["a", "b", "c", "d"].map((name) => ask({ name }))
    // the first, the last, and one between
    for (const i of [0, 3, 1]) waiting[i]!.giveBack()
    assert.strictEqual(places.counts().queued, 1)
    running.giveBack()
    assert.deepStrictEqual(log, ["c"])
    assert.deepStrictEqual(
      waiting.map(({ isGranted }) => isGranted),
      [false, false, true, false]
    )
    waiting[2]!.giveBack()
    assert.deepStrictEqual(places.counts(), nothing)
  })

  it("gives back once, however often it is told to", () => {
    const { ask, log, places } = makeWorld({ overall: 1 })
    const first = ask({ name: "first" })
    const second = ask({ name: "second" })
    const third = ask({ name: "third" })
    first.giveBack()
    first.giveBack()
    assert.deepStrictEqual([log, second.isGranted, third.isGranted], [["second"], true, false])
    third.giveBack()
    third.giveBack()
    assert.deepStrictEqual(places.counts(), { ...nothing, granted: 1, overall: 1 })
    const fourth = ask({ name: "fourth" })
    second.giveBack()
    assert.deepStrictEqual(log, ["second", "fourth"])
    fourth.giveBack()
    fourth.giveBack()
    assert.deepStrictEqual(places.counts(), nothing)
  })

  it("knows its parent", () => {
    const { ask } = makeWorld({ overall: 1 })
    const parent = ask({ name: "parent" })
    assert.strictEqual(ask({ name: "child", parentKey: "parent", below: parent }).parent, parent)
    assert.isUndefined(parent.parent)
  })
})

describe("the queue", () => {
  it("lets two parents alternate, each in its own order", () => {
    const { ask, clear } = makeWorld({ overall: 4 })
    const running = Array.from({ length: 4 }, (_, i) => ask({ name: `running ${i}`, parentKey: `${i}` }))
    const tickets = new Map<string, Places.Ticket>()
    for (const parent of ["a", "b"]) {
      for (let i = 0; i < 100; i++) tickets.set(`${parent}${i}`, ask({ name: `${parent}${i}`, parentKey: parent }))
    }
    for (const ticket of running) ticket.giveBack()
    const order: Array<string> = []
    for (let names = clear(); names.length > 0; names = clear()) {
      order.push(...names)
      for (const name of names) tickets.get(name)!.giveBack()
    }
    const expected = Array.from({ length: 100 }, (_, i) => [`a${i}`, `b${i}`]).flat()
    assert.deepStrictEqual(order, expected)
  })

  it("gives a parent of many providers no more turns than another, and its own in order of arrival", () => {
    const { ask, log } = makeWorld({ overall: 1 })
    const tickets = [ask({ name: "running" })]
    for (let i = 0; i < 3; i++) {
      for (const provider of ["x", "y", "z"]) tickets.push(ask({ name: `a${i}${provider}`, parentKey: "a", provider }))
    }
    for (let i = 0; i < 3; i++) tickets.push(ask({ name: `b${i}`, parentKey: "b" }))
    for (let i = 0; i < tickets.length; i++) tickets.find(({ isGranted }) => isGranted)!.giveBack()
    const expected = ["a0x", "b0", "a0y", "b1", "a0z", "b2", "a1x", "a1y", "a1z", "a2x", "a2y", "a2z"]
    assert.deepStrictEqual(log, expected)
  })

  it("keeps the turns of those who come to wait for something else", () => {
    const { ask, clear } = makeWorld({ overall: 2, provider: { x: 1 } })
    const x = ask({ name: "x" })
    const y = ask({ name: "y", provider: "y" })
    const waiting = ["a", "b", "c"].map((name) => ask({ name, parentKey: name, provider: "y" }))
    const first = ask({ name: "x1", parentKey: "d" })
    const second = ask({ name: "x2", parentKey: "e" })
    y.giveBack()
    assert.deepStrictEqual(clear(), ["a"])
    x.giveBack()
    assert.deepStrictEqual(clear(), ["b"])
    waiting[0]!.giveBack()
    assert.deepStrictEqual(clear(), ["c"])
    waiting[1]!.giveBack()
    assert.deepStrictEqual(clear(), ["x1"])
    waiting[2]!.giveBack()
    assert.deepStrictEqual(clear(), [])
    first.giveBack()
    assert.deepStrictEqual([clear(), second.isGranted], [["x2"], true])
  })

  it("takes no more than it may, and says which cap it is full of", () => {
    for (const { caps, scope } of scopes) {
      for (const maxQueued of [0, 1, 2]) {
        const { ask, attempt, log, places } = makeWorld(caps(1), maxQueued)
        const running = ask({ name: "running" })
        const waiting = Array.from({ length: maxQueued }, (_, i) => ask({ name: `${i}` }))
        const before = places.counts()
        const refused = Result.fail({ scope, limit: 1, queued: maxQueued, maxQueued })
        assert.deepStrictEqual(attempt({ name: "one more" }), refused)
        assert.deepStrictEqual(attempt({ name: "of another", parentKey: "another" }), refused)
        assert.deepStrictEqual(places.counts(), before)
        // a refusal takes nobody's turn, and is not the last word
        running.giveBack()
        for (const ticket of waiting) ticket.giveBack()
        assert.deepStrictEqual(
          log,
          waiting.map((_, i) => `${i}`)
        )
        assert.isTrue(ask({ name: "later" }).isGranted)
      }
    }
  })

  it("lets whoever is told ask and give back", () => {
    const { ask, log, places } = makeWorld({ overall: 1 })
    const first = ask({ name: "first" })
    let nested: Places.Ticket | undefined
    const second: Places.Ticket = ask({
      name: "second",
      whenGranted: () => {
        nested = ask({ name: "nested" })
        assert.isFalse(nested.isGranted)
        second.giveBack()
        log.push("second is done")
      }
    })
    const third = ask({ name: "third" })
    first.giveBack()
    assert.deepStrictEqual(log, ["second", "second is done", "third"])
    third.giveBack()
    assert.deepStrictEqual([log.at(-1), nested!.isGranted], ["nested", true])
    nested!.giveBack()
    assert.deepStrictEqual(places.counts(), nothing)
  })

  it("tells nobody who has given back before being told", () => {
    const { ask, log } = makeWorld({ overall: 2 })
    const running = [ask({ name: "running 0" }), ask({ name: "running 1" })]
    const other: Array<Places.Ticket> = []
    ask({
      name: "first",
      whenGranted: () => {
        running[1]!.giveBack()
        assert.isTrue(other[0]!.isGranted)
        other[0]!.giveBack()
      }
    })
    other.push(ask({ name: "second" }))
    running[0]!.giveBack()
    assert.deepStrictEqual(log, ["first"])
  })

  it("tells a start that is let in as it asks by its ticket alone", () => {
    const { ask, log } = makeWorld({ overall: 1 })
    const parent = ask({ name: "parent" })
    assert.isTrue(ask({ name: "child", parentKey: "parent", below: parent }).isGranted)
    assert.deepStrictEqual(log, [])
  })

  it("passes a place on through ten thousand who give back as they are told", () => {
    for (const isOneLane of [true, false]) {
      const { ask, log, places } = makeWorld({ overall: 1 })
      const first = ask({ name: "first" })
      const count = 10_000
      for (let i = 0; i < count; i++) {
        const parentKey = isOneLane ? "root" : `${i}`
        const ticket: Places.Ticket = ask({ name: `${i}`, parentKey, whenGranted: () => ticket.giveBack() })
      }
      first.giveBack()
      assert.deepStrictEqual(
        log,
        Array.from({ length: count }, (_, i) => `${i}`)
      )
      assert.deepStrictEqual(places.counts(), nothing)
    }
  })

  it("keeps nothing of the trees and providers that have gone", () => {
    const { ask, attempt, places } = makeWorld({ overall: 2, tree: 1, provider: 1 }, 1)
    const running = ask({ name: "running", rootId: "other", parentKey: "other", provider: "other" })
    for (let i = 0; i < 1000; i++) {
      const wanted = { rootId: `root ${i}`, parentKey: `root ${i}`, provider: `provider ${i}` }
      const first = ask({ name: "first", ...wanted })
      const second = ask({ name: "second", ...wanted })
      assert.isTrue(Result.isFailure(attempt({ name: "third", ...wanted, provider: "never", rootId: "never" })))
      if (i % 2 === 0) second.giveBack()
      first.giveBack()
      second.giveBack()
    }
    running.giveBack()
    assert.deepStrictEqual(places.counts(), nothing)
  })
})

describe("a family", () => {
  for (const { caps, scope } of scopes) {
    it(`of depth 5 goes through a cap of 1: ${scope}, ${JSON.stringify(caps(1))}`, () => {
      const { ask, places } = makeWorld(caps(1))
      const chain: Array<Places.Ticket> = []
      for (let depth = 0; depth < 5; depth++) {
        chain.push(ask({ name: `${depth}`, parentKey: `${depth}`, below: chain.at(-1) }))
      }
      assert.isTrue(chain.every(({ isGranted }) => isGranted))
      const other = ask({ name: "other" })
      for (const ticket of chain.toReversed()) {
        assert.isFalse(other.isGranted)
        ticket.giveBack()
      }
      assert.isTrue(other.isGranted)
      other.giveBack()
      assert.deepStrictEqual(places.counts(), nothing)
    })
  }

  it("takes turns with the place of the parent, which strangers don't get", () => {
    const { ask, clear, places } = makeWorld({ overall: 1 })
    const parent = ask({ name: "parent" })
    const stranger = ask({ name: "stranger", parentKey: "other" })
    const children = ["a", "b", "c"].map((name) => ask({ name, parentKey: "parent", below: parent }))
    assert.deepStrictEqual(
      children.map(({ isGranted }) => isGranted),
      [true, false, false]
    )
    children[0]!.giveBack()
    assert.deepStrictEqual(clear(), ["b"])
    children[1]!.giveBack()
    assert.deepStrictEqual(clear(), ["c"])
    assert.strictEqual(places.counts().overall, 1)
    children[2]!.giveBack()
    assert.deepStrictEqual(clear(), [])
    parent.giveBack()
    assert.deepStrictEqual([clear(), stranger.isGranted], [["stranger"], true])
  })

  it("of several providers takes turns by provider", () => {
    const { ask, clear } = makeWorld({ overall: 1 })
    const parent = ask({ name: "parent" })
    const all = ["x0", "x1", "x2", "y0", "y1"].map((name) =>
      ask({ name, provider: name[0]!, parentKey: "parent", below: parent })
    )
    for (let i = 0; i < 5; i++) all.find(({ isGranted }) => isGranted)!.giveBack()
    // the first had its place at once
    assert.deepStrictEqual(clear(), ["x1", "y0", "x2", "y1"])
  })

  it("of several branches takes turns by branch", () => {
    const { ask, clear } = makeWorld({ provider: { x: 1 } })
    const parent = ask({ name: "parent" })
    const stranger = ask({ name: "stranger" })
    const branches = ["a", "b"].map((name) => ask({ name, provider: "y", parentKey: "parent", below: parent }))
    const tickets = new Map<string, Places.Ticket>()
    // the last of these leaves nobody at work, and the first gets the place
    for (const i of [0, 1, 2]) {
      for (const [j, below] of branches.entries()) {
        const name = `${"ab"[j]}${i}`
        tickets.set(name, ask({ name, parentKey: `${"ab"[j]}`, below }))
      }
    }
    const order = clear()
    for (let i = 0; i < 5; i++) {
      tickets.get(order.at(-1)!)!.giveBack()
      order.push(...clear())
    }
    assert.deepStrictEqual(order, ["a0", "b0", "a1", "b1", "a2"])
    // the first branch waits for nobody now, and is at work
    branches[0]!.giveBack()
    assert.deepStrictEqual(clear(), ["b2"])
    assert.isFalse(stranger.isGranted)
  })

  it("finishes what it has begun before it begins more", () => {
    const { ask, clear } = makeWorld({ provider: { x: 1 } })
    const parent = ask({ name: "parent" })
    const begun = ask({ name: "begun", provider: "y", parentKey: "parent", below: parent })
    ask({ name: "more", parentKey: "parent", below: parent })
    assert.deepStrictEqual(clear(), [])
    const below = ask({ name: "below", parentKey: "begun", below: begun })
    assert.deepStrictEqual([below.isGranted, clear()], [true, []])
    below.giveBack()
    begun.giveBack()
    assert.deepStrictEqual(clear(), ["more"])
  })

  it("borrows before it takes a place that others wait for", () => {
    const { ask, clear } = makeWorld({ overall: 2 })
    const parent = ask({ name: "parent" })
    const child = ask({ name: "child", parentKey: "parent", below: parent })
    ask({ name: "second child", parentKey: "parent", below: parent })
    ask({ name: "stranger" })
    child.giveBack()
    assert.deepStrictEqual(clear(), ["second child", "stranger"])
  })

  it("lends a place of its own in each scope in which there is no other", () => {
    const { ask, clear, places } = makeWorld({ tree: 1, provider: 1 })
    const parent = ask({ name: "parent" })
    const other = ask({ name: "other", provider: "y", rootId: "other", parentKey: "other" })
    const child = ask({ name: "child", provider: "y", parentKey: "parent", below: parent })
    assert.isFalse(child.isGranted)
    other.giveBack()
    assert.deepStrictEqual(clear(), ["child"])
    const { providers, trees } = places.counts()
    assert.deepStrictEqual([providers.get("x"), providers.get("y"), trees.get("root")], [1, 1, 1])
    const grandchild = ask({ name: "grandchild", parentKey: "child", below: child })
    assert.isTrue(grandchild.isGranted)
  })

  it("whose parent has a child at work elsewhere lends nothing", () => {
    const { ask, clear } = makeWorld({ provider: { x: 1 } })
    const parent = ask({ name: "parent" })
    const atWork = ask({ name: "at work", provider: "y", parentKey: "parent", below: parent })
    const child = ask({ name: "child", parentKey: "parent", below: parent })
    assert.isFalse(child.isGranted)
    atWork.giveBack()
    assert.deepStrictEqual(clear(), ["child"])
  })

  it("has one child at a time in its place where nobody may wait", () => {
    const { ask, attempt } = makeWorld({ overall: 1 }, 0)
    const parent = ask({ name: "parent" })
    const wanted = { name: "child", parentKey: "parent", below: parent }
    const child = ask(wanted)
    assert.isTrue(Result.isFailure(attempt(wanted)))
    child.giveBack()
    assert.isTrue(ask(wanted).isGranted)
  })

  it("keeps a place until the last of it is done, and those that are left go on", () => {
    const { ask, clear, places } = makeWorld({ overall: 1 })
    const top = ask({ name: "top" })
    const middle = ask({ name: "middle", parentKey: "top", below: top })
    const bottom = ask({ name: "bottom", parentKey: "middle", below: middle })
    const late = ask({ name: "late", parentKey: "middle", below: middle })
    const second = ask({ name: "second", parentKey: "top", below: top })
    const stranger = ask({ name: "stranger", parentKey: "other" })
    middle.giveBack()
    top.giveBack()
    assert.deepStrictEqual(clear(), [])
    bottom.giveBack()
    // nobody is left to lend it to them: now it is by turns
    assert.deepStrictEqual([clear(), places.counts().overall], [["late"], 1])
    // one more of a family of which nobody is left
    const orphan = ask({ name: "orphan", parentKey: "middle", below: middle })
    late.giveBack()
    assert.deepStrictEqual(clear(), ["second"])
    second.giveBack()
    assert.deepStrictEqual(clear(), ["stranger"])
    stranger.giveBack()
    orphan.giveBack()
    assert.deepStrictEqual([clear(), places.counts()], [["orphan"], nothing])
  })

  it("has its place back when the borrower leaves while those below it wait", () => {
    const { ask, clear } = makeWorld({ provider: { x: 1, y: 1 } })
    const other = ask({ name: "other", provider: "y", parentKey: "other" })
    const parent = ask({ name: "parent" })
    const child = ask({ name: "child", parentKey: "parent", below: parent })
    const below = ask({ name: "below", provider: "y", parentKey: "child", below: child })
    const second = ask({ name: "second", parentKey: "parent", below: parent })
    assert.deepStrictEqual([below.isGranted, second.isGranted], [false, false])
    child.giveBack()
    assert.deepStrictEqual(clear(), ["second"])
    other.giveBack()
    assert.deepStrictEqual(clear(), ["below"])
  })
})

describe("two families that wait for each other", () => {
  /** A family on X and one on Y; each has a child that wants the other's provider. */
  const makeCycle = (caps: Limits.MaxConcurrent = { provider: 1 }, maxQueued = 100) => {
    const world = makeWorld(caps, maxQueued)
    const { ask } = world
    const tree = (rootId: string) => ({ rootId, parentKey: rootId })
    const h1 = ask({ name: "h1", provider: "x", ...tree("r1") })
    const h2 = ask({ name: "h2", provider: "y", ...tree("r2") })
    const k1 = ask({ name: "k1", provider: "y", rootId: "r1", parentKey: "h1", below: h1 })
    return { ...world, h1, h2, k1, wantK2: { name: "k2", provider: "x", rootId: "r2", parentKey: "h2", below: h2 } }
  }

  it("go on, one in the place of the other", () => {
    const { ask, clear, h1, h2, k1, places, wantK2 } = makeCycle()
    assert.deepStrictEqual([h1.isGranted, h2.isGranted, k1.isGranted], [true, true, false])
    const k2 = ask(wantK2)
    assert.deepStrictEqual([...clear(), k2.isGranted], ["k1", false])
    const { providers } = places.counts()
    assert.deepStrictEqual([providers.get("x"), providers.get("y")], [1, 1])
    k1.giveBack()
    assert.deepStrictEqual(clear(), [])
    h1.giveBack()
    assert.deepStrictEqual(clear(), ["k2"])
    k2.giveBack()
    h2.giveBack()
    assert.deepStrictEqual(places.counts(), nothing)
  })

  it("wait as long as somebody they wait for is at work", () => {
    const { ask, clear, wantK2, h2 } = makeCycle({ provider: { x: 1, y: 1, z: 1 } })
    const z = ask({ name: "z", provider: "z", parentKey: "z" })
    const atWork = ask({ name: "at work", provider: "free", rootId: "r2", parentKey: "h2", below: h2 })
    const k2 = ask(wantK2)
    assert.deepStrictEqual(clear(), [])
    const wantsZ = ask({ name: "wants z", provider: "z", rootId: "r2", parentKey: "h2", below: h2 })
    atWork.giveBack()
    assert.deepStrictEqual([clear(), k2.isGranted], [[], false])
    // the way to whoever is at work in z is gone with it
    wantsZ.giveBack()
    assert.deepStrictEqual(clear(), ["k1"])
    z.giveBack()
  })

  it("go on when the last one at work that they wait for is done, though it opens nothing for them", () => {
    const { ask, clear, h2, wantK2 } = makeCycle({ tree: 1, provider: 1 })
    const z = ask({ name: "z", provider: "z", rootId: "r3", parentKey: "r3" })
    const wantsZ = ask({ name: "wants z", provider: "z", rootId: "r2", parentKey: "h2", below: h2 })
    const k2 = ask(wantK2)
    // it waits for its tree, and its tree for z
    const waits = ask({ name: "waits", provider: "w", rootId: "r2", parentKey: "r2" })
    assert.deepStrictEqual([clear(), k2.isGranted, waits.isGranted], [[], false, false])
    z.giveBack()
    assert.deepStrictEqual(clear(), ["wants z"])
    wantsZ.giveBack()
    assert.deepStrictEqual(clear(), ["k1"])
  })

  it("go on though others are at work under a cap that the families share with them", () => {
    const { ask, clear, wantK2 } = makeCycle({ overall: 3, provider: 1 })
    ask({ name: "at work", provider: "z", rootId: "r3", parentKey: "r3" })
    ask(wantK2)
    assert.deepStrictEqual(clear(), ["k1"])
  })

  /** A borrower that waits for another family, whose lender has a child that waits for the borrower, and for more. */
  const makeLender = (caps: Limits.MaxConcurrent) => {
    const world = makeWorld(caps)
    const { ask } = world
    const lender = ask({ name: "lender", provider: "y" })
    const borrower = ask({ name: "borrower", provider: "y", parentKey: "lender", below: lender })
    const other = ask({ name: "other", provider: "z", rootId: "r2", parentKey: "r2" })
    const atWork = ["at work", "at work too"].map((name) => ask({ name, provider: "w", rootId: "r3", parentKey: name }))
    ask({ name: "of the other", provider: "y", rootId: "r2", parentKey: "other", below: other })
    return { ...world, lender, borrower, atWork }
  }

  it("go on as soon as there is room for what one of them waited for beside", () => {
    const { ask, atWork, borrower, clear, lender } = makeLender({ overall: 4, provider: { y: 1, z: 1 } })
    ask({ name: "sibling", provider: "y", parentKey: "lender", below: lender })
    ask({ name: "of the borrower", provider: "z", parentKey: "borrower", below: borrower })
    assert.deepStrictEqual(clear(), [])
    atWork[0]!.giveBack()
    assert.deepStrictEqual(clear(), ["of the other"])
  })

  it("go on when the one through whom they waited for others gives back", () => {
    const { ask, borrower, clear, lender } = makeLender({ provider: { w: 2, y: 1, z: 1 } })
    ask({ name: "sibling", provider: "w", parentKey: "lender", below: lender })
    ask({ name: "of the borrower", provider: "z", parentKey: "borrower", below: borrower })
    assert.deepStrictEqual(clear(), [])
    lender.giveBack()
    assert.deepStrictEqual(clear(), ["of the other"])
  })

  it("refuse rather than queue where nothing may be queued", () => {
    const world = makeWorld({ provider: 1 }, 0)
    const h1 = world.ask({ name: "h1" })
    const h2 = world.ask({ name: "h2", provider: "y", rootId: "r2", parentKey: "r2" })
    const refused = Result.fail({ scope: "provider", limit: 1, queued: 0, maxQueued: 0 } as const)
    const k1 = { name: "k1", provider: "y", parentKey: "h1", below: h1 }
    assert.deepStrictEqual(world.attempt(k1), refused)
    h2.giveBack()
    assert.isTrue(world.ask(k1).isGranted)
  })
})
