/**
 * How the fields of a flat row are written: in CSV (RFC 4180), and as COPY writes them. Both come from fields in the
 * text format of COPY, byte by byte. Functions write into `out` starting at `at` and return the position after the last
 * byte; a field needs up to twice its range and two quotes.
 */
import { ascii } from '../ascii.ts'
import type { Rows } from '../columns.ts'
import { writeCents, writeDecimal } from '../minor-units.ts'
import {
  bytesOf,
  escapedAt,
  isNullField,
  writeJson,
  writePiece,
  writePlain,
  writePlainField,
} from '../text-bytes.ts'

const {
  backslash,
  blank,
  capitalZ,
  carriageReturn,
  comma,
  dot,
  lineFeed,
  minus,
  quote,
  tab,
  verticalTab,
  zero,
} = ascii
const capitalT = 0x54

export interface Dialect {
  separator: number
  rowEnd: Uint8Array
  /** `draft` and the separator after it. */
  draft: { yes: Uint8Array; no: Uint8Array }
  /** Around JSON. */
  jsonMark: Uint8Array
  /** Around the amounts of shares. */
  amountMark: string
  /** A field of a text that is rendered once. */
  field(text: string | null): string
  /** What is rendered once of JSON. */
  insideJson(text: string): string
  /** Writes fields that follow one another in the row and in the file, with a separator after each. Some are null. */
  writeFields(out: Uint8Array, at: number, rows: Rows, first: number, areTexts: readonly boolean[]): number
  /** From `2026-01-31 08:00:00`, in UTC. */
  writeTime(out: Uint8Array, at: number, rows: Rows, field: number): number
  /** From a number with six decimals, or null. */
  writeRate(out: Uint8Array, at: number, rows: Rows, field: number): number
  /** From cents. */
  writeMoney(out: Uint8Array, at: number, rows: Rows, field: number): number
  /** From JSON as the database prints it, without the blanks between its parts. */
  writeInsideJson(out: Uint8Array, at: number, rows: Rows, field: number): number
}

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

/** Texts and JSON are quoted and nothing else is, so that an absent field (nothing) differs from an empty text. */
class Csv implements Dialect {
  readonly separator = comma
  readonly rowEnd = bytesOf('\r\n')
  readonly draft = { yes: bytesOf('true,'), no: bytesOf('false,') }
  readonly jsonMark = bytesOf('"')
  readonly amountMark: string

  constructor(amountMark: string) {
    this.amountMark = amountMark
  }

  field(text: string | null): string {
    return text === null ? '' : `"${this.insideJson(text)}"`
  }

  insideJson(text: string): string {
    return text.replaceAll('"', '""')
  }

  writeFields(out: Uint8Array, at: number, rows: Rows, first: number, areTexts: readonly boolean[]): number {
    for (let i = 0; i < areTexts.length; i++) {
      const field = first + i
      if (!isNullField(rows, field))
        at = areTexts[i] ? writeQuoted(out, at, rows, field) : writePlainField(out, at, rows, field)
      out[at++] = comma
    }
    return at
  }

  writeTime(out: Uint8Array, at: number, rows: Rows, field: number): number {
    const day = at + 'YYYY-MM-DD'.length
    at = writePlainField(out, at, rows, field)
    out[day] = capitalT
    out[at++] = capitalZ
    return at
  }

  writeRate(out: Uint8Array, at: number, rows: Rows, field: number): number {
    if (isNullField(rows, field)) return at
    at = writePlainField(out, at, rows, field)
    while (out[at - 1] === zero) at--
    return out[at - 1] === dot ? at - 1 : at
  }

  writeMoney(out: Uint8Array, at: number, { bytes, fields }: Rows, field: number): number {
    return writeDecimal(out, at, bytes, fields[field]!, fields[field + 1]! - 1, 2)
  }

  writeInsideJson(out: Uint8Array, at: number, { bytes, fields }: Rows, field: number): number {
    return writeJson(out, at, bytes, fields[field]!, fields[field + 1]! - 1, true)
  }
}

export const csv: Dialect = new Csv('')
/** DuckDB reads a number of JSON as a double, so amounts of shares are texts. */
export const csvForDuckDb: Dialect = new Csv('""')

/** Fields are copied as they came. */
class Copy implements Dialect {
  readonly separator = tab
  readonly rowEnd = bytesOf('\n')
  readonly draft = { yes: bytesOf('t\t'), no: bytesOf('f\t') }
  readonly jsonMark = bytesOf('')
  readonly amountMark = ''

  field(text: string | null): string {
    return text === null ? '\\N' : copied(text)
  }

  insideJson(text: string): string {
    return copied(text)
  }

  writeFields(
    out: Uint8Array,
    at: number,
    { bytes, fields }: Rows,
    first: number,
    areTexts: readonly boolean[],
  ): number {
    at = writePlain(out, at, bytes, fields[first]!, fields[first + areTexts.length]!)
    // The last of a row has a line feed there.
    out[at - 1] = tab
    return at
  }

  writeTime(out: Uint8Array, at: number, rows: Rows, field: number): number {
    return writePiece(out, writePlainField(out, at, rows, field), inUtc)
  }

  writeRate(out: Uint8Array, at: number, rows: Rows, field: number): number {
    return writePlainField(out, at, rows, field)
  }

  writeMoney(out: Uint8Array, at: number, { bytes, fields }: Rows, field: number): number {
    return writeCents(out, at, bytes, fields[field]!, fields[field + 1]! - 1, dot)
  }

  /** In JSON, COPY escapes backslashes alone: each is there twice. */
  writeInsideJson(out: Uint8Array, at: number, { bytes, fields }: Rows, field: number): number {
    const end = fields[field + 1]! - 1
    let inString = false
    for (let i = fields[field]!; i < end; i++) {
      const byte = bytes[i]!
      if (byte === backslash) {
        const last = escapedAt(bytes, i)
        at = writePlain(out, at, bytes, i, last + 1)
        i = last
        continue
      }
      if (byte === quote) inString = !inString
      if (byte !== blank || inString) out[at++] = byte
    }
    return at
  }
}

const inUtc = bytesOf('+00')
export const copy: Dialect = new Copy()

const escapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
}

/** A text as COPY writes it. */
export function copied(text: string): string {
  return text.replace(/[\\\b\f\n\r\t\v]/g, (character) => escapes[character]!)
}

/** Writes a text in quotes. */
function writeQuoted(out: Uint8Array, at: number, { bytes, fields }: Rows, field: number): number {
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

/** Writes a filed day, `YYYYMMDD`, as `YYYY-MM-DD`. */
export function writeDay(out: Uint8Array, at: number, { bytes, fields }: Rows, field: number): number {
  const start = fields[field]!
  at = writePlain(out, at, bytes, start, start + 4)
  out[at++] = minus
  at = writePlain(out, at, bytes, start + 4, start + 6)
  out[at++] = minus
  return writePlain(out, at, bytes, start + 6, start + 8)
}
