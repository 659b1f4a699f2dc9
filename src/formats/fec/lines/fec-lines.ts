/**
 * Renders the lines of a FEC from rows of COPY, bytes to bytes (docs/spec/fec.md#fields): one line per movement.
 *
 * A field is written as it was filed, on its line or on all lines of its entry; otherwise it is derived from the
 * ledger. Fields that the lines of an entry share are laid out once per entry. Accounts and journals come rendered, by
 * id. Only a line with a filed field of its own is put together field by field, which takes three times as long. Only
 * filed fields, and texts that the encoding cannot hold, allocate memory. 100,000 lines take 0.14 s of processor in the
 * thread, and 0.3 s if all entries and a third of the lines have filed fields. test/support/plain/plain-fec-file.ts
 * does the same with objects and strings; tests compare the two byte for byte.
 */
import { ascii } from '../../ascii.ts'
import { offsetsOf } from '../../rows.ts'
import {
  cited,
  longestOf,
  type Output,
  outputOf,
  type Rows,
  withRoom,
  writeBytes,
  writeCents,
  writePiece,
  writeRange,
} from '../../text-bytes.ts'
import { isMandatory, type StandardColumn, standardColumns } from '../columns.ts'
import type { FecDictionary, Fields } from './dictionary.ts'
import { type FieldWriter, growthMax } from './field-writer.ts'

const { carriageReturn, lineFeed, minus, tab } = ascii

export const fecEntryColumns = ['id', 'journal_id', 'date', 'validated_at', 'number', 'filed'] as const
export const fecMovementColumns = [
  'entry_id',
  'account_id',
  'invoice_number',
  'description',
  'debit',
  'credit',
  'lettering_code',
  'filed',
] as const

const entry = offsetsOf(fecEntryColumns)
const movement = offsetsOf(fecMovementColumns)

const indexOf = Object.fromEntries(standardColumns.map((column, index) => [column, index])) as Record<
  StandardColumn,
  number
>
const {
  JournalLib: journalLib,
  EcritureNum: entryNumber,
  EcritureDate: entryDate,
  CompteNum: accountNumber,
  CompAuxLib: auxiliaryName,
  PieceRef: pieceRef,
  PieceDate: pieceDate,
  EcritureLib: description,
  Debit: debit,
  Credit: credit,
  EcritureLet: lettering,
  DateLet: letteringDate,
  ValidDate: validDate,
} = indexOf

/** Columns whose value belongs to the whole entry, unless one of its lines has filed another value. */
const isOfEntry = (column: number): boolean =>
  column < accountNumber || column === pieceDate || column >= letteringDate

/** The most bytes of a line besides its texts: separators, amounts with leading zeros, the line end. */
const fixedBytesMax = 64

export class FecLines {
  readonly entryColumns = fecEntryColumns
  readonly movementColumns = fecMovementColumns
  readonly #dictionary: FecDictionary
  readonly #writer: FieldWriter
  /** The columns of the standard, then the further ones. */
  readonly #columns: readonly string[]
  readonly #entryColumns: readonly number[]
  readonly #isMandatory: readonly boolean[]
  readonly #accountBytesMax: number
  /** The fields of the current entry, each with a tab after it: the first four, PieceDate, DateLet and so on. */
  #laidOut = outputOf(new Uint8Array(1024))
  readonly #starts: Int32Array
  readonly #ends: Int32Array
  readonly #replacedIn: Int32Array
  #head = this.#laidOut.bytes
  #date = this.#laidOut.bytes
  #tail = this.#laidOut.bytes
  /** Counts of blank mandatory fields, and of replaced characters, in the fields laid out for the entry. */
  #blankFields = 0
  #replaced = 0
  /** The fields that were filed once for all lines of the entry. */
  #filed: FiledFields | undefined
  /** Whether these fields include columns of movements. */
  #isMixed = false
  #filedBytesMax = 0
  /** For each journal, the last number given to an entry that had none. */
  readonly #numbers = new Map<number, number>()
  /**
   * `blankFields` counts mandatory fields other than ValidDate. `earlierImports` counts entries that an earlier version
   * imported without their EcritureNum: the file numbers them.
   */
  readonly #notes = { blankValidDates: 0, blankFields: 0, earlierImports: 0 }

