/**
 * Lists and facts of `src/lists/` as HTML.
 *
 * Texts of others are names, reasons, answers of receivers and data of events. Like everything they are escaped. They
 * are also shortened, cleared of control characters, and isolated in their direction (`bdi`), so that text from right
 * to left does not change the text around it.
 */
import { html } from 'hono/html'
import { limits } from '../../../config.ts'
import { type Cell, isNumber, type Table, textOf } from '../../../lists/list.ts'
import { bytes, duration, integer, time } from '../../elements.ts'
import type { Html, PageContext } from '../../page.ts'

/** A cell of a list, or HTML if no kind of cell fits. */
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
  // A list shows the beginning of a digest, and a tooltip shows all of it.
  return isFact ? html`<code>${text}</code>` : html`<code title="${text}">${cut(text, 16)}</code>`
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

/** A table with its caption. On a narrow screen, it scrolls inside a box of its own. */
export function listTable<Row>(
  context: PageContext,
  list: ShownList<Row>,
  rows: readonly Row[],
  { caption = list.caption, none = list.none, without = [], elementOf, act }: TableOptions<Row> = {},
): Html {
  if (rows.length === 0) return html`<h2>${caption}</h2><p class="none">${none}</p>`
  const columns = Object.entries(list.columns)
    .filter(([head]) => !without.includes(head))
    .map(([head, cellOf]) => ({ head, cells: rows.map(cellOf) }))
  const heads = columns.map(
    ({ head, cells }) =>
      html`<th scope="col"${cells.some(isOfNumber) ? html` class="number"` : ''}>${head}</th>`,
  )
  const lines = rows.map((row, line) => {
    const [first, ...others] = columns.map(({ cells }) => cells[line]!)
    const id = elementOf ? html` id="${elementOf(row)}"` : ''
    return html`<tr${id}><th scope="row">${cellHtml(context, first!)}</th>
${others.map((cell) => html`<td${classOf(cell)}>${cellHtml(context, cell)}</td>`)}${act ? html`<td class="act">${act(row)}</td>` : ''}</tr>`
  })
  return html`<h2>${caption}</h2>
<div class="scrolls" role="region" aria-label="${caption}" tabindex="0"><table>
<thead><tr>${heads}${act ? html`<th scope="col">Act</th>` : ''}</tr></thead>
<tbody>${lines}</tbody></table></div>`
}

const isOfNumber = (cell: Shown) => cell !== undefined && !isHtml(cell) && isNumber(cell)

/** The class of a cell: texts of others may wrap. */
function classOf(cell: Shown): Html | '' {
  if (isOfNumber(cell)) return html` class="number"`
  const isTheirs = cell !== null && typeof cell === 'object' && ('foreign' in cell || 'answer' in cell)
  return isTheirs ? html` class="text"` : ''
}

/** The facts of one thing, each with its name. A fact without a text is not shown. */
export function factList(context: PageContext, facts: Readonly<Record<string, Shown>>): Html {
  const shown = Object.entries(facts).filter(([, cell]) => cell && (isHtml(cell) || textOf(cell) !== ''))
  return html`<dl class="facts">${shown.map(([name, cell]) => html`<div><dt>${name}</dt><dd>${cellHtml(context, cell, true)}</dd></div>`)}</dl>`
}

/** Maximum number of characters of a text in a list. */
const shownMax = 160

/** A text in one line; `none` if there is no text. @param most maximum number of characters */
export function foreign(text: string | null | undefined, most = shownMax): Html {
  if (text === null || text === undefined || text === '') return html`<span class="none">none</span>`
  return html`<bdi>${cut(clean(text).replaceAll(/\s+/g, ' '), most)}</bdi>`
}

/** What a receiver answered. Bytes that are not UTF-8 show as replacement characters. */
export function answerText(answer: Buffer | null, most: number): Html {
  if (answer === null) return html`<span class="none">none</span>`
  if (answer.length === 0) return html`<span class="none">empty</span>`
  return html`<pre tabindex="0"><bdi>${cut(clean(answer.toString('utf8')), most)}</bdi></pre>`
}

/** Replaces marks of direction, and control characters except line breaks and tabs, by U+FFFD. */
function clean(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '\ufffd')
}

function cut(text: string, most: number): string {
  if (text.length <= most) return text
  // Ends before a surrogate pair instead of cutting it in two.
  const end = /[\ud800-\udbff]/.test(text[most - 1]!) ? most - 1 : most
  return `${text.slice(0, end)}…`
}
