/**
 * Renders movements as rows of CSV from the fields of their rows (docs/spec/exports.md#csv-and-parquet-files). Texts
 * are quoted and nothing else is, so that an absent field (nothing) differs from an empty text (two quotes).
 *
 * As in the other hot loops, an entry is rendered once and its bytes are copied into each of its rows; accounts,
 * payments and sections come rendered. The plain renderer in test/support/plain/plain-flat.ts does the same with
 * objects and strings; tests compare the two.
 */
import { strict as assert } from 'node:assert'
import { ascii } from '../ascii.ts'
import { offsetsOf, type Rows } from '../columns.ts'
import { writeDecimal } from '../minor-units.ts'
import {
  bytesOf,
  cited,
  endOfNumber,
  idOf,
  isNullField,
  readId,
  writePiece,
  writePlain,
  writePlainField,
} from '../text-bytes.ts'
import { writeQuoted, writeQuotedJson, writeQuotedOrNothing } from './csv-bytes.ts'
import type { FlatDictionary } from './dictionary.ts'
import { checkDigits, checkRow } from './parquet-limits.ts'

const { braceClose, braceOpen, bracketClose, bracketOpen, carriageReturn, comma, lineFeed, minus, quote } =
  ascii

/** The columns of an entry row. */
export const flatEntryColumns = [
  'id',
  'date',
  'due_date',
  'accounted_at',
  'created_utc',
  'validated_at',
  'exercice_id',
  'journal_id',
  'source',
  'currency',
  'rate',
  'comment',
  'number',
  'filed_piece_date',
  'filed_auxiliary_number',
  'filed_auxiliary_name',
  'attachments',
] as const
/** The columns of a movement row. */
export const flatMovementColumns = [
  'entry_id',
  'id',
  'account_id',
  'description',
  'due_date',
  'free_number',
  'invoice_number',
  'debit',
  'credit',
  'payment_id',
  'lettering_state',
  'lettering_code',
  'shares',
  'attachments',
  'filed_piece_date',
  'filed_auxiliary_number',
  'filed_auxiliary_name',
] as const

const ofEntry = offsetsOf(flatEntryColumns)
const of = offsetsOf(flatMovementColumns)

const validated = bytesOf('false,')
const draft = bytesOf('true,')
const entryAttachments = bytesOf('""entry"":')
const movementAttachments = bytesOf('""movement"":')
const nothing = new Uint8Array()

/** Upper bound of everything in a row that has no bytes in the rows of the database: commas, quotes, fixed pieces. */
const fixedBytesMax = 512
/** A quote is doubled. */
const quotedBytesMax = 2
/** Of a share, besides its section: amount and rate are in its row. */
const shareFixedBytesMax = 32
/** A share takes at least six characters of its row (`1,1,1,`). */
const shareCharactersMin = 6

const moneyDecimals = 2
/** Rates are stored in ten-thousandths of a percent and written as a percentage. */
const rateDecimals = 4

export interface RowOptions {
  /**
   * The rows are to become a Parquet file: its limits apply, and amounts of shares are texts, because DuckDB reads a
   * number of JSON as a double.
   */
  forParquet: boolean
}

export class MovementRows {
  readonly #dictionary: FlatDictionary
  readonly #forParquet: boolean
  readonly #toRate: Uint8Array
  readonly #shareEnd: Uint8Array
  /** The quotes around the amounts of shares, doubled; none in a CSV file. */
  readonly #mark: Uint8Array
  #buffer = new Uint8Array(4096)
  /** The row up to the date of the document, and without that date. */
  #entry: Uint8Array = nothing
  #undated: Uint8Array = nothing
  /** What a filed entry says instead of its accounts, each field with the comma after it. */
  #auxiliaryNumber: Uint8Array | undefined
  #auxiliaryName: Uint8Array | undefined
  /** The JSON of the entry's attachments, its quotes doubled; empty if it has none. */
  #attachments: Uint8Array = nothing

  constructor(dictionary: FlatDictionary, { forParquet }: RowOptions) {
    this.#dictionary = dictionary
    this.#forParquet = forParquet
    const mark = forParquet ? '""' : ''
    this.#mark = bytesOf(mark)
    this.#toRate = bytesOf(`${mark},""rate"":${mark}`)
    this.#shareEnd = bytesOf(`${mark}}`)
  }

