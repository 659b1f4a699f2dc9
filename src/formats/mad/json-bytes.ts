/**
 * JSON written byte by byte from the text format of COPY: no string, no object.
 *
 * Every function writes into `out` from `at` on and returns where it stopped; the caller has made sure of the room.
 * Text passes through as the UTF-8 it is; only backslash, quote and what is below 0x20 is written in another way.
 */

import { ascii } from '../ascii.ts'
import { bytesOf, escapedAt, isNull, writePlain } from '../text-bytes.ts'

const { backslash, blank, letterU, letterV, quote, verticalTab, zero } = ascii

/** A JSON string. Room needed: six times the range, and two quotes (a control character becomes \u0001). */
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
    // COPY writes backslash, backspace, form feed, line feed, carriage return and tab as JSON does; of what it puts
    // behind a backslash only the vertical tab is none of JSON's.
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

/** `\"`, or `\u0001` for a control character that JSON has no letter for. */
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

/** A JSON string, or null. */
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

/** A JSON string whose characters need no escaping (a date), or null. */
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

/**
 * JSON as the database prints it, without the blanks between its parts. Strings and numbers keep the characters they
 * have, so a number of a partner's keeps its digits. Room needed: the range.
 *
 * COPY doubles each backslash of the text, and JSON writes whatever else COPY would escape with a backslash itself.
 */
export function writeJson(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  let inString = false
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!
    if (byte === backslash) {
      i = escapedAt(bytes, i)
      out[at++] = backslash
      out[at++] = bytes[i]!
      continue
    }
    if (byte === quote) inString = !inString
    if (inString || byte !== blank) out[at++] = byte
  }
  return at
}
