import { expect, test } from 'vitest'
import { printable, printableJson } from '../src/printable.ts'

/** A text, what a terminal shows of it, and its form in JSON. */
const cases: [text: string, shown: string, inJson: string][] = [
  ['Café 日本 😀 n°1', 'Café 日本 😀 n°1', 'Café 日本 😀 n°1'],
  ['\\x1b typed as letters', '\\x1b typed as letters', '\\\\x1b typed as letters'],
  ['a\x1b[31mb\tc\x9bd', 'a\\x1b[31mb\\tc\\x9bd', 'a\\u001b[31mb\\tc\\u009bd'],
  ['a\u2028b\u202ec\u2066d\u061ce', 'a\\u2028b\\u202ec\\u2066d\\u061ce', 'a\\u2028b\\u202ec\\u2066d\\u061ce'],
  ['AC\u200bME', 'AC\\u200bME', 'AC\\u200bME'],
  ['AC\u200cM\u200dE', 'AC\\u200cM\\u200dE', 'AC\\u200cM\\u200dE'],
  ['AC\u2060M\ufeffE', 'AC\\u2060M\\ufeffE', 'AC\\u2060M\\ufeffE'],
  ['AC\u00adME', 'AC\\xadME', 'AC\\u00adME'],
  ['AC\u034fM\u3164E\ufe0f', 'AC\\u034fM\\u3164E\\ufe0f', 'AC\\u034fM\\u3164E\\ufe0f'],
  ['AC\u{e0041}ME\u{e007f}', 'AC\\udb40\\udc41ME\\udb40\\udc7f', 'AC\\udb40\\udc41ME\\udb40\\udc7f'],
]
test.each(cases)('the text %j is made printable', (text, shown, inJson) => {
  expect(printable(text)).toBe(shown)
  expect(printableJson(text)).toBe(`"${inJson}"`)
  expect(JSON.parse(printableJson(text))).toBe(text)
})
