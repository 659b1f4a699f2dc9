/**
 * Renders a movement as JSON bytes from the fields of its row (docs/spec/resources.md#movement). In a movements export
 * it contains its entry; in a full export it stands inside its entry.
 *
 * This is the hot loop of the service. An entry is rendered once and its bytes are copied into each of its movements.
 * Accounts, payments and sections come rendered from the dictionary, and the movement's own columns are copied from its
 * row. Pieces that usually stand side by side are one piece, and all are copied in words (words.ts). Nothing is
 * allocated per movement. The plain renderer in test/support/plain/plain-movement.ts does the same in
 * ten lines; tests compare the two byte for byte.
 */

import { ascii } from '../ascii.ts'
import { offsetsOf, type Rows } from '../columns.ts'
import { bytesOf, cited, endOfNumber, idOf, isNullField, readId } from '../text-bytes.ts'
import { writeAttachmentsOf } from './attachments.ts'
import type { Dictionary } from './dictionary.ts'
import { EntryRenderer } from './entry.ts'
import { writeDateOrNull, writeDecimal, writeInsideText, writeTextOrNull } from './json-bytes.ts'
import { type Output, outputOf, pieceOf, writeField, writePiece, writeRange } from './words.ts'

const { comma, letterN, letterP, minus, zero } = ascii

/** The columns of a movement row. */
export const movementColumns = [
  'entry_id',
  'id',
  'description',
  'due_date',
  'free_number',
  'invoice_number',
  'debit',
  'credit',
  'attachments',
  'account_id',
  'payment_id',
  'shares',
  'lettering_state',
  'shown_lettering_code',
] as const
export const movementOffsets = offsetsOf(movementColumns)
const of = movementOffsets

const open = pieceOf('{"producerId":"')
const description = pieceOf('","description":"')
const dueDate = pieceOf('","dueDate":')
const freeNumber = pieceOf(',"freeNumber":')
const invoiceNumber = pieceOf(',"invoiceNumber":"')
const noDatesInvoiceNumber = pieceOf('","dueDate":null,"freeNumber":null,"invoiceNumber":"')
const credit = pieceOf('","value":{"credit":')
const noDebitAmount = pieceOf(',"debit":0,"amount":')
const noCreditDebit = pieceOf('","value":{"credit":0,"debit":')
const amount = pieceOf(',"amount":')
const entry = pieceOf('},"entry":')
const entryToAttachments = pieceOf('},"attachments":')
const noneToAccount = pieceOf('{},"account":')
const toAccount = pieceOf(',"account":')
const noPayment = pieceOf('null,"analytics":[')
const nextAxis = pieceOf(']},')
const lastAxis = pieceOf(']}')
const shareRate = pieceOf(',"rate":')
const letteringNone = pieceOf('],"lettering":{"state":"none","value":null}}')
const letteringPartial = pieceOf('],"lettering":{"state":"partial","value":"')
const letteringComplete = pieceOf('],"lettering":{"state":"complete","value":"')
const close = pieceOf('"}}')
const nothingMore = pieceOf('null,"analytics":[],"lettering":{"state":"none","value":null}}')

/** Upper bound of all fixed pieces of a movement together. */
const fixedBytesMax = 1024
/** A share takes at least six characters of its row (`1,1,1,`). */
const shareCharactersMin = 6
/** A control character of one byte becomes \u0001, six bytes. */
const escapedBytesMax = 6

const moneyDecimals = 2
/** Rates are stored in ten-thousandths of a percent and written as a percentage. */
const rateDecimals = 4

export class MovementRenderer {
  readonly #dictionary: Dictionary
  readonly #entries: EntryRenderer
  #entry = outputOf(new Uint8Array(4096))
  /** From the end of `value` to the movement's account, if it has no attachments. */
  #toAccount: Uint8Array = bytesOf('},"attachments":{},"account":')
  /** From the end of `value` to the movement's own attachments. */
  #toAttachments: Uint8Array = this.#toAccount.subarray(0, -noneToAccount.length)

  constructor(dictionary: Dictionary) {
    this.#dictionary = dictionary
    this.#entries = new EntryRenderer(dictionary)
  }

