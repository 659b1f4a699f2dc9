/** The tables and views of a copy in SQLite. */
import type { Column, ColumnType } from '../lines/rows.ts'
import { type Table, tables } from '../targets/tables.ts'
import { type Dialect, viewsOf } from '../targets/views.sql.ts'

const types: Record<ColumnType, string> = {
  id: 'integer',
  text: 'text',
  date: 'text',
  time: 'integer',
  cents: 'integer',
  number: 'real',
  boolean: 'integer',
  json: 'text',
  bytes: 'blob',
}

/** Amounts are whole cents, and their columns say so. */
export function columnName({ name, type }: Column): string {
  return type === 'cents' ? `${name}_cents` : name
}

export function createTables(prefix: string): string {
  return tables.map((table) => createTable(table, prefix)).join('\n')
}

/** Without a row id of their own the rows of an entry lie together. */
function createTable({ name, columns, key }: Table, prefix: string): string {
  const isSingle = !key.includes(',')
  const lines = columns.map((column) => {
    const isKey = isSingle && column.name === key
    return `${columnName(column)} ${types[column.type]}${isKey ? ' primary key' : ''}`
  })
  if (!isSingle) lines.push(`primary key (${key})`)
  return `create table ${prefix}${name} (${lines.join(', ')})${isSingle ? '' : ' without rowid'};`
}

export const createIndexes = 'create index movement_rows_of_account on movement_rows (account_id);'

/** Amounts are summed in whole cents, and divided to be shown. */
const dialect: Dialect = {
  createdAt: "strftime('%Y-%m-%dT%H:%M:%SZ', e.created_at, 'unixepoch')",
  money: (column) => `m.${column}_cents / 100.0`,
  exact: ['m.debit_cents', 'm.credit_cents'],
  sum: (expression) => `sum(${expression}) / 100.0`,
  amount: (row, column) => `${row}.${column}_cents`,
  isValidated: 'e.draft = 0',
  daysSince: (day) => `cast(julianday(date('now', 'localtime')) - julianday(${day}) as integer)`,
  month: (day) => `substr(${day}, 1, 7)`,
  shares: 'json_each(m.analytics) s',
  share: (member) => `json_extract(s.value, '$.${member}')`,
  shareAmount: [
    ['', `json_extract(s.value, '$.amount')`],
    ['_cents', `cast(round(json_extract(s.value, '$.amount') * 100) as integer)`],
  ],
}

export const createViews = viewsOf(dialect)
