/**
 * Writes JSON byte by byte from the text format of COPY, without strings or objects.
 *
 * Functions write into `out` starting at `at` and return the position after the last byte; the caller makes sure that
 * `out` is large enough. Text is copied as UTF-8; only backslash, quote and characters below 0x20 are escaped.
 */

import { ascii } from '../ascii.ts'
import { bytesOf, isNull, writePlain } from '../text-bytes.ts'

const { backslash, letterU, letterV, quote, verticalTab, zero } = ascii

/** Writes a JSON string. It needs up to six times the range (a control character becomes \u0001) and two quotes. */
export function writeText(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  out[at++] = quote
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!
    if (byte >= 0x20 && byte !== quote && byte !== backslash) out[at++] = byte
    else if (byte !== backslash) at = writeEscape(out, at, byte)
    // COPY writes backslash, backspace, form feed, line feed, carriage return and tab as JSON does. The vertical tab is
    // the only one of its escapes that JSON lacks.
    else if (bytes[++i] === letterV) at = writeEscape(out, at, verticalTab)
    else {
      out[at++] = backslash
      out[at++] = bytes[i]!
    }
  }
  out[at++] = quote
  return at
}

const hexDigits = bytesOf('0123456789abcdef')

/** Writes `\"`, or `\u0001` for a control character that has no letter in JSON. */
function writeEscape(out: Uint8Array, at: number, byte: number): number {
  out[at++] = backslash
  out[at++] = byte === quote ? quote : letterU
  if (byte === quote) return at
  out[at++] = zero
  out[at++] = zero
  out[at++] = hexDigits[byte >> 4]!
  out[at++] = hexDigits[byte & 0xf]!
  return at
}

/** Writes a JSON string, or null. */
export function writeTextOrNull(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  return isNull(bytes, start, end) ? writeNull(out, at) : writeText(out, at, bytes, start, end)
}

export function writeNull(out: Uint8Array, at: number): number {
  out[at] = 0x6e
  out[at + 1] = 0x75
  out[at + 2] = 0x6c
  out[at + 3] = 0x6c
  return at + 4
}

/** Writes a JSON string that needs no escaping (a date), or null. */
export function writeDateOrNull(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  if (isNull(bytes, start, end)) return writeNull(out, at)
  out[at++] = quote
  at = writePlain(out, at, bytes, start, end)
  out[at++] = quote
  return at
}
