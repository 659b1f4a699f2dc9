/**
 * Replays: new deliveries of events with the numbers and ids that they had before, so that subscribers can drop
 * repeats.
 */
import type { ClientBase } from 'pg'
import { limits } from '../config.ts'
import { AppError, invalid } from '../errors.ts'
import { packBatch, withoutErased } from './body.ts'
import { storeDelivery } from './dispatch/deliveries.sql.ts'
import { countPendingReplays, renewFailed } from './owner/deliveries.sql.ts'
import {
  type Numbers,
  numbersOfSpan,
  oldestNumber,
  readNumbered,
  type Span,
} from './sequence/numbered.sql.ts'
import { lockOwnSubscription, type Owner, type Subscription } from './subscriptions.sql.ts'

/** Events per query. */
const pageEvents = 1_000

/**
 * Starts a replay for an owner (docs/spec/webhooks.md#replays), in a transaction of its tenant.
 * @param asked the failed deliveries, or the events with these numbers
 * @returns how many deliveries will be sent
 * @throws {AppError} ERR-WEBHOOK-NOT-FOUND, ERR-WEBHOOK-PULL-ONLY, ERR-WEBHOOK-DISABLED, ERR-TOO-MANY-REQUEST,
 *   ERR-VALIDATION for numbers that were not sent yet, ERR-EVENTS-EXPIRED
 */
export async function replayOwn(
  client: ClientBase,
  owner: Owner,
  subscriptionId: string,
  asked: { failed: true } | { from: number; to: number },
): Promise<number> {
  const own = await lockOwnSubscription(client, owner, subscriptionId)
  if (own.postUrl === null) throw new AppError('ERR-WEBHOOK-PULL-ONLY')
  if (!own.enabled) throw new AppError('ERR-WEBHOOK-DISABLED')
  const pending = await countPendingReplays(client, subscriptionId)
  if (pending >= limits.pendingReplaysMax)
    throw new AppError('ERR-TOO-MANY-REQUEST', {
      message: `${pending} replayed deliveries of this subscription wait to be sent. Wait until there are fewer than ${limits.pendingReplaysMax}`,
      headers: { 'Retry-After': '60' },
    })
  if ('failed' in asked) return replayFailedDeliveries(client, subscriptionId)
  const { from, to } = asked
  checkSent(to, own)
  const oldest = await oldestNumber(client, subscriptionId)
  if (from < oldest) throw new AppError('ERR-EVENTS-EXPIRED', { oldest: String(oldest) })
  const { deliveries } = await replayNumbers(client, subscriptionId, { first: from, last: to })
  return deliveries
}

/** Call it with the subscription locked. @returns how many deliveries will be sent again */
export async function replayFailedDeliveries(client: ClientBase, subscriptionId: string) {
  let deliveries = 0
  for (let after: string | null = '0'; after !== null; ) {
    const renewed = await renewFailed(client, subscriptionId, after)
    deliveries += renewed.deliveries
    after = renewed.last
  }
  return deliveries
}

/**
 * Replays the events of a time span that are still kept and were delivered or skipped before; the others are yet to be
 * delivered. Call it with the subscription locked.
 * @returns how many events are replayed
 */
export async function replaySpan(client: ClientBase, { id, collected }: Subscription, span: Span) {
  let events = 0
  for (const { first, last } of await numbersOfSpan(client, id, span)) {
    const sent = { first, last: Math.min(last, collected) }
    events += (await replayNumbers(client, id, sent)).events
  }
  return events
}

/** @param to the last number to replay. @throws {AppError} ERR-VALIDATION if it was not sent yet */
export function checkSent(to: number, { collected }: Subscription): void {
  if (collected === 0) throw invalid('to', 'is not the number of a sent event: no event was sent yet')
  if (to > collected) throw invalid('to', `must be at most ${collected}, the last number that was sent`)
}

/** Replays the events with these numbers, as far as they are still kept. Call it with the subscription locked. */
export async function replayNumbers(client: ClientBase, subscriptionId: string, { first, last }: Numbers) {
  const replayed = { deliveries: 0, events: 0 }
  for (let after = first - 1; after < last; after += pageEvents) {
    const page = await readNumbered(client, subscriptionId, after, Math.min(pageEvents, last - after))
    for (let unsent = withoutErased(page); unsent.length > 0; ) {
      const batch = packBatch(subscriptionId, unsent)
      await storeDelivery(client, subscriptionId, batch, { isReplay: true, now: Date.now() })
      replayed.deliveries += 1
      replayed.events += batch.events
      unsent = unsent.slice(batch.events)
    }
  }
  return replayed
}
