/** Changes a subscription for its owner (docs/spec/webhooks.md#patches). */
import { strict as assert } from 'node:assert'
import { isDeepStrictEqual } from 'node:util'
import type { ClientBase } from 'pg'
import { lockSubscription, numberAll } from './sequence/numbering.sql.ts'
import {
  changeSubscription,
  enableSubscription,
  type Subscription,
  skipToLatest,
  wakeSubscription,
} from './subscriptions.sql.ts'

/** What the subscription becomes, and whether it skips what was not delivered yet. */
export interface Change {
  to: Pick<Subscription, 'postUrl' | 'onEvents' | 'folderIds'>
  skips: boolean
}

/** Whether all events that are committed get their numbers before the change: it counts for later ones. */
export function needsNumbers(before: Subscription, { to, skips }: Change): boolean {
  return skips || !isDeepStrictEqual([before.onEvents, before.folderIds], [to.onEvents, to.folderIds])
}

/** @param before as locked in this transaction; of one schema */
export async function applyChange(client: ClientBase, before: Subscription, change: Change): Promise<void> {
  const { id, schemaId } = before
  assert(schemaId !== null, 'subscriptions for all schemas are not patched')
  if (needsNumbers(before, change)) {
    // For its gate: a promotion may lie between the numbers that were given before and these.
    await lockSubscription(client, id)
    await numberAll(client, id, schemaId)
  }
  await changeSubscription(client, id, change.to)
  if (change.skips) await skipToLatest(client, id)
  await enableSubscription(client, id)
  await wakeSubscription(client, id, 'change')
}
