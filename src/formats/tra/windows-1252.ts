/** Text as bytes of Windows-1252, one per column (tra.md, Bytes). */
import { Buffer } from 'node:buffer'
import iconv from 'iconv-lite'

/** Bytes from 0x80 by their character, which is one UTF-16 unit for each of them. */
const upperBytes = new Map<string, number>()
for (let byte = 0x80; byte <= 0xff; byte++) {
  const character = iconv.decode(Buffer.of(byte), 'windows-1252')
  if (character !== '\ufffd') upperBytes.set(character, byte)
}

const questionMark = 0x3f
/** Controls, tabs and line breaks, those that Unicode has of its own (U+2028, U+2029) as well. */
const breaks = /[\p{Cc}\u2028\u2029]+/gu

/**
 * A character that Windows-1252 does not have is taken apart: accents and other marks are dropped, and what remains
 * stands for it (Ş as S, a ligature as its letters, a narrow blank as a blank). What has no form even then becomes `?`.
 * A run of control characters, tabs and line breaks becomes one blank, so that CR LF is not two.
 */
export function toWindows1252(text: string): Buffer {
  // Nearly all text is printable ASCII: 0.1 µs for a label this way, 0.5 µs on the way below.
  if (/^[ -~]*$/.test(text)) return Buffer.from(text, 'latin1')
  const bytes: number[] = []
  // Composed first: an e with an accent of its own behind it is an é.
  for (const character of text.normalize('NFC').replace(breaks, ' ')) {
    const byte = byteOf(character)
    if (byte !== undefined) bytes.push(byte)
    else
      for (const part of character.normalize('NFKD').replace(/\p{M}/gu, ''))
        bytes.push(byteOf(part) ?? questionMark)
  }
  return Buffer.from(bytes)
}

function byteOf(character: string): number | undefined {
  const code = character.codePointAt(0)!
  return code < 0x80 ? code : upperBytes.get(character)
}
