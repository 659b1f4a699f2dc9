/**
 * Writes the texts of a FEC in its encoding (docs/spec/fec.md#texts). No field contains a separator or a line end, and
 * none begins or ends with a blank: readers trim fields, so a file that is imported and exported again stays the same.
 */

import { Buffer } from 'node:buffer'
import { ascii } from '../../ascii.ts'
import { breaks, byteTable, copyEncoded, encodeText } from '../../single-byte.ts'
import type { Rows } from '../../text-bytes.ts'

const { backslash, blank, tilde } = ascii

export type FecFileEncoding = 'iso-8859-15' | 'utf-8'

/** Both functions write at `at`, and return the position after the last byte. */
export interface FieldWriter {
  /** The number of characters replaced so far. */
  replaced: number
  /** @param field not null */
  copy(out: Uint8Array, at: number, rows: Rows, field: number): number
  text(out: Uint8Array, at: number, text: string): number
}

/**
 * The most bytes that a byte of UTF-8 can become: the ligature U+FDFA has three bytes, and decomposes into 18 letters.
 */
export const growthMax = 6

export function fieldWriter(encoding: FecFileEncoding): FieldWriter {
  return encoding === 'utf-8' ? new Utf8Writer() : new Latin9Writer()
}

const latin9Bytes = byteTable('iso-8859-15')
const noBreakBlank = 0xa0

/**
 * Typographic characters that ISO 8859-15 lacks, and their plain forms. A decomposition would not keep their meaning.
 */
const plainForms: Readonly<Record<string, string>> = {
  '‘': "'",
  '’': "'",
  '‚': "'",
  '′': "'",
  '´': "'",
  '“': '"',
  '”': '"',
  '„': '"',
  '″': '"',
  '‹': '<',
  '›': '>',
  '‐': '-',
  '‑': '-',
  '–': '-',
  '—': '-',
  '−': '-',
  '•': '·',
  '¦': '|',
  '¼': '1/4',
  '½': '1/2',
  '¾': '3/4',
}

const plainText = /^[ -~]*$/

class Latin9Writer implements FieldWriter {
  replaced = 0

  copy(out: Uint8Array, at: number, rows: Rows, field: number): number {
    const to = copyEncoded(out, at, out.length, rows, field, latin9Bytes)
    return to === undefined ? this.text(out, at, rows.text(field)) : trimmed(out, at, to)
  }

  text(out: Uint8Array, at: number, text: string): number {
    let to = at
    if (plainText.test(text)) for (let i = 0; i < text.length; i++) out[to++] = text.charCodeAt(i)
    else {
      const { bytes, replaced } = encodeText(text, latin9Bytes, plainForms)
      this.replaced += replaced
      out.set(bytes, at)
      to += bytes.length
    }
    return trimmed(out, at, to)
  }
}

function isBlank(byte: number): boolean {
  return byte === blank || byte === noBreakBlank
}

/** Removes the blanks at both ends of the text between `at` and `to` in `out`. Returns the end of the text. */
function trimmed(out: Uint8Array, at: number, to: number): number {
  while (to > at && isBlank(out[to - 1]!)) to--
  let from = at
  while (from < to && isBlank(out[from]!)) from++
  if (from > at) out.copyWithin(at, from, to)
  return to - (from - at)
}

/** The first of two bytes of nearly all French letters. No blank begins with it. */
const letterByte = 0xc3
/** May begin a control character or a line break: C2 80 to C2 9F are controls, E2 80 A8 and E2 80 A9 line breaks. */
const controlByte = 0xc2
const noBreakByte = 0xa0
const punctuationByte = 0xe2
const lineBreakByte = 0xa8
const paragraphBreakByte = 0xa9

class Utf8Writer implements FieldWriter {
  replaced = 0

  copy(out: Uint8Array, at: number, rows: Rows, field: number): number {
    const { bytes } = rows
    const end = rows.end(field)
    let to = at
    for (let i = rows.start(field); i < end; i++) {
      const byte = bytes[i]!
      if (byte === backslash && bytes[i + 1] === backslash) i++
      else if (byte < blank || byte === backslash || byte === tilde + 1 || isBreak(bytes, i))
        return this.text(out, at, rows.text(field))
      out[to++] = byte
    }
    if (to === at || (isInk(out[at]!) && (isInk(out[to - 1]!) || out[to - 2] === letterByte))) return to
    return this.text(out, at, rows.text(field))
  }

  text(out: Uint8Array, at: number, text: string): number {
    const whole = plainText.test(text)
      ? text
      : text.replace(breaks, (run) => {
          this.replaced += run.length
          return ' '
        })
    return at + encoder.encodeInto(whole.trim(), out.subarray(at)).written
  }
}

const encoder = new TextEncoder()

function isBreak(bytes: Uint8Array, at: number): boolean {
  const byte = bytes[at]
  if (byte === controlByte) return bytes[at + 1]! < noBreakByte
  if (byte !== punctuationByte || bytes[at + 1] !== 0x80) return false
  return bytes[at + 2] === lineBreakByte || bytes[at + 2] === paragraphBreakByte
}

/** Whether a byte at the edge of a text cannot be part of a blank. */
function isInk(byte: number): boolean {
  return (byte > blank && byte <= tilde) || byte === letterByte
}

/** Renders one whole field. */
export function fieldBytes(writer: FieldWriter, text: string): Uint8Array {
  const room = Buffer.alloc(growthMax * Buffer.byteLength(text))
  return Uint8Array.from(room.subarray(0, writer.text(room, 0, text)))
}
