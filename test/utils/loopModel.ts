/** The life of agents of the default loop as a small pure model: what each conversation holds, who is asked, what ends. */

export interface End {
  readonly stopReason: "completed" | "error" | "max-tokens" | "aborted"
  /** Whose will it was, or what failed and whether to try again. */
  readonly why?: string
}

export interface Message {
  readonly text: string
  state: "queued" | "consumed" | "expired" | "refused"
}

export interface Call {
  readonly id: string
  readonly run: Run
  readonly tool: "work" | "guarded"
  state: "asking" | "executing" | "over"
  result: string
}

export type Outcome = "denied" | "approver-failed" | "timed-out"

export interface Run {
  readonly child: Child
  readonly index: number
  readonly messages: Array<Message>
  phase: "calling" | "retrying" | "tools" | "over"
  end: End | undefined
  isReleased: boolean
  /** The step under way: what the model said, and the tools it called. */
  step: string
  tools: ReadonlyArray<Call>
  said: string
  /** Model calls that were begun, without those tried again; and those that were answered. */
  asked: number
  answered: number
  isSecondAttempt: boolean
  /** It has used up its model calls: this is the one to say what there is. */
  isWrappingUp: boolean
  /** What was reported: what came of the questions, how the tool calls ended. */
  readonly permissions: Array<string>
  readonly ends: Array<string>
}

export interface Child {
  readonly label: string
  readonly runs: Array<Run>
  /** What a model that is called now is told. */
  readonly history: Array<string>
}

export type State = "calling" | "retrying" | "asking" | "executing" | "settled" | "released"

export class Model {
  readonly children: Array<Child> = []
  readonly runs: Array<Run> = []
  readonly events: Array<string> = []
  /** The tools that were executed, in this order. */
  readonly executed: Array<string> = []
  private readonly isStreaming: boolean
  private readonly maxTurns: number

  constructor(options: { readonly isStreaming: boolean; readonly maxTurns: number }) {
    this.isStreaming = options.isStreaming
    this.maxTurns = options.maxTurns
  }

  start(label: string): Run {
    const child: Child = { label, runs: [], history: [] }
    this.children.push(child)
    return this.begin(child, `${label} first`)
  }

  /** Gives why it is refused, or the run. */
  resume(child: Child, prompt: string): string | Run {
    if (child.runs[0]!.isReleased) return "RunReleased"
    return current(child).end === undefined ? "ChildBusy" : this.begin(child, prompt)
  }

  send(run: Run, text: string): Message {
    const message: Message = { text, state: takesMessages(run) ? "queued" : "refused" }
    run.messages.push(message)
    return message
  }

  abort(run: Run, cause: string): void {
    this.settle(run, { stopReason: "aborted", why: cause })
  }

  release(run: Run, cause: string): void {
    if (run.isReleased) return
    const resumed = isFirst(run) ? run.child.runs.slice(1).filter(({ isReleased }) => !isReleased) : []
    this.abort(run, cause)
    for (const each of resumed) this.abort(each, "Release")
    for (const each of [run, ...resumed]) each.isReleased = true
  }

  /** The model has said something and called no tool. */
  say(run: Run, text: string): void {
    this.answer(run, text)
    run.child.history.push(`assistant ${text}`)
    if (run.isWrappingUp) return this.settle(run, limited)
    const isAnswered = run.messages.every(({ state }) => state !== "queued")
    if (isAnswered || run.asked === this.maxTurns) this.settle(run, { stopReason: "completed" })
    else this.ask(run)
  }

  /** The model's output limit has cut it short, amid calling a tool perhaps. */
  cut(run: Run, text: string, calls: ReadonlyArray<Call>): void {
    this.answer(run, text)
    this.leaveOut(run, stepOf(text, calls), calls)
    this.settle(run, run.isWrappingUp ? limited : { stopReason: "max-tokens", why: "model false" })
  }

  /** The model has called tools, and has said something before, perhaps. */
  call(run: Run, text: string, calls: ReadonlyArray<Call>): void {
    this.answer(run, text)
    const step = stepOf(text, calls)
    if (run.isWrappingUp) {
      this.leaveOut(run, step, calls)
      this.settle(run, limited)
      return
    }
    run.phase = "tools"
    run.step = step
    run.tools = calls
    for (const call of calls) if (call.tool === "work") this.execute(call)
  }

