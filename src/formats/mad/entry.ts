/**
 * Renders an entry as JSON bytes from the fields of its row, in one of two forms: around its movements
 * (docs/spec/resources.md#entry), or inside a movement (docs/spec/resources.md#movement). The forms differ in the order
 * of their members.
 */

import { offsetsOf } from '../rows.ts'
import { cited, type Output, pieceOf, type Rows, writeField, writeJson, writePiece } from '../text-bytes.ts'
import type { Dictionary } from './dictionary.ts'
import { writeAttachments, writeDateOrNull, writeNull, writeTextOrNull } from './json-bytes.ts'

/** The columns of an entry that is written inside each of its movements. */
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
  'created_epoch',
  'accounted_at',
  'attachments',
] as const

/**
 * The columns that an entry around its movements needs. They begin with the same columns, so one set of offsets serves
 * both forms.
 */
export const wholeEntryColumns = [...entryColumns, 'validated_at'] as const
const entry = offsetsOf(wholeEntryColumns)

const open = pieceOf('{"producerId":"')
const idToDate = pieceOf('","date":"')
const idToAttachments = pieceOf('","attachments":')
const attachmentsToDate = pieceOf(',"date":"')
const dateToDueDate = pieceOf('","dueDate":')
const toCurrency = pieceOf(',"currency":{"code":"')
const quoteMark = pieceOf('"')
const toRate = pieceOf(',"rate":')
const currencyToJournal = pieceOf('},"journal":')
const toJournal = pieceOf(',"journal":')
const currencyToMovements = pieceOf('},"movements":[')
const toProperties = pieceOf(',"additionalProducerProperties":{"source":{"name":"')
const movementsToProperties = pieceOf('],"additionalProducerProperties":{"source":{"name":"')
const toThirdParty = pieceOf('","thirdParty":')
const toPartnerMetadata = pieceOf('},"partnerMetadata":')
const toComment = pieceOf(',"comment":')
const toCreatedAt = pieceOf(',"createdAt":')
const toAccountedAt = pieceOf(',"accountedAt":"')
const toValidationDate = pieceOf('","validationDate":')
const propertiesToAttachments = pieceOf('"},"attachments":')
const closeBoth = pieceOf('}}')

/** The most bytes of all fixed pieces of an entry together. */
const fixedBytesMax = 1024
/**
 * The most bytes that one byte of a field becomes: a control character becomes \u0001, six bytes. This also covers the
 * `type` and `value` of a file.
 */
const escapedBytesMax = 6

export class EntryRenderer {
  readonly #dictionary: Dictionary

  constructor(dictionary: Dictionary) {
    this.#dictionary = dictionary
  }

  /** The most bytes that this entry needs without its movements. */
  bytesMax(rows: Rows): number {
    return (
      escapedBytesMax * rows.bytesIn(entryColumns.length) +
      this.#dictionary.entryFragmentBytesMax +
      fixedBytesMax
    )
  }

  /** Writes the `entry` of a movement without its closing brace. @param rows {@link entryColumns} */
  writeInMovement(out: Output, at: number, rows: Rows): number {
    at = writePiece(out, at, open)
    at = writeField(out, at, rows, entry.id)
    at = writePiece(out, at, idToDate)
    at = writeDates(out, at, rows)
    at = writeCurrency(out, at, rows)
    at = writePiece(out, at, currencyToJournal)
    at = this.#writeJournal(out, at, rows)
    at = writePiece(out, at, toProperties)
    at = this.#writeProperties(out, at, rows)
    at = writePiece(out, at, propertiesToAttachments)
    return writeAttachments(out, at, rows, entry.attachments)
  }

  /** Writes the entry up to its first movement. @param rows {@link wholeEntryColumns} */
  writeHead(out: Output, at: number, rows: Rows): number {
    at = writePiece(out, at, open)
    at = writeField(out, at, rows, entry.id)
    at = writePiece(out, at, idToAttachments)
    at = writeAttachments(out, at, rows, entry.attachments)
    at = writePiece(out, at, attachmentsToDate)
    at = writeDates(out, at, rows)
    at = writePiece(out, at, toJournal)
    at = this.#writeJournal(out, at, rows)
    at = writeCurrency(out, at, rows)
    return writePiece(out, at, currencyToMovements)
  }

  /** Writes the end of the entry, after its last movement. */
  writeTail(out: Output, at: number, rows: Rows): number {
    at = writePiece(out, at, movementsToProperties)
    at = this.#writeProperties(out, at, rows)
    at = writePiece(out, at, toValidationDate)
    at = writeDateOrNull(out, at, rows, entry.validated_at)
    return writePiece(out, at, closeBoth)
  }

  #writeJournal(out: Output, at: number, rows: Rows): number {
    return writePiece(out, at, cited(this.#dictionary.journals, rows.id(entry.journal_id), 'journal'))
  }

  /** Writes the members from the name of the source to the date of accounting, without the last quote. */
  #writeProperties(out: Output, at: number, rows: Rows): number {
    at = writeField(out, at, rows, entry.source)
    at = writePiece(out, at, toThirdParty)
    at = this.#writeThirdParty(out, at, rows, entry.third_party_id)
    at = writePiece(out, at, toPartnerMetadata)
    at = rows.isNull(entry.partner_metadata)
      ? writeNull(out, at)
      : writeJson(out.bytes, at, rows, entry.partner_metadata)
    at = writePiece(out, at, toComment)
    at = writeTextOrNull(out, at, rows, entry.comment)
    at = writePiece(out, at, toCreatedAt)
    at = writeField(out, at, rows, entry.created_epoch)
    at = writePiece(out, at, toAccountedAt)
    return writeField(out, at, rows, entry.accounted_at)
  }

  #writeThirdParty(out: Output, at: number, rows: Rows, field: number): number {
    if (rows.isNull(field)) return writeNull(out, at)
    return writePiece(out, at, cited(this.#dictionary.thirdParties, rows.id(field), 'third party'))
  }
}

/** Writes `date`, without its first quote, and `dueDate`. */
function writeDates(out: Output, at: number, rows: Rows): number {
  at = writeField(out, at, rows, entry.date)
  at = writePiece(out, at, dateToDueDate)
  return writeDateOrNull(out, at, rows, entry.due_date)
}

/** Writes `,"currency":{…` without the closing brace. */
function writeCurrency(out: Output, at: number, rows: Rows): number {
  at = writePiece(out, at, toCurrency)
  at = writeField(out, at, rows, entry.currency)
  at = writePiece(out, at, quoteMark)
  if (rows.isNull(entry.rate)) return at
  at = writePiece(out, at, toRate)
  return writeField(out, at, rows, entry.rate)
}
