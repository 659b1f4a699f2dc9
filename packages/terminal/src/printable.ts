/**
 * Makes texts that others wrote safe for terminals: names, ids, messages and headers of servers, answers of receivers.
 * Both command lines do this where they write a line, so commands need not do it.
 *
 * Characters that a terminal obeys, or that reorder or hide the text around them, become visible. Control characters
 * (C0, DEL and C1, and so every escape sequence) are written like `\x1b`, and a tab as `\t`. Line and paragraph
 * separators (U+2028, U+2029) and characters that Unicode makes invisible (Default_Ignorable_Code_Point) are written
 * like `\u202e`. The invisible ones are overrides of direction, blanks without width, soft hyphens, fillers, variation
 * selectors, tags and joiners. Emoji and some scripts use joiners, so an emoji made of several characters is shown as its parts.
 *
 * All other characters stay as they are, even backslashes: a `\x1b` typed as letters is shown as typed. In JSON all
 * escapes have the form `\u001b`, with surrogate pairs where needed. Every reader of JSON turns them back.
 */
const unsafe = /[\p{Cc}\u2028\u2029\p{Default_Ignorable_Code_Point}]/gu

const hexOf = (unit: string, digits: number) => unit.charCodeAt(0).toString(16).padStart(digits, '0')
const unicodeEscape = (character: string) => character.replaceAll(/./gs, (unit) => `\\u${hexOf(unit, 4)}`)

/** Makes a text one safe line, in which line breaks are escaped, too. */
export function printable(text: string): string {
  return text.replace(unsafe, (character) => {
    if (character === '\t') return '\\t'
    return character > '\xff' ? unicodeEscape(character) : `\\x${hexOf(character, 2)}`
  })
}

/** Writes a value as one safe line of JSON. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replace(unsafe, unicodeEscape)
}

const excerptCharacters = 200

/** The beginning of an answer, without its line breaks and indents. */
export function excerptOf(answer: string): string {
  const text = answer.replaceAll(/\s+/g, ' ').trim()
  return text.length > excerptCharacters ? `${text.slice(0, excerptCharacters)}...` : text
}
