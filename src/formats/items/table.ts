/**
 * Describes a table of the ledger: the columns that loaders write, the type of their values, and how COPY writes them.
 * Names of columns follow from the members of a row (accountedAt is accounted_at). Ids are decimal strings. Money is in
 * minor units (cents, integers, never floating-point). Days are 'YYYY-MM-DD'. Instants are ISO 8601 with a time zone.
 */

/**
 * How a column is written. `text` is escaped: it is for anything that users may type or files may contain. `plain` is
 * for values that never need escaping: days, codes from a closed list, numbers. A `reference` is the id of another row;
 * selects show that row instead of its id.
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
  /** The table that a reference points to. Absent if files do not name the referenced row. */
  to?: string
  /** Exists only to carry the type of the values; no column sets it. */
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

export interface TableOf<Row> {
  name: string
  /** The schema of a temporary table; absent for a table of the ledger. */
  schema?: 'pg_temp'
  /** The columns, by the members of a row, in the order in which the loader writes them. */
  columns: { [Member in keyof Row]: Column<Row[Member]> }
}

export interface Table<Of extends Columns = Columns> {
  name: string
  columns: Of
}

const folderKey = { schemaId: reference, folderId: reference }

/** Describes a table of the ledger whose rows belong to a folder. */
export const table = <Of extends Columns>(name: string, columns: Of): Table<typeof folderKey & Of> => ({
  name,
  columns: { ...folderKey, ...columns },
})

type ValueOf<One> = One extends Column<infer Value> ? Value : never

/** A row in the form in which it is loaded. */
export type RowOf<Of extends Table> = {
  [Member in keyof Of['columns']]: ValueOf<Of['columns'][Member]>
}
/** A row in the form that selects show: without the ids of other rows. Each view adds the rows that it refers to. */
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

/** The names of a table's columns, in the order in which the loader writes them. */
export const columnsOf = <Of extends Table>(table: Of) =>
  Object.keys(table.columns).map(columnName) as ColumnOf<Of>[]

/** The columns that selects show, each as the member of a row and the name of the column. */
export const shownColumns = (table: Table) =>
  Object.entries(table.columns)
    .filter(([, { encoding }]) => encoding !== 'reference')
    .map(([member, { encoding }]) => ({ member, name: columnName(member), encoding }))

/** A row with a null for each member that may be null. */
export const blank = <Of extends Table>({ columns }: Of) =>
  Object.fromEntries(
    Object.entries(columns).flatMap(([member, { isNullable }]) => (isNullable ? [[member, null]] : [])),
  ) as { [Member in keyof RowOf<Of> as null extends RowOf<Of>[Member] ? Member : never]: null }

/**
 * A row in the form that a file gives: its folder is not known yet, and its ids are those of the file. Members that may
 * be null may be absent.
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
