/** The tables of a copy in SQL, and the rows of its collections. The order of values is that of the columns. */
import type { Account, Exercice, Journal } from '../../../client/api/items.ts'
import { type Column, columns, entryColumns, movementColumns, type Value } from '../lines/rows.ts'
import type { Collections } from './target.ts'

export interface Table {
  name: string
  columns: readonly Column[]
  key: string
}

export const accountColumns = columns(`
  account_id id, account_number text, account_name text, closed boolean, company_name text, siren text, details json`)

const journalColumns = columns(`
  journal_id id, journal_code text, journal_name text, journal_type text, journal_type_name text, locked boolean,
  counterpart_account_id id`)

const exerciceColumns = columns(`
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

function exerciceRow({ producerId, name, period, state }: Exercice): Value[] {
  const { start, end, duration, closed } = period
  return [Number(producerId), name, start, end, duration, state, closed?.at ?? null]
}

function journalRow(journal: Journal): Value[] {
  const { producerId, customerReferenceCode, name, type, counterpartAccount } = journal
  const { type: code, locked } = journal.additionalProducerProperties
  const counterpartId = counterpartAccount ? Number(counterpartAccount.producerId) : null
  return [Number(producerId), customerReferenceCode, name, code, type, locked ? 1 : 0, counterpartId]
}

function accountRow(account: Account): Value[] {
  const { producerId, number, name, closed } = account
  const company = 'company' in account ? account.company : undefined
  return [
    Number(producerId),
    number,
    name,
    closed ? 1 : 0,
    company?.name ?? null,
    company?.SIREN ?? null,
    JSON.stringify(account),
  ]
}
