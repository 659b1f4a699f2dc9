/**
 * Entries around their movements, and what a FEC says of an entry and no other ledger has: the number of the entry in its
 * journal, and of a movement the date of its document and its third-party account (docs/spec/exports.md#extended-entries).
 * That is written into an entry that is already rendered, in place of the braces that close it.
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

/** Blank where the FEC was blank; null where nothing was filed. */
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

/** Upper bound of all fixed pieces that are added to a movement or an entry. */
const fixedBytesMax = 256
/** A control character of one byte becomes \u0001, six bytes. */
const escapedBytesMax = 6

/** Entries as a full export has them. */
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

/** Entries with what a FEC says of them. @param auxiliaries of the accounts that it filed with a third-party account */
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

  /** Upper bound of the bytes that are added to a movement. */
  function bytesMax(movements: Rows, entries: Rows): number {
    const filedBytes =
      movements.bytesIn(filedColumns.length, movement.filed_piece_day) +
      entries.bytesIn(filedColumns.length, entry.filed_piece_day)
    return escapedBytesMax * filedBytes + auxiliaryBytesMax + fixedBytesMax
  }

  /**
   * Adds `filed` to a movement that ends at `at`, if something was filed with it, with its entry or with its account.
   * What was filed with the movement comes first, then what was filed with the entry.
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
