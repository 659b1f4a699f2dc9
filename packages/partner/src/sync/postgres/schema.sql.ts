/**
 * The tables of a copy in PostgreSQL. Columns have the types in which COPY writes them, so rows go in as they come and
 * come out byte for byte; `json` keeps its bytes, `jsonb` would not. There are no foreign keys: rows show what the
 * ledger says, the transaction of a ledger replaces the row of its folder, and a repair must work whatever others
 * wrote.
 */
import { type LedgerTableName, ledgerTables } from '../../../../contract/src/ledger-tables.ts'
import { formerTables, layoutVersion } from '../copy.ts'
import { derivedColumns, diaryColumns, keyOf, tableNames } from '../tables.ts'
import { dueDay, isOpenItem, postgresDialect, viewsOf } from '../views.sql.ts'

/** The setting that holds the id of the folder, because the rows that COPY brings do not contain it. */
export const societySetting = 'grandlivre.society'

const ofDiary = " (the copy's own note, which nothing proves)"

/** The columns of the rows that come, as COPY lists them. */
export const columnsOf = (table: LedgerTableName): string =>
  ledgerTables[table].columns.map(({ name }) => name).join(', ')

function createTable(table: LedgerTableName): string {
  const own = ledgerTables[table].columns.map(({ name, type }) => `${name} ${type}`)
  const diary = Object.entries(diaryColumns).map(([name, [type]]) => `${name} ${type}`)
  const computed = (derivedColumns[table] ?? []).map(
    ({ name, member }) => `${name} text generated always as (details -> 'company' ->> '${member}') stored`,
  )
  if (table === 'folders')
    return `create table folders (${[...own, ...diary].join(', ')}, primary key (society_id));`
  const society = `society_id bigint not null default current_setting('${societySetting}')::bigint`
  const key = `primary key (society_id, ${keyOf(table)})`
  return `create table ${table} (${[society, ...own, ...computed, key].join(', ')});`
}

const comment = (what: string, text: string): string =>
  `comment on ${what} is '${text.replaceAll("'", "''")}';`

function commentsOn(table: LedgerTableName): string[] {
  const { description, columns } = ledgerTables[table]
  return [
    comment(`table ${table}`, description),
    ...(table === 'folders' ? [] : [comment(`column ${table}.society_id`, 'Id of the folder')]),
    ...columns.map((column) => comment(`column ${table}.${column.name}`, column.description)),
    ...(derivedColumns[table] ?? []).map(({ name, description }) =>
      comment(`column ${table}.${name}`, description),
    ),
  ]
}

/**
 * Indexes for the questions of accountants: an account by day, due items, a journal by month. Each begins with the
 * folder.
 */
const indexes = `
  create index movements_of_account on movements (society_id, account_id, entry_date);
  create index movements_of_journal on movements (society_id, journal_id, entry_date);
  create index movements_due on movements (society_id, (${dueDay})) where ${isOpenItem};
  create index changes_of_folder on changes (society_id, at);`

const changes = `
  create table changes (
    change_id bigint generated always as identity primary key,
    society_id bigint not null, at timestamptz not null, cursor text not null, entries json not null,
    rows_before bigint not null, rows_after bigint not null);
  comment on table changes is 'What each transaction did to a ledger${ofDiary.replaceAll("'", "''")}';
  comment on column changes.change_id is 'Ascends with the transactions of a folder';
  comment on column changes.society_id is 'Id of the folder';
  comment on column changes.at is 'When the rows came';
  comment on column changes.cursor is 'The state of the ledger after the transaction';
  comment on column changes.entries is 'Ranges of ids of the entries whose movements were dropped and read again, both ends included';
  comment on column changes.rows_before is 'Movements of these entries before the transaction';
  comment on column changes.rows_after is 'Movements of these entries after the transaction';`

const layout = `
  create table grandlivre_copy (layout integer not null, service text);
  insert into grandlivre_copy values (${layoutVersion}, null);
  comment on table grandlivre_copy is 'The layout of these tables, and the service that they are a copy of';
  comment on column grandlivre_copy.layout is 'Version of the tables';
  comment on column grandlivre_copy.service is 'Address of the service';`

const views = viewsOf(postgresDialect)

/** SQL that creates everything in the schema that `search_path` names. */
export function createCopy(): string {
  const made = views.flatMap(({ name, description, select }) => [
    `create view ${name} as ${select};`,
    comment(`view ${name}`, description),
  ])
  const diary = Object.entries(diaryColumns).map(([name, [, text]]) =>
    comment(`column folders.${name}`, `${text}${ofDiary}`),
  )
  return [
    ...tableNames.flatMap((table) => [createTable(table), ...commentsOn(table)]),
    ...[...diary, changes, indexes, ...made, layout],
  ].join('\n')
}

/** Drops the tables and views of a copy, but not objects that others built on them. `movements` was once a view. */
export const dropCopy = `
  drop view if exists ${views.map(({ name }) => name).join(', ')};
  do $$ begin
    if exists (select from pg_class where oid = to_regclass('movements') and relkind = 'v') then
      drop view movements;
    end if;
  end $$;
  drop table if exists ${[...tableNames, 'changes', 'grandlivre_copy', ...formerTables].join(', ')};`
