/** Lists that staff see: the command line prints them, as in `export list`, and the console shows them as tables. */
import type { ClientBase, Pool } from 'pg'
import type { Cell } from './cell.ts'

/** The words and columns of a list. */
export interface Table<Row> {
  /** What the list contains, and in which order. */
  caption: string
  /** Shown instead of an empty table. */
  none: string
  /** For each column: its heading, and what its cells show. The first column names the row. */
  columns: Readonly<Record<string, (row: Row) => Cell>>
}

/**
 * A list that the console shows page by page. Each page begins after the last row of the previous one, so each costs
 * the same, however far down.
 */
export interface PagedList<Row, Filter> extends Table<Row> {
  /** Reads the rows, as the owner of the tables. */
  read(client: ClientBase | Pool, filter: Filter & Place): Promise<Row[]>
  /** The place of a row in the list. The address of the page that begins after the row contains it. */
  placeOf(row: Row): string
  places: RegExp
}

export interface Place {
  /** Only rows after this one. */
  after?: string | undefined
  /** Most rows to read. If absent, all are read. */
  most?: number | undefined
}

/** The places of a list that is ordered by the ids of its rows. */
export const byId = { placeOf: ({ id }: { id: string }) => id, places: /^\d{1,18}$/ }
