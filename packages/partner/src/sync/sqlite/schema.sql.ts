/** The tables of a copy in SQLite. */
import { type LedgerTableName, ledgerTables } from '../../../../contract/src/ledger-tables.ts'
import { sqliteDialect, viewsOf } from '../views.sql.ts'
import { columnsOf, definitions } from './columns.sql.ts'

/** Further columns, which the database computes from proven ones. JSON that somebody has broken must not end a query. */
const computed: Partial<Record<LedgerTableName, readonly string[]>> = {
  accounts: [
    "company_name text as (case when json_valid(details) then details ->> '$.company.name' end)",
    "siren text as (case when json_valid(details) then details ->> '$.company.SIREN' end)",
  ],
}

/** What the copy notes itself: {@link Diary}. */
const diary = `firm_id integer, firm_name text, cursor text, employees text, table_digests text, synced_at text,
  changed_at text, gone_at text, failed_at text, failure text`

/** Without a row id of their own the movements of an entry lie together. */
function createTable(table: LedgerTableName): string {
  if (table === 'folders')
    return `create table folders (society_id integer primary key, ${definitions(table).join(', ')}, ${diary}) strict;`
  const key = table === 'movements' ? 'entry_id, movement_id' : columnsOf(table)[0]!.name
  const columns = ['society_id integer not null', ...definitions(table), ...(computed[table] ?? [])]
  return `create table ${table} (${columns.join(', ')}, primary key (society_id, ${key})) strict, without rowid;`
}

const views = viewsOf(sqliteDialect)

/** Tables and views. */
export const names = [
  ...[...Object.keys(ledgerTables), 'changes', 'grandlivre_copy'],
  ...views.map(({ name }) => name),
]

export const createTables = `
  ${(Object.keys(ledgerTables) as LedgerTableName[]).map(createTable).join('\n')}
  create table changes (society_id integer not null, at text not null, cursor text not null, entries text not null,
    rows_before integer not null, rows_after integer not null) strict;
  create index changes_by_time on changes (at);
  create table grandlivre_copy (layout integer not null, service text) strict;
  ${views.map(({ name, select }) => `create view ${name} as ${select};`).join('\n')}`

/** Made at the end of the first ledger: sorting its rows takes less time than finding each its place. */
export const createIndexes = `
  create index if not exists movements_by_account on movements (society_id, account_id, entry_date);
  create index if not exists movements_due on movements (society_id, account_number, due_date)
    where lettering_state <> 'complete';
  create index if not exists movements_by_journal on movements (society_id, journal_id, entry_date);`
