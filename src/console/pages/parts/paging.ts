/** Lists in pages: a page begins after the last row of the one before, so each costs the same, however far down. */
import { html } from 'hono/html'
import { type Html, type PageContext, Refusal } from '../../page.ts'

/** Rows of a page. A list asks for one more, to know whether another page follows. */
export const pageRows = 50

/** The rows of this page, and the last of them if more follow. */
export function pageOf<Row>(
  rows: readonly Row[],
  most = pageRows,
): { rows: readonly Row[]; last: Row | undefined } {
  if (rows.length <= most) return { rows, last: undefined }
  const shown = rows.slice(0, most)
  return { rows: shown, last: shown.at(-1) }
}

/**
 * Links to the first and the next page of a list.
 * @param place parameter that names the row after which a page begins
 * @param next its value for the next page; undefined: this is the last
 */
export function pager({ query, url }: PageContext, place: string, next: string | undefined): Html {
  const [path = ''] = url.split('?')
  const address = (value: string | undefined): string => {
    const parameters = new URLSearchParams(query)
    if (value === undefined) parameters.delete(place)
    else parameters.set(place, value)
    const text = parameters.toString()
    return text === '' ? path : `${path}?${text}`
  }
  const isFirst = !query.has(place)
  if (isFirst && next === undefined) return html``
  return html`<nav class="pager" aria-label="Pages of this list">
${isFirst ? '' : html`<a href="${address(undefined)}">First page</a>`}
${next === undefined ? html`<span class="none">End of the list</span>` : html`<a href="${address(next)}" rel="next">Next page</a>`}
</nav>`
}

/** The id before which a page begins, as `pager` writes it. @throws {Refusal} */
export function beforeIn({ query }: Pick<PageContext, 'query'>): string | undefined {
  const before = query.get('before')
  if (before === null) return undefined
  if (/^\d{1,18}$/.test(before)) return before
  throw new Refusal(400, 'before is not a place in this list: begin with its first page')
}

/** Characters of a search. */
export const searchMax = 200

/** What a list is searched for; empty: everything. PostgreSQL has no text with a NUL. */
export function searchIn({ query }: Pick<PageContext, 'query'>): string {
  return (query.get('search') ?? '').replaceAll('\0', '').trim().slice(0, searchMax)
}

/** A field of a form, with its label. */
export function field(label: string, input: Html): Html {
  return html`<label class="field"><span>${label}</span>${input}</label>`
}

/** A list of choices. @param none text of the choice that filters nothing */
export function choice(
  name: string,
  choices: readonly string[],
  chosen: string | undefined,
  none?: string,
): Html {
  const all = none === undefined ? '' : html`<option value="">${none}</option>`
  return html`<select name="${name}">${all}${choices.map((each) =>
    each === chosen ? html`<option selected>${each}</option>` : html`<option>${each}</option>`,
  )}</select>`
}
