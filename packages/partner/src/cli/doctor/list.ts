/** `grandlivre webhook list`: the subscriptions of the caller. */
import type { WebhookSubscription } from '../../client/api/items.ts'
import type { Call, Command } from '../command.ts'

export const webhookList: Command = {
  name: 'webhook list',
  summary: 'your subscriptions to events',
  usage: `Usage: grandlivre webhook list

Lists the subscriptions that the token sees, with their ids, oldest first.
`,
  options: {},
  run: async ({ ledger, terminal, signal, json }: Call): Promise<void> => {
    const subscriptions = await ledger().get('/webhook', { signal })
    if (!json && subscriptions.length === 0)
      terminal.note('There is no subscription yet. POST /api/v1/webhook creates one.')
    for (const subscription of subscriptions)
      if (json) terminal.json(subscription)
      else for (const line of linesOf(subscription)) terminal.print(line)
  },
}

function linesOf({ id, postUrl, onEvents, accountingFolderId }: WebhookSubscription): string[] {
  const folders = accountingFolderId.length === 0 ? 'all folders' : `folder ${accountingFolderId.join(', ')}`
  return [
    `${id}  ${postUrl ?? 'no address: its events are read'}`,
    `  ${' '.repeat(String(id).length)}${onEvents.join(', ')}; ${folders}`,
  ]
}
