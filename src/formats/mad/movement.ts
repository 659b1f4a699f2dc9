/**
 * A movement as JSON bytes, from the fields of its row and the bytes of its entry (interface, section 2.4).
 *
 * The hot loop of the service. An entry is rendered once and its bytes are copied into each of its movements; what a
 * movement refers to comes rendered from the dictionary; its own columns are copied from the row. Nothing is
 * allocated per movement. The plain renderer in test/support/plain-movement.ts says the same in ten lines and is
 * compared byte for byte.
 */
import { strict as assert } from 'node:assert'
import type { Dictionary } from './dictionary.ts'
import {
  bytesOf,
  decodeCopyText,
  isNull,
  readId,
  writeDateOrNull,
  writeDecimal,
  writeNull,
  writePiece,
  writePlain,
  writeText,
  writeTextOrNull,
} from './json-bytes.ts'

/** The columns of a movement row, in the order the query must give them. */
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
  'lettering_code',
] as const
export type MovementColumn = (typeof movementColumns)[number]

/** The columns of an entry row, in the order the query must give them. */
export const entryColumns = [
  'id',
  'date',
  'due_date',
  'currency',
  'rate',
  'journal_id',
  'source',
  'third_party_id',
  'partner_metadata',
  'comment',
  'created_at',
  'accounted_at',
  'attachments',
] as const
export type EntryColumn = (typeof entryColumns)[number]

/** Changes whenever the bytes of a movement change, so that an ETag of the former bytes is not honoured. */
export const movementFormatRevision = 1

const open = bytesOf('{"producerId":"')
const description = bytesOf('","description":')
const dueDate = bytesOf(',"dueDate":')
const freeNumber = bytesOf(',"freeNumber":')
const invoiceNumber = bytesOf(',"invoiceNumber":')
const noDatesInvoiceNumber = bytesOf(',"dueDate":null,"freeNumber":null,"invoiceNumber":')
const credit = bytesOf(',"value":{"credit":')
const debit = bytesOf(',"debit":')
const amount = bytesOf(',"amount":')
const entry = bytesOf('},"entry":{"producerId":"')
const entryDate = bytesOf('","date":"')
const entryDueDate = bytesOf('","dueDate":')
const currency = bytesOf(',"currency":{"code":"')
const quoteMark = bytesOf('"')
const rate = bytesOf(',"rate":')
const journal = bytesOf('},"journal":')
const source = bytesOf(',"additionalProducerProperties":{"source":{"name":"')
const thirdParty = bytesOf('","thirdParty":')
const partnerMetadata = bytesOf('},"partnerMetadata":')
const comment = bytesOf(',"comment":')
const createdAt = bytesOf(',"createdAt":')
const accountedAt = bytesOf(',"accountedAt":"')
const entryAttachments = bytesOf('"},"attachments":')
const attachments = bytesOf('},"attachments":')
const emptyObject = bytesOf('{}')
const account = bytesOf(',"account":')
const payment = bytesOf(',"payment":')
const analytics = bytesOf(',"analytics":[')
const nextAxis = bytesOf(']},')
const lastAxis = bytesOf(']}')
const comma = bytesOf(',')
const shareRate = bytesOf(',"rate":')
const letteringNone = bytesOf('],"lettering":{"state":"none","value":null}}')
const letteringPartial = bytesOf('],"lettering":{"state":"partial","value":')
const letteringComplete = bytesOf('],"lettering":{"state":"complete","value":')
const close = bytesOf('}}')
const nothingMore = bytesOf(',"payment":null,"analytics":[],"lettering":{"state":"none","value":null}}')

/** All fixed pieces of a movement and an entry together are shorter. */
const fixedBytesMax = 1024
/** A share takes at least six characters of its row (`1,1,1,`). */
const shareCharactersMin = 6
/** A control character of one byte becomes \u0001. */
const escapedBytesMax = 6

const moneyDecimals = 2
/** Rates are stored in ten-thousandths of a percent and written as a percentage. */
const rateDecimals = 4

const letterN = 0x6e
const letterP = 0x70
const braceClose = 0x7d
const commaByte = 0x2c
const minus = 0x2d
const zero = 0x30

export class MovementRenderer {
  readonly #dictionary: Dictionary
  #entryRoom = new Uint8Array(4096)
  /** From the end of `value` to the movement's own attachments. */
  #entry: Uint8Array = this.#entryRoom.subarray(0, 0)

  constructor(dictionary: Dictionary) {
    this.#dictionary = dictionary
  }

