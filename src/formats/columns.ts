/**
 * The columns that a format needs of movements and entries: a tuple of names. `exports/read/columns.sql.ts` has the
 * expression of each, and does not compile if one is missing.
 */

/** Index of each column among the fields of its row (see CopyRows). The column ends before the next index. */
export function offsetsOf<Column extends string>(
  columns: readonly Column[],
): Readonly<Record<Column, number>> {
  return Object.fromEntries(columns.map((column, offset) => [column, offset])) as Record<Column, number>
}

/** Rows as byte ranges (see CopyRows). Field k of a row begins at `fields[base + k]`, if the row's fields start at `base`. */
export interface Rows {
  bytes: Uint8Array
  /** The same bytes; some more can be read after them. */
  view: DataView
  fields: Int32Array
}
