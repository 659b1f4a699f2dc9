/**
 * What a FEC says of an entry and no other ledger has: the number of the entry in its journal, and of a movement the date
 * of its document and its third-party account (docs/spec/exports.md#extended-entries). Written into an entry that is
 * already rendered, in place of the braces that close it.
 */

import { offsetsOf, type Rows } from '../columns.ts'
import type { AuxiliaryRow } from '../rows.ts'
import { idOf, isNullField, renderedById } from '../text-bytes.ts'
import { wholeEntryColumns } from './entry.ts'
import { writeNull, writeText } from './json-bytes.ts'
import { movementColumns } from './movement.ts'
import { type Output, type Piece, pieceOf, writePiece } from './words.ts'

/** Blank where the FEC was blank; null where nothing was filed. */
const filedColumns = ['filed_piece_day', 'filed_auxiliary_number', 'filed_auxiliary_name'] as const

export const extendedEntryColumns = [...wholeEntryColumns, 'number', ...filedColumns] as const
export const extendedMovementColumns = [...movementColumns, ...filedColumns] as const

const ofEntry = offsetsOf(extendedEntryColumns)
const ofMovement = offsetsOf(extendedMovementColumns)

const toNumber = pieceOf(',"ecritureNum":')
const closeBoth = pieceOf('}}')
const toFiled = pieceOf(',"filed":{"pieceDate":')
const toAuxiliaryNumber = pieceOf(',"auxiliaryNumber":')
const toAuxiliaryName = pieceOf(',"auxiliaryName":')
const nothing = pieceOf('null')

/** Upper bound of all fixed pieces that are added to a movement or an entry. */
const fixedBytesMax = 256
/** A control character of one byte becomes \u0001, six bytes. */
const escapedBytesMax = 6

export class FiledRenderer {
  readonly #auxiliaries: ReadonlyMap<number, { number: Piece; name: Piece }>
  readonly #auxiliaryBytesMax: number

  constructor(auxiliaries: readonly AuxiliaryRow[]) {
    this.#auxiliaries = renderedById(auxiliaries, ({ number, name }) => ({
      number: pieceOf(JSON.stringify(number || null)),
      name: pieceOf(JSON.stringify(name || null)),
    }))
    this.#auxiliaryBytesMax = this.#auxiliaries
      .values()
      .reduce((most, { number, name }) => Math.max(most, number.length + name.length), 0)
  }

  /** Upper bound of the bytes that are added to an entry after its movements. */
  entryBytesMax({ fields }: Rows, base: number): number {
    const numberBytes = fields[base + ofEntry.number + 1]! - fields[base + ofEntry.number]!
    return escapedBytesMax * numberBytes + fixedBytesMax
  }

  /** Upper bound of the bytes that are added to a movement. */
  movementBytesMax(movements: Rows, row: number, entries: Rows, base: number): number {
    const filedBytes =
      movements.fields[row + extendedMovementColumns.length]! -
      movements.fields[row + ofMovement.filed_piece_day]! +
      entries.fields[base + extendedEntryColumns.length]! -
      entries.fields[base + ofEntry.filed_piece_day]!
    return escapedBytesMax * filedBytes + this.#auxiliaryBytesMax + fixedBytesMax
  }

  /**
   * Adds `filed` to a movement that ends at `at`, if something was filed with it, with its entry or with its account.
   * What was filed with the movement comes first, then what was filed with the entry.
   */
  writeMovement(out: Output, at: number, movements: Rows, row: number, entries: Rows, base: number): number {
    const auxiliary = this.#auxiliaries.get(idOf(movements, row + ofMovement.account_id))
    const isBare = filedColumns.every(
      (column) =>
        isNullField(movements, row + ofMovement[column]) && isNullField(entries, base + ofEntry[column]),
    )
    if (isBare && !auxiliary) return at
    /** @returns whether the field was filed, and is written */
    const write = (column: (typeof filedColumns)[number]): boolean => {
      const isOwn = !isNullField(movements, row + ofMovement[column])
      const [rows, field] = isOwn ? [movements, row + ofMovement[column]] : [entries, base + ofEntry[column]]
      if (isNullField(rows, field)) return false
      at = writeUnlessBlank(out, at, rows, field)
      return true
    }
    at = writePiece(out, at - 1, toFiled)
    if (!write('filed_piece_day')) at = writeText(out, at, entries, base + ofEntry.date)
    at = writePiece(out, at, toAuxiliaryNumber)
    if (!write('filed_auxiliary_number')) at = writePiece(out, at, auxiliary?.number ?? nothing)
    at = writePiece(out, at, toAuxiliaryName)
    if (!write('filed_auxiliary_name')) at = writePiece(out, at, auxiliary?.name ?? nothing)
    return writePiece(out, at, closeBoth)
  }

  /** Adds `ecritureNum` to the properties of an entry that ends at `at`. */
  writeNumber(out: Output, at: number, entries: Rows, base: number): number {
    at = writePiece(out, at - closeBoth.length, toNumber)
    const number = base + ofEntry.number
    at = isNullField(entries, number) ? writeNull(out, at) : writeText(out, at, entries, number)
    return writePiece(out, at, closeBoth)
  }
}

function writeUnlessBlank(out: Output, at: number, rows: Rows, field: number): number {
  const isBlank = rows.fields[field + 1]! - rows.fields[field]! === 1
  return isBlank ? writeNull(out, at) : writeText(out, at, rows, field)
}
