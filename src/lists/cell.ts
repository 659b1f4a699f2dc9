/** What staff see of one thing, once for both surfaces: the command line prints it, the console draws it. */
import { excerptOf } from '../../packages/terminal/src/printable.ts'

export type Cell =
  /** Our own ids and words. */
  | string
  | null
  /** Things are counted up to `most` and one more: the console shows that as `more than`. */
  | { count: number | string; most?: number }
  | { bytes: number | string }
  | { ms: number }
  | { at: Date | string | null }
  /** Something has waited since then. */
  | { since: string }
  /** A page of the console, below /console. */
  | { to: string; text: string }
  /** A text of others. The console shows `most` characters, the command line all. */
  | { foreign: string | null; most?: number }
  /** What a receiver answered. */
  | { answer: Buffer | null }
  /** A long id, which the command line shows whole. */
  | { code: string }
  /** A digest or cursor: lists show enough to recognize it. */
  | { digest: string | null }
  /** A state that needs staff. */
  | { strong: string }
  /** The state of a full export. */
  | { state: 'queued' | 'running' | 'done' | 'failed' }
  /** Cells one after the other. */
  | Cell[]

/** The facts of one thing by their names. An empty one is not shown. */
export type Facts = Readonly<Record<string, Cell>>

/** A folder or partner, with a link to its page; nothing if there is none. */
export const folderCell = (id: string | null): Cell => id && { to: `/folders/${id}`, text: id }
export const partnerCell = (code: string | null): Cell => code && { to: `/partners/${code}`, text: code }

/** Characters of a digest in lists of the command line. */
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
