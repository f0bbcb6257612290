/** All ways to ask for a run, so that a test can hold each of them to the same. */
import {
  type Agent,
  Budget,
  CurrentAgent,
  type Limits,
  type SubagentError,
  type SubagentResult,
  Subagents
} from "effect-subagent"
import { PromiseSubagents } from "effect-subagent/promise"
import { PlainTool, SubagentTool } from "effect-subagent/tool"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Provider, type Seam, withSeam } from "./seam.ts"

/** The limits that a caller can ask for, whether or not they are some. */
export type Asked = Limits.RunLimits & { readonly maxDepth?: number }

/** How a run that was asked for has ended: in a failure of the child's, in a refusal, or well. */
export interface Ended {
  /** What whoever asked can read of it. */
  readonly said: string
  readonly failure?: SubagentResult.SubagentFailure | undefined
  readonly reason?: SubagentError.SubagentErrorReason | undefined
  readonly result?: SubagentResult.SubagentResult
}

/** Who asks, and for what. The provider is called `p`, and goes on with its children if it is to be asked to. */
export interface Asking {
  readonly seam: Seam
  readonly provider: Provider
  readonly parent: Agent.Agent
  readonly prompt: string
  readonly asked?: Asked
}

/** One way. What it needs beforehand it has done when it gives the effect that asks; `prepared` runs are used for that. */
export interface Route {
  readonly name: string
  readonly prepared: number
  /** Whether what is asked for makes a new child. */
  readonly isStart: boolean
  /** What the child is, if the caller can say it: the limits are a binding's or a request's. */
  readonly canAskDepth: boolean
  readonly prepare: (asking: Asking) => Effect.Effect<Effect.Effect<Ended>, SubagentError.SubagentError, Scope.Scope>
}

const ended = (
  running: Effect.Effect<SubagentResult.SubagentResult, SubagentError.SubagentError>
): Effect.Effect<Ended> =>
  Effect.match(running, {
    onFailure: refused,
    onSuccess: (result) => ({ said: result.failure?.message ?? "", failure: result.failure, result })
  })

const refused = ({ message, reason }: SubagentError.SubagentError): Ended => ({ said: message, reason })

const promised = <A>(call: () => Promise<A>): Effect.Effect<A, SubagentError.SubagentError> =>
  Effect.tryPromise({ try: call, catch: (thrown) => thrown as SubagentError.SubagentError })

/** A facade over the same seam, with the test's clock and the budget that is here. */
const facadeOf = (seam: Seam) =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const budget = yield* Budget.Current
    const services = Context.make(Subagents.Subagents, seam).pipe(Context.add(Clock.Clock, clock))
    return yield* Effect.acquireRelease(
      Effect.sync(() => PromiseSubagents.makeSubagents(Layer.succeedContext(services), { budget })),
      ({ dispose }) => Effect.promise(dispose)
    )
  })

const call = { description: "a part" }

const plain = (execute: PlainTool.PlainTool["execute"], { parent, prompt }: Asking): Effect.Effect<Ended> =>
  Effect.map(
    Effect.promise(() => execute({ ...call, prompt }, { parent })),
    ({ error, failure, text }) => ({ said: text, failure, reason: error?.reason })
  )

/** A token of a child of this parent's, made where nothing is limited. */
const tokenOf = ({ parent, provider }: Asking) =>
  withSeam([provider], (elsewhere) =>
    Effect.scoped(
      Effect.gen(function* () {
        const run = yield* elsewhere.start("p", { prompt: "modest", parent })
        yield* run.result
        return yield* run.token!
      })
    )
  ).pipe(Effect.provideService(Budget.Current, undefined))

const start = (
  name: string,
  prepare: (asking: Asking) => Effect.Effect<Effect.Effect<Ended>, SubagentError.SubagentError, Scope.Scope>
): Route => ({ name, prepared: 0, isStart: true, canAskDepth: true, prepare })

/** A request, as what is to be refused would write it. */
const requestOf = ({ asked, parent, prompt }: Asking) => ({ prompt, parent, ...asked })

