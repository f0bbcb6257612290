import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Exit from "effect/Exit"
import { type Handler, Lost, make, RpcError } from "../../../../src/providers/internal/acp/connection.ts"

const encode = (text: string) => new TextEncoder().encode(text)

/** A connection to nobody, and all that was heard. */
const connect = (onRequest: (method: string, params: unknown) => Handler<never> | undefined = () => undefined) =>
  Effect.gen(function* () {
    const written: Array<unknown> = []
    const notifications: Array<readonly [string, unknown]> = []
    const noise: Array<string> = []
    const take = (text: string) => {
      assert.isTrue(text.endsWith("\n"))
      written.push(JSON.parse(text))
      return true
    }
    const connection = yield* make({
      write: (text) => Effect.sync(() => void take(text)),
      writeUnsafe: take,
      maxLineBytes: 200,
      onNotification: (method, params) => notifications.push([method, params]),
      onRequest,
      onNoise: (text) => noise.push(text)
    })
    const receive = (...messages: ReadonlyArray<object | string>) =>
      connection.receive(
        encode(messages.map((each) => (typeof each === "string" ? each : JSON.stringify(each)) + "\n").join(""))
      )
    return { connection, written, notifications, noise, receive }
  })

describe("a connection", () => {
  it.effect("calls and gets the answer", () =>
    Effect.gen(function* () {
      const { connection, receive, written } = yield* connect()
      const calling = yield* Effect.forkChild(connection.request("add", { a: 1 }), { startImmediately: true })
      assert.deepStrictEqual(written, [{ jsonrpc: "2.0", id: 1, method: "add", params: { a: 1 } }])
      yield* receive({ jsonrpc: "2.0", id: 1, result: { sum: 2 } })
      assert.deepStrictEqual(yield* Fiber.join(calling), { sum: 2 })
    })
  )

  it.effect("tells errors from results, also sloppy ones", () =>
    Effect.gen(function* () {
      const { connection, receive } = yield* connect()
      const answers = yield* Effect.forkChild(
        Effect.forEach([1, 2, 3, 4], () => Effect.exit(connection.request("m", {})), { concurrency: "unbounded" }),
        { startImmediately: true }
      )
      yield* receive(
        { id: 1, error: { code: -32000, message: "log in", data: { a: 1 } } },
        { id: 2, error: "just text" },
        { id: 3, error: null, result: null },
        { id: 4, error: { message: 7 } }
      )
      assert.deepStrictEqual(yield* Fiber.join(answers), [
        Exit.fail(new RpcError({ code: -32000, message: "log in", data: { a: 1 } })),
        Exit.fail(new RpcError({ code: -32603, message: "just text", data: undefined })),
        Exit.succeed(null),
        Exit.fail(new RpcError({ code: -32603, message: '{"message":7}', data: undefined }))
      ])
    })
  )

  it.effect("tells calls by the peer from its answers, whatever their ids", () =>
    Effect.gen(function* () {
      const { connection, receive, written } = yield* connect((method, params) => ({
        run: Effect.succeed({ method, params }),
        onInterrupt: { result: {} }
      }))
      const calling = yield* Effect.forkChild(connection.request("mine", {}), { startImmediately: true })
      for (const id of [1, 0, "one", null]) yield* receive({ id, method: "yours", params: [] })
      yield* receive({ id: 1, result: "my answer" })
      assert.strictEqual(yield* Fiber.join(calling), "my answer")
      const result = { method: "yours", params: [] }
      assert.deepStrictEqual(
        written.slice(1),
        [1, 0, "one", null].map((id) => ({ jsonrpc: "2.0", id, result }))
      )
    })
  )

  it.effect("answers what it does not know, and what fails or dies", () =>
    Effect.gen(function* () {
      const { receive, written } = yield* connect((method) =>
        method === "fail"
          ? { run: Effect.fail(new RpcError({ code: -32002, message: "no file" })), onInterrupt: { result: {} } }
          : method === "die"
            ? { run: Effect.die("a secret"), onInterrupt: { result: {} } }
            : undefined
      )
      yield* receive({ id: 1, method: "who" }, { id: 2, method: "fail" }, { id: 3, method: "die" })
      assert.deepStrictEqual(
        written.map((message) => (message as { error: unknown }).error),
        [
          { code: -32601, message: "Method not found: who" },
          { code: -32002, message: "no file" },
          { code: -32603, message: "Internal error" }
        ]
      )
    })
  )

  it.effect("takes a number that comes back as a string for what it was", () =>
    Effect.gen(function* () {
      const { connection, receive } = yield* connect()
      const calling = yield* Effect.forkChild(connection.request("mine", {}), { startImmediately: true })
      yield* receive({ id: [1], result: "no" }, { id: true, result: "no" }, { id: "1", result: "my answer" })
      assert.strictEqual(yield* Fiber.join(calling), "my answer")
    })
  )

  it.effect("reads on while the peer reads none of its answers, and not for ever", () =>
    Effect.gen(function* () {
      const noise: Array<string> = []
      const notifications: Array<string> = []
      const connection = yield* make<never>({
        write: () => Effect.never,
        writeUnsafe: () => false,
        maxLineBytes: 200,
        onNotification: (method) => notifications.push(method),
        onRequest: () => undefined,
        onNoise: (text) => noise.push(text)
      })
      let lost: unknown
      yield* Effect.forkChild(
        connection.call("m", {}, (answered) => (lost = answered)),
        { startImmediately: true }
      )
      const ask = connection.receive(encode('{"id":7,"method":"who"}\n'))
      yield* Effect.repeat(ask, { times: 9_999 })
      yield* connection.receive(encode('{"method":"heard"}\n'))
      assert.deepStrictEqual([notifications, lost], [["heard"], undefined])
      yield* ask
      const message = "It has made 10000 requests and read none of the answers"
      assert.deepStrictEqual(lost, Exit.fail(new Lost({ message })))
    })
  )

  it.effect("answers what its scope ends before it is answered", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { receive, written } = yield* Scope.provide(
        connect(() => ({ run: Effect.never, onInterrupt: { result: { outcome: "cancelled" } } })),
        scope
      )
      yield* receive({ id: "q", method: "ask" })
      assert.deepStrictEqual(written, [])
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(written, [{ jsonrpc: "2.0", id: "q", result: { outcome: "cancelled" } }])
    })
  )

  it.effect("hears what comes before an answer, the answer, and what comes after it, in this order", () =>
    Effect.gen(function* () {
      const { connection, notifications, receive, written } = yield* connect()
      let heard: unknown
      yield* connection.call("m", {}, (answered) => (heard = [answered, notifications.slice()]))
      yield* receive({ method: "a", params: 1 }, { id: 1, result: {} }, { method: "b" })
      assert.deepStrictEqual(heard, [Exit.succeed({}), [["a", 1]]])
      assert.deepStrictEqual(notifications[1], ["b", undefined])
      connection.notifyUnsafe("c", { d: 1 })
      assert.deepStrictEqual(written.at(-1), { jsonrpc: "2.0", method: "c", params: { d: 1 } })
      yield* connection.notify("e", { f: 1 })
      assert.deepStrictEqual(written.at(-1), { jsonrpc: "2.0", method: "e", params: { f: 1 } })
    })
  )

  it.effect("skips what is no message, and answers to nothing", () =>
    Effect.gen(function* () {
      const { noise, notifications, receive } = yield* connect()
      yield* receive(
        "starting up…",
        "",
        "\r",
        "[1, 2]",
        '"text"',
        "null",
        "{broken",
        { id: 9, result: 1 },
        {},
        "  {}\r"
      )
      yield* receive({ id: "1", result: 1 }, { method: "heard" })
      assert.deepStrictEqual(noise, [
        "starting up…",
        "[1, 2]",
        '"text"',
        "null",
        "{broken",
        'an answer to nothing: {"id":9,"result":1}',
        "an answer to nothing: {}",
        "an answer to nothing:   {}\r",
        'an answer to nothing: {"id":"1","result":1}'
      ])
      assert.deepStrictEqual(notifications, [["heard", undefined]])
    })
  )

  it.effect("is lost at a line over the limit, after the lines before it", () =>
    Effect.gen(function* () {
      const { connection, notifications, receive } = yield* connect()
      const calling = yield* Effect.forkChild(connection.request("m", {}), { startImmediately: true })
      yield* receive({ method: "before" }, "x".repeat(201), { method: "after" })
      yield* receive({ method: "later" })
      assert.deepStrictEqual(notifications, [["before", undefined]])
      const lost = new Lost({ message: "It has sent a line of more than 200 bytes" })
      assert.deepStrictEqual(yield* Fiber.await(calling), Exit.fail(lost))
    })
  )

  it.effect("fails every call once it is lost, and is lost once", () =>
    Effect.gen(function* () {
      const { connection } = yield* connect()
      const calling = yield* Effect.forkChild(connection.request("m", {}), { startImmediately: true })
      connection.lose("gone")
      connection.lose("gone again")
      const lost = Exit.fail(new Lost({ message: "gone" }))
      assert.deepStrictEqual(yield* Fiber.await(calling), lost)
      assert.deepStrictEqual(yield* Effect.exit(connection.request("m", {})), lost)
    })
  )
})
