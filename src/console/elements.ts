/** Parts of pages: numbers, times, forms. */
import { html } from 'hono/html'
import { lineCharactersMax } from '../acts/fields.ts'
import type { Html, PageContext } from './page.ts'

const numbers = new Intl.NumberFormat('en')

/** A number such as `1,234,567`. @param count a number, or its digits */
export function integer(count: number | string | bigint): string {
  return numbers.format(typeof count === 'string' ? BigInt(count) : count)
}

const units = ['bytes', 'kB', 'MB', 'GB', 'TB'] as const

/** A size such as `12.3 MB`. */
export function bytes(count: number | string): string {
  let value = Number(count)
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit += 1
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}

/** A duration such as `340 ms`, `12 s`, `3 min 20 s`, `2 h 5 min` or `3 d 4 h`. */
export function duration(ms: number): string {
  if (ms === 0) return '0 s'
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  const [minutes, hours, days] = [
    Math.floor(seconds / 60),
    Math.floor(seconds / 3600),
    Math.floor(seconds / 86_400),
  ]
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${days} d ${hours % 24} h`
}

/** A time in the time zone of the platform, such as `2026-03-01 14:05:09`. */
export function time(at: Date | string, { services }: Pick<PageContext, 'services'>): Html {
  const date = new Date(at)
  // The Swedish locale formats times like ISO 8601.
  const text = date.toLocaleString('sv', { timeZone: services.config.timeZone })
  return html`<time datetime="${date.toISOString()}">${text}</time>`
}

/** Like `time`, but a time of today has no date. */
export function clock(at: Date, context: Pick<PageContext, 'services'>): Html {
  const { timeZone } = context.services.config
  const day = (date: Date) => date.toLocaleDateString('sv', { timeZone })
  if (day(at) !== day(new Date())) return time(at, context)
  return html`<time datetime="${at.toISOString()}">${at.toLocaleTimeString('sv', { timeZone })}</time>`
}

/** A form that posts to an action. @param path below /console */
export function form({ csrf }: Pick<PageContext, 'csrf'>, path: string, content: Html): Html {
  return html`<form method="post" action="/console${path}">
<input type="hidden" name="csrf" value="${csrf}">${content}</form>`
}

/** A field of a form, with its label. */
export function field(label: string, input: Html): Html {
  return html`<label class="field"><span>${label}</span>${input}</label>`
}

/** A list of choices. @param none text of the choice that does not filter */
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

export const required = html` required`

/** A field for a line of text. @param attributes further attributes of the input */
export function lineField(label: string, name: string, attributes: Html | '' = ''): Html {
  return field(
    label,
    html`<input name="${name}" maxlength="${lineCharactersMax}" autocomplete="off"${attributes}>`,
  )
}

/** A field for an id. @param attributes further attributes of the input */
export function idField(label: string, name: string, attributes: Html | '' = ''): Html {
  return field(
    label,
    html`<input name="${name}" inputmode="numeric" pattern="[0-9]{1,16}" autocomplete="off"${attributes}>`,
  )
}

/** A progress bar. If `whole` is undefined, it only shows that work goes on. @param label for screen readers */
export function bar(label: string, done: number, whole: number | undefined): Html {
  if (whole === undefined || whole === 0) return html`<progress aria-label="${label}"></progress>`
  const percent = Math.min(100, Math.floor((100 * done) / whole))
  return html`<progress aria-label="${label}" max="100" value="${percent}">${percent} %</progress>`
}
