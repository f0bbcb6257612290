/**
 * Who has a place under the caps, who waits for one, and who is next. A cap makes a pool of places: one for all runs,
 * one for each tree, one for each provider. A start takes a place in each of its pools at once, or waits and holds none.
 *
 * Those who wait stand in lanes, one per parent and provider: a lane is first come, first served, and the parents take
 * turns. What is given back goes at once, synchronously, to the next who can use it in all its pools.
 *
 * A parent that has children, all of which wait, is not at work: it lends its place to one of those below it, which
 * gives it back when it is done. So a place may have several occupants, each below the one before, and the last one
 * alone can be at work. Where everybody waits for somebody who waits too (a child of X wants Y, a child of Y wants X),
 * lending within the family does not help; then, and only then, a start enters the place of a stranger who waits: the
 * one case in which a pool may come to have more at work than places, until the guest is done.
 *
 * Whether a parent waits is told by its tickets alone: one that goes on working beside its children, all of which wait,
 * is taken for one that waits. A start and a return cost the same however many wait, but for the logarithm of the number
 * of lanes, and where all those in a pool wait: to tell whether they wait for each other, they are looked through. Who
 * needs places in two pools is not kept waiting for good, unless those who need only one of the two keep coming for good.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import type { MaxConcurrent } from "../Limits.ts"
import type { CapScope, Turn } from "./pools.ts"
import { Held, isClosed, isFull, Lane, lanesBelow, lent, obstacle, Place, Pool } from "./pools.ts"

/** A run, or the start of one, in the tree of those that have places or wait for them. */
export interface Holder {
  readonly parent: Holder | undefined
}

/** What a start wants. */
export interface Wanted {
  readonly provider: string
  readonly rootId: string
  /** Who takes turns with the others: the run id of the parent, or the root's id. One key has one parent and one root. */
  readonly parentKey: string
  /** The parent's ticket, from the same `Places`. It may have given its place back. */
  readonly parent: Holder | undefined
}

/** Why a start may not even wait: a cap, and a queue that is full. */
export interface Refused {
  readonly scope: CapScope
  readonly limit: number
  readonly queued: number
  readonly maxQueued: number
}

/** A start that has its places, waits for them, or has given them back. */
export interface Ticket extends Holder {
  /** Whether it has its places. */
  readonly isGranted: boolean
  /** Gives the places back, or leaves the queue. The next ones are let in before this returns. Idempotent. */
  readonly giveBack: () => void
}

/** What is in use. Pools that nobody uses are not listed. */
export interface Counts {
  /** Tickets that have been granted and not given back. */
  readonly granted: number
  readonly queued: number
  /** The places taken, of all runs. */
  readonly overall: number
  /** The places taken, by root id. */
  readonly trees: ReadonlyMap<string, number>
  /** The places taken, by name. */
  readonly providers: ReadonlyMap<string, number>
}

/** The places of one registry. */
export interface Places {
  /**
   * Grants places at once, or queues. `onGranted` is called once, synchronously, when a ticket that was queued as `ask`
   * returned is granted; it may ask and give back, and must not throw.
   */
  readonly ask: (wanted: Wanted, onGranted: () => void) => Result.Result<Ticket, Refused>
  readonly counts: () => Counts
}

