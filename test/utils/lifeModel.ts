/** The contract of a tree of runs as a small pure model: what is settled by whom, what is released when, what is heard. */

export type Cause =
  | { readonly _tag: "Caller" | "Signal" | "Release" | "Interrupt" }
  | { readonly _tag: "Parent"; readonly run: Run }

export type End = { readonly how: "completed" | "error" | "fault" } | { readonly how: "aborted"; readonly cause: Cause }

export interface Message {
  readonly text: string
  state: "waiting" | "queued" | "refused" | "consumed" | "expired"
}

export interface Run {
  readonly child: Child
  readonly owner: Run | undefined
  readonly index: number
  /** Those it owns that have not been released. */
  readonly children: Set<Run>
  readonly messages: Array<Message>
  readonly prompt: string
  end: End | undefined
  isAnnounced: boolean
  hasBegun: boolean
  said: string
  release: "none" | "under way" | "done"
}

export interface Child {
  readonly label: string
  readonly isDeaf: boolean
  readonly depth: number
  /** The child that has delegated to it, as long as that is known. */
  readonly parent: Child | undefined
  readonly runs: Array<Run>
  /** The last turn that has begun. */
  work: { readonly run: Run; state: "at work" | "on its way out" | "over" } | undefined
  isOpen: boolean
  /** Its first run has been released to quiet: nobody knows it any more. */
  isForgotten: boolean
}

/** A start under way. */
export interface Start {
  readonly label: string
  readonly parent: Child | undefined
  readonly owner: Run | undefined
  readonly depth: number
  end: "under way" | "accepted" | "AbortedBeforeStart" | "ParentSettled" | "interrupted" | "RegistryClosed"
}

export class Model {
  readonly children: Array<Child> = []
  readonly runs: Array<Run> = []
  readonly starts: Array<Start> = []
  readonly events: Array<string> = []
  readonly maxDepth: number

  constructor(maxDepth: number) {
    this.maxDepth = maxDepth
  }

  /** Asks for a start: gives why it is refused, or the start under way. */
  ask(label: string, parent: Child | undefined): string | Start {
    const owner = parent === undefined || parent.isForgotten ? undefined : current(parent)
    if (owner?.end !== undefined) return "ParentSettled"
    const depth = (parent?.depth ?? 0) + 1
    if (depth > this.maxDepth) return "DepthExceeded"
    const start: Start = { label, parent, owner, depth, end: "under way" }
    this.starts.push(start)
    return start
  }

  accept(start: Start): Run {
    start.end = "accepted"
    const { depth, label, owner } = start
    const child: Child = {
      label,
      isDeaf: label.endsWith("deaf"),
      depth,
      parent: owner?.child,
      runs: [],
      work: undefined,
      isOpen: true,
      isForgotten: false
    }
    this.children.push(child)
    return this.begin(child, owner, "first")
  }

  /** Asks to resume a child: gives why it is refused, or the run. */
  resume(child: Child, prompt: string): string | Run {
    if (child.runs[0]!.release !== "none") return "RunReleased"
    if (current(child).end === undefined) return "ChildBusy"
    const owner = child.parent && current(child.parent)
    return owner?.end !== undefined ? "ParentSettled" : this.begin(child, owner, prompt)
  }

  /** A message for a run: gives what has become of it so far. */
  send(run: Run, text: string): Message {
    const state = run.end !== undefined ? "refused" : run.hasBegun ? "queued" : "waiting"
    const message: Message = { text, state }
    run.messages.push(message)
    return message
  }

  /** The child reads all that it has taken in. */
  read(run: Run): void {
    for (const message of run.messages) {
      if (message.state !== "queued") continue
      message.state = "consumed"
      run.said = `heard ${message.text}`
    }
  }

  /** The turn at work ends by itself. */
  conclude(run: Run, how: "completed" | "error" | "fault", drops: boolean): void {
    if (!drops) this.read(run)
    run.child.work!.state = "over"
    this.settle(run, { how })
    this.announce(run)
    this.callOff(run)
    this.progress()
  }

