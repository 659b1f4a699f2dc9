/** What an act has done, on the page that follows it. The address names a sentence, and never carries one. */
import { html } from 'hono/html'
import type { Html, PageContext } from '../../page.ts'

const sentences = {
  connected: 'The partner is connected: its tokens are accepted again.',
  disconnected: 'The partner is disconnected: all its tokens are refused from now on.',
  revoked: 'The token is revoked: it is refused from now on.',
  enabled: 'The subscription is enabled and goes on where it stopped.',
  skipped: 'The subscription is enabled. What was not delivered is skipped and can be replayed.',
  disabled: 'The subscription is disabled: nothing is sent until it is enabled.',
  replayed: 'The deliveries are sent again.',
} as const

export type Notice = keyof typeof sentences

export function notice({ query }: Pick<PageContext, 'query'>): Html {
  const name = query.get('done') ?? ''
  if (!Object.hasOwn(sentences, name)) return html``
  return html`<p class="note" role="status">${sentences[name as Notice]}</p>`
}
