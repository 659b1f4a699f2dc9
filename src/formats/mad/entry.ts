/**
 * Renders an entry as JSON bytes from the fields of its row: as a whole around its movements
 * (docs/spec/resources.md#entry), or inside a movement (docs/spec/resources.md#movement). The two forms differ in the
 * order of their members.
 */

import { strict as assert } from 'node:assert'
import { offsetsOf } from '../columns.ts'
import { bytesOf, isNull, readId, writeJson, writePiece, writePlain } from '../text-bytes.ts'
import { writeAttachments } from './attachments.ts'
import type { Dictionary } from './dictionary.ts'
import { writeDateOrNull, writeNull, writeTextOrNull } from './json-bytes.ts'

/** The columns of an entry row that is rendered inside its movements. */
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

/** The columns of an entry around its movements. They begin with the same ones, so one set of offsets serves both. */
export const wholeEntryColumns = [...entryColumns, 'validated_at'] as const
export const entryOffsets = offsetsOf(wholeEntryColumns)
const of = entryOffsets

const open = bytesOf('{"producerId":"')
const idToDate = bytesOf('","date":"')
const idToAttachments = bytesOf('","attachments":')
const attachmentsToDate = bytesOf(',"date":"')
const dateToDueDate = bytesOf('","dueDate":')
const toCurrency = bytesOf(',"currency":{"code":"')
const quoteMark = bytesOf('"')
const toRate = bytesOf(',"rate":')
const currencyToJournal = bytesOf('},"journal":')
const toJournal = bytesOf(',"journal":')
const currencyToMovements = bytesOf('},"movements":[')
const toProperties = bytesOf(',"additionalProducerProperties":{"source":{"name":"')
const movementsToProperties = bytesOf('],"additionalProducerProperties":{"source":{"name":"')
const toThirdParty = bytesOf('","thirdParty":')
const toPartnerMetadata = bytesOf('},"partnerMetadata":')
const toComment = bytesOf(',"comment":')
const toCreatedAt = bytesOf(',"createdAt":')
const toAccountedAt = bytesOf(',"accountedAt":"')
const toValidationDate = bytesOf('","validationDate":')
const propertiesToAttachments = bytesOf('"},"attachments":')
const closeEntry = bytesOf('}')
const closeBoth = bytesOf('}}')

/** Upper bound of all fixed pieces of an entry together. */
const fixedBytesMax = 1024
/** A control character of one byte becomes \u0001, six bytes. This also covers a file's `type` and `value`. */
const escapedBytesMax = 6

export class EntryRenderer {
  readonly #dictionary: Dictionary

  constructor(dictionary: Dictionary) {
    this.#dictionary = dictionary
  }

  /** Upper bound of the bytes of this entry without its movements. */
  bytesMax(fields: Int32Array, base: number): number {
    const rowBytes = fields[base + entryColumns.length]! - fields[base]!
    return escapedBytesMax * rowBytes + this.#dictionary.entryFragmentBytesMax + fixedBytesMax
  }

  /** Writes the value of a movement's `entry`. Fields: {@link entryColumns}, starting at `base`. */
  writeInMovement(out: Uint8Array, at: number, bytes: Uint8Array, fields: Int32Array, base: number): number {
    at = writePiece(out, at, open)
    at = writePlain(out, at, bytes, fields[base + of.id]!, fields[base + of.id + 1]! - 1)
    at = writePiece(out, at, idToDate)
    at = writeDates(out, at, bytes, fields, base)
    at = writeCurrency(out, at, bytes, fields, base)
    at = writePiece(out, at, currencyToJournal)
    at = this.#writeJournal(out, at, bytes, fields, base)
    at = writePiece(out, at, toProperties)
    at = this.#writeProperties(out, at, bytes, fields, base)
    at = writePiece(out, at, propertiesToAttachments)
    at = writeAttachmentsOf(out, at, bytes, fields, base)
    return writePiece(out, at, closeEntry)
  }

  /** Writes the entry up to its first movement. Fields: {@link wholeEntryColumns}, starting at `base`. */
  writeHead(out: Uint8Array, at: number, bytes: Uint8Array, fields: Int32Array, base: number): number {
    at = writePiece(out, at, open)
    at = writePlain(out, at, bytes, fields[base + of.id]!, fields[base + of.id + 1]! - 1)
    at = writePiece(out, at, idToAttachments)
    at = writeAttachmentsOf(out, at, bytes, fields, base)
    at = writePiece(out, at, attachmentsToDate)
    at = writeDates(out, at, bytes, fields, base)
    at = writePiece(out, at, toJournal)
    at = this.#writeJournal(out, at, bytes, fields, base)
    at = writeCurrency(out, at, bytes, fields, base)
    return writePiece(out, at, currencyToMovements)
  }

