/** Names and reasons need no more. */
const charactersMax = 500

/** Checks a text that lists show in one line and errors quote: control characters would garble both. @throws {Error} */
export function checkLine(option: string, text: string): void {
  if (text.trim() === '') throw new Error(`${option} must not be empty`)
  if (/\p{Cc}/u.test(text)) throw new Error(`${option} must be one line of text, without control characters`)
  if (text.length > charactersMax)
    throw new Error(`${option} takes at most ${charactersMax} characters, not ${text.length}`)
}
