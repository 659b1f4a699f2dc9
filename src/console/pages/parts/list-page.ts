/**
 * Shows a list of `src/lists/` as a page: the form of its filters, one page of its rows, and links to other pages of
 * the list. A page begins after the last row of the previous one, so every page costs the same.
 */
import { html } from 'hono/html'
import type { PagedList, Place } from '../../../lists/list.ts'
import { choice, field } from '../../elements.ts'
import { type Html, type Page, type PageContext, Refusal } from '../../page.ts'
import { listTable, type TableOptions } from './cells.ts'

/** A field of the form above a list. */
export interface Filter<Value extends string = string> {
  label: string
  input(name: string, value: string | undefined): Html
  /** Reads the value to filter by; undefined if the text is not valid. */
  read(text: string): Value | undefined
  /** What the text has to be, such as `an id: 1 to 16 digits`. */
  takes: string
}

export function choiceFilter<Choice extends string>(
  label: string,
  choices: readonly Choice[],
  takes = 'one of',
): Filter<Choice> {
  return {
    label,
    input: (name, value) => choice(name, choices, value, 'any'),
    read: (text) => choices.find((each) => each === text),
    takes: `${takes}: ${choices.join(', ')}`,
  }
}

/** A search by text. NUL characters are removed, because PostgreSQL refuses them. */
export function searchFilter(label: string): Filter {
  const charactersMax = 200
  return {
    label,
    input: (name, value) =>
      html`<input type="search" name="${name}" value="${value ?? ''}" maxlength="${charactersMax}">`,
    read: (text) => text.replaceAll('\0', '').slice(0, charactersMax),
    takes: 'a text',
  }
}

type Filters<Filtered> = { [Name in keyof Filtered]?: Filter<Extract<Filtered[Name], string>> }

/** @throws {Refusal} that names the parameter that is wrong */
export function readFilters<Filtered>({ query }: PageContext, filters: Filters<Filtered>): Partial<Filtered> {
  const read = Object.entries<Filter>(filters as Record<string, Filter>).map(([name, filter]) => {
    const text = query.get(name)?.trim() || undefined
    const value = text === undefined ? undefined : filter.read(text)
    if (text !== undefined && value === undefined) throw new Refusal(400, `${name} must be ${filter.takes}`)
    return [name, value]
  })
  return Object.fromEntries(read)
}

/** @param path below /console @param values the filters from `readFilters` */
export function filterForm<Filtered>(
  path: string,
  filters: Filters<Filtered>,
  values: Partial<Filtered>,
): Html {
  const given = values as Record<string, string | undefined>
  const fields = Object.entries<Filter>(filters as Record<string, Filter>).map(([name, { label, input }]) =>
    field(label, input(name, given[name])),
  )
  return html`<form method="get" action="/console${path}" class="filter">
${fields}<button>Show</button>
</form>`
}

/** The page of a list that the address names. @throws {Refusal} if the address names no valid page */
export async function pagedTable<Row, Filtered>(
  context: PageContext,
  list: PagedList<Row, Filtered>,
  filtered: Filtered,
  { most = pageRows, ...options }: TableOptions<Row> & { most?: number } = {},
): Promise<Html> {
  const after = context.query.get('after') ?? undefined
  if (after !== undefined && !list.places.test(after))
    throw new Refusal(400, 'after is not a place in this list: begin with its first page')
  const place: Place = { after, most: most + 1 }
  const rows = await list.read(context.owner, { ...filtered, ...place })
  const next = rows.length > most ? list.placeOf(rows[most - 1]!) : undefined
  return html`${listTable(context, list, rows.slice(0, most), options)}
${pager(context, next)}`
}

/** Maximum number of rows of a page. One row more is read, to find out whether another page follows. */
const pageRows = 50

/**
 * Links to the first and the next page of a list.
 * @param next place of the row after which the next page begins; undefined on the last page
 */
function pager({ query, path }: PageContext, next: string | undefined): Html {
  const address = (value: string | undefined): string => {
    const parameters = new URLSearchParams(query)
    if (value === undefined) parameters.delete('after')
    else parameters.set('after', value)
    const text = parameters.toString()
    return `/console${path}${text === '' ? '' : `?${text}`}`
  }
  const isFirst = !query.has('after')
  if (isFirst && next === undefined) return html``
  return html`<nav class="pager" aria-label="Pages of this list">
${isFirst ? '' : html`<a href="${address(undefined)}">First page</a>`}
${next === undefined ? html`<span class="none">End of the list</span>` : html`<a href="${address(next)}" rel="next">Next page</a>`}
</nav>`
}

/** A page with a list and the form that filters it. */
export function listPage<Row, Filtered>(
  { path, title }: { path: string; title: string },
  list: PagedList<Row, Filtered>,
  filters: Filters<Filtered>,
  { fixed, below }: { fixed?: Partial<Filtered>; below?: (context: PageContext) => Html } = {},
): Page {
  return {
    path,
    title,
    navigation: title,
    render: async (context) => {
      const values = readFilters(context, filters)
      return html`<h1>${title}</h1>
${filterForm(path, filters, values)}
${await pagedTable(context, list, { ...values, ...fixed } as Filtered)}
${below?.(context) ?? ''}`
    },
  }
}
