/** The regions of the examples, and their length. */
import * as fs from "node:fs"
import * as path from "node:path"
import { region } from "../docs/markdown.ts"

const examples = path.resolve(import.meta.dirname, "../../docs/examples")

/** A region of an example. */
export const regionOf = (file: string, name: string): string =>
  region(fs.readFileSync(path.join(examples, file), "utf8"), name) ?? ""

/** An example, whole. */
export const exampleText = (file: string): string => fs.readFileSync(path.join(examples, file), "utf8")

/** How many lines a text has. */
export const lineCount = (text: string): number => text.trimEnd().split("\n").length