  /**
   * Sets the entry of the movements that follow. Without one they have no `entry`, as in a full export, where they
   * stand inside it. The fields of {@link entryColumns} start at `base`.
   */
  setEntry(rows: Rows, base: number): void {
    const needed = this.#entries.bytesMax(rows, base) + fixedBytesMax
    if (needed > this.#entry.bytes.length) this.#entry = outputOf(new Uint8Array(2 * needed))
    const out = this.#entry
    let at = writePiece(out, 0, entry)
    at = this.#entries.writeInMovement(out, at, rows, base)
    at = writePiece(out, at, entryToAttachments)
    this.#toAttachments = out.bytes.subarray(0, at)
    at = writePiece(out, at, noneToAccount)
    this.#toAccount = out.bytes.subarray(0, at)
  }

  /** Upper bound of the bytes of this row's movement. */
  bytesMax({ fields }: Rows, base: number): number {
    const rowBytes = fields[base + movementColumns.length]! - fields[base]!
    const shareBytes = fields[base + of.shares + 1]! - fields[base + of.shares]!
    return (
      escapedBytesMax * rowBytes +
      this.#toAccount.length +
      this.#dictionary.fragmentBytesMax +
      (shareBytes / shareCharactersMin + 1) * this.#dictionary.shareBytesMax +
      fixedBytesMax
    )
  }

  /** Writes one movement of the current entry. The fields of {@link movementColumns} start at `base`. */
  write(out: Output, at: number, rows: Rows, base: number): number {
    at = writePiece(out, at, open)
    at = writeField(out, at, rows, base + of.id)
    at = writePiece(out, at, description)
    at = writeInsideText(out, at, rows, base + of.description)
    if (isNullField(rows, base + of.due_date) && isNullField(rows, base + of.free_number))
      at = writePiece(out, at, noDatesInvoiceNumber)
    else {
      at = writePiece(out, at, dueDate)
      at = writeDateOrNull(out, at, rows, base + of.due_date)
      at = writePiece(out, at, freeNumber)
      at = writeTextOrNull(out, at, rows, base + of.free_number)
      at = writePiece(out, at, invoiceNumber)
    }
    at = writeInsideText(out, at, rows, base + of.invoice_number)
    at = writeValue(out, at, rows, base)
    at = this.#writeToAccount(out, at, rows, base + of.attachments)
    const account = cited(this.#dictionary.accounts, idOf(rows, base + of.account_id), 'account')
    at = writePiece(out, at, account)
    return this.#writeTail(out, at, rows, base)
  }

  /** From the end of `value` to the account. */
  #writeToAccount(out: Output, at: number, rows: Rows, attachments: number): number {
    if (isNullField(rows, attachments)) {
      out.bytes.set(this.#toAccount, at)
      return at + this.#toAccount.length
    }
    out.bytes.set(this.#toAttachments, at)
    at = writeAttachmentsOf(out, at + this.#toAttachments.length, rows, attachments)
    return writePiece(out, at, toAccount)
  }

  /** From the value of `payment` to the end. */
  #writeTail(out: Output, at: number, rows: Rows, base: number): number {
    const paymentless = isNullField(rows, base + of.payment_id)
    const shareless = isNullField(rows, base + of.shares)
    const state = rows.bytes[rows.fields[base + of.lettering_state]!]
    if (paymentless && shareless && state === letterN) return writePiece(out, at, nothingMore)

    if (paymentless) at = writePiece(out, at, noPayment)
    else {
      const payment = cited(this.#dictionary.payments, idOf(rows, base + of.payment_id), 'payment')
      at = writePiece(out, at, payment)
    }
    if (!shareless) at = this.#writeShares(out, at, rows, base + of.shares)
    if (state === letterN) return writePiece(out, at, letteringNone)
    at = writePiece(out, at, state === letterP ? letteringPartial : letteringComplete)
    at = writeInsideText(out, at, rows, base + of.shown_lettering_code)
    return writePiece(out, at, close)
  }

  /** Shares of one axis are adjacent in the row: `{section,amount,rate,section,amount,rate}`. */
  #writeShares(out: Output, at: number, rows: Rows, field: number): number {
    const { bytes, fields } = rows
    const end = fields[field + 1]! - 1
    let axisId = 0
    for (let i = fields[field]! + 1; i < end; ) {
      const idEnd = endOfNumber(bytes, i)
      const amountEnd = endOfNumber(bytes, idEnd + 1)
      const rateEnd = endOfNumber(bytes, amountEnd + 1)
      const section = cited(this.#dictionary.sections, readId(bytes, i, idEnd), 'section')
      if (section.axisId !== axisId) {
        if (axisId !== 0) at = writePiece(out, at, nextAxis)
        at = writePiece(out, at, section.axisAndHead)
        axisId = section.axisId
      } else {
        out.bytes[at++] = comma
        at = writePiece(out, at, section.head)
      }
      at = writeDecimal(out, at, rows, idEnd + 1, amountEnd, moneyDecimals)
      at = writePiece(out, at, shareRate)
      at = writeDecimal(out, at, rows, amountEnd + 1, rateEnd, rateDecimals)
      at = writePiece(out, at, section.tail)
      i = rateEnd + 1
    }
    return axisId === 0 ? at : writePiece(out, at, lastAxis)
  }
}

/**
 * Writes the end of the invoice number and `,"value":{"credit":…,"debit":…,"amount":…`, left open. The amount is credit
 * minus debit. A CHECK of the table makes sure that one of the two is zero, so the amount is a copy of the other,
 * negated for a debit.
 */
function writeValue(out: Output, at: number, rows: Rows, base: number): number {
  const { bytes, fields } = rows
  const debitStart = fields[base + of.debit]!
  const debitEnd = fields[base + of.debit + 1]! - 1
  if (bytes[debitStart] === zero) {
    at = writePiece(out, at, credit)
    const start = at
    at = writeDecimal(
      out,
      at,
      rows,
      fields[base + of.credit]!,
      fields[base + of.credit + 1]! - 1,
      moneyDecimals,
    )
    const end = at
    at = writePiece(out, at, noDebitAmount)
    return writeRange(out, at, out, start, end)
  }
  at = writePiece(out, at, noCreditDebit)
  const start = at
  at = writeDecimal(out, at, rows, debitStart, debitEnd, moneyDecimals)
  const end = at
  at = writePiece(out, at, amount)
  if (bytes[debitStart] === minus) return writeRange(out, at, out, start + 1, end)
  out.bytes[at++] = minus
  return writeRange(out, at, out, start, end)
}
