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
import { offsetsOf } from '../columns.ts'
import { writeDecimal } from '../minor-units.ts'
import { bytesOf, endOfNumber, isNull, readId, writePiece, writePlain } from '../text-bytes.ts'
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

export const flatEntryOffsets = offsetsOf(flatEntryColumns)
export const flatMovementOffsets = offsetsOf(flatMovementColumns)
const ofEntry = flatEntryOffsets
const of = flatMovementOffsets

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
  setEntry(bytes: Uint8Array, fields: Int32Array, base: number): void {
    const rowBytes = fields[base + flatEntryColumns.length]! - fields[base]!
    const needed = quotedBytesMax * rowBytes + this.#dictionary.journalBytesMax + fixedBytesMax
    if (needed > this.#buffer.length) this.#buffer = new Uint8Array(2 * needed)
    const out = this.#buffer
    const start = (column: number) => fields[base + column]!
    const end = (column: number) => fields[base + column + 1]! - 1
    let at = 0
    const plain = (column: number) => {
      if (!isNull(bytes, start(column), end(column)))
        at = writePlain(out, at, bytes, start(column), end(column))
      out[at++] = comma
    }
    const text = (column: number) => {
      at = writeQuotedOrNothing(out, at, bytes, start(column), end(column))
      out[at++] = comma
    }
    plain(ofEntry.id)
    plain(ofEntry.date)
    plain(ofEntry.due_date)
    plain(ofEntry.accounted_at)
    plain(ofEntry.created_utc)
    plain(ofEntry.validated_at)
    const isDraft = isNull(bytes, start(ofEntry.validated_at), end(ofEntry.validated_at))
    at = writePiece(out, at, isDraft ? draft : validated)
    plain(ofEntry.exercice_id)
    const journal = this.#dictionary.journals.get(
      readId(bytes, start(ofEntry.journal_id), end(ofEntry.journal_id)),
    )
    if (!journal) assert.fail('an entry names a journal that its folder does not have')
    at = writePiece(out, at, journal)
    out[at++] = comma
    plain(ofEntry.source)
    plain(ofEntry.currency)
    plain(ofEntry.rate)
    text(ofEntry.comment)
    text(ofEntry.number)
    this.#undated = out.subarray(0, at)
    const isFiled = !isNull(bytes, start(ofEntry.filed_piece_date), end(ofEntry.filed_piece_date))
    if (isFiled) at = writeDay(out, at, bytes, start(ofEntry.filed_piece_date), end(ofEntry.filed_piece_date))
    else at = writePlain(out, at, bytes, start(ofEntry.date), end(ofEntry.date))
    out[at++] = comma
    this.#entry = out.subarray(0, at)
    this.#auxiliaryNumber = filedText(
      bytes,
      start(ofEntry.filed_auxiliary_number),
      end(ofEntry.filed_auxiliary_number),
    )
    this.#auxiliaryName = filedText(
      bytes,
      start(ofEntry.filed_auxiliary_name),
      end(ofEntry.filed_auxiliary_name),
    )
    const isBare = isNull(bytes, start(ofEntry.attachments), end(ofEntry.attachments))
    this.#attachments = isBare
      ? nothing
      : out.subarray(
          at,
          writeQuotedJson(out, at, bytes, start(ofEntry.attachments), end(ofEntry.attachments)),
        )
  }

  /** Upper bound of the bytes of this row's movement. */
  bytesMax(fields: Int32Array, base: number): number {
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
  write(out: Uint8Array, at: number, bytes: Uint8Array, fields: Int32Array, base: number): number {
    const begin = at
    const start = (column: number) => fields[base + column]!
    const end = (column: number) => fields[base + column + 1]! - 1
    if (this.#forParquet) checkAmounts(bytes, fields, base)
    if (isNull(bytes, start(of.filed_piece_date), end(of.filed_piece_date)))
      at = writePiece(out, at, this.#entry)
    else {
      at = writePiece(out, at, this.#undated)
      at = writeDay(out, at, bytes, start(of.filed_piece_date), end(of.filed_piece_date))
      out[at++] = comma
    }
    at = writePlain(out, at, bytes, start(of.id), end(of.id))
    out[at++] = comma
    at = this.#writeAccount(out, at, bytes, fields, base)
    at = writeQuoted(out, at, bytes, start(of.description), end(of.description))
    out[at++] = comma
    if (!isNull(bytes, start(of.due_date), end(of.due_date)))
      at = writePlain(out, at, bytes, start(of.due_date), end(of.due_date))
    out[at++] = comma
    at = writeQuotedOrNothing(out, at, bytes, start(of.free_number), end(of.free_number))
    out[at++] = comma
    at = writeQuoted(out, at, bytes, start(of.invoice_number), end(of.invoice_number))
    out[at++] = comma
    at = writeDecimal(out, at, bytes, start(of.debit), end(of.debit), moneyDecimals)
    out[at++] = comma
    at = writeDecimal(out, at, bytes, start(of.credit), end(of.credit), moneyDecimals)
    out[at++] = comma
    at = this.#writePayment(out, at, bytes, start(of.payment_id), end(of.payment_id))
    out[at++] = comma
    at = writePlain(out, at, bytes, start(of.lettering_state), end(of.lettering_state))
    out[at++] = comma
    at = writeQuotedOrNothing(out, at, bytes, start(of.lettering_code), end(of.lettering_code))
    out[at++] = comma
    if (!isNull(bytes, start(of.shares), end(of.shares)))
      at = this.#writeShares(out, at, bytes, start(of.shares), end(of.shares))
    out[at++] = comma
    at = this.#writeAttachments(out, at, bytes, start(of.attachments), end(of.attachments))
    out[at++] = carriageReturn
    out[at++] = lineFeed
    if (this.#forParquet) checkRow(at - begin, () => idOf(bytes, fields, base))
    return at
  }

  /** From the account's id to its auxiliary name, and a comma. */
  #writeAccount(out: Uint8Array, at: number, bytes: Uint8Array, fields: Int32Array, base: number): number {
    const start = (column: number) => fields[base + column]!
    const end = (column: number) => fields[base + column + 1]! - 1
    const account = this.#dictionary.accounts.get(readId(bytes, start(of.account_id), end(of.account_id)))
    if (!account) assert.fail('a movement names an account that its folder does not have')
    const number =
      filedText(bytes, start(of.filed_auxiliary_number), end(of.filed_auxiliary_number)) ??
      this.#auxiliaryNumber
    const name =
      filedText(bytes, start(of.filed_auxiliary_name), end(of.filed_auxiliary_name)) ?? this.#auxiliaryName
    if (!number && !name) return writePiece(out, at, account.whole)
    at = writePiece(out, at, account.own)
    at = writePiece(out, at, number ?? account.auxiliaryNumber)
    return writePiece(out, at, name ?? account.auxiliaryName)
  }

  #writePayment(out: Uint8Array, at: number, bytes: Uint8Array, start: number, end: number): number {
    if (isNull(bytes, start, end)) return at
    const payment = this.#dictionary.payments.get(readId(bytes, start, end))
    if (!payment) assert.fail('a movement names a payment that its folder does not have')
    return writePiece(out, at, payment)
  }

  /** Writes `{section,amount,rate,section,amount,rate}` as a JSON array, in quotes. */
  #writeShares(out: Uint8Array, at: number, bytes: Uint8Array, start: number, end: number): number {
    out[at++] = quote
    out[at++] = bracketOpen
    for (let i = start + 1; i < end; ) {
      const idEnd = endOfNumber(bytes, i)
      const amountEnd = endOfNumber(bytes, idEnd + 1)
      const rateEnd = endOfNumber(bytes, amountEnd + 1)
      const section = this.#dictionary.sections.get(readId(bytes, i, idEnd))
      if (!section) assert.fail('an analytic share names a section that its folder does not have')
      if (i > start + 1) out[at++] = comma
      at = writePiece(out, at, section)
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
  #writeAttachments(out: Uint8Array, at: number, bytes: Uint8Array, start: number, end: number): number {
    const isBare = isNull(bytes, start, end)
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
      at = writeQuotedJson(out, at, bytes, start, end)
    }
    out[at++] = braceClose
    out[at++] = quote
    return at
  }
}

/** @throws {UnsupportedByFormat} for an amount that a Parquet file cannot hold */
function checkAmounts(bytes: Uint8Array, fields: Int32Array, base: number): void {
  const id = () => idOf(bytes, fields, base)
  checkDigits('debit', id, bytes, fields[base + of.debit]!, fields[base + of.debit + 1]! - 1)
  checkDigits('credit', id, bytes, fields[base + of.credit]!, fields[base + of.credit + 1]! - 1)
  checkDigits('analytics', id, bytes, fields[base + of.shares]!, fields[base + of.shares + 1]! - 1)
}

function idOf(bytes: Uint8Array, fields: Int32Array, base: number): string {
  return String(readId(bytes, fields[base + of.id]!, fields[base + of.id + 1]! - 1))
}

/** A filed text in quotes, nothing if it is blank, and a comma; undefined if none was filed. */
function filedText(bytes: Uint8Array, start: number, end: number): Uint8Array | undefined {
  if (isNull(bytes, start, end)) return undefined
  const out = new Uint8Array(quotedBytesMax * (end - start) + 3)
  let at = start === end ? 0 : writeQuoted(out, 0, bytes, start, end)
  out[at++] = comma
  return out.subarray(0, at)
}

/** Writes a filed day, `YYYYMMDD`, as `YYYY-MM-DD`; nothing if it is blank. */
function writeDay(out: Uint8Array, at: number, bytes: Uint8Array, start: number, end: number): number {
  if (start === end) return at
  assert(end - start === 8, 'a filed date has eight digits')
  at = writePlain(out, at, bytes, start, start + 4)
  out[at++] = minus
  at = writePlain(out, at, bytes, start + 4, start + 6)
  out[at++] = minus
  return writePlain(out, at, bytes, start + 6, end)
}
