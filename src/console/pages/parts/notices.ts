/** What an act has done, on the page that follows it. The address names the words, and never carries them. */
import { randomUUID } from 'node:crypto'
import { html } from 'hono/html'
import type { Html, PageContext } from '../../page.ts'
import { outside } from './outside.ts'

/** Notices that the process remembers, so that a page which is loaded again still has its own. */
const rememberedMax = 1_000

const words = new Map<string, string>()

/** The address of the page that shows the words. @param path below /console */
export function noticed(path: string, says: string): string {
  const name = randomUUID()
  words.set(name, says)
  const [oldest] = words.keys()
  if (words.size > rememberedMax) words.delete(oldest!)
  return `${path}?done=${name}`
}

export function notice({ query }: Pick<PageContext, 'query'>): Html {
  const says = words.get(query.get('done') ?? '')
  return says === undefined ? html`` : html`<p class="note" role="status">${outside(says, 1_000)}</p>`
}