  abort(run: Run, cause: Cause): void {
    const stopped: Array<Run> = []
    const visit = (each: Run, why: Cause): void => {
      for (const child of each.children) visit(child, { _tag: "Parent", run: each })
      if (each.end !== undefined) return
      this.settle(each, { how: "aborted", cause: why })
      stopped.push(each)
    }
    visit(run, cause)
    for (const each of stopped) this.announce(each)
    for (const each of stopped) {
      const { work } = each.child
      if (work?.run === each) work.state = each.child.isDeaf ? "on its way out" : "over"
      this.callOff(each)
    }
    this.progress()
  }

  release(run: Run, cause: Cause): void {
    if (run.release !== "none") return
    run.release = "under way"
    this.abort(run, cause)
    const resumed = isFirst(run) ? run.child.runs.filter((each) => each !== run && each.release !== "done") : []
    for (const each of resumed) this.abort(each, { _tag: "Release" })
    for (const each of Array.from(run.children)) this.release(each, { _tag: "Parent", run })
    for (const each of resumed) this.release(each, { _tag: "Release" })
    this.progress()
  }

  /** A turn that has heard of no interruption ends at last. */
  letGo(child: Child): void {
    child.work!.state = "over"
    this.progress()
  }

  private begin(child: Child, owner: Run | undefined, prompt: string): Run {
    const run: Run = {
      child,
      owner,
      index: this.runs.length,
      children: new Set(),
      messages: [],
      prompt,
      end: undefined,
      isAnnounced: false,
      hasBegun: false,
      said: "",
      release: "none"
    }
    this.runs.push(run)
    child.runs.push(run)
    owner?.children.add(run)
    this.events.push(`start ${child.label}`)
    this.progress()
    return run
  }

  private settle(run: Run, end: End): void {
    run.end = end
    for (const message of run.messages) {
      if (message.state === "queued") message.state = "expired"
      if (message.state === "waiting") message.state = "refused"
    }
  }

  private announce(run: Run): void {
    if (run.end === undefined || run.isAnnounced) return
    for (const child of run.children) if (!child.isAnnounced) return
    run.isAnnounced = true
    const { end } = run
    const how = end.how === "aborted" ? `aborted ${end.cause._tag}` : end.how === "completed" ? "completed" : "error"
    this.events.push(`end ${run.child.label} ${how}`)
    if (run.owner !== undefined) this.announce(run.owner)
  }

  private callOff(run: Run): void {
    for (const start of this.starts) {
      if (start.owner === run && start.end === "under way") start.end = "ParentSettled"
    }
  }

  /** What follows from what has happened: turns that may begin now, and releases that are over. */
  private progress(): void {
    for (let isOver = false; !isOver;) {
      isOver = true
      for (const child of this.children) {
        const run = current(child)
        if (isIdle(child) && !run.hasBegun && run.end === undefined) {
          child.work = { run, state: "at work" }
          run.hasBegun = true
          run.said = `on ${run.prompt}`
          for (const message of run.messages) message.state = "queued"
        }
      }
      for (const run of this.runs) {
        if (run.release !== "under way") continue
        const { child } = run
        const isQuiet = child.work?.run === run || isFirst(run) ? isIdle(child) : true
        if (isQuiet && isFirst(run)) child.isOpen = false
        const resumed = isFirst(run) ? child.runs.slice(1) : []
        if (!isQuiet || run.children.size > 0 || resumed.some((each) => each.release !== "done")) continue
        run.release = "done"
        run.owner?.children.delete(run)
        if (isFirst(run)) child.isForgotten = true
        isOver = false
      }
    }
  }
}

export const current = (child: Child): Run => child.runs.at(-1)!

export const isFirst = (run: Run): boolean => run.child.runs[0] === run

const isIdle = ({ work }: Child): boolean => work === undefined || work.state === "over"

/** The states of a run that an operation may find it in. */
export const stateOf = (run: Run): "waiting" | "at work" | "settled" | "releasing" | "released" =>
  run.release === "done"
    ? "released"
    : run.release === "under way"
      ? "releasing"
      : run.end !== undefined
        ? "settled"
        : run.hasBegun
          ? "at work"
          : "waiting"
