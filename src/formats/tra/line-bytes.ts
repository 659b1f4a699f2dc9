/**
 * Columns of a TRA line written byte by byte from the text format of COPY. The line was laid out before: what is not
 * written here is blank already.
 */

import { Buffer } from 'node:buffer'
import { ascii } from '../ascii.ts'
import { inUnits } from '../minor-units.ts'
import { isNull, unescaped } from '../text-bytes.ts'
import { noDay, TraOverflow } from './layouts/fixed-width.ts'
import { layouts, type TraField } from './layouts/layouts.ts'
import { toWindows1252, windows1252Bytes } from './windows-1252.ts'

const { backslash, blank, capitalA, capitalZ, comma, letterA, letterZ, minus, tilde, zero } = ascii

const caseBit = 0x20
/** The first byte of characters of so many bytes in UTF-8. */
const twoBytes = 0xc2
const threeBytes = 0xe0
const fourBytes = 0xf0

const amountDecimals = 2
/** References and descriptions, all of them. */
const textColumns = 35

/**
 * A text of 35 columns. What Windows-1252 has is copied, from one, two or three bytes of UTF-8; that is all of French.
 * Where anything else stands in it the text is decoded and transliterated: a lone accent may change the letter before it,
 * so the look goes one character beyond the last column. Decoding the one text in five that has a quote or a backslash
 * cost a tenth of an export.
 */
export function writeText(out: Uint8Array, at: number, bytes: Uint8Array, start: number, end: number): void {
  const last = at + textColumns
  let to = at
  for (let i = start; i < end; i++) {
    let byte = bytes[i]!
    if (byte >= twoBytes) {
      const isLong = byte >= threeBytes
      const code = isLong
        ? ((byte & 0x0f) << 12) | ((bytes[i + 1]! & 0x3f) << 6) | (bytes[i + 2]! & 0x3f)
        : ((byte & 0x1f) << 6) | (bytes[i + 1]! & 0x3f)
      byte = byte < fourBytes ? (windows1252Bytes[code] ?? 0) : 0
      i += isLong ? 2 : 1
    } else if (byte === backslash && bytes[i + 1] === backslash) i++
    else if (byte < blank || byte > tilde || byte === backslash) byte = 0
    if (byte === 0) {
      const text = toWindows1252(unescaped(bytes, start, end)).subarray(0, textColumns)
      out.fill(blank, at, last)
      out.set(text, at)
      return
    }
    if (to === last) return
    out[to++] = byte
  }
}

/** An ASCII letter in upper or lower case; any other byte as it is. */
export function inCase(byte: number, isLower: boolean): number {
  if (isLower) return byte >= capitalA && byte <= capitalZ ? byte | caseBit : byte
  return byte >= letterA && byte <= letterZ ? byte & ~caseBit : byte
}

/** `2024-02-29` as `29022024`; null as 01011900. */
export function writeDay(out: Uint8Array, at: number, bytes: Uint8Array, start: number, end: number): void {
  if (isNull(bytes, start, end)) {
    for (let i = 0; i < noDay.length; i++) out[at + i] = noDay.charCodeAt(i)
    return
  }
  out[at] = bytes[start + 8]!
  out[at + 1] = bytes[start + 9]!
  out[at + 2] = bytes[start + 5]!
  out[at + 3] = bytes[start + 6]!
  out[at + 4] = bytes[start]!
  out[at + 5] = bytes[start + 1]!
  out[at + 6] = bytes[start + 2]!
  out[at + 7] = bytes[start + 3]!
}

/** Right-aligned in its columns, which are made blank before. */
export function writeRight(out: Uint8Array, at: number, columns: number, text: string): void {
  out.fill(blank, at, at + columns)
  const from = at + columns - text.length
  for (let i = 0; i < text.length; i++) out[from + i] = text.charCodeAt(i)
}

/**
 * An amount from the digits of minor units, right-aligned, with a comma and two decimals.
 * @param line where the line begins in `out`
 * @throws {TraOverflow}
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
  const first = isNegative ? start + 1 : start
  const digits = Math.max(end - first, amountDecimals + 1)
  if (digits + (isNegative ? 2 : 1) > field.length) {
    const minor = BigInt(Buffer.from(bytes.subarray(start, end)).toString('latin1'))
    throw new TraOverflow(layouts.ENTRY, field, inUnits(minor, ','))
  }
  let at = line + field.at - 1 + field.length - 1
  let i = end - 1
  for (let place = 0; place < digits; place++) {
    if (place === amountDecimals) out[at--] = comma
    out[at--] = i >= first ? bytes[i--]! : zero
  }
  if (isNegative) out[at] = minus
}