  /** Renders the entry that the following movements belong to. Fields: {@link entryColumns}, from `base` on. */
  takeEntry(bytes: Uint8Array, fields: Int32Array, base: number): void {
    const start = (column: number) => fields[base + column]!
    const end = (column: number) => fields[base + column + 1]! - 1
    const journalBytes = this.#dictionary.journals.get(readId(bytes, start(5), end(5)))
    assert(journalBytes, 'an entry names a journal that its folder does not have')
    const room = escapedBytesMax * (end(12) - start(0)) + journalBytes.length + fixedBytesMax + 4096
    if (room > this.#entryRoom.length) this.#entryRoom = new Uint8Array(2 * room)
    const out = this.#entryRoom

    let at = writePiece(out, 0, entry)
    at = writePlain(out, at, bytes, start(0), end(0))
    at = writePiece(out, at, entryDate)
    at = writePlain(out, at, bytes, start(1), end(1))
    at = writePiece(out, at, entryDueDate)
    at = writeDateOrNull(out, at, bytes, start(2), end(2))
    at = writePiece(out, at, currency)
    at = writePlain(out, at, bytes, start(3), end(3))
    at = writePiece(out, at, quoteMark)
    if (!isNull(bytes, start(4), end(4))) {
      at = writePiece(out, at, rate)
      at = writePlain(out, at, bytes, start(4), end(4))
    }
    at = writePiece(out, at, journal)
    at = writePiece(out, at, journalBytes)
    at = writePiece(out, at, source)
    at = writePlain(out, at, bytes, start(6), end(6))
    at = writePiece(out, at, thirdParty)
    at = this.#writeThirdParty(out, at, bytes, start(7), end(7))
    at = writePiece(out, at, partnerMetadata)
    at = writePartnerMetadata(out, at, bytes, start(8), end(8))
    at = writePiece(out, at, comment)
    at = writeTextOrNull(out, at, bytes, start(9), end(9))
    at = writePiece(out, at, createdAt)
    at = writePlain(out, at, bytes, start(10), end(10))
    at = writePiece(out, at, accountedAt)
    at = writePlain(out, at, bytes, start(11), end(11))
    at = writePiece(out, at, entryAttachments)
    at = writeAttachments(out, at, bytes, start(12), end(12))
    at = writePiece(out, at, attachments)
    this.#entry = out.subarray(0, at)
  }

  /** Bytes that the movement of this row may need, at the most. */
  bytesMax(fields: Int32Array, base: number): number {
    const rowBytes = fields[base + movementColumns.length]! - fields[base]!
    const shareBytes = fields[base + 12]! - fields[base + 11]!
    return (
      escapedBytesMax * rowBytes +
      this.#entry.length +
      this.#dictionary.fragmentBytesMax +
      (shareBytes / shareCharactersMin + 1) * this.#dictionary.shareBytesMax +
      fixedBytesMax
    )
  }

  /** Writes one movement of the entry taken last. Fields: {@link movementColumns}, from `base` on. */
  write(out: Uint8Array, at: number, bytes: Uint8Array, fields: Int32Array, base: number): number {
    const idStart = fields[base + 1]!
    const descriptionStart = fields[base + 2]!
    const dueDateStart = fields[base + 3]!
    const freeNumberStart = fields[base + 4]!
    const invoiceNumberStart = fields[base + 5]!
    const debitStart = fields[base + 6]!
    const creditStart = fields[base + 7]!
    const attachmentsStart = fields[base + 8]!
    const accountStart = fields[base + 9]!
    const paymentStart = fields[base + 10]!

    at = writePiece(out, at, open)
    at = writePlain(out, at, bytes, idStart, descriptionStart - 1)
    at = writePiece(out, at, description)
    at = writeText(out, at, bytes, descriptionStart, dueDateStart - 1)
    if (
      isNull(bytes, dueDateStart, freeNumberStart - 1) &&
      isNull(bytes, freeNumberStart, invoiceNumberStart - 1)
    ) {
      at = writePiece(out, at, noDatesInvoiceNumber)
    } else {
      at = writePiece(out, at, dueDate)
      at = writeDateOrNull(out, at, bytes, dueDateStart, freeNumberStart - 1)
      at = writePiece(out, at, freeNumber)
      at = writeTextOrNull(out, at, bytes, freeNumberStart, invoiceNumberStart - 1)
      at = writePiece(out, at, invoiceNumber)
    }
    at = writeText(out, at, bytes, invoiceNumberStart, debitStart - 1)
    at = writeValue(out, at, bytes, debitStart, creditStart - 1, creditStart, attachmentsStart - 1)
    at = writePiece(out, at, this.#entry)
    at = writeAttachments(out, at, bytes, attachmentsStart, accountStart - 1)
    at = writePiece(out, at, account)
    const accountBytes = this.#dictionary.accounts.get(readId(bytes, accountStart, paymentStart - 1))
    assert(accountBytes, 'a movement names an account that its folder does not have')
    at = writePiece(out, at, accountBytes)
    return this.#writeTail(out, at, bytes, fields, base)
  }

  #writeTail(out: Uint8Array, at: number, bytes: Uint8Array, fields: Int32Array, base: number): number {
    const paymentStart = fields[base + 10]!
    const sharesStart = fields[base + 11]!
    const stateStart = fields[base + 12]!
    const codeStart = fields[base + 13]!
    const codeEnd = fields[base + 14]! - 1
    const paymentless = isNull(bytes, paymentStart, sharesStart - 1)
    const shareless = isNull(bytes, sharesStart, stateStart - 1)
    const state = bytes[stateStart]
    if (paymentless && shareless && state === letterN) return writePiece(out, at, nothingMore)

    at = writePiece(out, at, payment)
    if (paymentless) at = writeNull(out, at)
    else {
      const paymentBytes = this.#dictionary.payments.get(readId(bytes, paymentStart, sharesStart - 1))
      assert(paymentBytes, 'a movement names a payment that its folder does not have')
      at = writePiece(out, at, paymentBytes)
    }
    at = writePiece(out, at, analytics)
    if (!shareless) at = this.#writeShares(out, at, bytes, sharesStart, stateStart - 1)
    if (state === letterN) return writePiece(out, at, letteringNone)
    at = writePiece(out, at, state === letterP ? letteringPartial : letteringComplete)
    at = writeText(out, at, bytes, codeStart, codeEnd)
    return writePiece(out, at, close)
  }

  /** Shares of one axis stand together in the row: `{section,amount,rate,section,amount,rate}`. */
  #writeShares(out: Uint8Array, at: number, bytes: Uint8Array, start: number, end: number): number {
    let axisId = 0
    for (let i = start + 1; i < end; ) {
      const idEnd = endOfNumber(bytes, i)
      const amountEnd = endOfNumber(bytes, idEnd + 1)
      const rateEnd = endOfNumber(bytes, amountEnd + 1)
      const section = this.#dictionary.sections.get(readId(bytes, i, idEnd))
      assert(section, 'an analytic share names a section that its folder does not have')
      if (section.axisId !== axisId) {
        if (axisId !== 0) at = writePiece(out, at, nextAxis)
        at = writePiece(out, at, section.axis)
        axisId = section.axisId
      } else at = writePiece(out, at, comma)
      at = writePiece(out, at, section.head)
      at = writeDecimal(out, at, bytes, idEnd + 1, amountEnd, moneyDecimals)
      at = writePiece(out, at, shareRate)
      at = writeDecimal(out, at, bytes, amountEnd + 1, rateEnd, rateDecimals)
      at = writePiece(out, at, section.tail)
      i = rateEnd + 1
    }
    return axisId === 0 ? at : writePiece(out, at, lastAxis)
  }

