import { describe, it } from "@effect/vitest"
import { Subagents } from "effect-subagent"
import { PromiseSubagents } from "effect-subagent/promise"
import { ProviderConformance } from "effect-subagent/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import { make, prompts } from "../fixtures/promiseProvider.ts"
import * as Facade from "../utils/facade.ts"

/** What can't be seen from where there are no layers, services and fibers. */
const unseen = [
  "gives up its name with its registration",
  "stops when the fiber that owns its scope is interrupted",
  "has its ids from Random and its times from Clock"
]

const register: ProviderConformance.It = it
const seen: ProviderConformance.It = (name, run) =>
  (unseen.some((title) => name.includes(title)) ? register.skip! : register)(name, run)

const { provider, world } = make()

// listeners die on purpose, so nobody has to be warned of it
const layer = Layer.mergeAll(Subagents.add(provider), Layer.succeed(References.MinimumLogLevel, "None")).pipe(
  Layer.provideMerge(Subagents.layer)
)

ProviderConformance.suite(
  "through the facade",
  Facade.layer(() => PromiseSubagents.makeSubagents(layer)),
  {
    describe,
    it: Object.assign(seen, { skip: register.skip }),
    prompts,
    capabilities: { outputSchema: false, depthLimit: false, toolFilter: false, usage: true },
    world: Effect.sync(() => ({ ...world })),
    print: () => {}
  }
)
