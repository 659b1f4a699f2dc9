/** Lists and facts of `src/lists/` as HTML. */
import { html } from 'hono/html'
import { limits } from '../../../config.ts'
import { type Cell, type Facts, isNumber, textOf } from '../../../lists/cell.ts'
import type { Table } from '../../../lists/list.ts'
import { bytes, duration, facts, integer, table, time } from '../../elements.ts'
import type { Html, PageContext } from '../../page.ts'
import { answerText, foreign, short } from './foreign.ts'

/** A cell of a list, or HTML for what no kind of cell can show. */
type Shown = Cell | Html | undefined

/** A table of the console. Unlike those of `src/lists/`, its columns may return HTML. */
export interface ShownList<Row> extends Omit<Table<Row>, 'columns'> {
  columns: Readonly<Record<string, (row: Row) => Shown>>
}

const isHtml = (shown: Shown): shown is Html => shown instanceof String || shown instanceof Promise

/** @param isFact whether the cell is a fact, not in a list: digests are then shown whole */
export function cellHtml(context: PageContext, cell: Shown, isFact = false): Html | string {
  if (cell === null || cell === undefined || typeof cell === 'string') return cell ?? ''
  if (isHtml(cell)) return cell
  if (Array.isArray(cell)) return html`${cell.map((each) => cellHtml(context, each, isFact))}`
  if ('count' in cell) {
    const isMore = cell.most !== undefined && Number(cell.count) > cell.most
    return isMore ? `more than ${integer(cell.most!)}` : integer(cell.count)
  }
  if ('bytes' in cell) return bytes(cell.bytes)
  if ('ms' in cell) return duration(cell.ms)
  if ('at' in cell) return cell.at === null ? '' : time(cell.at, context)
  if ('since' in cell)
    return html`${duration(Date.now() - Date.parse(cell.since))} ago, ${time(cell.since, context)}`
  if ('to' in cell) return html`<a href="/console${cell.to}">${cell.text}</a>`
  if ('foreign' in cell) return cell.foreign ? foreign(cell.foreign, cell.most) : ''
  if ('answer' in cell) return answerText(cell.answer, limits.shownAnswerBytes)
  if ('strong' in cell) return html`<strong>${cell.strong}</strong>`
  if ('state' in cell) return html`<span class="state ${cell.state}">${cell.state}</span>`
  const text = 'code' in cell ? cell.code : cell.digest
  if (text === null) return ''
  return isFact ? html`<code>${text}</code>` : short(text)
}

export interface TableOptions<Row> {
  /** Replaces the caption of the list. */
  caption?: string
  none?: string
  /** Headings of columns to leave out, because the page shows their value elsewhere. */
  without?: readonly string[]
  /** Returns the `id` of a row's HTML element, on pages that are kept up to date. */
  elementOf?: (row: Row) => string
  /** Forms and links with which staff act on a row. */
  act?: (row: Row) => Html | ''
}

export function listTable<Row>(
  context: PageContext,
  list: ShownList<Row>,
  rows: readonly Row[],
  { caption = list.caption, none = list.none, without = [], elementOf, act }: TableOptions<Row> = {},
): Html {
  const columns = Object.entries(list.columns)
    .filter(([head]) => !without.includes(head))
    .map(([head, cellOf]) => ({ head, cells: rows.map(cellOf) }))
  const heads = columns.map(({ head, cells }) => (cells.some(isOfNumber) ? { number: head } : head))
  const lines = rows.map((row, line) => {
    const [first, ...others] = columns.map(({ cells }) => cells[line]!)
    const id = elementOf ? html` id="${elementOf(row)}"` : ''
    return html`<tr${id}><th scope="row">${cellHtml(context, first!)}</th>
${others.map((cell) => html`<td${classOf(cell)}>${cellHtml(context, cell)}</td>`)}${act ? html`<td class="act">${act(row)}</td>` : ''}</tr>`
  })
  return table(caption, act ? [...heads, 'Act'] : heads, lines, none)
}

const isOfNumber = (cell: Shown) => cell !== undefined && !isHtml(cell) && isNumber(cell)

/** The class of a cell: texts of others may wrap. */
function classOf(cell: Shown): Html | '' {
  if (isOfNumber(cell)) return html` class="number"`
  const isTheirs = cell !== null && typeof cell === 'object' && ('foreign' in cell || 'answer' in cell)
  return isTheirs ? html` class="text"` : ''
}

export function factList(context: PageContext, described: Facts): Html {
  const shown = Object.entries(described).filter(([, cell]) => textOf(cell) !== '')
  return facts(shown.map(([name, cell]) => [name, html`${cellHtml(context, cell, true)}`]))
}
