/** More is no name, and no reason that anybody reads. */
const charactersMax = 500

/** Lists show it, a line each, and errors quote it: control characters would garble both. @throws {Error} */
export function checkLine(option: string, text: string): void {
  if (text.trim() === '') throw new Error(`${option} must not be empty`)
  if (/\p{Cc}/u.test(text)) throw new Error(`${option} must be one line of text, without control characters`)
  if (text.length > charactersMax)
    throw new Error(`${option} takes at most ${charactersMax} characters, not ${text.length}`)
}
