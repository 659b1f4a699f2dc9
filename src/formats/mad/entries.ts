/**
 * Renders entries around their movements. In extended entries it adds the facts that only a FEC states
 * (docs/spec/exports.md#extended-entries): the number of an entry in its journal, and the date of a movement's document
 * and its third-party account. These facts overwrite the closing braces of entries that are already rendered.
 */
import { type AuxiliaryRow, offsetsOf } from '../rows.ts'
import {
  longestOf,
  type Output,
  type Piece,
  pieceOf,
  type Rows,
  renderedById,
  writePiece,
} from '../text-bytes.ts'
import type { Dictionary } from './dictionary.ts'
import { EntryRenderer, wholeEntryColumns } from './entry.ts'
import { writeNull, writeText, writeTextOrNull } from './json-bytes.ts'
import { MovementRenderer, movementColumns } from './movement.ts'

/** A text is blank where the FEC was blank, and null where nothing was filed. */
const filedColumns = ['filed_piece_day', 'filed_auxiliary_number', 'filed_auxiliary_name'] as const

export const extendedEntryColumns = [...wholeEntryColumns, 'number', ...filedColumns] as const
export const extendedMovementColumns = [...movementColumns, ...filedColumns] as const

const entry = offsetsOf(extendedEntryColumns)
const movement = offsetsOf(extendedMovementColumns)

const toNumber = pieceOf(',"ecritureNum":')
const closeBoth = pieceOf('}}')
const toFiled = pieceOf(',"filed":{"pieceDate":')
const toAuxiliaryNumber = pieceOf(',"auxiliaryNumber":')
const toAuxiliaryName = pieceOf(',"auxiliaryName":')
const nothing = pieceOf('null')

/** The most bytes of all fixed pieces that are added to a movement or an entry. */
const fixedBytesMax = 256
/** The most bytes that one byte of a field becomes: a control character becomes \u0001, six bytes. */
const escapedBytesMax = 6

/** Renders entries in the form of a full export. */
export function entriesFormat(dictionary: Dictionary) {
  const movements = new MovementRenderer(dictionary)
  return {
    entryColumns: wholeEntryColumns,
    movementColumns,
    entry: new EntryRenderer(dictionary),
    bytesMax: (rows: Rows) => movements.bytesMax(rows),
    write: (out: Output, at: number, rows: Rows) => movements.write(out, at, rows),
  }
}

/**
 * Renders entries with the facts that a FEC filed. @param auxiliaries the third-party accounts that it filed for
 * accounts
 */
export function extendedEntriesFormat(dictionary: Dictionary, auxiliaries: readonly AuxiliaryRow[]) {
  const { entry: whole, ...format } = entriesFormat(dictionary)
  const filed = filedOf(auxiliaries)
  return {
    entryColumns: extendedEntryColumns,
    movementColumns: extendedMovementColumns,
    entry: {
      bytesMax: (rows: Rows) =>
        whole.bytesMax(rows) + escapedBytesMax * rows.bytesIn(1, entry.number) + fixedBytesMax,
      writeHead: (out: Output, at: number, rows: Rows) => whole.writeHead(out, at, rows),
      writeTail: (out: Output, at: number, rows: Rows) => {
        at = writePiece(out, whole.writeTail(out, at, rows) - closeBoth.length, toNumber)
        return writePiece(out, writeTextOrNull(out, at, rows, entry.number), closeBoth)
      },
    },
    bytesMax: (movements: Rows, entries: Rows) =>
      format.bytesMax(movements) + filed.bytesMax(movements, entries),
    write: (out: Output, at: number, movements: Rows, entries: Rows) =>
      filed.write(out, format.write(out, at, movements), movements, entries),
  }
}

function filedOf(auxiliaries: readonly AuxiliaryRow[]) {
  const byAccount = renderedById(auxiliaries, ({ number, name }) => ({
    number: pieceOf(JSON.stringify(number || null)),
    name: pieceOf(JSON.stringify(name || null)),
  }))
  const auxiliaryBytesMax = longestOf(
    byAccount.values().map(({ number, name }) => ({ length: number.length + name.length })),
  )

  /** The most bytes that are added to a movement. */
  function bytesMax(movements: Rows, entries: Rows): number {
    const filedBytes =
      movements.bytesIn(filedColumns.length, movement.filed_piece_day) +
      entries.bytesIn(filedColumns.length, entry.filed_piece_day)
    return escapedBytesMax * filedBytes + auxiliaryBytesMax + fixedBytesMax
  }

  /**
   * Adds `filed` to a movement that ends at `at`, if anything was filed for it, for its entry or for its account. Facts
   * filed for the movement take precedence over those filed for the entry.
   */
  function write(out: Output, at: number, movements: Rows, entries: Rows): number {
    const auxiliary = byAccount.get(movements.id(movement.account_id))
    const isFiled = (column: (typeof filedColumns)[number]) =>
      !movements.isNull(movement[column]) || !entries.isNull(entry[column])
    if (!auxiliary && !filedColumns.some(isFiled)) return at
    const writeFiled = (column: (typeof filedColumns)[number], otherwise: Piece | undefined): number => {
      if (!isFiled(column)) return writePiece(out, at, otherwise ?? nothing)
      return movements.isNull(movement[column])
        ? writeUnlessBlank(out, at, entries, entry[column])
        : writeUnlessBlank(out, at, movements, movement[column])
    }
    at = writePiece(out, at - 1, toFiled)
    if (isFiled('filed_piece_day')) at = writeFiled('filed_piece_day', undefined)
    else at = writeText(out, at, entries, entry.date)
    at = writePiece(out, at, toAuxiliaryNumber)
    at = writeFiled('filed_auxiliary_number', auxiliary?.number)
    at = writePiece(out, at, toAuxiliaryName)
    at = writeFiled('filed_auxiliary_name', auxiliary?.name)
    return writePiece(out, at, closeBoth)
  }

  return { bytesMax, write }
}

function writeUnlessBlank(out: Output, at: number, rows: Rows, field: number): number {
  return rows.bytesIn(1, field) === 1 ? writeNull(out, at) : writeText(out, at, rows, field)
}
