/** Everything whose growth is measured, by the name of its plot. */
import { history, tools } from "./agents.ts"
import { children, interrupted } from "./children.ts"
import { depth } from "./depth.ts"
import type { Growth } from "./Growth.ts"
import { listeners } from "./listeners.ts"

export const growths = { children, interrupted, depth, history, tools, listeners } satisfies Record<string, Growth>
export type GrowthName = keyof typeof growths
