/**
 * Texts of others in a page: names, reasons, answers of receivers, data of events. Like everything they are escaped.
 * They are also shortened, cleared of control characters, and isolated in their direction (`bdi`), so that text from
 * right to left does not change the text around it.
 */
import { html } from 'hono/html'
import type { Html } from '../../page.ts'

/** Most characters of a text that a list shows. */
const shownMax = 160

/** A text in one line. If it is null, shows `none`. @param most characters that are shown */
export function foreign(text: string | null | undefined, most = shownMax): Html {
  if (text === null || text === undefined || text === '') return html`<span class="none">none</span>`
  return html`<bdi>${cut(clean(text).replaceAll(/\s+/g, ' '), most)}</bdi>`
}

/** A text with its line breaks. @param most characters that are shown */
function foreignLines(text: string, most: number): Html {
  return html`<pre tabindex="0"><bdi>${cut(clean(text), most)}</bdi></pre>`
}

/** What a receiver answered. Bytes that are not UTF-8 show as replacement characters. */
export function answerText(answer: Buffer | null, most: number): Html {
  if (answer === null) return html`<span class="none">none</span>`
  if (answer.length === 0) return html`<span class="none">empty</span>`
  return foreignLines(answer.toString('utf8'), most)
}

/** A digest or cursor in a list: shows its beginning, and all of it where a pointer rests. */
export function short(text: string): Html {
  return html`<code title="${text}">${cut(text, 16)}</code>`
}

/** Shows U+FFFD in place of control characters, except line breaks and tabs, and of marks of direction. */
function clean(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '\ufffd')
}

function cut(text: string, most: number): string {
  if (text.length <= most) return text
  // Ends before a surrogate pair instead of cutting it in two.
  const end = /[\ud800-\udbff]/.test(text[most - 1]!) ? most - 1 : most
  return `${text.slice(0, end)}…`
}
