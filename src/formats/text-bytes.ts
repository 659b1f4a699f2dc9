/**
 * Reads and writes bytes for every format: COPY's text format in, bytes of a file out. Functions that write start at
 * `at` in `out` and return the position after the last byte; the caller makes sure that `out` is large enough.
 */
import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { ascii } from './ascii.ts'
import type { Rows } from './columns.ts'

const { backslash, blank, braceClose, capitalN, comma, quote, zero } = ascii

/**
 * The UTF-8 bytes of a fixed piece of the output. Short ones share Node's pool: `TextEncoder` gives each a buffer of its
 * own, and the dictionary of a folder with 75 accounts then takes 0.09 ms instead of 0.025.
 */
export function bytesOf(text: string): Uint8Array {
  return Buffer.from(text)
}

/** A field is null in COPY's text format when it is exactly `\N`. @param field its index in `rows.fields` */
export function isNullField({ bytes, fields }: Rows, field: number): boolean {
  const start = fields[field]!
  return fields[field + 1]! - start === 3 && bytes[start] === backslash && bytes[start + 1] === capitalN
}

/**
 * Copies a rendered piece. `set` takes 14 ns at any length; a loop takes as long for 12 bytes, and 90 ns for a hundred
 * (Node 26).
 */
export function writePiece(out: Uint8Array, at: number, piece: Uint8Array): number {
  out.set(piece, at)
  return at + piece.length
}

/** Copies a range of bytes that need no escaping: digits, dates, codes. */
export function writePlain(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  for (let i = start; i < end; i++) out[at++] = bytes[i]!
  return at
}

/** Copies a field that needs no escaping. */
export function writePlainField(out: Uint8Array, at: number, rows: Rows, field: number): number {
  return writePlain(out, at, rows.bytes, rows.fields[field]!, rows.fields[field + 1]! - 1)
}

/** The digits of an id as a number; ids are below 2^53, which the domain `id` of the database checks. */
export function readId(bytes: Uint8Array, start: number, end: number): number {
  let id = 0
  for (let i = start; i < end; i++) id = id * 10 + (bytes[i]! - zero)
  return id
}

/** The id in a field. */
export function idOf({ bytes, fields }: Rows, field: number): number {
  return readId(bytes, fields[field]!, fields[field + 1]! - 1)
}

/** What a dictionary holds under an id that a row cites. @param kind what is cited, for the error */
export function cited<Rendered>(rendered: ReadonlyMap<number, Rendered>, id: number, kind: string): Rendered {
  const value = rendered.get(id)
  if (value === undefined) assert.fail(`a row cites the ${kind} ${id}, which its folder does not have`)
  return value
}

/** What is rendered of each row, by its id. */
export function renderedById<Row extends { id: string }, Rendered>(
  rows: readonly Row[],
  render: (row: Row) => Rendered,
): Map<number, Rendered> {
  return new Map(rows.map((row) => [Number(row.id), render(row)]))
}

export function longestOf(pieces: Iterable<{ length: number }>): number {
  let most = 0
  for (const { length } of pieces) most = Math.max(most, length)
  return most
}

/**
 * Position of the character after the backslash of a JSON escape in COPY's text: 2 for `\\n` at 0, 3 for an escaped
 * backslash.
 */
export function escapedAt(bytes: Uint8Array, at: number): number {
  return bytes[at + 2] === backslash ? at + 3 : at + 2
}

/**
 * Writes JSON as the database prints it, without the blanks between its parts. Strings and numbers keep their
 * characters, so numbers of partners keep their digits. It needs at most the range, twice that with doubled quotes.
 *
 * COPY doubles each backslash of the text. JSON has already escaped all other characters that COPY would escape.
 * @param doubled each quote is written twice, for the inside of a quoted field of CSV
 */
export function writeJson(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
  doubled = false,
): number {
  let inString = false
  for (let i = start; i < end; i++) {
    let byte = bytes[i]!
    if (byte === backslash) {
      i = escapedAt(bytes, i)
      out[at++] = backslash
      byte = bytes[i]!
    } else if (byte === quote) inString = !inString
    else if (byte === blank && !inString) continue
    if (byte === quote && doubled) out[at++] = quote
    out[at++] = byte
  }
  return at
}

/** End of a number in an array `{1,2,3}`, searched from one of its digits. */
export function endOfNumber(bytes: Uint8Array, from: number): number {
  let at = from
  while (bytes[at] !== comma && bytes[at] !== braceClose) at++
  return at
}

const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

/** The text of a field that COPY wrote. */
export function textOf({ bytes, fields }: Rows, field: number): string {
  return unescaped(bytes, fields[field]!, fields[field + 1]! - 1)
}

/** The text that COPY wrote. */
export function unescaped(bytes: Uint8Array, start: number, end: number): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8')
  return text.includes('\\')
    ? text.replace(/\\(.)/gs, (_, letter: string) => escapes[letter] ?? letter)
    : text
}
