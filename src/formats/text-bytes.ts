/**
 * Reads rows of COPY and writes the bytes of a file, for every format. Functions write into `out` from `at` on and
 * return the position after the last byte; the caller makes sure that `out` is large enough.
 *
 * Short pieces are copied in words of eight bytes, as a movement consists of some twenty such pieces. For each,
 * `TypedArray.set` takes 13 ns, a loop over bytes 0.8 ns a byte, and a loop over words 2 ns for up to 16 bytes and 5 ns
 * for up to 32 (Node 26). A copy ends with a whole word: it reads up to seven bytes after its source, and writes up to
 * seven bytes after its end. The next piece overwrites these.
 */
import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { ascii } from './ascii.ts'

const { backslash, blank, braceClose, capitalN, comma, dot, minus, quote, zero } = ascii

/**
 * The row of COPY that a format reads, as byte ranges in a batch of rows. Fields are named by the index of their
 * column.
 */
export class Rows {
  /** The bytes of the batch. */
  bytes: Buffer
  /** A view of the same bytes. It can be read a few bytes beyond their end. */
  view: DataView<ArrayBuffer>
  /**
   * Field k of the row begins at `fields[base + k]` and ends before `fields[base + k + 1] - 1`, the position of the tab
   * or line feed.
   */
  fields: Int32Array<ArrayBuffer>
  base = 0

  constructor(bytes: Buffer, view: DataView<ArrayBuffer>, fields: Int32Array<ArrayBuffer>) {
    this.bytes = bytes
    this.view = view
    this.fields = fields
  }

  start(field: number): number {
    return this.fields[this.base + field]!
  }

  end(field: number): number {
    return this.fields[this.base + field + 1]! - 1
  }

  /** The number of bytes in `count` adjacent fields from `field` on, with the separator after each. */
  bytesIn(count: number, field = 0): number {
    const first = this.base + field
    return this.fields[first + count]! - this.fields[first]!
  }

  /** Whether a field is null: in COPY's text format it is then exactly `\N`. */
  isNull(field: number): boolean {
    const { bytes, fields } = this
    const at = this.base + field
    const start = fields[at]!
    return fields[at + 1]! - start === 3 && bytes[start] === backslash && bytes[start + 1] === capitalN
  }

  /** The id in a field as a number. Ids are below 2^53, which the domain `id` of the database checks. */
  id(field: number): number {
    return readId(this.bytes, this.start(field), this.end(field))
  }

  text(field: number): string {
    const text = this.bytes.toString('utf8', this.start(field), this.end(field))
    return text.includes('\\')
      ? text.replace(/\\(.)/gs, (_, letter: string) => escapes[letter] ?? letter)
      : text
  }
}

const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

/** Reads the digits of an id as a number. */
function readId(bytes: Uint8Array, start: number, end: number): number {
  let id = 0
  for (let i = start; i < end; i++) id = id * 10 + (bytes[i]! - zero)
  return id
}

/** A buffer to write into: for a chunk, or for an entry. */
export interface Output {
  bytes: Uint8Array<ArrayBuffer>
  view: DataView<ArrayBuffer>
}

export function outputOf(bytes: Uint8Array<ArrayBuffer>): Output {
  return { bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length) }
}

/** The same output, or a larger one if it has too few bytes. */
export function withRoom(out: Output, bytesMax: number): Output {
  return bytesMax > out.bytes.length ? outputOf(new Uint8Array(2 * bytesMax)) : out
}

const wordBytes = 8

/** The most bytes that are written after the end of a piece. */
const bytesAfterMax = wordBytes - 1

/** The length from which `set` is faster than words. */
const longBytesMin = 96

/** A piece of the output that is rendered once. */
export interface Piece {
  length: number
  bytes: Uint8Array
  /** The same bytes, followed by room for the last whole word that is read. */
  view: DataView
}

/**
 * Renders a piece. Short pieces share Node's pool: a buffer for each piece would take most of the time of a dictionary.
 */
export function pieceOf(text: string | Uint8Array): Piece {
  const length = Buffer.byteLength(text)
  const padded = Buffer.allocUnsafe(length + bytesAfterMax)
  if (typeof text === 'string') padded.write(text)
  else padded.set(text)
  return {
    length,
    bytes: padded.subarray(0, length),
    view: new DataView(padded.buffer, padded.byteOffset, padded.length),
  }
}

export function writePiece(out: Output, at: number, { length, bytes, view: from }: Piece): number {
  if (length >= longBytesMin) out.bytes.set(bytes, at)
  else {
    const { view } = out
    for (let i = 0; i < length; i += wordBytes) view.setBigUint64(at + i, from.getBigUint64(i, true), true)
  }
  return at + length
}

/** Copies bytes with `set`, which takes about the same time for many bytes and for few. */
export function writeBytes(out: Output, at: number, bytes: Uint8Array): number {
  out.bytes.set(bytes, at)
  return at + bytes.length
}

/** Copies a range of bytes that need no escaping, such as digits, dates or codes. */
export function writeRange(
  out: Output,
  at: number,
  { view: from }: { view: DataView },
  start: number,
  end: number,
): number {
  const { view } = out
  const shift = at - start
  for (let i = start; i < end; i += wordBytes) view.setBigUint64(i + shift, from.getBigUint64(i, true), true)
  return end + shift
}

/** Copies a field that needs no escaping. */
export function writeField(out: Output, at: number, rows: Rows, field: number): number {
  return writeRange(out, at, rows, rows.start(field), rows.end(field))
}

