/** A list of staff: `export list` on the command line, a table in the console. */
import type { ClientBase, Pool } from 'pg'
import type { Cell } from './cell.ts'

export interface List<Row, Filter> {
  /** What it lists, and in which order. */
  caption: string
  /** Shown instead of an empty table. */
  none: string
  /** By their headings. The first one names the row. */
  columns: Readonly<Record<string, (row: Row) => Cell>>
  /** As the owner of the tables. */
  read(client: ClientBase | Pool, filter: Filter): Promise<Row[]>
}

/** A list of which the console shows one page after the other, so that each costs the same, however far down. */
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
