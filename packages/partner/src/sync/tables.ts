/** What the tables of a copy have in common in SQLite and PostgreSQL. */
import { type LedgerColumn, type LedgerTableName, ledgerTables } from '../../../contract/src/ledger-tables.ts'
import type { Diary } from './copy.ts'

export const tableNames = Object.keys(ledgerTables) as LedgerTableName[]

/** Columns of `folders` that the copy adds for its own notes. */
export const diaryColumns: Readonly<Record<keyof Diary, readonly [type: string, description: string]>> = {
  firm_id: ['bigint', 'Id of the firm of the folder'],
  firm_name: ['text', 'Name of the firm of the folder'],
  cursor: ['text', 'The state of the ledger that the rows show; null until it has come whole'],
  employees: ['text', 'Whether accounts have the personal data of employees: shown or hidden'],
  table_digests: ['json', 'SHA-256 of the rows of each table that is given whole'],
  synced_at: ['timestamptz', 'When the copy was last known to equal the ledger'],
  changed_at: ['timestamptz', 'When rows or tables of the copy last changed'],
  gone_at: [
    'timestamptz',
    'When the folder was first missing from the list of its firm; null while the list has it',
  ],
  failed_at: ['timestamptz', 'When the ledger last failed to come; null once it has come whole again'],
  failure: ['text', 'Why the ledger failed to come: code and message'],
}

export const diaryNames = Object.keys(diaryColumns) as (keyof Diary)[]

interface DerivedColumn {
  name: string
  /** The part of `details` that the column shows for a company. */
  member: 'name' | 'SIREN'
  description: string
}

/** Additional columns that the database computes from the columns that came. */
export const derivedColumns: Partial<Record<LedgerTableName, readonly DerivedColumn[]>> = {
  accounts: [
    {
      name: 'company_name',
      member: 'name',
      description: 'Name of the company of a supplier or customer, from details',
    },
    { name: 'siren', member: 'SIREN', description: 'SIREN of that company, from details' },
  ],
}

/** All columns of a table except `society_id`. */
export function ownColumns(table: LedgerTableName): readonly LedgerColumn[] {
  const { columns } = ledgerTables[table]
  return table === 'folders' ? columns.slice(1) : columns
}

/** The columns that order the rows of a ledger. */
export const keyOf = (table: LedgerTableName): string =>
  table === 'movements' ? 'entry_id, movement_id' : ledgerTables[table].columns[0]!.name
