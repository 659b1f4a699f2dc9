/** The tables and views of a copy in PostgreSQL. */
import type { ColumnType } from '../lines/rows.ts'
import { type Table, tables } from '../targets/tables.ts'
import { type Dialect, viewsOf } from '../targets/views.sql.ts'

const types: Record<ColumnType, string> = {
  id: 'bigint',
  text: 'text',
  date: 'date',
  time: 'timestamp',
  cents: 'numeric(18,2)',
  number: 'numeric',
  boolean: 'boolean',
  json: 'jsonb',
  bytes: 'bytea',
}

/** A value from the text that stands for it in a JSON array. */
const readings: Record<ColumnType, (text: string) => string> = {
  id: (text) => `${text}::bigint`,
  text: (text) => text,
  date: (text) => `${text}::date`,
  time: (text) => `to_timestamp(${text}::double precision) at time zone 'UTC'`,
  cents: (text) => `${text}::numeric / 100`,
  number: (text) => `${text}::numeric`,
  boolean: (text) => `${text} = '1'`,
  json: (text) => `${text}::jsonb`,
  bytes: (text) => `convert_to(${text}, 'UTF8')`,
}

export function createTables(prefix: string): string {
  return tables.map((table) => createTable(table, prefix)).join('\n')
}

function createTable({ name, columns, key }: Table, prefix: string): string {
  const list = columns.map((column) => `${column.name} ${types[column.type]}`).join(', ')
  return `create table ${prefix}${name} (${list}, primary key (${key}));`
}

/** Inserts the rows of a JSON array of arrays, $1. */
export function insertRows({ name, columns }: Table, prefix: string): string {
  const values = columns.map(({ type }, place) => readings[type](`(v ->> ${place})`))
  return `insert into ${prefix}${name} select ${values.join(', ')} from json_array_elements($1::json) v`
}

export const createIndexes = `
  create index on movement_rows (account_id);
  create index on entries (exercice_id, draft, entry_id);`

const dialect: Dialect = {
  createdAt: 'e.created_at',
  money: (column) => `m.${column}`,
  exact: [],
  sum: (expression) => `sum(${expression})`,
  amount: (row, column) => `${row}.${column}`,
  isValidated: 'not e.draft',
  daysSince: (day) => `(current_date - ${day})`,
  month: (day) => `to_char(${day}, 'YYYY-MM')`,
  shares: 'jsonb_array_elements(m.analytics) s',
  share: (member) => `(s ->> '${member}')${member === 'rate' ? '::numeric' : ''}`,
  shareAmount: [['', `(s ->> 'amount')::numeric(18,2)`]],
}

export const createViews = viewsOf(dialect)
