/**
 * Each column of entries and movements is in every place that shows all of them. The compiler names the other places.
 * FEC and TRA show what their standard has.
 */
import { expect, test } from 'vitest'
import { flatColumns } from '../../src/formats/flat/columns.ts'
import { flatEntryColumns, flatMovementColumns } from '../../src/formats/flat/movement-rows.ts'
import {
  entryTable as entries,
  MadEntry,
  MadMovement,
  movementTable as movements,
} from '../../src/formats/items/entry.ts'
import { columnName, columnsOf } from '../../src/formats/items/table.ts'
import { extendedEntryColumns, extendedMovementColumns } from '../../src/formats/mad/entries.ts'
import { storedColumns } from '../support/plain/stored-columns.ts'

/** The name that a place has for a column, if it differs; empty if the place does not show the column. */
type Instead = Record<string, string>

const rows = 'columns in src/formats/flat/movement-rows.ts'
const list = 'movements in packages/contract/src/ledger-tables.ts'
const flatNames = flatColumns.map(({ name }) => name)
const keys = { schema_id: '', folder_id: '', exercice_id: '' }
/** Columns that a place shows with the entry. */
const ofEntry = { ...keys, entry_id: '' }

const placesOfMovements: [place: string, names: readonly string[], instead: Instead][] = [
  ['movements in src/db/schema.sql', storedColumns('movements'), {}],
  [
    'movementColumns in src/formats/mad/movement.ts',
    extendedMovementColumns,
    { ...keys, lettering_code: 'shown_lettering_code' },
  ],
  [
    'MadMovement in src/formats/items/entry.ts',
    membersOf(MadMovement.shape),
    {
      ...ofEntry,
      id: 'producer_id',
      account_id: 'account',
      debit: 'value',
      credit: 'value',
      payment_id: 'payment',
      lettering_state: 'lettering',
      lettering_code: 'lettering',
      shares: 'analytics',
    },
  ],
  [rows, flatMovementColumns, keys],
  [list, flatNames, { ...ofEntry, id: 'movement_id', shares: 'analytics' }],
]

const placesOfEntries: typeof placesOfMovements = [
  ['entries in src/db/schema.sql', storedColumns('entries'), {}],
  [
    'entryColumns in src/formats/mad/entry.ts',
    extendedEntryColumns,
    { ...keys, created_at: 'created_epoch' },
  ],
  [
    'MadEntry in src/formats/items/entry.ts',
    membersOf({ ...MadEntry.shape, ...MadEntry.shape.additionalProducerProperties.shape }),
    {
      ...keys,
      id: 'producer_id',
      journal_id: 'journal',
      validated_at: 'validation_date',
      third_party_id: 'source',
      rate: 'currency',
      // Only with `columns=extended`.
      number: '',
    },
  ],
  [
    rows,
    flatEntryColumns,
    {
      schema_id: '',
      folder_id: '',
      created_at: 'created_utc',
      rate: 'stored_rate',
    },
  ],
  [
    list,
    flatNames,
    {
      schema_id: '',
      folder_id: '',
      id: 'entry_id',
      date: 'entry_date',
      due_date: 'entry_due_date',
      third_party_id: 'third_party_code',
      rate: 'currency_rate',
      comment: 'entry_comment',
      number: 'ecriture_num',
    },
  ],
]

const missing = (columns: readonly string[], names: readonly string[], instead: Instead) =>
  columns.filter((column) => instead[column] !== '' && !names.includes(instead[column] ?? column))

test.each(placesOfMovements)('every column of a movement appears in %s', (_, names, instead) => {
  expect(missing(columnsOf(movements), names, instead)).toEqual([])
})

test.each(placesOfEntries)('every column of an entry appears in %s', (_, names, instead) => {
  expect(missing(columnsOf(entries), names, instead)).toEqual([])
})

test('the loaders together write every column in src/db/schema.sql', () => {
  // The import of a FEC and replacements write the filed fields, and the place of a line in its file.
  expect(missing(storedColumns('movements'), columnsOf(movements), { filed: '', place: '' })).toEqual([])
  expect(missing(storedColumns('entries'), columnsOf(entries), { filed: '' })).toEqual([])
})

function membersOf(shape: Record<string, unknown>): string[] {
  return Object.keys(shape).map(columnName)
}
