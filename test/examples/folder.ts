/** A temporary folder that goes with the test's scope. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

/** Its real path. Folders on the way to a file are made. */
export const temporaryFolder = (
  files: Readonly<Record<string, string | Uint8Array>> = {}
): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "survey-test-"))
      for (const [name, content] of Object.entries(files)) {
        const file = path.join(folder, name)
        fs.mkdirSync(path.dirname(file), { recursive: true })
        fs.writeFileSync(file, content)
      }
      return folder
    }),
    (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true }))
  )
