/** `grandlivre webhook list`: the subscriptions of the caller. */
import { command } from '../../../../terminal/src/command.ts'
import type { WebhookSubscription } from '../../client/api/items.ts'
import type { Call } from '../command.ts'

export const webhookList = command({
  name: 'webhook list',
  summary: 'your subscriptions to events',
  about: 'Lists the subscriptions that the token sees, with their ids, oldest first.',
  async run({ ledger, terminal, signal, json }: Call) {
    const subscriptions = await ledger().get('/webhook', { signal })
    if (!json && subscriptions.length === 0)
      terminal.note('There is no subscription yet. POST /api/v1/webhook creates one.')
    for (const subscription of subscriptions)
      if (json) terminal.json(subscription)
      else terminal.print(linesOf(subscription))
  },
})

function linesOf({ id, postUrl, onEvents, accountingFolderId }: WebhookSubscription): string[] {
  const folders = accountingFolderId.length === 0 ? 'all folders' : `folder ${accountingFolderId.join(', ')}`
  return [
    `${id}  ${postUrl ?? 'no address: its events are read'}`,
    `  ${' '.repeat(String(id).length)}${onEvents.join(', ')}; ${folders}`,
  ]
}