  #writeThirdParty(out: Uint8Array, at: number, bytes: Uint8Array, start: number, end: number): number {
    if (isNull(bytes, start, end)) return writeNull(out, at)
    const thirdPartyBytes = this.#dictionary.thirdParties.get(readId(bytes, start, end))
    assert(thirdPartyBytes, 'an entry names a third party that is not registered')
    return writePiece(out, at, thirdPartyBytes)
  }
}

/**
 * `,"value":{"credit":…,"debit":…,"amount":…`, left open. The amount is credit minus debit; one of the two is zero
 * (a CHECK of the table says so), so it is a copy of the other, with its sign turned for a debit.
 */
function writeValue(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  debitStart: number,
  debitEnd: number,
  creditStart: number,
  creditEnd: number,
): number {
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

/** `{"<file name>":{"type":"URL","value":"<address>"}}`. Rare: two entries in a hundred have one. */
function writeAttachments(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  if (isNull(bytes, start, end)) return writePiece(out, at, emptyObject)
  const addresses: Record<string, string> = JSON.parse(decodeCopyText(bytes, start, end))
  const files = Object.entries(addresses).map(([name, value]) => [name, { type: 'URL', value }])
  return writePiece(out, at, bytesOf(JSON.stringify(Object.fromEntries(files))))
}

function writePartnerMetadata(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  if (isNull(bytes, start, end)) return writeNull(out, at)
  const { partnerId, json } = parseExactly(decodeCopyText(bytes, start, end))
  return writePiece(out, at, bytesOf(JSON.stringify({ partnerId, json })))
}

/** What TypeScript's library does not know yet: the digits of a parsed number, and a number printed from digits. */
interface ExactJson {
  parse(text: string, revive: (key: string, value: unknown, context: { source: string }) => unknown): unknown
  rawJSON(text: string): unknown
}

/** A partner's numbers keep their digits: as a double, 9007199254740993 would come back as …992, and 0.10 as 0.1. */
function parseExactly(text: string): { partnerId: string; json: unknown } {
  const exact = JSON as unknown as ExactJson
  const parsed = exact.parse(text, (_key, value, { source }) =>
    typeof value === 'number' ? exact.rawJSON(source) : value,
  )
  return parsed as { partnerId: string; json: unknown }
}

function endOfNumber(bytes: Uint8Array, from: number): number {
  let at = from
  while (bytes[at] !== commaByte && bytes[at] !== braceClose) at++
  return at
}
