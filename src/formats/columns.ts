/**
 * Rows of movements and entries as a format asks for them: a tuple of column names. What each is read from stands in
 * `exports/read/columns.sql.ts`, which does not compile while one is missing.
 */

/** Where each column begins among the fields of its row (see CopyRows); it ends before the offset one higher. */
export function offsetsOf<Column extends string>(
  columns: readonly Column[],
): Readonly<Record<Column, number>> {
  return Object.fromEntries(columns.map((column, offset) => [column, offset])) as Record<Column, number>
}
