/**
 * JSON-RPC 2.0 with one peer, a message a line, both sides calling each other.
 *
 * Messages are told apart by whether they have a `method`, never by id alone: both sides count from 0. They are handled
 * in the order in which they came: a notification and the start of a request's handler before the next line is looked
 * at, so all that came before an answer has been heard when the answer is. What is no message is noted and skipped, and
 * so is one that nothing can be made of, nested too deeply, say.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { LineSplitter } from "./lines.ts"

/** An error that one side answers the other with. */
export class RpcError extends Data.TaggedError("RpcError")<{
  readonly code: number
  readonly message: string
  readonly data?: unknown
}> {}

/** The peer can't be reached any more. */
export class Lost extends Data.TaggedError("Lost")<{ readonly message: string }> {}

/** What a call may come to instead of a result. */
export type CallError = RpcError | Lost

/** The codes that are used here. */
export const codes = {
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  authRequired: -32000,
  notFound: -32002,
  cancelled: -32800
} as const

/** How a call was answered. */
export type Answered = Exit.Exit<unknown, CallError>

/** The peer as the caller sees it. */
export interface Connection {
  /**
   * Calls. The effect sends it, and the peer may make the sender wait; `onAnswer` hears of the answer before anything
   * that comes after it is looked at.
   */
  readonly call: (method: string, params: object, onAnswer: (answered: Answered) => void) => Effect.Effect<void>
  /** Calls and waits for the answer. */
  readonly request: (method: string, params: object) => Effect.Effect<unknown, CallError>
  /** Sends a notification; the peer may make the sender wait. */
  readonly notify: (method: string, params: object) => Effect.Effect<void>
  /** Sends a notification, unless the peer has more to read than it has read. */
  readonly notifyUnsafe: (method: string, params: object) => void
  /** Takes in what the peer sends. */
  readonly receive: (bytes: Uint8Array) => Effect.Effect<void>
  /** Nothing more will come: every call fails, those to come included. */
  readonly lose: (message: string) => void
}

/** What a request of the peer's is answered with: by a result or an error, now or later, on every path. */
export interface Handler<R> {
  readonly run: Effect.Effect<object, RpcError, R>
  /** The answer if the handler is interrupted. */
  readonly onInterrupt: { readonly result: object } | { readonly error: object }
}

/** What the connection is made of. */
export interface Options<R> {
  readonly write: (text: string) => Effect.Effect<void>
  readonly writeUnsafe: (text: string) => boolean
  /** The longest line that is read, in bytes. */
  readonly maxLineBytes: number
  readonly onNotification: (method: string, params: unknown) => void
  /** The handler of a request; none, if there is no such method. */
  readonly onRequest: (method: string, params: unknown) => Handler<R> | undefined
  /** Hears of what was skipped. */
  readonly onNoise: (text: string) => void
}

/** How much is noted of a line that was skipped, in characters. */
const noiseLength = 1000

/** How many requests of the peer's may be unanswered. One that reads its answers never comes near it. */
const maxAnswering = 10_000

type Message = { readonly [key: string]: unknown }

