/**
 * The tables of a copy in SQLite: how each field of a row is stored, and the expression that makes the field again.
 * Both directions are exact: a value that another program has put in place of the stored value never renders as the field
 * that came.
 */
import type { DatabaseSync } from 'node:sqlite'
import {
  type ColumnType,
  type LedgerColumn,
  type LedgerTableName,
  ledgerTables,
} from '../../../../contract/src/ledger-tables.ts'
import { clientError } from '../../client/errors.ts'
import { escapes } from '../../client/ledgers/fields.ts'
import { exactLength } from '../../client/ledgers/table-rows.ts'
import { derivedColumns, diaryColumns, keyOf, ownColumns, tableNames } from '../tables.ts'
import { sqliteDialect, viewsOf } from '../views.sql.ts'

export type SqlValue = string | number | bigint | null

interface Stored {
  /** The ending of the stored column's name, such as `_cents` for amounts in whole cents. */
  suffix?: string
  type: 'integer' | 'text'
  /** The expression of a further column with the plain name, computed when it is read. */
  shown?: (stored: string) => string
  /** The value to store for an unescaped field. */
  value(field: string): SqlValue
  /** An expression for the text of a stored column that is not null. Default: the column itself. */
  field?(stored: string): string
}

const integer: Stored = {
  type: 'integer',
  value: (field) => (field.length <= exactLength ? Number(field) : BigInt(field)),
}

const text: Stored = { type: 'text', value: (field) => field }

/** A number with a fixed number of decimals, stored as a whole number. */
function decimal(suffix: string, decimals: number): Stored {
  const unit = 10 ** decimals
  return {
    suffix,
    type: 'integer',
    shown: (stored) => `${stored} / ${unit}.0`,
    value: (field) =>
      field.length <= exactLength ? Math.round(Number(field) * unit) : BigInt(field.replace('.', '')),
    field: (stored) =>
      `case when ${stored} = 0 then '0.${'0'.repeat(decimals)}' else concat(case when ${stored} < 0 then '-' end, ` +
      `abs(${stored} / ${unit}), '.', substr(${unit} + abs(${stored} % ${unit}), 2)) end`,
  }
}

const boolean: Stored = {
  type: 'integer',
  value: (field) => {
    if (field !== 't' && field !== 'f')
      throw clientError('NOT-PROVEN', `"${field.slice(0, 40)}" is no boolean`)
    return field === 't' ? 1 : 0
  },
  field: (stored) => `case ${stored} when 1 then 't' when 0 then 'f' else ${stored} end`,
}

/** A time. SQLite's date functions understand the zone Z, but not +00. */
const time: Stored = {
  type: 'text',
  value: (field) => {
    if (!field.endsWith('+00')) throw clientError('NOT-PROVEN', `"${field.slice(0, 40)}" is no time in UTC`)
    return `${field.slice(0, -3)}Z`
  },
  // Every time that came is stored with exactly one Z at its end.
  field: (stored) =>
    `case octet_length(${stored}) - octet_length(rtrim(${stored}, 'Z'))
      when 1 then concat(rtrim(${stored}, 'Z'), '+00') else '?' end`,
}

const storedAs: Record<ColumnType, Stored> = {
  bigint: integer,
  date: text,
  timestamptz: time,
  boolean,
  'numeric(18,2)': decimal('_cents', 2),
  'numeric(18,6)': decimal('_millionths', 6),
  text,
  json: text,
}

const storedOf = ({ type }: LedgerColumn): Stored => storedAs[type]
const storedName = (column: LedgerColumn): string => `${column.name}${storedOf(column).suffix ?? ''}`

export const storedNames = (table: LedgerTableName): string[] => ownColumns(table).map(storedName)

/**
 * The columns whose stored value is not the text of the field: their indexes, and how to make the value from the text.
 */
export const conversionsOf = (
  table: LedgerTableName,
): [column: number, value: (field: string) => SqlValue][] =>
  ledgerTables[table].columns.flatMap((column, place) =>
    storedOf(column) === text ? [] : [[place, storedOf(column).value]],
  )

/** Definitions of the columns of a table: first the stored columns, then those computed from them. */
function definitions(table: LedgerTableName): string[] {
  const columns = ownColumns(table)
  const shown = columns.flatMap((column) => {
    const expression = storedOf(column).shown?.(storedName(column))
    return expression === undefined ? [] : [`${column.name} real as (${expression})`]
  })
  return [...columns.map((column) => `${storedName(column)} ${storedOf(column).type}`), ...shown]
}

const diary = Object.entries(diaryColumns).map(
  ([name, [type]]) => `${name} ${type === 'bigint' ? 'integer' : 'text'}`,
)

