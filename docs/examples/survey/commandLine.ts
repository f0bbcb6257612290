/** A command line as the words in it. */
import * as Option from "effect/Option"

/** A program and its arguments. */
export interface Command {
  readonly command: string
  readonly args: ReadonlyArray<string>
}

/** Something in double quotes, something in single ones, an escaped character, blanks, or any other character. */
const piece = /"((?:[^"\\]|\\[^])*)"|'([^']*)'|\\([\s"'\\])|(\s+)|([^])/g

/**
 * Splits a command line at its blanks. Quotes keep together what is within them; a backslash takes a blank, a quote or
 * another backslash as it is, and in single quotes nothing is special. There are no variables and no wildcards: no shell
 * reads it. Nothing, if there is no program in it or a quote stays open.
 */
export const splitCommand = (line: string): Option.Option<Command> => {
  const words: Array<string> = []
  let word: string | undefined
  for (const [, double, single, escaped, blanks, plain] of line.matchAll(piece)) {
    if (plain === '"' || plain === "'") return Option.none()
    if (blanks === undefined) {
      word = (word ?? "") + (double?.replace(/\\(["\\])/g, "$1") ?? single ?? escaped ?? plain ?? "")
    } else if (word !== undefined) {
      words.push(word)
      word = undefined
    }
  }
  const [command = "", ...args] = word === undefined ? words : [...words, word]
  return command.trim() === "" ? Option.none() : Option.some({ command, args })
}
