/** The page before an act that cannot simply be undone: it says what will happen and has the button. No script. */
import { html } from 'hono/html'
import type { Html, PageContext } from '../../page.ts'
import { onceForm } from './forms.ts'

export interface Question {
  title: string
  /** What happens, and what does not. */
  says: Html
  /** Path of the action below /console. */
  path: string
  /** Further fields. */
  fields?: Html
  /** What the button does: `Revoke the token`. */
  button: string
  /** Path of the page to go back to, below /console. */
  back: string
}

export function confirmation(
  context: Pick<PageContext, 'csrf'>,
  { title, says, path, fields, button, back }: Question,
): Html {
  return html`<h1>${title}</h1>
<p>${says}</p>
${onceForm(context, path, html`${fields ?? ''}<p class="buttons"><button class="grave">${button}</button> <a href="/console${back}">Cancel</a></p>`)}`
}

/** A secret or token on the answer of the act that made it, the only place where it ever appears. */
export function shownOnce(label: string, secret: string, use: string): Html {
  return html`<p class="note" role="status">It is shown only here and only now. Copy it before you leave this page.</p>
<p><span id="secret-label">${label}</span>: <output class="secret" aria-labelledby="secret-label">${secret}</output></p>
<p>${use}</p>`
}
