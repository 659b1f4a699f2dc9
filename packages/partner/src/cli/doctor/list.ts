/** `grandlivre webhook list`: the subscriptions of the caller. */
import { command } from '../../../../terminal/src/command.ts'
import { table } from '../../../../terminal/src/table.ts'
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
    else if (json) for (const subscription of subscriptions) terminal.json(subscription)
    else terminal.print(table(['id', 'address', 'folders', 'events'], subscriptions.map(cellsOf)))
  },
})

function cellsOf({ id, postUrl, onEvents, accountingFolderId }: WebhookSubscription): string[] {
  const folders = accountingFolderId.length === 0 ? 'all' : accountingFolderId.join(',')
  return [String(id), postUrl ?? 'none: events are read', folders, onEvents.join(',')]
}
