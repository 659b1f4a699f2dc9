/**
 * Renders movements as flat rows from the fields of their rows in the database: rows of CSV and Parquet files
 * (docs/spec/exports.md#csv-and-parquet-files), and lines of COPY (docs/spec/ledgers.md#tables). The dialect decides
 * how a field is written.
 *
 * As in the other hot loops, an entry is rendered once and its bytes are copied into each of its rows; accounts,
 * payments and sections come rendered. Columns are in the order of the file, so that a dialect can copy several at
 * once. The plain renderer in test/support/plain/plain-flat.ts does the same with objects and strings; tests compare
 * the two.
 */
import { strict as assert } from 'node:assert'
import { ascii } from '../ascii.ts'
import { offsetsOf } from '../rows.ts'
import {
  cited,
  moneyDecimals,
  type Output,
  outputOf,
  pieceOf,
  type Rows,
  rateDecimals,
  Shares,
  sharesMax,
  withRoom,
  writeBytes,
  writeDecimal,
  writeField,
  writePiece,
} from '../text-bytes.ts'
import { type Dialect, writeDay } from './dialect.ts'
import type { FlatDictionary } from './dictionary.ts'

const { braceClose, braceOpen, bracketClose, bracketOpen, comma } = ascii

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

const entry = offsetsOf(flatEntryColumns)
const movement = offsetsOf(flatMovementColumns)

// For groups of adjacent columns: whether each column is a text.
const fromEntryIdToAccountedAt = [false, false, false, false]
const validatedAt = [false]
const exerciceId = [false]
const fromSourceToCurrency = [false, false]
const fromCommentToNumber = [true, true]
const fromDescriptionToInvoiceNumber = [true, false, true, true]
const fromLetteringStateToCode = [false, true]
const paymentId = [false]

const noBytes = new Uint8Array()

/** The most bytes of a row that do not come from the database: separators and fixed pieces. */
const fixedBytesMax = 512
/** A quote is doubled. */
const quotedBytesMax = 2
/** The most bytes of a share without its section, amount and rate. Those are counted elsewhere. */
const shareFixedBytesMax = 32
/**
 * Refuses a row that its reader cannot take.
 * @param rows {@link flatMovementColumns}
 * @throws {UnsupportedByFormat}
 */
export type CheckRow = (rowBytes: number, rows: Rows) => void

export class MovementRows {
  readonly entryColumns = flatEntryColumns
  readonly movementColumns = flatMovementColumns
  readonly #dictionary: FlatDictionary
  readonly #dialect: Dialect
  readonly #check: CheckRow | undefined
  readonly #shares = new Shares()
  readonly #pieces: ReturnType<typeof piecesOf>
  #buffer = outputOf(new Uint8Array(4096))
  /** The beginning of the row, with the date of the document at its end and without it. */
  #entry: Uint8Array = noBytes
  #undated: Uint8Array = noBytes
  /**
   * The number and name of the third-party account that was filed for the whole entry. They replace those of its
   * accounts. A separator follows each field.
   */
  #auxiliaryNumber: Uint8Array | undefined
  #auxiliaryName: Uint8Array | undefined
  /** The JSON of the entry's attachments; empty if it has none. */
  #attachments: Uint8Array = noBytes
  /** The end of the row, from the code of the third party on. */
  #tail: Uint8Array = noBytes

  /** @param check if absent, no row is refused */
  constructor(dictionary: FlatDictionary, dialect: Dialect, check?: CheckRow) {
    this.#dictionary = dictionary
    this.#dialect = dialect
    this.#check = check
    this.#pieces = piecesOf(dialect)
  }

