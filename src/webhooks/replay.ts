/** Replays: deliveries with the numbers and ids that their events have had before, so subscribers can drop repeats. */
import type { ClientBase } from 'pg'
import { notifyEvents } from '../events/events.sql.ts'
import { packBatch } from './body.ts'
import { type Numbers, numbersOfSpan, readNumbered, type Span } from './sequence/numbered.sql.ts'
import { insertReplay, lockReplayed, replayFailed } from './staff.sql.ts'

/** Events per query. */
const pageEvents = 1_000

/**
 * @returns how many deliveries will be sent again
 * @throws {Error} if nothing can be sent to the subscription
 */
export async function replayFailedDeliveries(
  client: ClientBase,
  subscriptionId: string,
  now: number,
): Promise<number> {
  await lockReceiving(client, subscriptionId)
  const schemaIds = new Set<string>()
  let deliveries = 0
  for (let after: string | null = '0'; after !== null; ) {
    const replayed = await replayFailed(client, subscriptionId, after, now)
    for (const schemaId of replayed.schemaIds) schemaIds.add(schemaId)
    deliveries += replayed.deliveries
    after = replayed.last
  }
  for (const schemaId of schemaIds) await notifyEvents(client, schemaId)
  return deliveries
}

/**
 * Replays what happened in a time span, as far as it is kept and was delivered or skipped before. (The rest is yet to be
 * delivered.)
 * @param now epoch milliseconds
 * @returns how many events
 * @throws {Error} if nothing can be sent to the subscription
 */
export async function replayEvents(
  client: ClientBase,
  subscriptionId: string,
  span: Span,
  now: number,
): Promise<number> {
  const { collected } = await lockReceiving(client, subscriptionId)
  let events = 0
  for (const { first, last } of await numbersOfSpan(client, subscriptionId, span)) {
    const sent = { first, last: Math.min(last, collected) }
    events += (await replayNumbers(client, subscriptionId, sent, now)).events
  }
  return events
}

/**
 * Replays the events with these numbers, as far as they are kept. To be called with the subscription locked.
 * @param now epoch milliseconds
 */
export async function replayNumbers(
  client: ClientBase,
  subscriptionId: string,
  { first, last }: Numbers,
  now: number,
): Promise<{ deliveries: number; events: number }> {
  const schemaIds = new Set<string>()
  const replayed = { deliveries: 0, events: 0 }
  let after = first - 1
  while (after < last) {
    const page = await readNumbered(client, subscriptionId, after, Math.min(pageEvents, last - after))
    for (let unsent = page; unsent.length > 0; ) {
      const batch = packBatch(subscriptionId, unsent)
      await insertReplay(client, subscriptionId, batch, now)
      schemaIds.add(batch.schemaId)
      replayed.deliveries += 1
      replayed.events += batch.events
      unsent = unsent.slice(batch.events)
    }
    after += pageEvents
  }
  for (const schemaId of schemaIds) await notifyEvents(client, schemaId)
  return replayed
}

async function lockReceiving(client: ClientBase, id: string): Promise<{ collected: number }> {
  const subscription = await lockReplayed(client, id)
  if (!subscription) throw new Error(`There is no subscription ${id}: see webhook list`)
  if (!subscription.hasAddress)
    throw new Error(`Nothing is posted to subscription ${id}: its events are read by number`)
  if (subscription.enabled) return subscription
  throw new Error(`Subscription ${id} is disabled and would receive nothing. Run webhook enable ${id} first`)
}
