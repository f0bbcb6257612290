/**
 * What places.ts keeps its books in: pools of places, the lanes of those who wait, the lines in which the lanes wait for
 * a pool, and the family below each holder. Here is what can be told from a look at them; places.ts alone changes them,
 * but for what is linked to one another.
 *
 * @since 0.1.0
 */

/** What a cap holds for: all runs together, the runs of one tree, or those of one provider. */
export type CapScope = "overall" | "tree" | "provider"

/** A place, and who is in it, in the order of entering. */
export class Place {
  readonly pool: Pool
  readonly occupants: Array<Held> = []
  /** How many of the occupants are at work. */
  atWork = 0

  constructor(pool: Pool) {
    this.pool = pool
    pool.places.add(this)
  }
}

/** The places under one cap. */
export class Pool {
  readonly scope: CapScope
  readonly key: string
  readonly limit: number
  /** Those that are taken. */
  readonly places = new Set<Place>()
  /** How many of them have somebody at work. */
  busy = 0
  /** The lanes that want a place here. */
  readonly lanes = new Set<Lane>()
  /** Those of them that are held up by this pool. The others are in the line of another pool that holds them up too. */
  readonly line = new Line()

  constructor(scope: CapScope, key: string, limit: number) {
    this.scope = scope
    this.key = key
    this.limit = limit
  }

  get isFull(): boolean {
    return this.places.size >= this.limit
  }

  /** Everybody in it waits. */
  get isStalled(): boolean {
    return this.busy === 0 && this.places.size > 0
  }
}

/** The turns of one parent: when it was served last, and its lanes by provider. */
export interface Turn {
  readonly parentKey: string
  at: number
  readonly lanes: Map<string, Lane>
}

/** Those who wait for a provider on behalf of one parent, in order of arrival. */
export class Lane {
  readonly provider: string
  readonly parent: Held | undefined
  readonly pools: ReadonlyArray<Pool>
  readonly turn: Turn
  first: Held | undefined = undefined
  last: Held | undefined = undefined
  /** The pool whose line it stands in, and its index there. */
  heldUpBy: Pool | undefined = undefined
  index = 0

  constructor(provider: string, parent: Held | undefined, pools: ReadonlyArray<Pool>, turn: Turn) {
    this.provider = provider
    this.parent = parent
    this.pools = pools
    this.turn = turn
  }

  add(held: Held): void {
    held.previous = this.last
    if (this.last === undefined) this.first = held
    else this.last.next = held
    this.last = held
  }

  remove(held: Held): void {
    if (held.previous === undefined) this.first = held.next
    else held.previous.next = held.next
    if (held.next === undefined) this.last = held.previous
    else held.next.previous = held.previous
  }

  /** Whose parent was served longer ago; of one parent, who came first. */
  isBefore(other: Lane): boolean {
    return this.turn === other.turn ? this.first!.number < other.first!.number : this.turn.at < other.turn.at
  }
}

/** Lanes in the order of their turns: a binary heap that knows where each lane is. */
class Line {
  private readonly lanes: Array<Lane> = []

  get first(): Lane | undefined {
    return this.lanes[0]
  }

  add(lane: Lane): void {
    this.up(lane, this.lanes.length)
  }

  remove(lane: Lane): void {
    const last = this.lanes.pop()!
    if (last === lane) return
    this.up(last, lane.index)
    this.down(last)
  }

  private put(lane: Lane, index: number): void {
    this.lanes[index] = lane
    lane.index = index
  }

  private up(lane: Lane, from: number): void {
    let index = from
    while (index > 0) {
      const above = this.lanes[(index - 1) >> 1]!
      if (!lane.isBefore(above)) break
      this.put(above, index)
      index = (index - 1) >> 1
    }
    this.put(lane, index)
  }

  private down(lane: Lane): void {
    for (;;) {
      const { index } = lane
      const [left, right] = [this.lanes[2 * index + 1], this.lanes[2 * index + 2]]
      const below = right !== undefined && right.isBefore(left!) ? right : left
      if (below === undefined || !below.isBefore(lane)) return
      this.put(lane, below.index)
      this.put(below, index)
    }
  }
}

/** A ticket, and what the family below it is at. */
export class Held {
  readonly parent: Held | undefined
  readonly giveBack: () => void
  /** The order of arrival. */
  readonly number: number
  state: "queued" | "granted" | "gone" = "queued"
  lane: Lane | undefined = undefined
  previous: Held | undefined = undefined
  next: Held | undefined = undefined
  onGranted: (() => void) | undefined = undefined
  places: Array<Place> = []
  /** The children that have been granted, until they and all below them have given back. */
  kids: Set<Held> | undefined = undefined
  /** The lanes of the children that wait, and how many these are. */
  lanes: Set<Lane> | undefined = undefined
  waiting = 0
  /** How many children are at work, and whether it is itself: with one of them, or for want of any. */
  kidsAtWork = 0
  isAtWork = false
  isKid = false

  constructor(parent: Held | undefined, number: number, giveBack: (held: Held) => void) {
    this.parent = parent
    this.number = number
    this.giveBack = () => giveBack(this)
  }

  get isGranted(): boolean {
    return this.state === "granted"
  }

  get hasChildren(): boolean {
    return this.waiting > 0 || (this.kids !== undefined && this.kids.size > 0)
  }
}

/** The lanes below a holder, those of its grandchildren first: what has begun goes on before more of it begins. */
export const lanesBelow = function* (holder: Held): Generator<Lane> {
  const path = [{ holder, kids: holder.kids?.values() }]
  for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
    const kid = top.kids?.next().value
    if (kid !== undefined) {
      path.push({ holder: kid, kids: kid.kids?.values() })
      continue
    }
    path.pop()
    if (top.holder.lanes !== undefined) yield* top.holder.lanes
  }
}

/** The place that somebody above a lane can lend it. */
export const lent = (pool: Pool, lane: Lane): Place | undefined => {
  for (let holder = lane.parent; holder !== undefined; holder = holder.parent) {
    for (const place of holder.places) {
      if (place.pool === pool && place.atWork === 0 && place.occupants.at(-1) === holder) return place
    }
  }
  return undefined
}

/** What keeps a lane from going on, of the pools that are closed, where its family can't help. */
export const obstacle = (lane: Lane, isClosed: (pool: Pool) => boolean): Pool | undefined =>
  lane.pools.find((pool) => isClosed(pool) && lent(pool, lane) === undefined)

/** Whether a pool has no place left. */
export const isFull = (pool: Pool): boolean => pool.isFull

/** Whether a pool has nobody to wait for: those in it wait, and so do all those whom they wait for. */
const isStuck = (stalled: Pool): boolean => {
  const reached = new Set([stalled])
  for (const pool of reached) {
    if (!pool.isStalled) return false
    for (const { occupants } of pool.places) {
      for (const occupant of occupants) {
        for (const lane of lanesBelow(occupant)) {
          // whoever can go on is about to
          const obstacles = lane.pools.filter((next) => next.isFull && lent(next, lane) === undefined)
          if (obstacles.length === 0) return false
          for (const next of obstacles) reached.add(next)
        }
      }
    }
  }
  return true
}

/** Whether the next in line can't enter, whoever it is. */
export const isClosed = (pool: Pool): boolean => pool.isFull && !isStuck(pool)
