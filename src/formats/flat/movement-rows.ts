/**
 * Renders movements as flat rows from the fields of their rows: of CSV and Parquet files
 * (docs/spec/exports.md#csv-and-parquet-files), and lines of COPY (docs/spec/ledgers.md#tables). The dialect says how
 * a field is written.
 *
 * As in the other hot loops, an entry is rendered once and its bytes are copied into each of its rows; accounts,
 * payments and sections come rendered. Columns stand in the order of the file, so that a dialect may copy several at
 * once. The plain renderer in test/support/plain/plain-flat.ts does the same with objects and strings; tests compare
 * the two.
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
  writePlainField,
} from '../text-bytes.ts'
import { type Dialect, writeDay } from './dialect.ts'
import type { FlatDictionary } from './dictionary.ts'

const { braceClose, braceOpen, bracketClose, bracketOpen, comma } = ascii

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
  'stored_rate',
  'comment',
  'number',
  'filed_piece_date',
  'filed_auxiliary_number',
  'filed_auxiliary_name',
  'attachments',
  'third_party_id',
  'partner_metadata',
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

// Columns that follow one another, and which of them are texts.
const fromEntryIdToAccountedAt = [false, false, false, false]
const validatedAt = [false]
const exerciceId = [false]
const fromSourceToCurrency = [false, false]
const fromCommentToNumber = [true, true]
const fromDescriptionToInvoiceNumber = [true, false, true, true]
const fromLetteringStateToCode = [false, true]
const paymentId = [false]

const nothing = new Uint8Array()

/** Upper bound of everything in a row that has no bytes in the rows of the database: separators, fixed pieces. */
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

/**
 * Refuses a row that its reader cannot take.
 * @param base the fields of the movement, {@link flatMovementColumns}, start there
 * @throws {UnsupportedByFormat}
 */
export type CheckRow = (rowBytes: number, movements: Rows, base: number) => void

export class MovementRows {
  readonly #dictionary: FlatDictionary
  readonly #dialect: Dialect
  readonly #check: CheckRow | undefined
  readonly #entryAttachments: Uint8Array
  readonly #movementAttachments: Uint8Array
  readonly #amountMark: Uint8Array
  readonly #toRate: Uint8Array
  readonly #shareEnd: Uint8Array
  /** A null and a separator. */
  readonly #absent: Uint8Array
  #buffer = new Uint8Array(4096)
  /** The row up to the date of the document, and without that date. */
  #entry: Uint8Array = nothing
  #undated: Uint8Array = nothing
  /** What a filed entry says instead of its accounts, each field with the separator after it. */
  #auxiliaryNumber: Uint8Array | undefined
  #auxiliaryName: Uint8Array | undefined
  /** The JSON of the entry's attachments; empty if it has none. */
  #attachments: Uint8Array = nothing
  /** From the code of the third party on. */
  #tail: Uint8Array = nothing

  /** @param check none: every row is taken */
  constructor(dictionary: FlatDictionary, dialect: Dialect, check?: CheckRow) {
    this.#dictionary = dictionary
    this.#dialect = dialect
    this.#check = check
    const inJson = (text: string) => bytesOf(dialect.insideJson(text))
    this.#entryAttachments = inJson('"entry":')
    this.#movementAttachments = inJson('"movement":')
    this.#amountMark = bytesOf(dialect.amountMark)
    this.#toRate = bytesOf(`${dialect.amountMark},${dialect.insideJson('"rate":')}${dialect.amountMark}`)
    this.#shareEnd = bytesOf(`${dialect.amountMark}}`)
    this.#absent = bytesOf(dialect.field(null) + String.fromCharCode(dialect.separator))
  }