/** A connection whose handlers run in the current scope. */
export const make = <R>(options: Options<R>): Effect.Effect<Connection, never, R | Scope.Scope> =>
  Effect.map(Effect.context<R | Scope.Scope>(), (services) => {
    const scope = Context.get(services, Scope.Scope)
    const lines = new LineSplitter(options.maxLineBytes)
    const pending = new Map<number, (answered: Answered) => void>()
    let lastId = 0
    let lost: Lost | undefined
    let answering = 0

    const encode = (message: object): string => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`

    const lose: Connection["lose"] = (message) => {
      if (lost !== undefined) return
      lost = new Lost({ message })
      const unanswered = Array.from(pending.values())
      pending.clear()
      for (const onAnswer of unanswered) onAnswer(Exit.fail(lost))
    }

    const call: Connection["call"] = (method, params, onAnswer) =>
      Effect.suspend(() => {
        if (lost !== undefined) {
          onAnswer(Exit.fail(lost))
          return Effect.void
        }
        const id = ++lastId
        pending.set(id, onAnswer)
        return options.write(encode({ id, method, params }))
      })

    const onAnswer = ({ error, id, result }: Message, line: string): void => {
      // some give a number back as a string
      const key = (Predicate.isString(id) ? Number(id) : id) as number
      const onAnswer = pending.get(key)
      if (onAnswer === undefined) return options.onNoise(`an answer to nothing: ${line.slice(0, noiseLength)}`)
      pending.delete(key)
      onAnswer(error == null ? Exit.succeed(result) : Exit.fail(readError(error)))
    }

    const onRequest = (id: unknown, method: string, params: unknown): Effect.Effect<void> => {
      if (answering === maxAnswering) {
        return Effect.sync(() => lose(`It has made ${maxAnswering} requests and read none of the answers`))
      }
      const { onInterrupt, run } = options.onRequest(method, params) ?? notFound(method)
      answering++
      return run.pipe(
        Effect.matchCause({
          onSuccess: (result) => ({ result }),
          onFailure: (cause) => ({ error: errorOf(cause) })
        }),
        Effect.flatMap((answer) => options.write(encode({ id, ...answer }))),
        Effect.onInterrupt(() => Effect.sync(() => options.writeUnsafe(encode({ id, ...onInterrupt })))),
        Effect.ensuring(Effect.sync(() => answering--)),
        Effect.provideContext(services),
        // the reader does not wait: the peer may be waiting for it to read on
        Effect.forkIn(scope, { startImmediately: true }),
        Effect.asVoid
      )
    }

    const onLine = (line: string): Effect.Effect<void> => {
      if (line.trim() === "") return Effect.void
      const parsed = Result.try(() => JSON.parse(line) as unknown)
      const message = Result.isSuccess(parsed) ? parsed.success : undefined
      if (!Predicate.isObject(message)) return Effect.sync(() => options.onNoise(line.slice(0, noiseLength)))
      const { id, method, params } = message
      if (typeof method !== "string") return Effect.sync(() => onAnswer(message, line))
      if ("id" in message) return onRequest(id, method, params)
      return Effect.sync(() => options.onNotification(method, params))
    }

    const receive: Connection["receive"] = (bytes) =>
      lost === undefined
        ? Effect.forEach(
            lines.push(bytes),
            (line) =>
              line === undefined
                ? Effect.sync(() => lose(`It has sent a line of more than ${options.maxLineBytes} bytes`))
                : Effect.catchDefect(
                    Effect.suspend(() => onLine(line)),
                    () => Effect.sync(() => options.onNoise(`not understood: ${line.slice(0, noiseLength)}`))
                  ),
            { discard: true }
          )
        : Effect.void

    return {
      call,
      request: (method, params) =>
        Effect.suspend(() => {
          const answer = Deferred.makeUnsafe<unknown, CallError>()
          return Effect.andThen(
            call(method, params, (answered) => Deferred.doneUnsafe(answer, answered)),
            Deferred.await(answer)
          )
        }),
      notify: (method, params) => Effect.suspend(() => options.write(encode({ method, params }))),
      notifyUnsafe: (method, params) => {
        options.writeUnsafe(encode({ method, params }))
      },
      receive: (bytes) => Effect.suspend(() => receive(bytes)),
      lose
    }
  })

const notFound = (method: string): Handler<never> => {
  const error = new RpcError({ code: codes.methodNotFound, message: `Method not found: ${method}` })
  return { run: Effect.fail(error), onInterrupt: { error: wireOf(error) } }
}

/** An error as the peer is to see it. */
export const wireOf = ({ code, message }: RpcError): object => ({ code, message })

/** A value as JSON, if it can be printed. */
export const print = (value: unknown): string =>
  Result.getOrElse(
    Result.try(() => JSON.stringify(value)),
    () => "something that can't be printed"
  )

/** What the peer is told of a handler's failure: of a defect, only that there was one. */
const errorOf = (cause: Cause.Cause<RpcError>): object => {
  const failed = cause.reasons.find(Cause.isFailReason)
  return failed === undefined ? { code: codes.internal, message: "Internal error" } : wireOf(failed.error)
}

const readError = (error: unknown): RpcError => {
  const { code, data, message }: Message = Predicate.isObject(error) ? error : { message: error }
  return new RpcError({
    code: Predicate.isNumber(code) ? code : codes.internal,
    message: Predicate.isString(message) ? message : print(error),
    data
  })
}
