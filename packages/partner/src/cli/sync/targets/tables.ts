/** The tables of a copy in SQL, and the rows of its collections. The order of values is that of the columns. */
import { type Column, columns, entryColumns, movementColumns, type Value } from '../lines/rows.ts'
import type { Collections, Item } from './target.ts'

export interface Table {
  name: string
  columns: readonly Column[]
  key: string
}

export const accountColumns = columns(`
  account_id id, account_number text, account_name text, closed boolean, company_name text, siren text, details json`)

export const journalColumns = columns(`
  journal_id id, journal_code text, journal_name text, journal_type text, journal_type_name text, locked boolean,
  counterpart_account_id id`)

export const exerciceColumns = columns(`
  exercice_id id, exercice_name text, start_date date, end_date date, months id, state text, closed_at date`)

/** Of an entry, the exact bytes that came. */
const lineColumns: readonly Column[] = [
  { name: 'entry_id', type: 'id' },
  { name: 'line', type: 'bytes' },
]

// biome-ignore format: a table
export const tables: readonly Table[] = [
  { name: 'exercices', columns: exerciceColumns, key: 'exercice_id' },
  { name: 'journals', columns: journalColumns, key: 'journal_id' },
  { name: 'accounts', columns: accountColumns, key: 'account_id' },
  { name: 'entries', columns: entryColumns, key: 'entry_id' },
  { name: 'movement_rows', columns: movementColumns, key: 'entry_id, movement_id' },
  { name: 'entry_lines', columns: lineColumns, key: 'entry_id' },
]

/** The prefix of tables of the next copy. */
export const prefixes = { copy: '', next: 'next_' } as const

/** Rows by table. */
export function collectionRows(collections: Collections): [table: string, rows: Value[][]][] {
  return [
    ['exercices', collections.exercices.map(exerciceRow)],
    ['journals', collections.journals.map(journalRow)],
    ['accounts', collections.accounts.map(accountRow)],
  ]
}

function exerciceRow(item: Item): Value[] {
  const { producerId, name, period, state } = item as unknown as {
    producerId: string
    name: string
    period: { start: string; end: string; duration: number; closed: { at: string } | null }
    state: string
  }
  return [
    Number(producerId),
    name,
    period.start,
    period.end,
    period.duration,
    state,
    period.closed?.at ?? null,
  ]
}

function journalRow(item: Item): Value[] {
  const { producerId, customerReferenceCode, name, type, counterpartAccount, additionalProducerProperties } =
    item as unknown as {
      producerId: string
      customerReferenceCode: string
      name: string
      type: string
      counterpartAccount: { producerId: string } | null
      additionalProducerProperties: { type: string; locked: boolean }
    }
  return [
    Number(producerId),
    customerReferenceCode,
    name,
    additionalProducerProperties.type,
    type,
    additionalProducerProperties.locked ? 1 : 0,
    counterpartAccount ? Number(counterpartAccount.producerId) : null,
  ]
}

function accountRow(item: Item): Value[] {
  const { producerId, number, name, closed, company } = item as unknown as {
    producerId: string
    number: string
    name: string
    closed: boolean
    company?: { name: string; SIREN: string | null }
  }
  return [
    Number(producerId),
    number,
    name,
    closed ? 1 : 0,
    company?.name ?? null,
    company?.SIREN ?? null,
    JSON.stringify(item),
  ]
}