  /** Sets the entry of the movements that follow. Fields: {@link flatEntryColumns}, starting at `base`. */
  setEntry(rows: Rows, base: number): void {
    const rowBytes = rows.fields[base + flatEntryColumns.length]! - rows.fields[base]!
    const needed = quotedBytesMax * rowBytes + this.#dictionary.entryFieldBytesMax + fixedBytesMax
    if (needed > this.#buffer.length) this.#buffer = new Uint8Array(2 * needed)
    const out = this.#buffer
    const dialect = this.#dialect
    let at = dialect.writeFields(out, 0, rows, base + ofEntry.id, fromEntryIdToAccountedAt)
    at = dialect.writeTime(out, at, rows, base + ofEntry.created_utc)
    out[at++] = dialect.separator
    at = dialect.writeFields(out, at, rows, base + ofEntry.validated_at, validatedAt)
    const { yes, no } = dialect.draft
    at = writePiece(out, at, isNullField(rows, base + ofEntry.validated_at) ? yes : no)
    at = dialect.writeFields(out, at, rows, base + ofEntry.exercice_id, exerciceId)
    const journalId = idOf(rows, base + ofEntry.journal_id)
    at = writePiece(out, at, cited(this.#dictionary.journals, journalId, 'journal'))
    at = dialect.writeFields(out, at, rows, base + ofEntry.source, fromSourceToCurrency)
    at = dialect.writeRate(out, at, rows, base + ofEntry.stored_rate)
    out[at++] = dialect.separator
    at = dialect.writeFields(out, at, rows, base + ofEntry.comment, fromCommentToNumber)
    this.#undated = out.subarray(0, at)
    if (isNullField(rows, base + ofEntry.filed_piece_date)) {
      at = writePlainField(out, at, rows, base + ofEntry.date)
      out[at++] = dialect.separator
    } else at = this.#writePieceDate(out, at, rows, base + ofEntry.filed_piece_date)
    this.#entry = out.subarray(0, at)
    this.#auxiliaryNumber = this.#filedText(rows, base + ofEntry.filed_auxiliary_number)
    this.#auxiliaryName = this.#filedText(rows, base + ofEntry.filed_auxiliary_name)
    const attachments = base + ofEntry.attachments
    const attachmentsEnd = isNullField(rows, attachments)
      ? at
      : dialect.writeInsideJson(out, at, rows, attachments)
    this.#attachments = out.subarray(at, attachmentsEnd)
    this.#tail = out.subarray(attachmentsEnd, this.#writeTail(out, attachmentsEnd, rows, base))
  }

  /** The third party of an entry and what it keeps with it, and the end of a row. */
  #writeTail(out: Uint8Array, at: number, rows: Rows, base: number): number {
    const { jsonMark, rowEnd } = this.#dialect
    if (isNullField(rows, base + ofEntry.third_party_id))
      at = writePiece(out, writePiece(out, at, this.#absent), this.#absent)
    else {
      const id = idOf(rows, base + ofEntry.third_party_id)
      at = writePiece(out, at, cited(this.#dictionary.thirdParties, id, 'third party'))
    }
    if (isNullField(rows, base + ofEntry.partner_metadata)) at = writePiece(out, at, this.#absent) - 1
    else {
      at = writePiece(out, at, jsonMark)
      at = this.#dialect.writeInsideJson(out, at, rows, base + ofEntry.partner_metadata)
      at = writePiece(out, at, jsonMark)
    }
    return writePiece(out, at, rowEnd)
  }

  /** Upper bound of the bytes of this row's movement. */
  bytesMax({ fields }: Rows, base: number): number {
    const rowBytes = fields[base + flatMovementColumns.length]! - fields[base]!
    const shareBytes = fields[base + of.shares + 1]! - fields[base + of.shares]!
    return (
      quotedBytesMax * rowBytes +
      this.#entry.length +
      this.#attachments.length +
      this.#tail.length +
      (this.#auxiliaryNumber?.length ?? 0) +
      (this.#auxiliaryName?.length ?? 0) +
      this.#dictionary.fieldBytesMax +
      (shareBytes / shareCharactersMin + 1) * (this.#dictionary.sectionBytesMax + shareFixedBytesMax) +
      fixedBytesMax
    )
  }

  /**
   * Writes one movement of the current entry. Fields: {@link flatMovementColumns}, starting at `base`.
   * @throws {UnsupportedByFormat} if the check refuses it
   */
  write(out: Uint8Array, at: number, rows: Rows, base: number): number {
    const begin = at
    const dialect = this.#dialect
    const { separator } = dialect
    if (isNullField(rows, base + of.filed_piece_date)) at = writePiece(out, at, this.#entry)
    else {
      at = writePiece(out, at, this.#undated)
      at = this.#writePieceDate(out, at, rows, base + of.filed_piece_date)
    }
    at = writePlainField(out, at, rows, base + of.id)
    out[at++] = separator
    at = this.#writeAccount(out, at, rows, base)
    at = dialect.writeFields(out, at, rows, base + of.description, fromDescriptionToInvoiceNumber)
    at = dialect.writeMoney(out, at, rows, base + of.debit)
    out[at++] = separator
    at = dialect.writeMoney(out, at, rows, base + of.credit)
    out[at++] = separator
    at = this.#writePayment(out, at, rows, base + of.payment_id)
    at = dialect.writeFields(out, at, rows, base + of.lettering_state, fromLetteringStateToCode)
    at = this.#writeShares(out, at, rows, base + of.shares)
    at = this.#writeAttachments(out, at, rows, base + of.attachments)
    at = dialect.writeFields(out, at, rows, base + of.payment_id, paymentId)
    at = writePiece(out, at, this.#tail)
    this.#check?.(at - begin, rows, base)
    return at
  }

  /** From the account's id to its auxiliary name, and a separator. */
  #writeAccount(out: Uint8Array, at: number, rows: Rows, base: number): number {
    const account = cited(this.#dictionary.accounts, idOf(rows, base + of.account_id), 'account')
    const number = this.#filedText(rows, base + of.filed_auxiliary_number) ?? this.#auxiliaryNumber
    const name = this.#filedText(rows, base + of.filed_auxiliary_name) ?? this.#auxiliaryName
    const { bytes, auxiliaryNumberAt, auxiliaryNameAt } = account
    if (!number && !name) return writePiece(out, at, bytes)
    at = writePiece(out, at, bytes.subarray(0, auxiliaryNumberAt))
    at = writePiece(out, at, number ?? bytes.subarray(auxiliaryNumberAt, auxiliaryNameAt))
    return writePiece(out, at, name ?? bytes.subarray(auxiliaryNameAt))
  }

  /** The code of the mode of payment, and a separator. */
  #writePayment(out: Uint8Array, at: number, rows: Rows, field: number): number {
    if (isNullField(rows, field)) return writePiece(out, at, this.#absent)
    at = writePiece(out, at, cited(this.#dictionary.payments, idOf(rows, field), 'payment'))
    out[at++] = this.#dialect.separator
    return at
  }

  /** Writes `{section,amount,rate,section,amount,rate}` as a JSON array, or a null, and a separator. */
  #writeShares(out: Uint8Array, at: number, rows: Rows, field: number): number {
    if (isNullField(rows, field)) return writePiece(out, at, this.#absent)
    const { jsonMark, separator } = this.#dialect
    const { bytes, fields } = rows
    const start = fields[field]! + 1
    const end = fields[field + 1]! - 1
    at = writePiece(out, at, jsonMark)
    out[at++] = bracketOpen
    for (let i = start; i < end; ) {
      const idEnd = endOfNumber(bytes, i)
      const amountEnd = endOfNumber(bytes, idEnd + 1)
      const rateEnd = endOfNumber(bytes, amountEnd + 1)
      if (i > start) out[at++] = comma
      at = writePiece(out, at, cited(this.#dictionary.sections, readId(bytes, i, idEnd), 'section'))
      at = writePiece(out, at, this.#amountMark)
      at = writeDecimal(out, at, bytes, idEnd + 1, amountEnd, moneyDecimals)
      at = writePiece(out, at, this.#toRate)
      at = writeDecimal(out, at, bytes, amountEnd + 1, rateEnd, rateDecimals)
      at = writePiece(out, at, this.#shareEnd)
      i = rateEnd + 1
    }
    out[at++] = bracketClose
    at = writePiece(out, at, jsonMark)
    out[at++] = separator
    return at
  }

  /** Writes `{"entry":{...},"movement":{...}}`, each only if there are any, or a null, and a separator. */
  #writeAttachments(out: Uint8Array, at: number, rows: Rows, field: number): number {
    const isBare = isNullField(rows, field)
    if (isBare && this.#attachments.length === 0) return writePiece(out, at, this.#absent)
    const { jsonMark, separator } = this.#dialect
    at = writePiece(out, at, jsonMark)
    out[at++] = braceOpen
    if (this.#attachments.length > 0) {
      at = writePiece(out, at, this.#entryAttachments)
      at = writePiece(out, at, this.#attachments)
      if (!isBare) out[at++] = comma
    }
    if (!isBare) {
      at = writePiece(out, at, this.#movementAttachments)
      at = this.#dialect.writeInsideJson(out, at, rows, field)
    }
    out[at++] = braceClose
    at = writePiece(out, at, jsonMark)
    out[at++] = separator
    return at
  }

  /** A filed date, or a null if it is blank, and a separator. */
  #writePieceDate(out: Uint8Array, at: number, rows: Rows, field: number): number {
    const length = rows.fields[field + 1]! - 1 - rows.fields[field]!
    if (length === 0) return writePiece(out, at, this.#absent)
    assert(length === 'YYYYMMDD'.length, 'a filed date has eight digits')
    at = writeDay(out, at, rows, field)
    out[at++] = this.#dialect.separator
    return at
  }

  /** A filed text, a null if it is blank, and a separator; undefined if none was filed. */
  #filedText(rows: Rows, field: number): Uint8Array | undefined {
    if (isNullField(rows, field)) return undefined
    const textBytes = rows.fields[field + 1]! - 1 - rows.fields[field]!
    if (textBytes === 0) return this.#absent
    const out = new Uint8Array(quotedBytesMax * textBytes + 3)
    return out.subarray(0, this.#dialect.writeFields(out, 0, rows, field, filedText))
  }
}

const filedText = [true]
