/** Replays that an owner asks for (docs/spec/webhooks.md#replays), in a transaction of its tenant. */
import type { ClientBase } from 'pg'
import { limits } from '../../config.ts'
import { AppError } from '../../errors.ts'
import { checkSent, replayFailedDeliveries, replayNumbers } from '../replay.ts'
import { oldestNumber } from '../sequence/numbered.sql.ts'
import { lockOwnSubscription, type Owner } from '../subscriptions.sql.ts'
import { readReceiving } from './deliveries.sql.ts'

/** The failed deliveries, or the events with these numbers. */
export type Replayed = { failed: true } | { from: number; to: number }

/**
 * @param now epoch milliseconds
 * @returns how many deliveries will be sent
 * @throws {AppError} ERR-WEBHOOK-NOT-FOUND, ERR-WEBHOOK-PULL-ONLY, ERR-WEBHOOK-DISABLED, ERR-TOO-MANY-REQUEST,
 *   ERR-VALIDATION for numbers that were not sent yet, ERR-EVENTS-EXPIRED
 */
export async function replayOwn(
  client: ClientBase,
  owner: Owner,
  subscriptionId: string,
  replayed: Replayed,
  now: number,
): Promise<number> {
  if (!(await lockOwnSubscription(client, owner, subscriptionId))) throw new AppError('ERR-WEBHOOK-NOT-FOUND')
  const { enabled, hasAddress, collected, pending } = await readReceiving(client, subscriptionId)
  if (!hasAddress) throw new AppError('ERR-WEBHOOK-PULL-ONLY')
  if (!enabled) throw new AppError('ERR-WEBHOOK-DISABLED')
  if (pending >= limits.pendingReplaysMax)
    throw new AppError('ERR-TOO-MANY-REQUEST', {
      message: `${pending} replayed deliveries of this subscription wait to be sent. Wait until there are fewer than ${limits.pendingReplaysMax}`,
      headers: { 'Retry-After': '60' },
    })
  if ('failed' in replayed) return replayFailedDeliveries(client, subscriptionId, now)
  const { from, to } = replayed
  checkSent(to, { collected })
  const oldest = await oldestNumber(client, subscriptionId)
  if (from < oldest) throw new AppError('ERR-EVENTS-EXPIRED', { oldest: String(oldest) })
  const { deliveries } = await replayNumbers(client, subscriptionId, { first: from, last: to }, now)
  return deliveries
}