  setEntry(rows: Rows): void {
    const dialect = this.#dialect
    const { separator } = dialect
    const textBytesMax = quotedBytesMax * rows.bytesIn(flatEntryColumns.length)
    this.#buffer = withRoom(this.#buffer, textBytesMax + this.#dictionary.entryFieldBytesMax + fixedBytesMax)
    const out = this.#buffer
    const { bytes } = out
    let at = dialect.writeFields(out, 0, rows, entry.id, fromEntryIdToAccountedAt)
    at = dialect.writeTime(out, at, rows, entry.created_utc)
    bytes[at++] = separator
    at = dialect.writeFields(out, at, rows, entry.validated_at, validatedAt)
    const { yes, no } = dialect.draft
    at = writePiece(out, at, rows.isNull(entry.validated_at) ? yes : no)
    at = dialect.writeFields(out, at, rows, entry.exercice_id, exerciceId)
    at = writePiece(out, at, cited(this.#dictionary.journals, rows.id(entry.journal_id), 'journal'))
    at = dialect.writeFields(out, at, rows, entry.source, fromSourceToCurrency)
    at = dialect.writeRate(out, at, rows, entry.stored_rate)
    bytes[at++] = separator
    at = dialect.writeFields(out, at, rows, entry.comment, fromCommentToNumber)
    this.#undated = bytes.subarray(0, at)
    if (rows.isNull(entry.filed_piece_date)) {
      at = writeField(out, at, rows, entry.date)
      bytes[at++] = separator
    } else at = this.#writePieceDate(out, at, rows, entry.filed_piece_date)
    this.#entry = bytes.subarray(0, at)
    this.#auxiliaryNumber = this.#filedText(rows, entry.filed_auxiliary_number)
    this.#auxiliaryName = this.#filedText(rows, entry.filed_auxiliary_name)
    const end = rows.isNull(entry.attachments)
      ? at
      : dialect.writeInsideJson(out, at, rows, entry.attachments)
    this.#attachments = bytes.subarray(at, end)
    this.#tail = bytes.subarray(end, this.#writeTail(out, end, rows))
  }

  /** Writes the end of a row: the third party of the entry, and what this partner attached to it. */
  #writeTail(out: Output, at: number, rows: Rows): number {
    const { jsonMark, rowEnd } = this.#dialect
    const { absent } = this.#pieces
    if (rows.isNull(entry.third_party_id)) at = writePiece(out, writePiece(out, at, absent), absent)
    else {
      const thirdParty = cited(this.#dictionary.thirdParties, rows.id(entry.third_party_id), 'third party')
      at = writePiece(out, at, thirdParty)
    }
    if (rows.isNull(entry.partner_metadata)) at = writePiece(out, at, absent) - 1
    else {
      at = writePiece(out, at, jsonMark)
      at = this.#dialect.writeInsideJson(out, at, rows, entry.partner_metadata)
      at = writePiece(out, at, jsonMark)
    }
    return writePiece(out, at, rowEnd)
  }

  /** The most bytes that the movement of this row can need. */
  bytesMax(rows: Rows): number {
    return (
      quotedBytesMax * rows.bytesIn(flatMovementColumns.length) +
      this.#entry.length +
      this.#attachments.length +
      this.#tail.length +
      (this.#auxiliaryNumber?.length ?? 0) +
      (this.#auxiliaryName?.length ?? 0) +
      this.#dictionary.fieldBytesMax +
      sharesMax(rows, movement.shares) * (this.#dictionary.sectionBytesMax + shareFixedBytesMax) +
      fixedBytesMax
    )
  }

  /**
   * Writes one movement of the current entry.
   * @throws {UnsupportedByFormat} if the check refuses it
   */
  write(out: Output, at: number, rows: Rows): number {
    const begin = at
    const dialect = this.#dialect
    const { separator } = dialect
    if (rows.isNull(movement.filed_piece_date)) at = writeBytes(out, at, this.#entry)
    else {
      at = writeBytes(out, at, this.#undated)
      at = this.#writePieceDate(out, at, rows, movement.filed_piece_date)
    }
    at = writeField(out, at, rows, movement.id)
    out.bytes[at++] = separator
    at = this.#writeAccount(out, at, rows)
    at = dialect.writeFields(out, at, rows, movement.description, fromDescriptionToInvoiceNumber)
    at = dialect.writeMoney(out, at, rows, movement.debit)
    out.bytes[at++] = separator
    at = dialect.writeMoney(out, at, rows, movement.credit)
    out.bytes[at++] = separator
    at = this.#writePayment(out, at, rows)
    at = dialect.writeFields(out, at, rows, movement.lettering_state, fromLetteringStateToCode)
    at = this.#writeShares(out, at, rows)
    at = this.#writeAttachments(out, at, rows)
    at = dialect.writeFields(out, at, rows, movement.payment_id, paymentId)
    at = writeBytes(out, at, this.#tail)
    this.#check?.(at - begin, rows)
    return at
  }

  /** Writes the fields from the account's id to its auxiliary name, and a separator. */
  #writeAccount(out: Output, at: number, rows: Rows): number {
    const account = cited(this.#dictionary.accounts, rows.id(movement.account_id), 'account')
    const number = this.#filedText(rows, movement.filed_auxiliary_number) ?? this.#auxiliaryNumber
    const name = this.#filedText(rows, movement.filed_auxiliary_name) ?? this.#auxiliaryName
    const { bytes, auxiliaryNumberAt, auxiliaryNameAt } = account
    if (!number && !name) return writePiece(out, at, account)
    at = writeBytes(out, at, bytes.subarray(0, auxiliaryNumberAt))
    at = writeBytes(out, at, number ?? bytes.subarray(auxiliaryNumberAt, auxiliaryNameAt))
    return writeBytes(out, at, name ?? bytes.subarray(auxiliaryNameAt))
  }

  /** Writes the code of the mode of payment, and a separator. */
  #writePayment(out: Output, at: number, rows: Rows): number {
    if (rows.isNull(movement.payment_id)) return writePiece(out, at, this.#pieces.absent)
    at = writePiece(out, at, cited(this.#dictionary.payments, rows.id(movement.payment_id), 'payment'))
    out.bytes[at++] = this.#dialect.separator
    return at
  }

  /** Writes shares as a JSON array, or a null if there are none, and a separator. */
  #writeShares(out: Output, at: number, rows: Rows): number {
    if (rows.isNull(movement.shares)) return writePiece(out, at, this.#pieces.absent)
    const { jsonMark, separator } = this.#dialect
    const { amountMark, toRate, shareEnd } = this.#pieces
    at = writePiece(out, at, jsonMark)
    out.bytes[at++] = bracketOpen
    const first = at
    for (const share = this.#shares.begin(rows, movement.shares); share.read(); ) {
      if (at > first) out.bytes[at++] = comma
      at = writePiece(out, at, cited(this.#dictionary.sections, share.section, 'section'))
      at = writePiece(out, at, amountMark)
      at = writeDecimal(out, at, rows, share.amount, share.rate - 1, moneyDecimals)
      at = writePiece(out, at, toRate)
      at = writeDecimal(out, at, rows, share.rate, share.next - 1, rateDecimals)
      at = writePiece(out, at, shareEnd)
    }
    out.bytes[at++] = bracketClose
    at = writePiece(out, at, jsonMark)
    out.bytes[at++] = separator
    return at
  }

  /**
   * Writes `{"entry":{...},"movement":{...}}` and a separator. A part without attachments is left out; without both
   * parts, a null is written.
   */
  #writeAttachments(out: Output, at: number, rows: Rows): number {
    const isBare = rows.isNull(movement.attachments)
    const { absent, entryAttachments, movementAttachments } = this.#pieces
    if (isBare && this.#attachments.length === 0) return writePiece(out, at, absent)
    const { jsonMark, separator } = this.#dialect
    at = writePiece(out, at, jsonMark)
    out.bytes[at++] = braceOpen
    if (this.#attachments.length > 0) {
      at = writePiece(out, at, entryAttachments)
      at = writeBytes(out, at, this.#attachments)
      if (!isBare) out.bytes[at++] = comma
    }
    if (!isBare) {
      at = writePiece(out, at, movementAttachments)
      at = this.#dialect.writeInsideJson(out, at, rows, movement.attachments)
    }
    out.bytes[at++] = braceClose
    at = writePiece(out, at, jsonMark)
    out.bytes[at++] = separator
    return at
  }

  /** Writes a filed date, or a null if it is blank, and a separator. */
  #writePieceDate(out: Output, at: number, rows: Rows, field: number): number {
    const length = rows.end(field) - rows.start(field)
    if (length === 0) return writePiece(out, at, this.#pieces.absent)
    assert(length === 'YYYYMMDD'.length, 'a filed date has eight digits')
    at = writeDay(out, at, rows, field)
    out.bytes[at++] = this.#dialect.separator
    return at
  }

  /** Renders a filed text, or a null if it is blank, and a separator. Undefined if none was filed. */
  #filedText(rows: Rows, field: number): Uint8Array | undefined {
    if (rows.isNull(field)) return undefined
    const textBytes = rows.end(field) - rows.start(field)
    if (textBytes === 0) return this.#pieces.absent.bytes
    const out = outputOf(new Uint8Array(quotedBytesMax * textBytes + 16))
    return out.bytes.subarray(0, this.#dialect.writeFields(out, 0, rows, field, [true]))
  }
}

/** The fixed pieces of a row that depend on the dialect. */
function piecesOf({ amountMark, separator, ...dialect }: Dialect) {
  const inJson = (text: string) => pieceOf(dialect.insideJson(text))
  return {
    entryAttachments: inJson('"entry":'),
    movementAttachments: inJson('"movement":'),
    amountMark: pieceOf(amountMark),
    toRate: pieceOf(`${amountMark},${dialect.insideJson('"rate":')}${amountMark}`),
    shareEnd: pieceOf(`${amountMark}}`),
    /** A null and a separator. */
    absent: pieceOf(dialect.field(null) + String.fromCharCode(separator)),
  }
}