  /** @param furtherColumns the names of the further columns */
  constructor(dictionary: FecDictionary, writer: FieldWriter, furtherColumns: readonly string[]) {
    this.#dictionary = dictionary
    this.#writer = writer
    this.#columns = [...standardColumns, ...furtherColumns]
    this.#entryColumns = this.#columns.map((_, column) => column).filter(isOfEntry)
    this.#isMandatory = this.#columns.map((name) => isMandatory(name) && name !== 'ValidDate')
    this.#starts = new Int32Array(this.#columns.length)
    this.#ends = new Int32Array(this.#columns.length)
    this.#replacedIn = new Int32Array(this.#columns.length)
    this.#accountBytesMax = longestOf(dictionary.accounts.values())
    writer.replaced = 0
  }

  /** Counts of blank and altered fields in the lines written so far. */
  get notes() {
    return { ...this.#notes, replacedCharacters: this.#writer.replaced }
  }

  /** The names of the columns, with the line end. */
  header(): Uint8Array<ArrayBuffer> {
    const room = new Uint8Array(this.#columns.reduce((sum, name) => sum + growthMax * name.length * 3 + 2, 2))
    let at = 0
    for (const name of this.#columns) {
      at = this.#writer.text(room, at, name)
      room[at++] = tab
    }
    return room.subarray(0, endLine(room, at))
  }

  /** Sets the entry of the movements that follow, and lays out the fields that its lines share. */
  setEntry(rows: Rows): void {
    const journalId = rows.id(entry.journal_id)
    const journal = cited(this.#dictionary.journals, journalId, 'journal')
    this.#setFiled(rows)
    const textBytesMax = journal.length + growthMax * rows.bytesIn(fecEntryColumns.length)
    this.#laidOut = withRoom(this.#laidOut, textBytesMax + fixedBytesMax + this.#columns.length)
    const { bytes } = this.#laidOut
    const writer = this.#writer
    this.#blankFields = 0
    const before = writer.replaced
    let at = 0
    for (const column of this.#entryColumns) {
      const replacedBefore = writer.replaced
      this.#starts[column] = at
      const filed = this.#filed && textIn(this.#filed, this.#columns[column]!)
      if (filed !== undefined) at = writer.text(bytes, at, filed)
      else if (column <= journalLib) at = this.#copyFrom(journal, column, this.#laidOut, at)
      else if (column === entryNumber) at = this.#writeNumber(at, rows, journalId)
      else if (column === entryDate || column === pieceDate) at = writeDay(bytes, at, rows, entry.date)
      else if (column === validDate) at = writeDay(bytes, at, rows, entry.validated_at)
      this.#ends[column] = at
      this.#replacedIn[column] = writer.replaced - replacedBefore
      if (this.#isMandatory[column] && at === this.#starts[column]) this.#blankFields++
      bytes[at++] = tab
    }
    // Replaced characters are counted for each line, not here for the entry.
    this.#replaced = writer.replaced - before
    writer.replaced = before
    at = endLine(bytes, at)
    this.#head = bytes.subarray(0, this.#starts[pieceDate])
    this.#date = bytes.subarray(this.#starts[pieceDate], this.#starts[letteringDate])
    this.#tail = bytes.subarray(this.#starts[letteringDate], at)
  }

  #setFiled(rows: Rows): void {
    this.#filed = filedFields(rows, entry.filed)
    this.#isMixed = false
    if (!this.#filed) return
    this.#filedBytesMax = growthMax * rows.bytesIn(1, entry.filed)
    for (let column = accountNumber; column < letteringDate; column++)
      if (!isOfEntry(column) && textIn(this.#filed, this.#columns[column]!) !== undefined)
        this.#isMixed = true
  }

  /** Copies a field of a journal or account, and counts its replaced characters. */
  #copyFrom(fields: Fields, index: number, out: Output, at: number): number {
    this.#writer.replaced += fields.replaced[index]!
    return writeRange(out, at, fields, fields.starts[index]!, fields.starts[index + 1]! - 1)
  }

  /** Gives an entry without a number the next number of its journal, in this file only. */
  #writeNumber(at: number, rows: Rows, journalId: number): number {
    const { bytes } = this.#laidOut
    if (!rows.isNull(entry.number)) return this.#writer.copy(bytes, at, rows, entry.number)
    const number = (this.#numbers.get(journalId) ?? 0) + 1
    this.#numbers.set(journalId, number)
    this.#notes.earlierImports++
    return this.#writer.text(bytes, at, String(number))
  }

  /** The most bytes that the line of this row can have. */
  bytesMax(rows: Rows): number {
    return (
      this.#head.length +
      this.#date.length +
      this.#tail.length +
      this.#accountBytesMax +
      growthMax * rows.bytesIn(fecMovementColumns.length) +
      (this.#isMixed ? this.#filedBytesMax : 0) +
      fixedBytesMax
    )
  }

  /** Writes a movement of the current entry. */
  write(out: Output, at: number, rows: Rows): number {
    const account = cited(this.#dictionary.accounts, rows.id(movement.account_id), 'account')
    const filed = filedFields(rows, movement.filed)
    if (filed || this.#isMixed) return this.#writeFiled(out, at, rows, account, filed)
    const { bytes } = out
    at = writeBytes(out, at, this.#head)
    at = writePiece(out, at, account)
    const pieceEnd = this.#derive(pieceRef, bytes, at, rows)
    let blanks = pieceEnd === at ? 1 : 0
    bytes[pieceEnd] = tab
    at = writeBytes(out, pieceEnd + 1, this.#date)
    const textEnd = this.#derive(description, bytes, at, rows)
    if (textEnd === at) blanks++
    bytes[textEnd] = tab
    at = this.#derive(debit, bytes, textEnd + 1, rows)
    bytes[at++] = tab
    at = this.#derive(credit, bytes, at, rows)
    bytes[at++] = tab
    at = this.#derive(lettering, bytes, at, rows)
    bytes[at++] = tab
    this.#writer.replaced += this.#replaced + account.replacedInAll
    this.#notes.blankFields += this.#blankFields + account.blankFields + blanks
    if (this.#starts[validDate] === this.#ends[validDate]) this.#notes.blankValidDates++
    return writeBytes(out, at, this.#tail)
  }

  #writeFiled(out: Output, at: number, rows: Rows, account: Fields, own: FiledFields | undefined): number {
    for (let column = 0; column < this.#columns.length; column++) {
      const start = at
      const name = this.#columns[column]!
      const ofThisEntry = isOfEntry(column)
      const filed =
        (own && textIn(own, name)) ?? (ofThisEntry || !this.#filed ? undefined : textIn(this.#filed, name))
      if (filed !== undefined) at = this.#writer.text(out.bytes, at, filed)
      else if (ofThisEntry) {
        this.#writer.replaced += this.#replacedIn[column]!
        at = writeRange(out, at, this.#laidOut, this.#starts[column]!, this.#ends[column]!)
      } else if (column <= auxiliaryName) at = this.#copyFrom(account, column - accountNumber, out, at)
      else at = this.#derive(column, out.bytes, at, rows)
      if (at === start && column === validDate) this.#notes.blankValidDates++
      else if (at === start && this.#isMandatory[column]) this.#notes.blankFields++
      out.bytes[at++] = tab
    }
    return endLine(out.bytes, at)
  }

  /** Writes a field of a movement from the ledger. */
  #derive(column: number, out: Uint8Array, at: number, rows: Rows): number {
    const field = movementFields[column]!
    if (column === debit || column === credit)
      return writeCents(out, at, rows.bytes, rows.start(field), rows.end(field))
    return rows.isNull(field) ? at : this.#writer.copy(out, at, rows, field)
  }
}

/** For each column that is read from a movement's row: the field of the row. */
const movementFields: Readonly<Record<number, number>> = {
  [pieceRef]: movement.invoice_number,
  [description]: movement.description,
  [debit]: movement.debit,
  [credit]: movement.credit,
  [lettering]: movement.lettering_code,
}

/** Fields as filed, by column name. Other members are ignored. */
type FiledFields = Readonly<Record<string, unknown>>

/** Undefined if nothing is filed. */
function filedFields(rows: Rows, field: number): FiledFields | undefined {
  return rows.isNull(field) ? undefined : JSON.parse(rows.text(field))
}

/** Checks the type, because a column may have the name of a member that every object inherits. */
function textIn(filed: FiledFields, column: string): string | undefined {
  const text = filed[column]
  return typeof text === 'string' ? text : undefined
}

/** Replaces the tab before `at` with the line end. */
function endLine(out: Uint8Array, at: number): number {
  out[at - 1] = carriageReturn
  out[at] = lineFeed
  return at + 1
}

/** Writes `2024-02-29` as `20240229`. */
function writeDay(out: Uint8Array, at: number, rows: Rows, field: number): number {
  const end = rows.end(field)
  for (let i = rows.start(field); i < end; i++) if (rows.bytes[i] !== minus) out[at++] = rows.bytes[i]!
  return at
}
