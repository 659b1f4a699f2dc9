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
