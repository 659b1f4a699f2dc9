import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { type FecFileEncoding, fieldWriter, growthMax } from '../../../src/formats/fec/lines/field-writer.ts'
import { Rows } from '../../../src/formats/text-bytes.ts'
import { latin9 } from '../../support/plain/plain-fec-file.ts'

/** A row of one field, as COPY writes a text. */
function copied(text: string): Rows {
  const escaped = text.replace(
    /[\\\b\f\n\r\t\v]/g,
    (character) =>
      `\\${({ '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '\v': 'v' })[character] ?? '\\'}`,
  )
  const bytes = Buffer.from(`${escaped}\t`)
  return new Rows(bytes, new DataView(bytes.buffer, bytes.byteOffset), Int32Array.of(0, bytes.length))
}

/**
 * The result of both ways of writing, which must be equal, and the number of replaced characters. Bytes around the
 * result must not change.
 */
function written(text: string, encoding: FecFileEncoding = 'iso-8859-15'): [string, number] {
  const row = copied(text)
  const results = (['copy', 'text'] as const).map((way) => {
    const writer = fieldWriter(encoding)
    const out = Buffer.alloc(growthMax * Buffer.byteLength(text) + 2, '#')
    const end = way === 'copy' ? writer.copy(out, 1, row, 0) : writer.text(out, 1, text)
    expect([out[0], out.at(-1)]).toEqual([0x23, 0x23])
    return [out.subarray(1, end).toString(encoding === 'utf-8' ? 'utf8' : 'latin1'), writer.replaced] as [
      string,
      number,
    ]
  })
  expect(results[0]).toEqual(results[1])
  return results[0]!
}

test.each([
  ['plain ASCII', 'Achat 12 - "x" {y}~', 'Achat 12 - "x" {y}~', 0],
  ['nothing', '', '', 0],
  ['a backslash, and what COPY writes for others', '\\ \\N \\t', '\\ \\N \\t', 0],
  [
    'French letters and the euro',
    'Éàçùï Œuvre œuf Ÿ 12 €',
    '\xc9\xe0\xe7\xf9\xef \xbcuvre \xbduf \xbe 12 \xa4',
    0,
  ],
  ['a separate accent after its letter', 'e\u0301', '\xe9', 0],
  ['quotes, dashes and dots of typesetters', '“a” ‘b’ – — …', '"a" \'b\' - - ...', 7],
  ['fractions', '½ ¼', '1/2 1/4', 2],
  ['letters that have a base', 'Şişli Łódź', 'Sisli ?\xf3dz', 4],
  ['an emoji of one character, and one of two', 'a😀🇫🇷', 'a???', 3],
  ['tabs and line breaks, each run one blank', 'a\tb\r\nc\u2028d\x85e', 'a b c d e', 5],
  ['NUL-like and other controls', 'a\x01b\x7fc', 'a b c', 2],
  ['blanks around a text', ' \t\u00a0 a\u00a0b \n', 'a\xa0b', 2],
  ['blanks alone', ' \u00a0\t', '', 1],
])('text in ISO 8859-15: %s', (_, text, expected, replaced) => {
  expect(written(text)).toEqual([expected, replaced])
})

test.each([
  ['any character', '“Łódź” 😀 é', '“Łódź” 😀 é', 0],
  ['controls and breaks alone', 'a\tb\r\n\u2028c\x9bd\x7f', 'a b c d', 6],
  ['blanks of every kind around a text', '\u00a0\u3000\ufeff é \u2009', 'é', 0],
  ['letters at the ends', 'été', 'été', 0],
  ['others at the ends', '€ à €', '€ à €', 0],
])('text in UTF-8: %s', (_, text, expected, replaced) => {
  expect(written(text, 'utf-8')).toEqual([expected, replaced])
})

/** The characters of the planes in use. Unicode decomposes no character of the others. */
function* characters(): Generator<string> {
  for (let code = 1; code < 0x30000; code++)
    if (code < 0xd800 || code >= 0xe000) yield String.fromCodePoint(code)
}

test('every character is written as a second implementation of the rules writes it, within the bound on its length', () => {
  const rules = {
    'iso-8859-15': (text: string) => Buffer.from(latin9Bytes(text)),
    'utf-8': (text: string) => Buffer.from(text.replace(/[\p{Cc}\u2028\u2029]/u, ' ')),
  }
  // One comparison for all characters: an `expect` for each of 194,000 took 25 s.
  const wrong: string[] = []
  for (const [encoding, rule] of Object.entries(rules)) {
    const writer = fieldWriter(encoding as FecFileEncoding)
    const out = Buffer.alloc(64)
    for (const character of characters()) {
      const text = `a${character}b`
      const row = copied(text)
      const expected = rule(text)
      const bound = growthMax * Buffer.byteLength(text)
      for (const way of ['copy', 'text'] as const) {
        out[bound] = 0x23
        const end = way === 'copy' ? writer.copy(out, 0, row, 0) : writer.text(out, 0, text)
        if (!out.subarray(0, end).equals(expected) || out[bound] !== 0x23)
          wrong.push(`${encoding}, ${way}: ${character.codePointAt(0)!.toString(16)}`)
      }
    }
  }
  expect(wrong).toEqual([])
})

function latin9Bytes(text: string): number[] {
  const euro: Record<string, number> = {
    '€': 0xa4,
    Š: 0xa6,
    š: 0xa8,
    Ž: 0xb4,
    ž: 0xb8,
    Œ: 0xbc,
    œ: 0xbd,
    Ÿ: 0xbe,
  }
  return Array.from(latin9(text), (character) => euro[character] ?? character.charCodeAt(0))
}

test('no character becomes longer than the bound allows', () => {
  const writer = fieldWriter('iso-8859-15')
  let most = 0
  const out = new Uint8Array(100)
  for (const text of characters()) most = Math.max(most, writer.text(out, 0, text) / Buffer.byteLength(text))
  expect(most).toBe(growthMax)
})
