/** Cells, facts and lists that staff see. Each is declared once, for the command line and for the console. */
import { excerptOf } from '../../packages/terminal/src/printable.ts'
import type { Connection } from '../db/statement.ts'

export type Cell =
  /** Ids and words of our own. */
  | string
  | null
  /** A count. Counting stops at one more than `most`, which the console shows as `more than`. */
  | { count: number | string; most?: number }
  | { bytes: number | string }
  | { ms: number }
  | { at: Date | string | null }
  /** The time since which something has been waiting. */
  | { since: string }
  /** A link to a page of the console; `to` is a path below /console. */
  | { to: string; text: string }
  /** A text of others. The console shows `most` of its characters, the command line all. */
  | { foreign: string | null; most?: number }
  /** The answer of a receiver. */
  | { answer: Buffer | null }
  /** A long id. The command line shows all of it. */
  | { code: string }
  /** A digest or cursor. Lists show enough of it to recognize it. */
  | { digest: string | null }
  /** A state that staff must attend to. */
  | { strong: string }
  /** The state of a full export. */
  | { state: 'queued' | 'running' | 'done' | 'failed' }
  /** Several cells, shown one after the other. */
  | Cell[]

/** The facts of one thing, each by its name. A fact whose cell is empty is not shown. */
export type Facts = Readonly<Record<string, Cell>>

/** A folder or partner, with a link to its page; an empty cell if there is none. */
export const folderCell = (id: string | null): Cell => id && { to: `/folders/${id}`, text: id }
export const partnerCell = (code: string | null): Cell => code && { to: `/partners/${code}`, text: code }

/** Lists of the command line show this many characters of a digest. */
const digestCharacters = 12

/** A cell as text. @param isWhole whether digests are shown whole */
export function textOf(cell: Cell, isWhole = false): string {
  if (cell === null || typeof cell === 'string') return cell ?? ''
  if (Array.isArray(cell)) return cell.map((each) => textOf(each, isWhole)).join('')
  if ('count' in cell) return String(cell.count)
  if ('bytes' in cell) return String(cell.bytes)
  if ('ms' in cell) return `${Math.round(cell.ms)} ms`
  if ('at' in cell) return cell.at instanceof Date ? cell.at.toISOString() : (cell.at ?? '')
  if ('since' in cell) return cell.since
  if ('to' in cell) return cell.text
  if ('foreign' in cell) return cell.foreign ?? ''
  if ('answer' in cell) return excerptOf(cell.answer?.toString('utf8') ?? '')
  if ('code' in cell) return cell.code
  if ('digest' in cell) return cell.digest?.slice(0, isWhole ? undefined : digestCharacters) ?? ''
  return 'strong' in cell ? cell.strong : cell.state
}

/** Whether the cell is a number, so that its column is aligned on the right. */
export function isNumber(cell: Cell): boolean {
  if (cell === null || typeof cell === 'string') return false
  if (Array.isArray(cell)) return cell.some(isNumber)
  return 'count' in cell || 'bytes' in cell || 'ms' in cell
}

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
  read(client: Connection, filter: Filter & Place): Promise<Row[]>
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