/** Places under these caps, and a queue of at most `maxQueued`, of which 0 lets nobody wait. */
export const make = (caps: MaxConcurrent, maxQueued: number): Places => {
  const pools = { provider: new Map<string, Pool>(), tree: new Map<string, Pool>(), overall: new Map<string, Pool>() }
  const turns = new Map<string, Turn>()
  let clock = 0
  let granted = 0
  let queued = 0

  // What has changed and has not been looked at, as long as somebody waits. Between calls all of it is empty.
  /** Holders that may have come to have something to lend. */
  const lenders = new Set<Held>()
  /** Pools whose next in line may enter. */
  const opened = new Set<Pool>()
  /** Pools that somebody may have waited for, and need wait for no longer. */
  const changed = new Set<Pool>()
  /** Pools in which everybody waits. */
  const stalled = new Set<Pool>()
  /** Those to be told that they are granted. */
  const told = new Set<Held>()
  let isTelling = false

  const poolsOf = ({ provider, rootId }: Wanted): ReadonlyArray<Pool> => {
    const found: Array<Pool> = []
    const add = (scope: CapScope, key: string, limit: number | undefined): void => {
      if (limit === undefined) return
      const pool = pools[scope].get(key) ?? new Pool(scope, key, limit)
      pools[scope].set(key, pool)
      found.push(pool)
    }
    const ofProvider = caps.provider
    // a name that every object knows, such as "constructor", has no cap
    if (typeof ofProvider !== "object") add("provider", provider, ofProvider)
    else if (Object.hasOwn(ofProvider, provider)) add("provider", provider, ofProvider[provider])
    add("tree", rootId, caps.tree)
    add("overall", "", caps.overall)
    return found
  }

  /** Trees come and go; of the other pools there are as many as providers. */
  const forgetUnused = (pool: Pool): void => {
    if (pool.scope === "tree" && pool.places.size === 0 && pool.lanes.size === 0) pools.tree.delete(pool.key)
  }

  /** Counts one more or one less at work in a place. */
  const count = (place: Place, isAtWork: boolean): void => {
    const { pool } = place
    const before = place.atWork
    place.atWork += isAtWork ? 1 : -1
    if (before > 0 && place.atWork > 0) return
    pool.busy += isAtWork ? 1 : -1
    if (isAtWork) {
      stalled.delete(pool)
    } else if (pool.busy === 0 && queued > 0) {
      stalled.add(pool)
      changed.add(pool)
    }
  }

  /** The last one in a place in which nobody is at work can lend it. */
  const offer = ({ atWork, occupants }: Place): void => {
    const last = occupants.at(-1)
    if (queued > 0 && atWork === 0 && last !== undefined) lenders.add(last)
  }

  /** Brings up to date what follows for a holder, and for those above it, from what has changed with it. */
  const refresh = (from: Held | undefined): void => {
    for (let held = from; held !== undefined; held = held.parent) {
      const { hasChildren, isGranted, parent } = held
      const isAtWork = held.kidsAtWork > 0 || (isGranted && !hasChildren)
      const isKid = isGranted || (held.state === "gone" && hasChildren)
      if (isAtWork === held.isAtWork && isKid === held.isKid) return
      if (isAtWork !== held.isAtWork) {
        held.isAtWork = isAtWork
        if (parent !== undefined) parent.kidsAtWork += isAtWork ? 1 : -1
        for (const place of held.places) {
          count(place, isAtWork)
          offer(place)
        }
      }
      if (isKid !== held.isKid) {
        held.isKid = isKid
        if (parent !== undefined && isKid) (parent.kids ??= new Set()).add(held)
        else parent?.kids?.delete(held)
      }
    }
  }

  const accept = (held: Held, places: Array<Place>): void => {
    for (const place of places) place.occupants.push(held)
    held.places = places
    held.state = "granted"
    granted++
    refresh(held)
  }

  const leaveLine = (lane: Lane): void => {
    lane.heldUpBy?.line.remove(lane)
    lane.heldUpBy = undefined
  }

  const joinLine = (lane: Lane, pool: Pool): void => {
    lane.heldUpBy = pool
    pool.line.add(lane)
  }

  const openLane = ({ parentKey, provider }: Wanted, parent: Held | undefined, pools: ReadonlyArray<Pool>): Lane => {
    const turn = turns.get(parentKey) ?? { parentKey, at: ++clock, lanes: new Map() }
    turns.set(parentKey, turn)
    const lane = new Lane(provider, parent, pools, turn)
    turn.lanes.set(provider, lane)
    if (parent !== undefined) (parent.lanes ??= new Set()).add(lane)
    for (const pool of pools) pool.lanes.add(lane)
    return lane
  }

  const closeLane = (lane: Lane): void => {
    const { turn } = lane
    turn.lanes.delete(lane.provider)
    if (turn.lanes.size === 0) turns.delete(turn.parentKey)
    lane.parent?.lanes?.delete(lane)
    for (const pool of lane.pools) {
      pool.lanes.delete(lane)
      forgetUnused(pool)
    }
  }

  const enqueue = (lane: Lane, held: Held): void => {
    lane.add(held)
    held.lane = lane
    queued++
    if (lane.parent === undefined) return
    lane.parent.waiting++
    refresh(lane.parent)
  }

  const dequeue = (lane: Lane, held: Held): void => {
    lane.remove(held)
    held.lane = undefined
    queued--
    if (lane.parent !== undefined) lane.parent.waiting--
  }

  /** Grants the first of a lane, which nothing holds up, and lets the others of its parent have their turns first. */
  const grant = (lane: Lane): void => {
    const held = lane.first!
    const others = Array.from(lane.turn.lanes.values(), (each) => [each, each.heldUpBy] as const)
    for (const [other] of others) leaveLine(other)
    const places = lane.pools.map((pool) => {
      const [stranger] = pool.places
      return lent(pool, lane) ?? (pool.isFull ? stranger! : new Place(pool))
    })
    dequeue(lane, held)
    accept(held, places)
    lane.turn.at = ++clock
    for (const [other, pool] of others) if (other !== lane && pool !== undefined) joinLine(other, pool)
    if (held.onGranted !== undefined) told.add(held)
    if (lane.first === undefined) return closeLane(lane)
    // a family's lanes take turns too
    if (lane.parent?.lanes?.delete(lane) === true) lane.parent.lanes.add(lane)
    const pool = obstacle(lane, isClosed) ?? lane.pools[0]!
    joinLine(lane, pool)
    opened.add(pool)
  }

  /** Grants the first of a lane, or lets the lane wait for what holds it up now, of the pools that are closed. */
  const attempt = (lane: Lane, isClosed: (pool: Pool) => boolean): boolean => {
    const pool = obstacle(lane, isClosed)
    if (pool === undefined) {
      grant(lane)
      return true
    }
    leaveLine(lane)
    joinLine(lane, pool)
    return false
  }

  /** Adds the pools in which those above a lane wait with everybody else there. */
  const stalledAbove = (lane: Lane, found: Set<Pool>): void => {
    for (let holder = lane.parent; holder !== undefined; holder = holder.parent) {
      for (const { pool } of holder.places) if (stalled.has(pool)) found.add(pool)
    }
  }

  const lend = (holder: Held): void => {
    if (!holder.places.some(({ atWork, occupants }) => atWork === 0 && occupants.at(-1) === holder)) return
    for (const lane of lanesBelow(holder)) {
      // strangers help when the family can't
      if (!attempt(lane, isFull)) {
        // what it can borrow it no longer waits for, and whoever has left a place nobody waits for through it
        stalledAbove(lane, changed)
        continue
      }
      // the next time it is the turn of another child
      for (let each = lane.parent!; each !== holder; each = each.parent!) {
        each.parent!.kids!.delete(each)
        each.parent!.kids!.add(each)
      }
      return
    }
  }

  /** The lane whose turn it is, of those in the lines of pools that are open. */
  const nextInLine = (): Lane | undefined => {
    let next: Lane | undefined
    for (const pool of opened) {
      const { first } = pool.line
      if (first === undefined || isClosed(pool)) {
        opened.delete(pool)
        if (!pool.isFull) changed.add(pool)
      } else if (next === undefined || first.isBefore(next)) {
        next = first
      }
    }
    return next
  }

  /** Opens the pools that have become stuck. Those are among the stalled ones that waited for what has changed. */
  const unstick = (): void => {
    const reached = new Set(stalled.size === 0 ? [] : changed)
    changed.clear()
    for (const pool of reached) {
      if (pool.line.first !== undefined && !isClosed(pool)) opened.add(pool)
      for (const lane of pool.lanes) stalledAbove(lane, reached)
    }
  }

  /** Lets in whoever can go on after a change (families first, then by turns, then those who are stuck), and tells them. */
  const goOn = (): void => {
    // where nobody waits there is nobody to let in
    while (lenders.size + opened.size + changed.size > 0) {
      for (const holder of lenders) {
        lenders.delete(holder)
        lend(holder)
      }
      const lane = nextInLine()
      if (lane === undefined) unstick()
      else attempt(lane, isClosed)
    }
    // whoever is told may ask and give back: the outermost call tells all, one after the other
    if (isTelling) return
    isTelling = true
    for (const held of told) {
      told.delete(held)
      held.onGranted!()
    }
    isTelling = false
  }

  const leaveQueue = (held: Held, lane: Lane): void => {
    const pool = lane.heldUpBy
    leaveLine(lane)
    dequeue(lane, held)
    if (lane.first === undefined) closeLane(lane)
    else joinLine(lane, pool!)
    held.state = "gone"
    refresh(lane.parent)
    stalledAbove(lane, changed)
  }

  const leavePlaces = (held: Held): void => {
    const { isAtWork, places } = held
    held.places = []
    held.state = "gone"
    granted--
    told.delete(held)
    for (const place of places) {
      const { occupants, pool } = place
      occupants.splice(occupants.lastIndexOf(held), 1)
      if (isAtWork) count(place, false)
      offer(place)
      if (occupants.length > 0) continue
      if (queued > 0 && pool.isFull) opened.add(pool)
      pool.places.delete(place)
      if (pool.places.size === 0) stalled.delete(pool)
      forgetUnused(pool)
    }
    refresh(held)
  }

  const giveBack = (held: Held): void => {
    if (held.state === "gone") return
    if (held.lane === undefined) leavePlaces(held)
    else leaveQueue(held, held.lane)
    goOn()
  }

  const ask: Places["ask"] = (wanted, onGranted) => {
    // the tickets that come back to us are ours
    const parent = wanted.parent as Held | undefined
    const held = new Held(parent, ++clock, giveBack)
    const known = turns.get(wanted.parentKey)?.lanes.get(wanted.provider)
    const wantedPools = known?.pools ?? poolsOf(wanted)
    if (known === undefined && !wantedPools.some(({ isFull }) => isFull)) {
      const places = wantedPools.map((pool) => new Place(pool))
      accept(held, places)
      return Result.succeed(held)
    }
    const lane = known ?? openLane(wanted, parent, wantedPools)
    enqueue(lane, held)
    const helpers = known === undefined ? lane.pools.map((pool) => lent(pool, lane)) : []
    const pool = lane.heldUpBy ?? lane.pools.find((pool, i) => pool.isFull && helpers[i] === undefined)
    if (queued > maxQueued) {
      if (pool === undefined) {
        grant(lane)
      } else {
        leaveQueue(held, lane)
        goOn()
        return Result.fail({ scope: pool.scope, limit: pool.limit, queued, maxQueued })
      }
    } else if (known === undefined) {
      // others of the family may have waited longer for what they lend each other
      joinLine(lane, pool ?? lane.pools.find(isFull)!)
      for (const place of helpers) if (place !== undefined) offer(place)
    }
    goOn()
    if (!held.isGranted) held.onGranted = onGranted
    return Result.succeed(held)
  }

  const taken = (scope: CapScope): ReadonlyMap<string, number> =>
    new Map(
      Array.from(pools[scope], ([key, { places }]) => [key, places.size] as const).filter(([, places]) => places > 0)
    )

  return {
    ask,
    counts: () => ({
      granted,
      queued,
      overall: taken("overall").get("") ?? 0,
      trees: taken("tree"),
      providers: taken("provider")
    })
  }
}