  /** Writes the end of the entry, after its last movement. Fields as for {@link writeHead}. */
  writeTail(out: Uint8Array, at: number, bytes: Uint8Array, fields: Int32Array, base: number): number {
    at = writePiece(out, at, movementsToProperties)
    at = this.#writeProperties(out, at, bytes, fields, base)
    at = writePiece(out, at, toValidationDate)
    at = writeDateOrNull(
      out,
      at,
      bytes,
      fields[base + of.validated_at]!,
      fields[base + of.validated_at + 1]! - 1,
    )
    return writePiece(out, at, closeBoth)
  }

  #writeJournal(out: Uint8Array, at: number, bytes: Uint8Array, fields: Int32Array, base: number): number {
    const named = readId(bytes, fields[base + of.journal_id]!, fields[base + of.journal_id + 1]! - 1)
    const journalBytes = this.#dictionary.journals.get(named)
    if (!journalBytes) assert.fail('an entry names a journal that its folder does not have')
    return writePiece(out, at, journalBytes)
  }

  /** From the source's name to the date of accounting, left open. */
  #writeProperties(out: Uint8Array, at: number, bytes: Uint8Array, fields: Int32Array, base: number): number {
    const start = (column: number) => fields[base + column]!
    const end = (column: number) => fields[base + column + 1]! - 1
    at = writePlain(out, at, bytes, start(of.source), end(of.source))
    at = writePiece(out, at, toThirdParty)
    at = this.#writeThirdParty(out, at, bytes, start(of.third_party_id), end(of.third_party_id))
    at = writePiece(out, at, toPartnerMetadata)
    at = isNull(bytes, start(of.partner_metadata), end(of.partner_metadata))
      ? writeNull(out, at)
      : writeJson(out, at, bytes, start(of.partner_metadata), end(of.partner_metadata))
    at = writePiece(out, at, toComment)
    at = writeTextOrNull(out, at, bytes, start(of.comment), end(of.comment))
    at = writePiece(out, at, toCreatedAt)
    at = writePlain(out, at, bytes, start(of.created_epoch), end(of.created_epoch))
    at = writePiece(out, at, toAccountedAt)
    return writePlain(out, at, bytes, start(of.accounted_at), end(of.accounted_at))
  }

  #writeThirdParty(out: Uint8Array, at: number, bytes: Uint8Array, start: number, end: number): number {
    if (isNull(bytes, start, end)) return writeNull(out, at)
    const thirdPartyBytes = this.#dictionary.thirdParties.get(readId(bytes, start, end))
    if (!thirdPartyBytes) assert.fail('an entry names a third party that is not registered')
    return writePiece(out, at, thirdPartyBytes)
  }
}

/** Writes `date`, without its first quote, and `dueDate`. */
function writeDates(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  fields: Int32Array,
  base: number,
): number {
  at = writePlain(out, at, bytes, fields[base + of.date]!, fields[base + of.date + 1]! - 1)
  at = writePiece(out, at, dateToDueDate)
  return writeDateOrNull(out, at, bytes, fields[base + of.due_date]!, fields[base + of.due_date + 1]! - 1)
}

/** Writes `,"currency":{…`, left open. */
function writeCurrency(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  fields: Int32Array,
  base: number,
): number {
  at = writePiece(out, at, toCurrency)
  at = writePlain(out, at, bytes, fields[base + of.currency]!, fields[base + of.currency + 1]! - 1)
  at = writePiece(out, at, quoteMark)
  const rateStart = fields[base + of.rate]!
  const rateEnd = fields[base + of.rate + 1]! - 1
  if (isNull(bytes, rateStart, rateEnd)) return at
  at = writePiece(out, at, toRate)
  return writePlain(out, at, bytes, rateStart, rateEnd)
}

function writeAttachmentsOf(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  fields: Int32Array,
  base: number,
): number {
  return writeAttachments(
    out,
    at,
    bytes,
    fields[base + of.attachments]!,
    fields[base + of.attachments + 1]! - 1,
  )
}
