/** Puts an agent's packages into a folder that git ignores. Once there, they are there: nothing else of this kit needs a network. */
import * as Effect from "effect/Effect"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as fs from "node:fs"
import * as path from "node:path"
import type { RealAgent } from "./agents.ts"

const cache = path.join(import.meta.dirname, ".cache")

/** Installs what an agent needs, unless it is there already. Gives the folder of its executables. */
export const install = ({ name, packages }: RealAgent): Effect.Effect<string, Error, ChildProcessSpawner> =>
  Effect.gen(function* () {
    const folder = path.join(cache, name)
    const bin = path.join(folder, "node_modules/.bin")
    const manifest = JSON.stringify({ private: true, dependencies: packages }, null, 2)
    // written last: an install that was interrupted is none
    const receipt = path.join(folder, "installed.json")
    if (fs.existsSync(receipt) && fs.readFileSync(receipt, "utf8") === manifest) return bin
    fs.rmSync(folder, { recursive: true, force: true })
    fs.mkdirSync(folder, { recursive: true })
    fs.writeFileSync(path.join(folder, "package.json"), manifest)
    const spawner = yield* ChildProcessSpawner
    yield* Effect.sync(() =>
      console.log(
        `installing ${Object.entries(packages)
          .map((each) => each.join("@"))
          .join(" ")}`
      )
    )
    const code = yield* spawner.exitCode(
      ChildProcess.make("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error"], {
        cwd: folder,
        stdout: "inherit",
        stderr: "inherit"
      })
    )
    if (code !== 0) return yield* Effect.fail(new Error(`npm install in ${folder} ended with ${code}`))
    fs.writeFileSync(receipt, manifest)
    return bin
  }).pipe(Effect.mapError((error) => (error instanceof Error ? error : new Error(String(error)))))
