/** The provider of `docs/writing-a-provider.md` keeps the contract. */
import { describe, it } from "@effect/vitest"
import * as Layer from "effect/Layer"
import { Subagents } from "effect-subagent"
import { ProviderConformance } from "effect-subagent/testing"
import { fake, layer } from "../../docs/examples/own-provider.ts"

// #region suite
ProviderConformance.suite("remote", layer("remote", fake).pipe(Layer.provideMerge(Subagents.layer)), {
  describe,
  it,
  prompts: { complete: "hello", hang: "wait", stream: "go on", fail: "fail" },
  capabilities: { outputSchema: false, depthLimit: false, toolFilter: false }
})
// #endregion
