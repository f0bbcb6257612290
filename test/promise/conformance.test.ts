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

const { provider, world } = make()

ProviderConformance.suite(
  "through the facade",
  Facade.layer(() => PromiseSubagents.fromProviders([provider])),
  {
    describe,
    it: Object.assign(
      (name: string, run: () => Promise<void>) =>
        unseen.some((title) => name.includes(title)) ? it.skip(name, run) : it(name, run),
      { skip: it.skip }
    ),
    prompts,
    capabilities: { outputSchema: false, depthLimit: false, toolFilter: false, usage: true },
    world: Effect.sync(() => ({ ...world })),
    print: () => {}
  }
)
