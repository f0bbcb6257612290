/**
 * What an agent asks of its client. Every request is answered, on every path.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type * as Path from "effect/Path"
import type { Approver } from "../../../Approvals.ts"
import { Approvals } from "../../../Approvals.ts"
import type { Lineage } from "../../../SubagentProvider.ts"
import type { UnstampedUpdate } from "../../../SubagentUpdate.ts"
import type { FileAccess } from "../../AcpProvider.ts"
import type { Handler } from "./connection.ts"
import { codes, RpcError, wireOf } from "./connection.ts"
import { readTextFile, writeTextFile } from "./files.ts"
import { items, reader, ReadTextFileRequest, RequestPermissionRequest, WriteTextFileRequest } from "./messages.ts"
import type { Answer } from "./permission.ts"
import { cancelled, decide } from "./permission.ts"
import type { SessionUpdates } from "./updates.ts"

const readPermission = reader(RequestPermissionRequest)
const readRead = reader(ReadTextFileRequest)
const readWrite = reader(WriteTextFileRequest)

/** What answering needs to know. */
export interface Desk {
  readonly permission: "ask" | "deny" | "allow"
  readonly fs: FileAccess | undefined
  readonly cwd: string
  readonly lineage: Lineage
  readonly emit: (update: UnstampedUpdate) => void
  readonly updates: SessionUpdates
  /** The session, once it is known. */
  readonly sessionId: () => string | undefined
  readonly approver: () => Approver | undefined
  /** Hears that a permission is being decided on, and that it no longer is. */
  readonly asking: (change: 1 | -1) => void
  /** Done when the turn that runs is over or to be; none, if none runs. */
  readonly stopping: () => Deferred.Deferred<void> | undefined
}

type Needs = FileSystem.FileSystem | Path.Path

/** The handler of a request; none, if it is for something that was not offered. */
export const handlerOf = (desk: Desk, method: string, params: unknown): Handler<Needs> | undefined => {
  switch (method) {
    case "session/request_permission":
      return { run: permission(desk, params), onInterrupt: { result: cancelled } }
    case "fs/read_text_file":
      return desk.fs === undefined || desk.fs.read === false
        ? undefined
        : { run: file(desk, readRead(params), readTextFile), onInterrupt: { error: wireOf(stopped) } }
    case "fs/write_text_file":
      return desk.fs === undefined || desk.fs.write === false
        ? undefined
        : {
            run: whileWorking(desk, file(desk, readWrite(params), writeTextFile)),
            onInterrupt: { error: wireOf(stopped) }
          }
    default:
      return undefined
  }
}

/** Nobody says that something was written which may not have been. */
const stopped = new RpcError({ code: codes.cancelled, message: "No turn runs" })

const permission = (desk: Desk, params: unknown): Effect.Effect<Answer> =>
  Effect.suspend(() => {
    const request = readPermission(params)
    const stopping = desk.stopping()
    if (request === undefined || request.sessionId !== desk.sessionId() || stopping === undefined) {
      return Effect.succeed(cancelled)
    }
    const { emit, lineage, updates } = desk
    const { id: toolCallId, input, name: toolName } = updates.asked(request.toolCall)
    emit({ _tag: "Permission", toolCallId })
    desk.asking(1)
    const withdrawn = Effect.as(Deferred.await(stopping), { answer: cancelled, outcome: "withdrawn" } as const)
    return Effect.map(
      Effect.raceFirst(
        Effect.provideService(
          decide(desk.permission, { toolCallId, toolName, input, lineage }, items(request.options)),
          Approvals,
          desk.approver()
        ),
        withdrawn
      ),
      ({ answer, outcome }) => {
        emit({ _tag: "Permission", toolCallId, outcome })
        if (outcome !== "approved") updates.denied(toolCallId, outcome)
        return answer
      }
    ).pipe(Effect.ensuring(Effect.sync(() => desk.asking(-1))))
  })

/** A child that was stopped, or has not begun, begins no change. */
const whileWorking = <A, R>(desk: Desk, change: Effect.Effect<A, RpcError, R>): Effect.Effect<A, RpcError, R> =>
  Effect.suspend(() => (desk.stopping() === undefined ? Effect.fail(stopped) : change))

const file = <A extends { readonly sessionId: string }, B extends object, R>(
  desk: Desk,
  request: A | undefined,
  handle: (roots: ReadonlyArray<string>, request: A) => Effect.Effect<B, RpcError, R>
): Effect.Effect<B, RpcError, R> =>
  request === undefined || request.sessionId !== desk.sessionId()
    ? Effect.fail(new RpcError({ code: codes.invalidParams, message: "Invalid params" }))
    : handle(desk.fs?.roots ?? [desk.cwd], request)
