/**
 * How the fields of a flat row are written: in CSV (RFC 4180), and as COPY writes them. Both read fields in the text
 * format of COPY, and work byte by byte. Functions write into `out` from `at` on and return the position after the last
 * byte. The result has up to twice the bytes of the field, and two quotes.
 */
import { ascii } from '../ascii.ts'
import {
  moneyDecimals,
  type Output,
  pieceOf,
  type Rows,
  writeCents,
  writeDecimal,
  writeField,
  writeJson,
  writePiece,
  writeRange,
} from '../text-bytes.ts'

const { backslash, capitalZ, comma, dot, minus, quote, tab, zero } = ascii
const capitalT = 0x54

/** CSV. Only texts and JSON are quoted, so that an absent field (nothing) differs from an empty text (two quotes). */
export const csv = {
  separator: comma as number,
  rowEnd: pieceOf('\r\n'),
  /** `draft` and the separator after it. */
  draft: { yes: pieceOf('true,'), no: pieceOf('false,') },
  /** The text before and after JSON. */
  jsonMark: pieceOf('"'),
  /** The text before and after the amount of a share. */
  amountMark: '',
  /** Renders a text, once per file; null is an absent field. */
  field: (text: string | null): string => (text === null ? '' : `"${doubledQuotes(text)}"`),
  /** Escapes a piece of JSON, once per file. */
  insideJson: doubledQuotes,
  /** Writes fields that are adjacent in the row and in the file, each with a separator after it. Some may be null. */
  writeFields(out: Output, at: number, rows: Rows, first: number, areTexts: readonly boolean[]): number {
    for (let i = 0; i < areTexts.length; i++) {
      const field = first + i
      if (!rows.isNull(field))
        at = areTexts[i] ? writeQuoted(out.bytes, at, rows, field) : writeField(out, at, rows, field)
      out.bytes[at++] = comma
    }
    return at
  },
  /** Writes a moment. The field is `2026-01-31 08:00:00`, in UTC. */
  writeTime(out: Output, at: number, rows: Rows, field: number): number {
    const day = at + 'YYYY-MM-DD'.length
    at = writeField(out, at, rows, field)
    out.bytes[day] = capitalT
    out.bytes[at++] = capitalZ
    return at
  },
  /** Writes a rate. The field is a number with six decimals, or null. */
  writeRate(out: Output, at: number, rows: Rows, field: number): number {
    if (rows.isNull(field)) return at
    at = writeField(out, at, rows, field)
    while (out.bytes[at - 1] === zero) at--
    return out.bytes[at - 1] === dot ? at - 1 : at
  },
  /** Writes an amount. The field is in cents. */
  writeMoney: (out: Output, at: number, rows: Rows, field: number): number =>
    writeDecimal(out, at, rows, rows.start(field), rows.end(field), moneyDecimals),
  /** Writes JSON without the blanks between its parts. The field is JSON as the database prints it. */
  writeInsideJson: (out: Output, at: number, rows: Rows, field: number): number =>
    writeJson(out.bytes, at, rows, field, 'doubled'),
}
export type Dialect = typeof csv

function doubledQuotes(text: string): string {
  return text.replaceAll('"', '""')
}

/** DuckDB reads a number of JSON as a double, so amounts of shares are texts. */
export const csvForDuckDb: Dialect = { ...csv, amountMark: '""' }

/** The dialect of COPY: most fields are copied unchanged. */
export const copy: Dialect = {
  separator: tab,
  rowEnd: pieceOf('\n'),
  draft: { yes: pieceOf('t\t'), no: pieceOf('f\t') },
  jsonMark: pieceOf(''),
  amountMark: '',
  field: (text) => (text === null ? '\\N' : copied(text)),
  insideJson: (text) => copied(text),
  writeFields(out, at, rows, first, { length }) {
    at = writeRange(out, at, rows, rows.start(first), rows.start(first + length))
    // Replaces the line feed after the last field of a row.
    out.bytes[at - 1] = tab
    return at
  },
  writeTime: (out, at, rows, field) => writePiece(out, writeField(out, at, rows, field), inUtc),
  writeRate: writeField,
  writeMoney: (out, at, rows, field) =>
    writeCents(out.bytes, at, rows.bytes, rows.start(field), rows.end(field), dot),
  writeInsideJson: (out, at, rows, field) => writeJson(out.bytes, at, rows, field, 'copied'),
}

const inUtc = pieceOf('+00')

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

/** The byte that a letter stands for after a backslash of COPY. Other characters stand for themselves. */
const unescapedByte = new Uint8Array(256).map((_, byte) => byte)
for (const [character, escaped] of Object.entries(escapes))
  unescapedByte[escaped.charCodeAt(1)] = character.charCodeAt(0)

/** Writes a text in quotes. */
function writeQuoted(out: Uint8Array, at: number, rows: Rows, field: number): number {
  const { bytes } = rows
  const end = rows.end(field)
  out[at++] = quote
  for (let i = rows.start(field); i < end; i++) {
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
export function writeDay(out: Output, at: number, rows: Rows, field: number): number {
  const start = rows.start(field)
  at = writeRange(out, at, rows, start, start + 4)
  out.bytes[at++] = minus
  at = writeRange(out, at, rows, start + 4, start + 6)
  out.bytes[at++] = minus
  return writeRange(out, at, rows, start + 6, start + 8)
}