/** Apart from `folders`, tables have no row ids of their own, so the movements of an entry lie next to each other. */
function createTable(table: LedgerTableName): string {
  if (table === 'folders') {
    const columns = ['society_id integer primary key', ...definitions(table), ...diary]
    return `create table folders (${columns.join(', ')}) strict;`
  }
  // Damaged JSON must not make a query fail.
  const computed = (derivedColumns[table] ?? []).map(
    ({ name, member }) =>
      `${name} text as (case when json_valid(details) then details ->> '$.company.${member}' end)`,
  )
  const key = `primary key (society_id, ${keyOf(table)})`
  const columns = ['society_id integer not null', ...definitions(table), ...computed, key]
  return `create table ${table} (${columns.join(', ')}) strict, without rowid;`
}

const views = viewsOf(sqliteDialect)

/** Names of the tables and views. */
export const copyNames = [...[...tableNames, 'changes', 'grandlivre_copy'], ...views.map(({ name }) => name)]

export const createTables = `
  ${tableNames.map(createTable).join('\n')}
  create table changes (society_id integer not null, at text not null, cursor text not null, entries text not null,
    rows_before integer not null, rows_after integer not null) strict;
  create index changes_by_time on changes (at);
  create table grandlivre_copy (layout integer not null, service text) strict;
  ${views.map(({ name, select }) => `create view ${name} as ${select};`).join('\n')}`

/** Created when the first ledger has come: sorting all rows once takes less time than inserting each at its place. */
export const createIndexes = `
  create index if not exists movements_by_account on movements (society_id, account_id, entry_date);
  create index if not exists movements_due on movements (society_id, account_number, due_date)
    where lettering_state <> 'complete';
  create index if not exists movements_by_journal on movements (society_id, journal_id, entry_date);`

/** An expression for the line in which a row came, with its line feed. */
function lineOf(table: LedgerTableName): string {
  const { columns } = ledgerTables[table]
  const line = (escaped: readonly LedgerColumn[]) => {
    const fields = columns.map((column) => {
      const stored = storedName(column)
      const written = storedOf(column).field?.(stored) ?? stored
      const field = escaped.includes(column) ? escapedField(written) : written
      return field === stored
        ? `ifnull(${stored}, '\\N')`
        : `case when ${stored} is null then '\\N' else ${field} end`
    })
    return `concat_ws('\t', ${fields.join(', ')}) || '\n'`
  }
  const texts = columns.filter((column) => storedOf(column).type === 'text')
  const isJson = ({ type }: LedgerColumn) => type === 'json'
  // Escaping every text takes three times as long as everything else, and few rows need it. So a row is tested first:
  // JSON writes a backslash for every character that COPY escapes, and for quotes. Columns of JSON always have quotes,
  // so they are always escaped.
  const plain = texts.filter((column) => !isJson(column)).map(storedName)
  return `case when instr(json_quote(concat(${plain.join(', ')})), '\\') = 0
    then ${line(texts.filter(isJson))} else ${line(texts)} end`
}

const escapedField = (field: string): string =>
  [...escapes].reduce((sql, [letter, character]) => `replace(${sql}, '${character}', '\\${letter}')`, field)

/** The most rows that one statement concatenates. While it runs, their text is in memory twice. */
const rowsAtOnce = 1_000
const [least, most] = [-9223372036854775808n, 9223372036854775807n]

/**
 * Reads the rows of a ledger as the lines in which they came.
 * @returns chunks of whole lines; rows with the same key are in the same chunk
 */
export function lineReader(database: DatabaseSync, table: LedgerTableName) {
  const key = ledgerTables[table].columns[0]!.name
  const rows = `from ${table} where society_id = ?`
  /** Finds the key of the last row of the next chunk. */
  const findBound = database.prepare(
    `select ${key} as bound ${rows} and ${key} >= ? order by ${key} limit 1 offset ?`,
  )
  findBound.setReadBigInts(true)
  // Read as bytes, so that invalid UTF-8 does not turn into another text.
  const joinLines = database.prepare(
    `select cast(group_concat(line, '') as blob) as lines from (
       select ${lineOf(table)} as line ${rows} and ${key} between ? and ? order by ${keyOf(table)})`,
  )
  return function* read(society: string): Generator<Uint8Array> {
    const id = BigInt(society)
    for (let from = least; ; ) {
      const bound = findBound.get(id, from, rowsAtOnce)?.['bound'] as bigint | undefined
      const to = bound ?? most
      const lines = joinLines.get(id, from, to)!['lines'] as Uint8Array | null
      if (lines) yield lines
      if (to === most) return
      from = to + 1n
    }
  }
}
