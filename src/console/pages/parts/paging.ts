/** Lists in pages: a page begins after the last row of the one before, so each costs the same, however far down. */
import { html } from 'hono/html'
import type { Html, PageContext } from '../../page.ts'

/** Rows of a page. A list asks for one more, to know whether another page follows. */
export const pageRows = 50

/**
 * Links to the first and the next page of a list.
 * @param next the row after which the next page begins; undefined: this is the last
 */
export function pager({ query, url }: PageContext, next: string | undefined): Html {
  const [path = ''] = url.split('?')
  const address = (value: string | undefined): string => {
    const parameters = new URLSearchParams(query)
    if (value === undefined) parameters.delete('after')
    else parameters.set('after', value)
    const text = parameters.toString()
    return text === '' ? path : `${path}?${text}`
  }
  const isFirst = !query.has('after')
  if (isFirst && next === undefined) return html``
  return html`<nav class="pager" aria-label="Pages of this list">
${isFirst ? '' : html`<a href="${address(undefined)}">First page</a>`}
${next === undefined ? html`<span class="none">End of the list</span>` : html`<a href="${address(next)}" rel="next">Next page</a>`}
</nav>`
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
