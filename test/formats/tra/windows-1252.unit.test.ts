import { expect, test } from 'vitest'
import { toWindows1252 } from '../../../src/formats/single-byte.ts'

const bytes = (text: string) => toWindows1252(text).toString('latin1')

test.each([
  ['plain ASCII', 'Achat 12 - "x" \\ {y}~', 'Achat 12 - "x" \\ {y}~'],
  ['nothing', '', ''],
  ['French letters', 'Éàçùï Œuvre œuf Ÿ', '\xc9\xe0\xe7\xf9\xef \x8cuvre \x9cuf \x9f'],
  [
    'the euro, and typographic quotes, dashes and dots',
    '€ “a” ‘b’ – — …',
    '\x80 \x93a\x94 \x91b\x92 \x96 \x97 \x85',
  ],
  ['a separate accent after its letter', 'E\u0301te\u0301', '\xc9t\xe9'],
  ['accents that no letter has', 'x\u0302\u0323 a\u0336', 'x a'],
  ['letters of other alphabets that have a base', 'Şişli Łódź Čapek ő', 'Sisli ?\xf3dz Capek o'],
  ['ligatures, narrow blanks, wide letters', '\ufb01n 1\u202f200 \uff21', 'fin 1 200 A'],
  ['Cyrillic', 'Йод', '???'],
  ['an emoji, one question mark per character', 'a😀b', 'a?b'],
  ['a flag and a family of joined emoji', '🇫🇷', '??'],
  ['a tab', 'a\tb', 'a b'],
  ['line breaks, each kind', 'a\nb\rc\r\nd\u2028e\u0085f', 'a b c d e f'],
  ['NUL, escape, delete and the controls above 0x7f', 'a\0b\x1b[2Jc\x7fd\x9be', 'a b [2Jc d e'],
  ['a run of them', 'a\t\n\t b', 'a  b'],
  ['what Windows-1252 leaves undefined', '\x81\x8d\x8f\x90\x9d', ' '],
  ['a non-breaking blank and a soft hyphen, which exist', '1\u00a0000\u00ad', '1\xa0000\xad'],
])('text in Windows-1252: %s', (_, text, expected) => {
  expect(bytes(text)).toBe(expected)
})

test('every byte above 0x9f is the character with the same number', () => {
  for (let code = 0xa0; code <= 0xff; code++)
    expect(bytes(String.fromCharCode(code))).toBe(String.fromCharCode(code))
})

test('the result has only defined bytes and no control character, for any text', () => {
  const printed = (byte: number) => byte >= 0x20 && ![0x7f, 0x81, 0x8d, 0x8f, 0x90, 0x9d].includes(byte)
  for (let code = 0; code < 0x3000; code++)
    expect(Array.from(toWindows1252(String.fromCharCode(code))).every(printed)).toBe(true)
})
