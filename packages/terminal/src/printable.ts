/**
 * Texts that others wrote, made safe for terminals: names, ids, messages and headers of servers, answers of receivers. Both
 * command lines use it where they write a line, so that no command has to think of it.
 *
 * What a terminal obeys, and what reorders or hides the text around it, becomes visible: control characters (C0, DEL and
 * C1, so every escape sequence) become `\x1b`, a tab `\t`; line and paragraph separators (U+2028, U+2029) and what Unicode
 * lets nobody see (Default_Ignorable_Code_Point) become `\u202e`. The latter are overrides of direction, blanks without
 * width, soft hyphens, fillers, variation selectors and tags; joiners, too, though emoji and some scripts use them: an
 * emoji made of several is shown in its parts. All else stays. A backslash stays, so `\x1b` typed as letters is shown as
 * typed. In JSON they are all `\u001b`, in surrogate pairs where needed, which every reader of JSON turns back.
 */
const unsafe = /[\p{Cc}\u2028\u2029\p{Default_Ignorable_Code_Point}]/gu

const hexOf = (unit: string, digits: number) => unit.charCodeAt(0).toString(16).padStart(digits, '0')
const unicodeEscape = (character: string) => character.replaceAll(/./gs, (unit) => `\\u${hexOf(unit, 4)}`)

/** Makes a text one safe line: its line breaks are escaped, too. */
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