/** Looks up what a dictionary holds for an id that a row cites. @param kind the kind of the cited row, for the error */
export function cited<Rendered>(rendered: ReadonlyMap<number, Rendered>, id: number, kind: string): Rendered {
  const value = rendered.get(id)
  if (value === undefined) assert.fail(`a row cites the ${kind} ${id}, which its folder does not have`)
  return value
}

/**
 * Renders each row, and keeps the results by id. Ids are numbers here, so a look-up makes no string of the digits in a
 * row of COPY.
 */
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
 * The position of the escaped character in a JSON escape, whose backslash COPY doubles: 2 for `\\n` at 0, and 3 for an
 * escaped backslash (`\\\\`).
 */
export function escapedAt(bytes: Uint8Array, at: number): number {
  return bytes[at + 2] === backslash ? at + 3 : at + 2
}

/**
 * Writes a field of JSON as the database prints it, but without the blanks between its parts. Strings and numbers keep
 * their characters, so numbers of partners keep their digits. The result has at most the size of the field, or twice
 * that size with doubled quotes.
 *
 * COPY doubles each backslash of the text. JSON has already escaped all other characters that COPY would escape.
 * @param form `doubled`: each quote is written twice, for the inside of a quoted field of CSV. `copied`: backslashes
 *   stay doubled, for a field of COPY
 */
export function writeJson(
  out: Uint8Array,
  at: number,
  rows: Rows,
  field: number,
  form: 'plain' | 'doubled' | 'copied' = 'plain',
): number {
  const { bytes } = rows
  const end = rows.end(field)
  let inString = false
  for (let i = rows.start(field); i < end; i++) {
    let byte = bytes[i]!
    if (byte === backslash) {
      const last = escapedAt(bytes, i)
      if (form === 'copied') while (i < last) out[at++] = bytes[i++]!
      else out[at++] = backslash
      i = last
      byte = bytes[i]!
    } else if (byte === quote) inString = !inString
    else if (byte === blank && !inString) continue
    if (byte === quote && form === 'doubled') out[at++] = quote
    out[at++] = byte
  }
  return at
}

/**
 * The number of decimals of amounts, which are in minor units, and of rates, which are in ten-thousandths of a percent.
 */
export const moneyDecimals = 2
export const rateDecimals = 4

/**
 * Writes a decimal number from a whole number of units, given as digits. It is exact at any length. With two decimals,
 * 26444 becomes 264.44, 10 becomes 0.1, and 10000 becomes 100.
 */
export function writeDecimal(
  out: Output,
  at: number,
  rows: Rows,
  start: number,
  end: number,
  decimals: number,
): number {
  const { bytes } = rows
  const point = end - decimals
  if (point <= start || bytes[start] === minus) return writeDigits(out.bytes, at, bytes, start, end, decimals)
  let last = end
  while (last > point && bytes[last - 1] === zero) last--
  at = writeRange(out, at, rows, start, point)
  if (last === point) return at
  out.bytes[at] = dot
  return writeRange(out, at + 1, rows, point, last)
}

/** Does what `writeDecimal` does, byte by byte, for digits with a minus or without a whole part. */
function writeDigits(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
  decimals: number,
): number {
  if (bytes[start] === minus) {
    out[at++] = minus
    start++
  }
  const point = end - decimals
  let last = end
  while (last > point && last > start && bytes[last - 1] === zero) last--
  if (point <= start) out[at++] = zero
  for (let i = start; i < point; i++) out[at++] = bytes[i]!
  if (last > point && last > start) {
    out[at++] = dot
    for (let i = point; i < start; i++) out[at++] = zero
    for (let i = Math.max(point, start); i < last; i++) out[at++] = bytes[i]!
  }
  return at
}

/** Writes cents, given as digits, with two decimals: 5 becomes `0,05`. @param mark decimal separator */
export function writeCents(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
  mark: number = comma,
): number {
  if (bytes[start] === minus) {
    out[at++] = minus
    start++
  }
  for (let position = Math.max(end - start, moneyDecimals + 1); position > 0; position--) {
    if (position === moneyDecimals) out[at++] = mark
    out[at++] = end - position >= start ? bytes[end - position]! : zero
  }
  return at
}

/** The most shares that a movement can have: each takes at least six characters of its row (`1,1,1,`). */
export function sharesMax(rows: Rows, field: number): number {
  return rows.bytesIn(1, field) / 6 + 1
}

/**
 * Reads the shares of a movement, one after the other, from `{section,amount,rate,section,amount,rate}`. Shares of one
 * axis are adjacent.
 */
export class Shares {
  section = 0
  /**
   * Where the amount, the rate and the next share begin. Each number ends before the separator that precedes the next
   * number.
   */
  amount = 0
  rate = 0
  next = 0
  #bytes: Uint8Array = new Uint8Array()
  #end = 0

  begin(rows: Rows, field: number): this {
    this.#bytes = rows.bytes
    this.next = rows.start(field) + 1
    this.#end = rows.end(field)
    return this
  }

  /** Moves to the next share; false if there is none. */
  read(): boolean {
    if (this.next >= this.#end) return false
    const bytes = this.#bytes
    const amount = afterNumber(bytes, this.next)
    this.section = readId(bytes, this.next, amount - 1)
    this.amount = amount
    this.rate = afterNumber(bytes, amount)
    this.next = afterNumber(bytes, this.rate)
    return true
  }
}

function afterNumber(bytes: Uint8Array, from: number): number {
  let at = from
  while (bytes[at] !== comma && bytes[at] !== braceClose) at++
  return at + 1
}
