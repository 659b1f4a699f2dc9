/**
 * Renders a movement as JSON bytes from the fields of its row (docs/spec/resources.md#movement). In a movements export
 * it contains its entry; in a full export it stands inside its entry.
 *
 * This is the hot loop of the service. An entry is rendered once and its bytes are copied into each of its movements.
 * Accounts, payments and sections come rendered from the dictionary, and the movement's own columns are copied from its
 * row. Nothing is allocated per movement. The plain renderer in test/support/plain/plain-movement.ts does the same in
 * ten lines; tests compare the two byte for byte.
 */

import { strict as assert } from 'node:assert'
import { ascii } from '../ascii.ts'
import { offsetsOf } from '../columns.ts'
import { writeDecimal } from '../minor-units.ts'
import { bytesOf, endOfNumber, isNull, readId, writePiece, writePlain } from '../text-bytes.ts'
import { writeAttachments } from './attachments.ts'
import type { Dictionary } from './dictionary.ts'
import { EntryRenderer } from './entry.ts'
import { writeDateOrNull, writeNull, writeText, writeTextOrNull } from './json-bytes.ts'

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

const open = bytesOf('{"producerId":"')
const description = bytesOf('","description":')
const dueDate = bytesOf(',"dueDate":')
const freeNumber = bytesOf(',"freeNumber":')
const invoiceNumber = bytesOf(',"invoiceNumber":')
const noDatesInvoiceNumber = bytesOf(',"dueDate":null,"freeNumber":null,"invoiceNumber":')
const credit = bytesOf(',"value":{"credit":')
const debit = bytesOf(',"debit":')
const amount = bytesOf(',"amount":')
const entry = bytesOf('},"entry":')
const entryToAttachments = bytesOf(',"attachments":')
const valueToAttachments = bytesOf('},"attachments":')
const account = bytesOf(',"account":')
const payment = bytesOf(',"payment":')
const analytics = bytesOf(',"analytics":[')
const nextAxis = bytesOf(']},')
const lastAxis = bytesOf(']}')
const shareRate = bytesOf(',"rate":')
const letteringNone = bytesOf('],"lettering":{"state":"none","value":null}}')
const letteringPartial = bytesOf('],"lettering":{"state":"partial","value":')
const letteringComplete = bytesOf('],"lettering":{"state":"complete","value":')
const close = bytesOf('}}')
const nothingMore = bytesOf(',"payment":null,"analytics":[],"lettering":{"state":"none","value":null}}')

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
  #entryBuffer = new Uint8Array(4096)
  /** The bytes from the end of `value` to the movement's own attachments, including the entry once one is set. */
  #between: Uint8Array = valueToAttachments

  constructor(dictionary: Dictionary) {
    this.#dictionary = dictionary
    this.#entries = new EntryRenderer(dictionary)
  }

  /**
   * Sets the entry of the movements that follow. Without one they have no `entry`, as in a full export, where they
   * stand inside it. Fields: {@link entryColumns}, starting at `base`.
   */
  setEntry(bytes: Uint8Array, fields: Int32Array, base: number): void {
    const needed = this.#entries.bytesMax(fields, base) + fixedBytesMax
    if (needed > this.#entryBuffer.length) this.#entryBuffer = new Uint8Array(2 * needed)
    let at = writePiece(this.#entryBuffer, 0, entry)
    at = this.#entries.writeInMovement(this.#entryBuffer, at, bytes, fields, base)
    at = writePiece(this.#entryBuffer, at, entryToAttachments)
    this.#between = this.#entryBuffer.subarray(0, at)
  }

  /** Upper bound of the bytes of this row's movement. */
  bytesMax(fields: Int32Array, base: number): number {
    const rowBytes = fields[base + movementColumns.length]! - fields[base]!
    const shareBytes = fields[base + of.shares + 1]! - fields[base + of.shares]!
    return (
      escapedBytesMax * rowBytes +
      this.#between.length +
      this.#dictionary.fragmentBytesMax +
      (shareBytes / shareCharactersMin + 1) * this.#dictionary.shareBytesMax +
      fixedBytesMax
    )
  }

  /** Writes one movement of the current entry. Fields: {@link movementColumns}, starting at `base`. */
  write(out: Uint8Array, at: number, bytes: Uint8Array, fields: Int32Array, base: number): number {
    const dueDateStart = fields[base + of.due_date]!
    const dueDateEnd = fields[base + of.due_date + 1]! - 1
    const freeNumberStart = fields[base + of.free_number]!
    const freeNumberEnd = fields[base + of.free_number + 1]! - 1

    at = writePiece(out, at, open)
    at = writePlain(out, at, bytes, fields[base + of.id]!, fields[base + of.id + 1]! - 1)
    at = writePiece(out, at, description)
    at = writeText(out, at, bytes, fields[base + of.description]!, fields[base + of.description + 1]! - 1)
    if (isNull(bytes, dueDateStart, dueDateEnd) && isNull(bytes, freeNumberStart, freeNumberEnd)) {
      at = writePiece(out, at, noDatesInvoiceNumber)
    } else {
      at = writePiece(out, at, dueDate)
      at = writeDateOrNull(out, at, bytes, dueDateStart, dueDateEnd)
      at = writePiece(out, at, freeNumber)
      at = writeTextOrNull(out, at, bytes, freeNumberStart, freeNumberEnd)
      at = writePiece(out, at, invoiceNumber)
    }
    at = writeText(
      out,
      at,
      bytes,
      fields[base + of.invoice_number]!,
      fields[base + of.invoice_number + 1]! - 1,
    )
    at = writeValue(out, at, bytes, fields, base)
    at = writePiece(out, at, this.#between)
    at = writeAttachments(
      out,
      at,
      bytes,
      fields[base + of.attachments]!,
      fields[base + of.attachments + 1]! - 1,
    )
    at = writePiece(out, at, account)
    const accountId = readId(bytes, fields[base + of.account_id]!, fields[base + of.account_id + 1]! - 1)
    const accountBytes = this.#dictionary.accounts.get(accountId)
    if (!accountBytes) assert.fail('a movement names an account that its folder does not have')
    at = writePiece(out, at, accountBytes)
    return this.#writeTail(out, at, bytes, fields, base)
  }

  #writeTail(out: Uint8Array, at: number, bytes: Uint8Array, fields: Int32Array, base: number): number {
    const paymentStart = fields[base + of.payment_id]!
    const paymentEnd = fields[base + of.payment_id + 1]! - 1
    const sharesStart = fields[base + of.shares]!
    const sharesEnd = fields[base + of.shares + 1]! - 1
    const paymentless = isNull(bytes, paymentStart, paymentEnd)
    const shareless = isNull(bytes, sharesStart, sharesEnd)
    const state = bytes[fields[base + of.lettering_state]!]
    if (paymentless && shareless && state === letterN) return writePiece(out, at, nothingMore)

    at = writePiece(out, at, payment)
    if (paymentless) at = writeNull(out, at)
    else {
      const paymentBytes = this.#dictionary.payments.get(readId(bytes, paymentStart, paymentEnd))
      if (!paymentBytes) assert.fail('a movement names a payment that its folder does not have')
      at = writePiece(out, at, paymentBytes)
    }
    at = writePiece(out, at, analytics)
    if (!shareless) at = this.#writeShares(out, at, bytes, sharesStart, sharesEnd)
    if (state === letterN) return writePiece(out, at, letteringNone)
    at = writePiece(out, at, state === letterP ? letteringPartial : letteringComplete)
    const codeStart = fields[base + of.shown_lettering_code]!
    at = writeText(out, at, bytes, codeStart, fields[base + of.shown_lettering_code + 1]! - 1)
    return writePiece(out, at, close)
  }

  /** Shares of one axis are adjacent in the row: `{section,amount,rate,section,amount,rate}`. */
  #writeShares(out: Uint8Array, at: number, bytes: Uint8Array, start: number, end: number): number {
    let axisId = 0
    for (let i = start + 1; i < end; ) {
      const idEnd = endOfNumber(bytes, i)
      const amountEnd = endOfNumber(bytes, idEnd + 1)
      const rateEnd = endOfNumber(bytes, amountEnd + 1)
      const section = this.#dictionary.sections.get(readId(bytes, i, idEnd))
      if (!section) assert.fail('an analytic share names a section that its folder does not have')
      if (section.axisId !== axisId) {
        if (axisId !== 0) at = writePiece(out, at, nextAxis)
        at = writePiece(out, at, section.axis)
        axisId = section.axisId
      } else out[at++] = comma
      at = writePiece(out, at, section.head)
      at = writeDecimal(out, at, bytes, idEnd + 1, amountEnd, moneyDecimals)
      at = writePiece(out, at, shareRate)
      at = writeDecimal(out, at, bytes, amountEnd + 1, rateEnd, rateDecimals)
      at = writePiece(out, at, section.tail)
      i = rateEnd + 1
    }
    return axisId === 0 ? at : writePiece(out, at, lastAxis)
  }
}

/**
 * Writes `,"value":{"credit":…,"debit":…,"amount":…`, left open. The amount is credit minus debit. A CHECK of the table
 * makes sure that one of the two is zero, so the amount is a copy of the other, negated for a debit.
 */
function writeValue(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  fields: Int32Array,
  base: number,
): number {
  const debitStart = fields[base + of.debit]!
  const debitEnd = fields[base + of.debit + 1]! - 1
  const creditStart = fields[base + of.credit]!
  const creditEnd = fields[base + of.credit + 1]! - 1
  at = writePiece(out, at, credit)
  at = writeDecimal(out, at, bytes, creditStart, creditEnd, moneyDecimals)
  at = writePiece(out, at, debit)
  at = writeDecimal(out, at, bytes, debitStart, debitEnd, moneyDecimals)
  at = writePiece(out, at, amount)
  if (debitEnd - debitStart === 1 && bytes[debitStart] === zero) {
    return writeDecimal(out, at, bytes, creditStart, creditEnd, moneyDecimals)
  }
  if (bytes[debitStart] === minus)
    return writeDecimal(out, at, bytes, debitStart + 1, debitEnd, moneyDecimals)
  out[at++] = minus
  return writeDecimal(out, at, bytes, debitStart, debitEnd, moneyDecimals)
}
