/** Encodes text as Windows-1252, one byte per column (docs/spec/tra.md#form-of-the-file). */

import { Buffer } from 'node:buffer'
import { ascii } from '../ascii.ts'

const { questionMark } = ascii

/**
 * Bytes by character code, one UTF-16 unit each; 0 if there is no byte. From 0xA0 to 0xFF Windows-1252 equals Unicode.
 * Below it has 27 characters with other codes, of which the trade mark has the highest.
 */
export const windows1252Bytes: Uint8Array = new Uint8Array(0x2123)
for (let byte = 0x20; byte <= 0xff; byte++) {
  const code = new TextDecoder('windows-1252').decode(Uint8Array.of(byte)).charCodeAt(0)
  if (code < 0x7f || code >= 0xa0) windows1252Bytes[code] = byte
}

/** Control characters, tabs and line breaks, including those of Unicode (U+2028, U+2029). */
const breaks = /[\p{Cc}\u2028\u2029]+/gu

/**
 * A character outside Windows-1252 is decomposed without accents and other marks (Ş becomes S, a ligature its letters,
 * a narrow blank a blank). If that is outside too, it becomes `?`. A run of control characters, tabs and line breaks
 * becomes one blank, so that CR LF is not two.
 */
export function toWindows1252(text: string): Buffer {
  // Nearly all text is printable ASCII: a label takes 0.1 µs here, 0.5 µs below.
  if (/^[ -~]*$/.test(text)) return Buffer.from(text, 'latin1')
  const bytes: number[] = []
  // Composed first: an e followed by a combining accent is an é.
  const composed = text.normalize('NFC').replace(breaks, ' ')
  for (let i = 0; i < composed.length; i++) {
    const byte = windows1252Bytes[composed.charCodeAt(i)]
    if (byte) bytes.push(byte)
    else {
      const character = String.fromCodePoint(composed.codePointAt(i)!)
      for (const part of character.normalize('NFKD').replace(/\p{M}/gu, ''))
        bytes.push(windows1252Bytes[part.codePointAt(0)!] || questionMark)
      i += character.length - 1
    }
  }
  return Buffer.from(bytes)
}
