/**
 * Renders a movement as JSON bytes from the fields of its row (docs/spec/resources.md#movement). In a movements export
 * the movement contains its entry; in a full export it is inside its entry.
 *
 * This is the hot loop of the service. An entry is rendered once and its bytes are copied into each of its movements.
 * Accounts, payments and sections come rendered from the dictionary, and the movement's own columns are copied from its
 * row. Pieces that are usually adjacent are one piece, and all are copied in words (text-bytes.ts). Nothing is
 * allocated per movement. The plain renderer in test/support/plain/plain-movement.ts does the same in ten lines; tests
 * compare the two byte for byte.
 */

import { Buffer } from 'node:buffer'
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
  writeRange,
} from '../text-bytes.ts'
import type { Dictionary } from './dictionary.ts'
import { EntryRenderer, entryColumns } from './entry.ts'
import { writeAttachments, writeDateOrNull, writeInsideText, writeTextOrNull } from './json-bytes.ts'

const { comma, letterN, letterP, minus, zero } = ascii

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
const column = offsetsOf(movementColumns)

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

/** The most bytes of all fixed pieces of a movement together. */
const fixedBytesMax = 1024
/** The most bytes that one byte of a field becomes: a control character becomes \u0001, six bytes. */
const escapedBytesMax = 6

export class MovementRenderer {
  readonly entryColumns = entryColumns
  readonly movementColumns = movementColumns
  readonly #dictionary: Dictionary
  readonly #entries: EntryRenderer
  readonly #shares = new Shares()
  #entry = outputOf(new Uint8Array(4096))
  /** The piece from the end of `value` to the movement's account, for a movement without attachments. */
  #toAccount: Uint8Array = Buffer.from('},"attachments":{},"account":')
  /** The piece from the end of `value` to the movement's own attachments. */
  #toAttachments: Uint8Array = this.#toAccount.subarray(0, -noneToAccount.length)

  constructor(dictionary: Dictionary) {
    this.#dictionary = dictionary
    this.#entries = new EntryRenderer(dictionary)
  }

  /**
   * Sets the entry of the movements that follow. A full export does not call this function: its movements are inside
   * their entry, and have no `entry`.
   */
  setEntry(entries: Rows): void {
    this.#entry = withRoom(this.#entry, this.#entries.bytesMax(entries) + fixedBytesMax)
    const out = this.#entry
    let at = writePiece(out, 0, entry)
    at = this.#entries.writeInMovement(out, at, entries)
    at = writePiece(out, at, entryToAttachments)
    this.#toAttachments = out.bytes.subarray(0, at)
    at = writePiece(out, at, noneToAccount)
    this.#toAccount = out.bytes.subarray(0, at)
  }

  /** The most bytes that the movement of this row needs. */
  bytesMax(rows: Rows): number {
    return (
      escapedBytesMax * rows.bytesIn(movementColumns.length) +
      this.#toAccount.length +
      this.#dictionary.fragmentBytesMax +
      sharesMax(rows, column.shares) * this.#dictionary.shareBytesMax +
      fixedBytesMax
    )
  }

  write(out: Output, at: number, rows: Rows): number {
    at = writePiece(out, at, open)
    at = writeField(out, at, rows, column.id)
    at = writePiece(out, at, description)
    at = writeInsideText(out, at, rows, column.description)
    if (rows.isNull(column.due_date) && rows.isNull(column.free_number))
      at = writePiece(out, at, noDatesInvoiceNumber)
    else {
      at = writePiece(out, at, dueDate)
      at = writeDateOrNull(out, at, rows, column.due_date)
      at = writePiece(out, at, freeNumber)
      at = writeTextOrNull(out, at, rows, column.free_number)
      at = writePiece(out, at, invoiceNumber)
    }
    at = writeInsideText(out, at, rows, column.invoice_number)
    at = writeValue(out, at, rows)
    at = this.#writeToAccount(out, at, rows)
    at = writePiece(out, at, cited(this.#dictionary.accounts, rows.id(column.account_id), 'account'))
    return this.#writeTail(out, at, rows)
  }

  /** Writes the part from the end of `value` to the account. */
  #writeToAccount(out: Output, at: number, rows: Rows): number {
    if (rows.isNull(column.attachments)) return writeBytes(out, at, this.#toAccount)
    at = writeBytes(out, at, this.#toAttachments)
    at = writeAttachments(out, at, rows, column.attachments)
    return writePiece(out, at, toAccount)
  }

  /** Writes the part from the value of `payment` to the end. */
  #writeTail(out: Output, at: number, rows: Rows): number {
    const paymentless = rows.isNull(column.payment_id)
    const shareless = rows.isNull(column.shares)
    const state = rows.bytes[rows.start(column.lettering_state)]
    if (paymentless && shareless && state === letterN) return writePiece(out, at, nothingMore)

    if (paymentless) at = writePiece(out, at, noPayment)
    else at = writePiece(out, at, cited(this.#dictionary.payments, rows.id(column.payment_id), 'payment'))
    if (!shareless) at = this.#writeShares(out, at, rows)
    if (state === letterN) return writePiece(out, at, letteringNone)
    at = writePiece(out, at, state === letterP ? letteringPartial : letteringComplete)
    at = writeInsideText(out, at, rows, column.shown_lettering_code)
    return writePiece(out, at, close)
  }

  #writeShares(out: Output, at: number, rows: Rows): number {
    let axisId = 0
    for (const share = this.#shares.begin(rows, column.shares); share.read(); ) {
      const section = cited(this.#dictionary.sections, share.section, 'section')
      if (section.axisId !== axisId) {
        if (axisId !== 0) at = writePiece(out, at, nextAxis)
        at = writePiece(out, at, section.axisAndHead)
        axisId = section.axisId
      } else {
        out.bytes[at++] = comma
        at = writePiece(out, at, section.head)
      }
      at = writeDecimal(out, at, rows, share.amount, share.rate - 1, moneyDecimals)
      at = writePiece(out, at, shareRate)
      at = writeDecimal(out, at, rows, share.rate, share.next - 1, rateDecimals)
      at = writePiece(out, at, section.tail)
    }
    return axisId === 0 ? at : writePiece(out, at, lastAxis)
  }
}

/**
 * Writes the end of the invoice number and `,"value":{"credit":…,"debit":…,"amount":…` without the closing brace. The
 * amount is credit minus debit. A CHECK of the table makes sure that credit or debit is zero, so the amount is a copy
 * of the other one, negated for a debit.
 */
function writeValue(out: Output, at: number, rows: Rows): number {
  const start = rows.start(column.debit)
  if (rows.bytes[start] === zero) {
    at = writePiece(out, at, credit)
    const end = writeMoney(out, at, rows, column.credit)
    return writeRange(out, writePiece(out, end, noDebitAmount), out, at, end)
  }
  at = writePiece(out, at, noCreditDebit)
  const end = writeMoney(out, at, rows, column.debit)
  const next = writePiece(out, end, amount)
  if (rows.bytes[start] === minus) return writeRange(out, next, out, at + 1, end)
  out.bytes[next] = minus
  return writeRange(out, next + 1, out, at, end)
}

function writeMoney(out: Output, at: number, rows: Rows, field: number): number {
  return writeDecimal(out, at, rows, rows.start(field), rows.end(field), moneyDecimals)
}
