/** A provider whose children take messages and go on, each as the test says: the test holds every turn in its hands. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { Content, SubagentError, type SubagentProvider } from "effect-subagent"
import { agentOf, completed, type Outcome, type Placed, type Provider, provider } from "./seam.ts"

type End = Exit.Exit<Outcome, SubagentError.SubagentError>

/** One turn of a child, as the test sees and directs it. */
export interface Turn {
  readonly prompt: string
  /** What it has taken in and not read. */
  readonly inbox: Array<SubagentProvider.ChildMessage>
  /** Reads what it has taken in. */
  readonly read: () => void
  /** Ends it: no message is taken in from here on. With `drop`, what is in the inbox stays unread. */
  readonly finish: (end?: End | Outcome, options?: { readonly drop: boolean }) => void
  /** Ends a turn that hears of no interruption. */
  readonly letGo: () => void
  state: "working" | "ended" | "stopped"
}

/** A child, as the test sees it. */
export interface Child {
  readonly placed: Placed
  readonly agent: ReturnType<typeof agentOf>
  readonly turns: Array<Turn>
  readonly turn: () => Turn
  readonly say: (text: string) => void
  isOpen: boolean
}

export interface Options {
  readonly name?: string
  /** A turn reads a message as soon as it has it. */
  readonly isEager?: boolean
  /** A turn that is interrupted goes on until it is let go. */
  readonly isDeaf?: boolean | ((placed: Placed) => boolean)
  /** Comes before there is a child. */
  readonly before?: (placed: Placed) => Effect.Effect<void>
  readonly capabilities?: Provider["capabilities"]
  /** Changes the session before the seam gets it. */
  readonly change?: (session: SubagentProvider.ChildSession, child: Child) => SubagentProvider.ChildSession
}

export const makeSteerable = (options: Options = {}) => {
  const { before = () => Effect.void, isDeaf = false, isEager = true, name = "p" } = options
  const children: Array<Child> = []

  const play = (child: Child, prompt: string) =>
    Effect.suspend(() => {
      const end = Deferred.makeUnsafe<Outcome, SubagentError.SubagentError>()
      const gone = Deferred.makeUnsafe<void>()
      const inbox: Array<SubagentProvider.ChildMessage> = []
      const read = () => {
        for (const { content, messageId } of inbox.splice(0)) {
          child.placed.emit({ _tag: "Receipt", messageId, state: "consumed" })
          child.say(`heard ${Content.toText(content)}`)
        }
      }
      const turn: Turn = {
        prompt,
        inbox,
        read,
        finish: (end_ = completed, { drop } = { drop: false }) => {
          if (!drop) read()
          if (turn.state !== "working") return
          turn.state = "ended"
          Deferred.doneUnsafe(end, Exit.isExit(end_) ? end_ : Exit.succeed(end_))
        },
        letGo: () => void Deferred.doneUnsafe(gone, Exit.void),
        state: "working"
      }
      child.turns.push(turn)
      child.say(`on ${prompt}`)
      return Effect.onInterrupt(Deferred.await(end), () =>
        Effect.suspend(() => {
          turn.state = "stopped"
          return (typeof isDeaf === "function" ? isDeaf(child.placed) : isDeaf) ? Deferred.await(gone) : Effect.void
        })
      )
    })

  const start = (placed: Placed) =>
    Effect.andThen(
      before(placed),
      Effect.acquireRelease(
        Effect.sync(() => {
          const turns: Array<Turn> = []
          let messages = 0
          const child: Child = {
            placed,
            agent: agentOf(placed),
            turns,
            turn: () => turns.at(-1)!,
            say: (text) => placed.emit({ _tag: "Content", messageId: `m${messages++}`, block: { type: "text", text } }),
            isOpen: true
          }
          children.push(child)
          return child
        }),
        (child) =>
          Effect.sync(() => {
            child.isOpen = false
          })
      )
    ).pipe(
      Effect.map((child) => {
        const session: SubagentProvider.ChildSession = {
          turn: play(child, Content.toText(placed.prompt)),
          sendMessage: (message) =>
            Effect.suspend(() => {
              const turn = child.turn()
              if (turn.state !== "working") {
                return Effect.fail(
                  SubagentError.fromReason(new SubagentError.RunSettled({ runId: child.placed.runId }))
                )
              }
              turn.inbox.push(message)
              if (isEager) turn.read()
              return Effect.void
            }),
          resumeTurn: (prompt) => play(child, Content.toText(prompt))
        }
        return options.change?.(session, child) ?? session
      })
    )

  return {
    provider: provider({ name, start, ...(options.capabilities && { capabilities: options.capabilities }) }),
    children,
    /** The child of a label, or the only one. */
    child: (label?: string): Child => children.find(({ placed }) => placed.label === label)!
  }
}
