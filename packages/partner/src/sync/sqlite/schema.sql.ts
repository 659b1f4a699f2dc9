/** The tables of a copy in SQLite. */
import type { LedgerTableName } from '../../../../contract/src/ledger-tables.ts'
import { derivedColumns, diaryColumns, keyOf, tableNames } from '../tables.ts'
import { sqliteDialect, viewsOf } from '../views.sql.ts'
import { definitions } from './columns.sql.ts'

const diary = Object.entries(diaryColumns).map(
  ([name, [type]]) => `${name} ${type === 'bigint' ? 'integer' : 'text'}`,
)

/** Without a row id of their own the movements of an entry lie together. */
function createTable(table: LedgerTableName): string {
  if (table === 'folders') {
    const columns = ['society_id integer primary key', ...definitions(table), ...diary]
    return `create table folders (${columns.join(', ')}) strict;`
  }
  // JSON that somebody has broken must not end a query.
  const computed = (derivedColumns[table] ?? []).map(
    ({ name, member }) =>
      `${name} text as (case when json_valid(details) then details ->> '$.company.${member}' end)`,
  )
  const key = `primary key (society_id, ${keyOf(table)})`
  const columns = ['society_id integer not null', ...definitions(table), ...computed, key]
  return `create table ${table} (${columns.join(', ')}) strict, without rowid;`
}

const views = viewsOf(sqliteDialect)

/** Tables and views. */
export const names = [...[...tableNames, 'changes', 'grandlivre_copy'], ...views.map(({ name }) => name)]

export const createTables = `
  ${tableNames.map(createTable).join('\n')}
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
