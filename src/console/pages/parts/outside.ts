/**
 * Texts of others in a page: names, reasons, answers of receivers, data of events. They are escaped as everything is, and
 * besides bounded, cleared of control characters, and kept apart in their direction (`bdi`), so that a text that runs
 * from right to left, or says that it does, changes nothing around it.
 */
import { html } from 'hono/html'
import type { Html } from '../../page.ts'

/** Characters of a text that are shown in a list. */
const shownMax = 160

/** One line. Null: a dash. @param most characters */
export function outside(text: string | null | undefined, most = shownMax): Html {
  if (text === null || text === undefined || text === '') return html`<span class="none">none</span>`
  return html`<bdi>${cut(clean(text).replaceAll(/\s+/g, ' '), most)}</bdi>`
}

/** Several lines, as they are. @param most characters */
export function outsideLines(text: string, most: number): Html {
  return html`<pre tabindex="0"><bdi>${cut(clean(text), most)}</bdi></pre>`
}

/** What a receiver answered. Bytes that are not UTF-8 show as replacement characters. */
export function answerText(answer: Buffer | null, most: number): Html {
  if (answer === null) return html`<span class="none">none</span>`
  if (answer.length === 0) return html`<span class="none">empty</span>`
  return outsideLines(answer.toString('utf8'), most)
}

/** A digest or cursor in a list: its beginning, with the whole where a pointer rests. */
export function short(text: string): Html {
  return html`<code title="${text}">${cut(text, 16)}</code>`
}

/** Without control characters except line breaks and tabs, and without marks of direction. */
function clean(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '\ufffd')
}

function cut(text: string, most: number): string {
  if (text.length <= most) return text
  // Never between the halves of a pair.
  const end = /[\ud800-\udbff]/.test(text[most - 1]!) ? most - 1 : most
  return `${text.slice(0, end)}…`
}
