/**
 * Writes columns of a TRA line byte by byte from the text format of COPY. The line is laid out beforehand, so that all
 * other columns are already blank.
 */

import { Buffer } from 'node:buffer'
import { ascii } from '../ascii.ts'
import { inUnits } from '../minor-units.ts'
import { copyEncoded, toWindows1252, windows1252Bytes } from '../single-byte.ts'
import { moneyDecimals, type Rows, writeCents } from '../text-bytes.ts'
import { layouts, noDay, type TraField, TraOverflow } from './layouts.ts'

const { blank, capitalA, capitalZ, letterA, letterZ, minus } = ascii

const caseBit = 0x20

/** The width of all fields for references and descriptions. */
const textColumns = 35

/**
 * Writes a text of 35 columns. Characters of Windows-1252, which include all of French, are copied from one, two or
 * three bytes of UTF-8. A text with any other character is decoded and transliterated. The check reaches one character
 * beyond the last column, because a combining accent there would change the letter before it. One text in five has a
 * quote or backslash; decoding these took a tenth of an export's time.
 */
export function writeText(out: Uint8Array, at: number, rows: Rows, field: number): void {
  const last = at + textColumns
  if (copyEncoded(out, at, last, rows, field, windows1252Bytes) !== undefined) return
  out.fill(blank, at, last)
  out.set(toWindows1252(rows.text(field)).subarray(0, textColumns), at)
}

/** Copies a field that needs no encoding: an id, a currency. */
export function writePlain(out: Uint8Array, at: number, rows: Rows, field: number): void {
  const end = rows.end(field)
  for (let i = rows.start(field); i < end; i++) out[at++] = rows.bytes[i]!
}

/** Changes an ASCII letter to upper or lower case; any other byte stays. */
export function inCase(byte: number, isLower: boolean): number {
  if (isLower) return byte >= capitalA && byte <= capitalZ ? byte | caseBit : byte
  return byte >= letterA && byte <= letterZ ? byte & ~caseBit : byte
}

/** Writes `2024-02-29` as `29022024`, and null as 01011900. */
export function writeDay(out: Uint8Array, at: number, rows: Rows, field: number): void {
  if (rows.isNull(field)) {
    for (let i = 0; i < noDay.length; i++) out[at + i] = noDay.charCodeAt(i)
    return
  }
  const start = rows.start(field)
  for (let i = 0; i < noDay.length; i++) out[at + i] = rows.bytes[start + placesInIsoDay[i]!]!
}

/** Where the digits of day, month and year stand in `2024-02-29`. */
const placesInIsoDay = [8, 9, 5, 6, 0, 1, 2, 3]

/** Writes a text right-aligned in its columns, and blanks before it. */
export function writeRight(out: Uint8Array, at: number, columns: number, text: string): void {
  out.fill(blank, at, at + columns)
  const from = at + columns - text.length
  for (let i = 0; i < text.length; i++) out[from + i] = text.charCodeAt(i)
}

/**
 * Writes an amount in minor units, given as digits, right-aligned, with a comma and two decimals.
 * @param line where the line begins in `out`
 * @throws {TraOverflow} if it does not fit
 */
export function writeAmount(
  out: Uint8Array,
  line: number,
  field: TraField,
  bytes: Uint8Array,
  start: number,
  end: number,
): void {
  const isNegative = bytes[start] === minus
  const digits = Math.max(isNegative ? end - start - 1 : end - start, moneyDecimals + 1)
  const columns = digits + (isNegative ? 2 : 1)
  if (columns > field.length) {
    const minor = BigInt(Buffer.from(bytes.subarray(start, end)).toString('latin1'))
    throw new TraOverflow(layouts.ENTRY, field, inUnits(minor, ','))
  }
  writeCents(out, line + field.at - 1 + field.length - columns, bytes, start, end)
}
