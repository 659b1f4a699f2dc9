/**
 * Texts that others wrote, made safe for terminals: names, ids, messages and headers of servers, answers of receivers. Both
 * command lines use it where they write a line, so that no command has to think of it.
 *
 * What a terminal obeys, and what reorders or hides the text around it, becomes visible: control characters (C0, DEL and
 * C1, so every escape sequence) become `\x1b`, a tab `\t`; line and paragraph separators (U+2028, U+2029) and marks,
 * embeddings, overrides and isolates of direction (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069) become
 * `\u202e`. All else stays, a backslash too: whoever writes `\x1b` in letters is shown so. In JSON they are all `\u001b`,
 * which every reader of JSON turns back.
 */
const unsafe = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

const hexOf = (character: string, digits: number) =>
  character.charCodeAt(0).toString(16).padStart(digits, '0')
const unicodeEscape = (character: string) => `\\u${hexOf(character, 4)}`

/** One line: its line breaks are escaped, too. */
export function printable(text: string): string {
  return text.replace(unsafe, (character) => {
    if (character === '\t') return '\\t'
    return character > '\xff' ? unicodeEscape(character) : `\\x${hexOf(character, 2)}`
  })
}

/** A value as one line of JSON. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replace(unsafe, unicodeEscape)
}

const excerptCharacters = 200

/** The beginning of an answer, whose line breaks and indents would only be in the way. */
export function excerptOf(answer: string): string {
  const text = answer.replaceAll(/\s+/g, ' ').trim()
  return text.length > excerptCharacters ? `${text.slice(0, excerptCharacters)}...` : text
}