  /** A model call has failed or died, after the model had said something. */
  fail(run: Run, how: "retryable" | "final" | "defect", text: string, calls: ReadonlyArray<Call>): void {
    if (this.isStreaming) {
      run.said = text
      for (const { id } of calls) run.ends.push(`${id} failed`)
    }
    if (how === "retryable" && !run.isSecondAttempt) run.phase = "retrying"
    else this.settle(run, run.isWrappingUp ? limited : { stopReason: "error", why: `model ${how === "retryable"}` })
  }

  /** The time of what waits for time has come. */
  tick(): void {
    for (const run of this.runs) {
      if (run.phase === "retrying") {
        run.isSecondAttempt = true
        this.takeIn(run)
      }
      for (const call of openCalls(run)) if (call.state === "asking") this.deny(call, "timed-out")
    }
  }

  approve(call: Call): void {
    call.run.permissions.push("approved")
    this.execute(call)
  }

  deny(call: Call, outcome: Outcome): void {
    call.run.permissions.push(outcome)
    this.finish(call, outcome)
  }

  /** A tool call has its result. */
  finish(call: Call, result: string): void {
    const { run } = call
    call.state = "over"
    call.result = result
    run.ends.push(`${call.id} ${result === "done" ? "completed" : "failed"}`)
    if (openCalls(run).length > 0) return
    run.child.history.push(run.step, resultsOf(run.tools))
    if (run.asked < this.maxTurns) return this.ask(run)
    run.isWrappingUp = true
    run.isSecondAttempt = false
    run.child.history.push("user wrap up")
    this.takeIn(run)
  }

  private begin(child: Child, prompt: string): Run {
    const run: Run = {
      child,
      index: this.runs.length,
      messages: [],
      phase: "calling",
      end: undefined,
      isReleased: false,
      step: "",
      tools: [],
      said: "",
      asked: 0,
      answered: 0,
      isSecondAttempt: false,
      isWrappingUp: false,
      permissions: [],
      ends: []
    }
    this.runs.push(run)
    child.runs.push(run)
    child.history.push(`user ${prompt}`)
    this.events.push(`start ${child.label}`)
    this.ask(run)
    return run
  }

  private ask(run: Run): void {
    run.asked++
    run.isSecondAttempt = false
    this.takeIn(run)
  }

  private takeIn(run: Run): void {
    run.phase = "calling"
    if (run.isWrappingUp) return
    for (const message of run.messages) {
      if (message.state !== "queued") continue
      message.state = "consumed"
      run.child.history.push(`user ${message.text}`)
    }
  }

  private answer(run: Run, text: string): void {
    run.answered++
    if (text !== "") run.said = text
  }

  private execute(call: Call): void {
    call.state = "executing"
    this.executed.push(call.id)
  }

  private leaveOut(run: Run, step: string, calls: ReadonlyArray<Call>): void {
    for (const call of calls) {
      call.result = "left out"
      run.ends.push(`${call.id} failed`)
    }
    run.child.history.push(step, ...(calls.length > 0 ? [resultsOf(calls)] : []))
  }

  private settle(run: Run, end: End): void {
    if (run.end !== undefined) return
    run.end = end
    run.phase = "over"
    for (const message of run.messages) if (message.state === "queued") message.state = "expired"
    const cause = end.stopReason === "aborted" ? ` ${end.why}` : ""
    this.events.push(`end ${run.child.label} ${end.stopReason}${cause}`)
  }
}

const limited: End = { stopReason: "error", why: "limit false" }

const takesMessages = ({ end, isWrappingUp }: Run): boolean => end === undefined && !isWrappingUp

const stepOf = (text: string, calls: ReadonlyArray<Call>): string =>
  ["assistant", ...(text === "" ? [] : [text]), ...calls.map(({ id, tool }) => `${tool} ${id}`)].join(" ")

const resultsOf = (calls: ReadonlyArray<Call>): string =>
  ["tool", ...calls.map(({ id, result }) => `${id} ${result}`)].join(" ")

export const current = (child: Child): Run => child.runs.at(-1)!

export const isFirst = (run: Run): boolean => run.child.runs[0] === run

/** The tool calls of the step under way that have no result. */
export const openCalls = (run: Run): ReadonlyArray<Call> =>
  run.phase === "tools" ? run.tools.filter(({ state }) => state !== "over") : []

/** The states of a run that an operation may find it in. */
export const stateOf = (run: Run): State =>
  run.isReleased
    ? "released"
    : run.phase === "over"
      ? "settled"
      : run.phase !== "tools"
        ? run.phase
        : openCalls(run).some(({ state }) => state === "asking")
          ? "asking"
          : "executing"
