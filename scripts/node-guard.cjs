// Runs first in every npm script, also under an old Node: plain CommonJS, old syntax only.
// npm puts node_modules/.bin first in PATH, so `node` is the pinned devDependency, unless its install script never ran.
"use strict"

var needed = [22, 19]
var found = process.versions.node.split(".").map(Number)

if (found[0] < needed[0] || (found[0] === needed[0] && found[1] < needed[1])) {
  console.error(
    "effect-subagent needs Node >= " +
      needed.join(".") +
      ", but this is Node " +
      process.versions.node +
      ".\n" +
      "Run `npm ci` without --ignore-scripts (it installs the pinned Node into node_modules), then use the npm scripts."
  )
  process.exit(1)
}
