/**
 * Writes quoted fields of a CSV file (RFC 4180) from the text format of COPY, byte by byte. Functions write into `out`
 * starting at `at` and return the position after the last byte; a field needs up to twice its range and two quotes.
 */
import { ascii } from '../ascii.ts'
import { isNull, writeJson } from '../text-bytes.ts'

const { backslash, carriageReturn, lineFeed, quote, tab, verticalTab } = ascii

/** What a letter stands for after a backslash of COPY. Other characters stand for themselves. */
const unescapedByte = new Uint8Array(256).map((_, byte) => byte)
for (const [letter, byte] of Object.entries({
  b: 0x08,
  t: tab,
  n: lineFeed,
  v: verticalTab,
  f: 0x0c,
  r: carriageReturn,
}))
  unescapedByte[letter.charCodeAt(0)] = byte

/** Writes a text in quotes. */
export function writeQuoted(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  out[at++] = quote
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!
    if (byte === backslash) out[at++] = unescapedByte[bytes[++i]!]!
    else {
      if (byte === quote) out[at++] = quote
      out[at++] = byte
    }
  }
  out[at++] = quote
  return at
}

/** Writes a text in quotes, or nothing if it is null. */
export function writeQuotedOrNothing(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  return isNull(bytes, start, end) ? at : writeQuoted(out, at, bytes, start, end)
}

/** Writes JSON as the database prints it for the inside of a quoted field, without the blanks between its parts. */
export function writeQuotedJson(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  return writeJson(out, at, bytes, start, end, true)
}
