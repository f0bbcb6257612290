/** The lines of pools, and what a look at a family tells. */
import { assert, describe, it } from "@effect/vitest"
import { Held, isClosed, Lane, lanesBelow, lent, obstacle, Place, Pool } from "../../src/internal/pools.ts"
import { makeRandom } from "../utils/randomLives.ts"

const nobody = () => assert.fail("nobody gives back here")

const held = (number: number, parent?: Held) => new Held(parent, number, nobody)

/** A lane with a turn of its own, or another's. */
const lane = (at: number, options: { turn?: Lane["turn"]; parent?: Held; pools?: ReadonlyArray<Pool> } = {}) => {
  const turn = options.turn ?? { parentKey: "parent", at, lanes: new Map() }
  const made = new Lane("x", options.parent, options.pools ?? [], turn)
  made.add(held(at))
  return made
}

/** A holder in a place, with those below it that wait, which leaves it with nothing to do. */
const waiting = (pool: Pool, wants: ReadonlyArray<Pool>, parent?: Held) => {
  const holder = held(0, parent)
  const place = new Place(pool)
  place.occupants.push(holder)
  holder.places = [place]
  holder.state = "granted"
  holder.lanes = new Set([lane(1, { parent: holder, pools: wants })])
  return holder
}

describe("a lane", () => {
  it("is in order of arrival, whoever leaves", () => {
    const all = Array.from({ length: 5 }, (_, i) => held(i))
    const order = (lane: Lane) => {
      const found: Array<number> = []
      for (let each = lane.first; each !== undefined; each = each.next) found.push(each.number)
      return found
    }
    const made = new Lane("x", undefined, [], { parentKey: "parent", at: 0, lanes: new Map() })
    for (const each of all) made.add(each)
    assert.deepStrictEqual(order(made), [0, 1, 2, 3, 4])
    made.remove(all[2]!)
    assert.deepStrictEqual(order(made), [0, 1, 3, 4])
    made.remove(all[0]!)
    assert.deepStrictEqual(order(made), [1, 3, 4])
    made.remove(all[4]!)
    assert.deepStrictEqual(order(made), [1, 3])
    made.add(held(5))
    assert.deepStrictEqual(order(made), [1, 3, 5])
  })

  it("comes before another by the turn of its parent, and of one parent by who came first", () => {
    const early = lane(1)
    const late = lane(2)
    assert.deepStrictEqual([early.isBefore(late), late.isBefore(early)], [true, false])
    const sibling = lane(0, { turn: late.turn })
    assert.deepStrictEqual([sibling.isBefore(late), late.isBefore(sibling)], [true, false])
    assert.isTrue(early.isBefore(sibling))
  })
})

describe("a line", () => {
  it("gives the lanes by turn, whoever comes and leaves", () => {
    const { below, pick } = makeRandom(1)
    const { line } = new Pool("overall", "", 1)
    const inLine: Array<Lane> = []
    for (let i = 0; i < 5000; i++) {
      if (inLine.length === 0 || below(20) < (i < 2500 ? 11 : 9)) {
        const made = lane(below(1_000_000))
        inLine.push(made)
        line.add(made)
      } else {
        const leaving = below(2) === 0 ? line.first! : pick(inLine)
        line.remove(leaving)
        inLine.splice(inLine.indexOf(leaving), 1)
      }
      const first = Math.min(...inLine.map(({ turn }) => turn.at))
      assert.strictEqual(line.first?.turn.at, inLine.length === 0 ? undefined : first)
    }
    const order: Array<number> = []
    while (line.first !== undefined) {
      order.push(line.first.turn.at)
      line.remove(line.first)
    }
    const expected = inLine.map(({ turn }) => turn.at).toSorted((a, b) => a - b)
    assert.deepStrictEqual(order, expected)
  })
})

describe("a family", () => {
  it("has the lanes of the grandchildren first, as deep as it may be", () => {
    const top = held(0)
    const expected: Array<Lane> = []
    let parent = top
    for (let depth = 1; depth <= 10_000; depth++) {
      parent.lanes = new Set([lane(depth, { parent })])
      expected.unshift(...parent.lanes)
      const child = held(depth, parent)
      parent.kids = new Set([child])
      parent = child
    }
    assert.isTrue([...lanesBelow(top)].every((each, i) => each === expected[i]))
    assert.strictEqual([...lanesBelow(top)].length, 10_000)
  })

  it("lends the place of the last in it, as long as nobody is at work there", () => {
    const [x, y] = [new Pool("provider", "x", 1), new Pool("provider", "y", 1)]
    const holder = waiting(x, [x])
    const [below] = holder.lanes!
    const [place] = holder.places
    assert.strictEqual(lent(x, below!), place)
    assert.isUndefined(lent(y, below!))
    assert.isUndefined(lent(x, lane(0)))
    const isFull = (pool: Pool) => pool.isFull
    assert.isUndefined(obstacle(below!, isFull))
    assert.strictEqual(obstacle(lane(0, { pools: [y, x] }), isFull), x)
    place!.atWork = 1
    assert.isUndefined(lent(x, below!))
    place!.atWork = 0
    place!.occupants.push(held(1, holder))
    assert.isUndefined(lent(x, below!))
  })
})

describe("a pool", () => {
  it("is closed as long as it is full and there is somebody to wait for", () => {
    const [x, y, z] = ["x", "y", "z"].map((name) => new Pool("provider", name, 1)) as [Pool, Pool, Pool]
    assert.isFalse(isClosed(x))
    waiting(x, [y])
    // whoever wants y can have it, and goes on
    assert.isTrue(isClosed(x))
    waiting(y, [x, z])
    // there is room in z, which is no help: whoever is in x waits for y, and whoever is in y for x
    assert.isFalse(isClosed(x))
    // somebody is at work in z, and then everybody waits
    const last = waiting(z, [x])
    z.busy = 1
    assert.deepStrictEqual([isClosed(x), isClosed(y), isClosed(z)], [true, true, true])
    z.busy = 0
    assert.deepStrictEqual([isClosed(x), isClosed(y), isClosed(z)], [false, false, false])
    // whom the family helps is about to go on
    last.lanes = new Set([lane(1, { parent: last, pools: [z] })])
    assert.deepStrictEqual([isClosed(x), isClosed(y), isClosed(z)], [true, true, true])
  })

  it("without places lets nobody in", () => {
    assert.isTrue(isClosed(new Pool("overall", "", 0)))
  })
})