export const routes: ReadonlyArray<Route> = [
  start("start", (asking) =>
    Effect.succeed(
      ended(Effect.scoped(Effect.flatMap(asking.seam.start("p", requestOf(asking)), ({ result }) => result)))
    )
  ),
  start("run", (asking) => Effect.succeed(ended(asking.seam.run("p", requestOf(asking))))),
  {
    name: "run.resume",
    prepared: 1,
    isStart: false,
    canAskDepth: false,
    prepare: (asking) =>
      Effect.gen(function* () {
        const run = yield* asking.seam.start("p", { ...requestOf(asking), prompt: "modest" })
        yield* run.result
        return ended(Effect.scoped(Effect.flatMap(run.resume!(asking.prompt), ({ result }) => result)))
      })
  },
  {
    name: "resume with a token",
    prepared: 0,
    isStart: true,
    canAskDepth: false,
    prepare: (asking) =>
      Effect.map(tokenOf(asking), (token) => {
        const { prompt, ...request } = requestOf(asking)
        return ended(Effect.scoped(Effect.flatMap(asking.seam.resume(token, prompt, request), ({ result }) => result)))
      })
  },
  start("SubagentTool", (asking) =>
    Effect.gen(function* () {
      const options: SubagentTool.Options = { provider: "p", ...asking.asked }
      const handlers = SubagentTool.layer(options).pipe(Layer.provide(Layer.succeed(Subagents.Subagents, asking.seam)))
      const services = yield* Layer.build(handlers)
      const kit = yield* Effect.provideContext(SubagentTool.toolkit([SubagentTool.make(options)]), services)
      return kit.handle("subagent", { ...call, prompt: asking.prompt }, "call-1").pipe(
        Effect.flatMap(Stream.runLast),
        Effect.map((last) => ({ said: String(Option.getOrThrow(last).encodedResult) })),
        Effect.provideService(CurrentAgent.CurrentAgent, asking.parent),
        Effect.orDie
      )
    })
  ),
  start("PlainTool", (asking) =>
    Effect.gen(function* () {
      const making = PlainTool.make({ provider: "p", ...asking.asked })
      const { execute } = yield* Effect.provideService(making, Subagents.Subagents, asking.seam)
      return plain(execute, asking)
    })
  ),
  start("start of the facade", (asking) =>
    Effect.map(facadeOf(asking.seam), (facade) =>
      ended(
        Effect.acquireUseRelease(
          promised(() => facade.start("p", requestOf(asking))),
          (run) => promised(() => run.result),
          (run) => Effect.promise(run.dispose)
        )
      )
    )
  ),
  start("run of the facade", (asking) =>
    Effect.map(facadeOf(asking.seam), (facade) => ended(promised(() => facade.run("p", requestOf(asking)))))
  ),
  {
    name: "resume of the facade, with a token",
    prepared: 0,
    isStart: true,
    canAskDepth: false,
    prepare: (asking) =>
      Effect.gen(function* () {
        const facade = yield* facadeOf(asking.seam)
        const token = yield* tokenOf(asking)
        const { prompt, ...request } = requestOf(asking)
        return ended(
          Effect.acquireUseRelease(
            promised(() => facade.resume(token, prompt, request)),
            (run) => promised(() => run.result),
            (run) => Effect.promise(run.dispose)
          )
        )
      })
  },
  start("tool of the facade", (asking) =>
    Effect.flatMap(facadeOf(asking.seam), (facade) =>
      Effect.try({
        try: () => plain(facade.tool({ provider: "p", ...asking.asked }).execute, asking),
        catch: (thrown) => thrown as SubagentError.SubagentError
      })
    )
  )
]

/** Asks, and takes a refusal to prepare for a refusal. */
export const ask = (route: Route, asking: Asking): Effect.Effect<Ended> =>
  Effect.scoped(Effect.flatMap(route.prepare(asking), (asks) => asks)).pipe(
    Effect.catch((error) => Effect.succeed(refused(error)))
  )
