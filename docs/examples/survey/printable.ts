/**
 * Text from files and their names, made fit for a terminal: what would move the cursor, start a line, reverse the
 * direction of writing or be invisible is shown by its code.
 */
export const printable = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) => {
    const named = JSON.stringify(character).slice(1, -1)
    return named.startsWith("\\") ? named : `\\u{${character.codePointAt(0)?.toString(16)}}`
  })
