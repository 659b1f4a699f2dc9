/** Replays by staff, inside their transaction. Events keep their ids, so subscribers can drop repeats. */
import type { ClientBase } from 'pg'
import { notifyEvents } from '../events/events.sql.ts'
import { packBatch, type StoredEvent } from './body.ts'
import { listSchemas } from './retention.sql.ts'
import { eventsToReplay, insertReplay, lockSubscription, replayFailed, type Span } from './staff.sql.ts'

/** Events per query. */
const pageEvents = 1_000

/**
 * @returns how many deliveries will be sent again
 * @throws {Error} if the subscription does not exist or is disabled
 */
export async function replayFailedDeliveries(
  client: ClientBase,
  subscriptionId: string,
  now: number,
): Promise<number> {
  await lockEnabled(client, subscriptionId)
  const schemaIds = await replayFailed(client, subscriptionId, now)
  for (const schemaId of new Set(schemaIds)) await notifyEvents(client, schemaId)
  return schemaIds.length
}

/**
 * Replays the retained events of a time span that match the subscription's current filter.
 * @param now epoch milliseconds
 * @returns how many events
 * @throws {Error} if the subscription does not exist or is disabled
 */
export async function replayEvents(
  client: ClientBase,
  subscriptionId: string,
  span: Span,
  now: number,
): Promise<number> {
  const { schemaId } = await lockEnabled(client, subscriptionId)
  let events = 0
  for (const each of schemaId === null ? await listSchemas(client) : [schemaId]) {
    const replayed = await replaySchema(client, subscriptionId, each, span, now)
    if (replayed > 0) await notifyEvents(client, each)
    events += replayed
  }
  return events
}

async function replaySchema(
  client: ClientBase,
  subscriptionId: string,
  schemaId: string,
  span: Span,
  now: number,
): Promise<number> {
  let replayed = 0
  let after = '0'
  let unsent: StoredEvent[] = []
  for (;;) {
    const page = await eventsToReplay(client, subscriptionId, schemaId, span, after, pageEvents)
    unsent.push(...page)
    // Events left over by one batch begin the next; only the last batch may be small.
    while (unsent.length > 0 && (page.length === 0 || unsent.length >= pageEvents)) {
      const batch = packBatch(subscriptionId, unsent)
      await insertReplay(client, subscriptionId, schemaId, batch, now)
      unsent = unsent.slice(batch.events)
      replayed += batch.events
    }
    const last = page.at(-1)
    if (!last) return replayed
    after = last.id
  }
}

async function lockEnabled(client: ClientBase, id: string): Promise<{ schemaId: string | null }> {
  const subscription = await lockSubscription(client, id)
  if (!subscription) throw new Error(`There is no subscription ${id}: see webhook list`)
  if (subscription.enabled) return subscription
  throw new Error(`Subscription ${id} is disabled and would receive nothing. Run webhook enable ${id} first`)
}
