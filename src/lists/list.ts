/** Lists that staff see: `export list` on the command line, a table in the console. */
import type { ClientBase, Pool } from 'pg'
import type { Cell } from './cell.ts'

/** The words and columns of a list. */
export interface Table<Row> {
  /** What it lists, and in which order. */
  caption: string
  /** Shown instead of an empty table. */
  none: string
  /** Cells by the headings of their columns. The first cell names the row. */
  columns: Readonly<Record<string, (row: Row) => Cell>>
}

export interface List<Row, Filter> extends Table<Row> {
  /** As the owner of the tables. */
  read(client: ClientBase | Pool, filter: Filter): Promise<Row[]>
}

/** A list that the console shows page by page. A page begins after a row, so each costs the same, however far down. */
export interface PagedList<Row, Filter> extends List<Row, Filter & Place> {
  /** Names a row in the address of the page after it. */
  placeOf(row: Row): string
  places: RegExp
}

export interface Place {
  /** Only rows after this one. */
  after?: string | undefined
  /** Absent: all rows. */
  most?: number | undefined
}

/** A list by the ids of its rows. */
export const byId = { placeOf: ({ id }: { id: string }) => id, places: /^\d{1,18}$/ }
