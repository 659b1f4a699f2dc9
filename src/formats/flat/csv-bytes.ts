/**
 * Writes quoted fields of a CSV file (RFC 4180) from the text format of COPY, byte by byte. Functions write into `out`
 * starting at `at` and return the position after the last byte; a field needs up to twice its range and two quotes.
 */
import { ascii } from '../ascii.ts'
import type { Rows } from '../columns.ts'
import { isNullField, writeJson } from '../text-bytes.ts'

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
export function writeQuoted(out: Uint8Array, at: number, { bytes, fields }: Rows, field: number): number {
  const end = fields[field + 1]! - 1
  out[at++] = quote
  for (let i = fields[field]!; i < end; i++) {
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
export function writeQuotedOrNothing(out: Uint8Array, at: number, rows: Rows, field: number): number {
  return isNullField(rows, field) ? at : writeQuoted(out, at, rows, field)
}

/** Writes JSON as the database prints it for the inside of a quoted field, without the blanks between its parts. */
export function writeQuotedJson(out: Uint8Array, at: number, { bytes, fields }: Rows, field: number): number {
  return writeJson(out, at, bytes, fields[field]!, fields[field + 1]! - 1, true)
}
