/** Encodings of one byte per character, and how texts are converted to them (docs/spec/tra.md#form-of-the-file). */

import { Buffer } from 'node:buffer'
import { ascii } from './ascii.ts'
import type { Rows } from './text-bytes.ts'

const { backslash, blank, questionMark, tilde } = ascii

/** The lowest byte that begins a UTF-8 character of two, of three and of four bytes. */
const twoBytes = 0xc2
const threeBytes = 0xe0
const fourBytes = 0xf0

/** The highest character code that has a byte in Windows-1252 or ISO 8859-15: the code of ™. */
const highestCode = 0x2122

/**
 * The byte of each character, by the character's UTF-16 code; 0 if the character has no byte. Only printed characters
 * have bytes: in ISO 8859-15 the bytes from 0x80 to 0x9F are control characters.
 */
export function byteTable(encoding: 'windows-1252' | 'iso-8859-15'): Uint8Array {
  const table = new Uint8Array(highestCode + 1)
  for (let byte = 0x20; byte <= 0xff; byte++) {
    const code = new TextDecoder(encoding).decode(Uint8Array.of(byte)).charCodeAt(0)
    if (code < 0x7f || code >= 0xa0) table[code] = byte
  }
  return table
}

/** Control characters, tabs and line breaks, including those of Unicode (U+2028, U+2029). */
export const breaks = /[\p{Cc}\u2028\u2029]+/gu

/**
 * Encodes a text. A character that the encoding lacks is decomposed and loses accents and other marks (Ş becomes S, a
 * ligature its letters, a narrow blank a blank). If the encoding lacks the result too, it becomes `?`. A run of control
 * characters, tabs and line breaks becomes one blank, so that CR LF does not become two.
 * @param plainForms characters to write in place of characters that have no decomposition
 * @returns `replaced`: the number of characters that were not written as they are
 */
export function encodeText(
  text: string,
  table: Uint8Array,
  plainForms: Readonly<Record<string, string>> = {},
) {
  const bytes: number[] = []
  let replaced = 0
  // Composed first, because an e followed by a combining accent is an é.
  const composed = text.normalize('NFC').replace(breaks, (run) => {
    replaced += run.length
    return ' '
  })
  for (let i = 0; i < composed.length; i++) {
    const byte = table[composed.charCodeAt(i)]
    if (byte) {
      bytes.push(byte)
      continue
    }
    replaced++
    const character = String.fromCodePoint(composed.codePointAt(i)!)
    for (const part of (plainForms[character] ?? character).normalize('NFKD').replace(/\p{M}/gu, ''))
      bytes.push(table[part.codePointAt(0)!] || questionMark)
    i += character.length - 1
  }
  return { bytes: Buffer.from(bytes), replaced }
}

/**
 * Copies a field of text, at most up to the position `last`.
 * @returns the position after the copy; undefined if the table has no byte for a character. The first character beyond
 *   `last` is checked, too
 */
export function copyEncoded(
  out: Uint8Array,
  at: number,
  last: number,
  rows: Rows,
  field: number,
  table: Uint8Array,
): number | undefined {
  const { bytes } = rows
  const end = rows.end(field)
  let to = at
  for (let i = rows.start(field); i < end; i++) {
    let byte = bytes[i]!
    if (byte >= twoBytes) {
      const isLong = byte >= threeBytes
      const code = isLong
        ? ((byte & 0x0f) << 12) | ((bytes[i + 1]! & 0x3f) << 6) | (bytes[i + 2]! & 0x3f)
        : ((byte & 0x1f) << 6) | (bytes[i + 1]! & 0x3f)
      byte = byte < fourBytes ? (table[code] ?? 0) : 0
      i += isLong ? 2 : 1
    } else if (byte === backslash && bytes[i + 1] === backslash) i++
    else if (byte < blank || byte > tilde || byte === backslash) byte = 0
    if (byte === 0) return undefined
    if (to === last) return to
    out[to++] = byte
  }
  return to
}

/** Encodes text as Windows-1252, one byte per column (docs/spec/tra.md#form-of-the-file). */
export const windows1252Bytes: Uint8Array = byteTable('windows-1252')

export function toWindows1252(text: string): Buffer {
  // Nearly all text is printable ASCII: a label takes 0.1 µs here, and 0.5 µs through `encodeText`.
  return /^[ -~]*$/.test(text) ? Buffer.from(text, 'latin1') : encodeText(text, windows1252Bytes).bytes
}