  /** Sets the entry of the movements that follow. Fields: {@link flatEntryColumns}, starting at `base`. */
  setEntry(rows: Rows, base: number): void {
    const rowBytes = rows.fields[base + flatEntryColumns.length]! - rows.fields[base]!
    const needed = quotedBytesMax * rowBytes + this.#dictionary.journalBytesMax + fixedBytesMax
    if (needed > this.#buffer.length) this.#buffer = new Uint8Array(2 * needed)
    const out = this.#buffer
    let at = 0
    const plain = (column: number) => {
      at = writePlainOrNothing(out, at, rows, base + column)
      out[at++] = comma
    }
    const text = (column: number) => {
      at = writeQuotedOrNothing(out, at, rows, base + column)
      out[at++] = comma
    }
    plain(ofEntry.id)
    plain(ofEntry.date)
    plain(ofEntry.due_date)
    plain(ofEntry.accounted_at)
    plain(ofEntry.created_utc)
    plain(ofEntry.validated_at)
    at = writePiece(out, at, isNullField(rows, base + ofEntry.validated_at) ? draft : validated)
    plain(ofEntry.exercice_id)
    const journalId = idOf(rows, base + ofEntry.journal_id)
    at = writePiece(out, at, cited(this.#dictionary.journals, journalId, 'journal'))
    out[at++] = comma
    plain(ofEntry.source)
    plain(ofEntry.currency)
    plain(ofEntry.rate)
    text(ofEntry.comment)
    text(ofEntry.number)
    this.#undated = out.subarray(0, at)
    const isFiled = !isNullField(rows, base + ofEntry.filed_piece_date)
    if (isFiled) at = writeDay(out, at, rows, base + ofEntry.filed_piece_date)
    else at = writePlainField(out, at, rows, base + ofEntry.date)
    out[at++] = comma
    this.#entry = out.subarray(0, at)
    this.#auxiliaryNumber = filedText(rows, base + ofEntry.filed_auxiliary_number)
    this.#auxiliaryName = filedText(rows, base + ofEntry.filed_auxiliary_name)
    const attachments = base + ofEntry.attachments
    this.#attachments = isNullField(rows, attachments)
      ? nothing
      : out.subarray(at, writeQuotedJson(out, at, rows, attachments))
  }

  /** Upper bound of the bytes of this row's movement. */
  bytesMax({ fields }: Rows, base: number): number {
    const rowBytes = fields[base + flatMovementColumns.length]! - fields[base]!
    const shareBytes = fields[base + of.shares + 1]! - fields[base + of.shares]!
    return (
      quotedBytesMax * rowBytes +
      this.#entry.length +
      this.#attachments.length +
      (this.#auxiliaryNumber?.length ?? 0) +
      (this.#auxiliaryName?.length ?? 0) +
      this.#dictionary.fieldBytesMax +
      (shareBytes / shareCharactersMin + 1) * (this.#dictionary.sectionBytesMax + shareFixedBytesMax) +
      fixedBytesMax
    )
  }

  /**
   * Writes one movement of the current entry. Fields: {@link flatMovementColumns}, starting at `base`.
   * @throws {UnsupportedByFormat} if a Parquet file cannot hold it
   */
  write(out: Uint8Array, at: number, rows: Rows, base: number): number {
    const begin = at
    if (this.#forParquet) checkAmounts(rows, base)
    if (isNullField(rows, base + of.filed_piece_date)) at = writePiece(out, at, this.#entry)
    else {
      at = writePiece(out, at, this.#undated)
      at = writeDay(out, at, rows, base + of.filed_piece_date)
      out[at++] = comma
    }
    at = writePlainField(out, at, rows, base + of.id)
    out[at++] = comma
    at = this.#writeAccount(out, at, rows, base)
    at = writeQuoted(out, at, rows, base + of.description)
    out[at++] = comma
    at = writePlainOrNothing(out, at, rows, base + of.due_date)
    out[at++] = comma
    at = writeQuotedOrNothing(out, at, rows, base + of.free_number)
    out[at++] = comma
    at = writeQuoted(out, at, rows, base + of.invoice_number)
    out[at++] = comma
    at = writeMoney(out, at, rows, base + of.debit)
    out[at++] = comma
    at = writeMoney(out, at, rows, base + of.credit)
    out[at++] = comma
    at = this.#writePayment(out, at, rows, base + of.payment_id)
    out[at++] = comma
    at = writePlainField(out, at, rows, base + of.lettering_state)
    out[at++] = comma
    at = writeQuotedOrNothing(out, at, rows, base + of.lettering_code)
    out[at++] = comma
    at = this.#writeShares(out, at, rows, base + of.shares)
    out[at++] = comma
    at = this.#writeAttachments(out, at, rows, base + of.attachments)
    out[at++] = carriageReturn
    out[at++] = lineFeed
    if (this.#forParquet) checkRow(at - begin, () => idOf(rows, base + of.id))
    return at
  }

  /** From the account's id to its auxiliary name, and a comma. */
  #writeAccount(out: Uint8Array, at: number, rows: Rows, base: number): number {
    const account = cited(this.#dictionary.accounts, idOf(rows, base + of.account_id), 'account')
    const number = filedText(rows, base + of.filed_auxiliary_number) ?? this.#auxiliaryNumber
    const name = filedText(rows, base + of.filed_auxiliary_name) ?? this.#auxiliaryName
    if (!number && !name) return writePiece(out, at, account.whole)
    at = writePiece(out, at, account.own)
    at = writePiece(out, at, number ?? account.auxiliaryNumber)
    return writePiece(out, at, name ?? account.auxiliaryName)
  }

  #writePayment(out: Uint8Array, at: number, rows: Rows, field: number): number {
    if (isNullField(rows, field)) return at
    return writePiece(out, at, cited(this.#dictionary.payments, idOf(rows, field), 'payment'))
  }

  /** Writes `{section,amount,rate,section,amount,rate}` as a JSON array, in quotes; nothing if it is null. */
  #writeShares(out: Uint8Array, at: number, rows: Rows, field: number): number {
    if (isNullField(rows, field)) return at
    const { bytes, fields } = rows
    const start = fields[field]! + 1
    const end = fields[field + 1]! - 1
    out[at++] = quote
    out[at++] = bracketOpen
    for (let i = start; i < end; ) {
      const idEnd = endOfNumber(bytes, i)
      const amountEnd = endOfNumber(bytes, idEnd + 1)
      const rateEnd = endOfNumber(bytes, amountEnd + 1)
      if (i > start) out[at++] = comma
      at = writePiece(out, at, cited(this.#dictionary.sections, readId(bytes, i, idEnd), 'section'))
      at = writePiece(out, at, this.#mark)
      at = writeDecimal(out, at, bytes, idEnd + 1, amountEnd, moneyDecimals)
      at = writePiece(out, at, this.#toRate)
      at = writeDecimal(out, at, bytes, amountEnd + 1, rateEnd, rateDecimals)
      at = writePiece(out, at, this.#shareEnd)
      i = rateEnd + 1
    }
    out[at++] = bracketClose
    out[at++] = quote
    return at
  }

  /** Writes `{"entry":{...},"movement":{...}}`, each only if there are any, in quotes; nothing if there are none. */
  #writeAttachments(out: Uint8Array, at: number, rows: Rows, field: number): number {
    const isBare = isNullField(rows, field)
    if (isBare && this.#attachments.length === 0) return at
    out[at++] = quote
    out[at++] = braceOpen
    if (this.#attachments.length > 0) {
      at = writePiece(out, at, entryAttachments)
      at = writePiece(out, at, this.#attachments)
      if (!isBare) out[at++] = comma
    }
    if (!isBare) {
      at = writePiece(out, at, movementAttachments)
      at = writeQuotedJson(out, at, rows, field)
    }
    out[at++] = braceClose
    out[at++] = quote
    return at
  }
}

/** @throws {UnsupportedByFormat} for an amount that a Parquet file cannot hold */
function checkAmounts(rows: Rows, base: number): void {
  const id = () => idOf(rows, base + of.id)
  checkDigits('debit', id, rows, base + of.debit)
  checkDigits('credit', id, rows, base + of.credit)
  checkDigits('analytics', id, rows, base + of.shares)
}

function writePlainOrNothing(out: Uint8Array, at: number, rows: Rows, field: number): number {
  return isNullField(rows, field) ? at : writePlainField(out, at, rows, field)
}

function writeMoney(out: Uint8Array, at: number, { bytes, fields }: Rows, field: number): number {
  return writeDecimal(out, at, bytes, fields[field]!, fields[field + 1]! - 1, moneyDecimals)
}

/** A filed text in quotes, nothing if it is blank, and a comma; undefined if none was filed. */
function filedText(rows: Rows, field: number): Uint8Array | undefined {
  if (isNullField(rows, field)) return undefined
  const textBytes = rows.fields[field + 1]! - 1 - rows.fields[field]!
  const out = new Uint8Array(quotedBytesMax * textBytes + 3)
  let at = textBytes === 0 ? 0 : writeQuoted(out, 0, rows, field)
  out[at++] = comma
  return out.subarray(0, at)
}

/** Writes a filed day, `YYYYMMDD`, as `YYYY-MM-DD`; nothing if it is blank. */
function writeDay(out: Uint8Array, at: number, { bytes, fields }: Rows, field: number): number {
  const start = fields[field]!
  const end = fields[field + 1]! - 1
  if (start === end) return at
  assert(end - start === 8, 'a filed date has eight digits')
  at = writePlain(out, at, bytes, start, start + 4)
  out[at++] = minus
  at = writePlain(out, at, bytes, start + 4, start + 6)
  out[at++] = minus
  return writePlain(out, at, bytes, start + 6, end)
}
