/**
 * What a table of the ledger is: the columns that loaders write, each with the type of its values and how COPY writes
 * them. Names of columns follow from the members of a row (accountedAt is accounted_at). Ids are decimal strings, money
 * is in minor units (cents, integers, never floating-point), days are 'YYYY-MM-DD', instants are ISO 8601 with a time
 * zone.
 */

/**
 * How a column is written. `text` is escaped. `plain` is for values that never need it: days, codes from a closed list,
 * numbers. Anything that users, partners or files may have typed is `text`. A `reference` is the id of another row,
 * which selects show in its place.
 */
export type Encoding =
  | 'id'
  | 'reference'
  | 'text'
  | 'plain'
  | 'boolean'
  | 'json'
  | 'address'
  | 'texts'
  | 'bigints'

export interface Column<Value, Of extends Encoding = Encoding> {
  encoding: Of
  isNullable: boolean
  /** The table that a reference points to; absent if files do not name the row. */
  to?: string
  /** Carries the type of the values; no column sets it. */
  value?: Value
}

export const column = <Value, Of extends Encoding = Encoding>(encoding: Of): Column<Value, Of> => ({
  encoding,
  isNullable: false,
})
export const orNull = <Value, Of extends Encoding>(given: Column<Value, Of>): Column<Value | null, Of> => ({
  ...given,
  isNullable: true,
})
export const id = column<string, 'id'>('id')
export const reference = column<string, 'reference'>('reference')
export const referenceTo = (to: string): Column<string, 'reference'> => ({ ...reference, to })
export const text = column<string>('text')
export const plain = column<string>('plain')
export const boolean = column<boolean>('boolean')
export const texts = column<string[]>('texts')

type Columns = Record<string, Column<unknown>>

/** A table whose rows are of this type. */
export interface TableOf<Row> {
  name: string
  /** The schema of a temporary table; absent for a table of the ledger. */
  schema?: 'pg_temp'
  /** Columns by the members of a row, in the order of the loader. */
  columns: { [Member in keyof Row]: Column<Row[Member]> }
}

export interface Table<Of extends Columns = Columns> {
  name: string
  columns: Of
}

const folderKey = { schemaId: reference, folderId: reference }

/** A table of the ledger, whose rows belong to a folder. */
export const table = <Of extends Columns>(name: string, columns: Of): Table<typeof folderKey & Of> => ({
  name,
  columns: { ...folderKey, ...columns },
})

type ValueOf<One> = One extends Column<infer Value> ? Value : never

/** A row as it is loaded. */
export type RowOf<Of extends Table> = {
  [Member in keyof Of['columns']]: ValueOf<Of['columns'][Member]>
}
/** A row as selects show it: without what refers to other rows, which stand in their place. */
export type ShownRow<Of extends Table> = {
  [Member in keyof Of['columns'] as Of['columns'][Member] extends Column<unknown, 'reference'>
    ? never
    : Member]: ValueOf<Of['columns'][Member]>
}

type Snake<Text extends string> = Text extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${Snake<Rest>}`
  : ''
export type ColumnOf<Of extends Table> = Snake<keyof Of['columns'] & string>

export const columnName = (member: string) => member.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** The names of a table's columns, in the order of the loader. */
export const columnsOf = <Of extends Table>(table: Of) =>
  Object.keys(table.columns).map(columnName) as ColumnOf<Of>[]

/** The columns that selects show: the member of a row, and the name. */
export const shownColumns = (table: Table) =>
  Object.entries(table.columns)
    .filter(([, { encoding }]) => encoding !== 'reference')
    .map(([member, { encoding }]) => ({ member, name: columnName(member), encoding }))

/** A row's members that may be null, and are. */
export const blank = <Of extends Table>({ columns }: Of) =>
  Object.fromEntries(
    Object.entries(columns).flatMap(([member, { isNullable }]) => (isNullable ? [[member, null]] : [])),
  ) as { [Member in keyof RowOf<Of> as null extends RowOf<Of>[Member] ? Member : never]: null }

/**
 * A row as a file says it: its folder is not known yet, and ids are those of the file. Members that may be null may be
 * absent.
 */
export type FileRow<Of extends Table> = Omit<Given<RowOf<Of>>, 'schemaId' | 'folderId'>

/** A row in which members that may be null may be absent. */
export type Given<Row> = { [Member in NullableMember<Row>]?: Row[Member] | undefined } & Omit<
  Row,
  NullableMember<Row>
>
type NullableMember<Row> = {
  [Member in keyof Row]: null extends Row[Member] ? Member : never
}[keyof Row]
