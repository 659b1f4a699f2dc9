/**
 * Delivers to one subscription, one request after the other, until nothing is left: first pending deliveries that are
 * due, then new batches.
 *
 * Each step is one transaction that records the attempt, moves the position and stores the next body. The body is sent
 * after its commit. If the process dies in between, another sends the stored body again: no event is lost, and an
 * event is repeated only if the outcome of its delivery was not recorded.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { PoolClient } from 'pg'
import type { MasterKeys } from '../../auth/secrets.ts'
import { limits } from '../../config.ts'
import { isAway } from '../../db/outage.ts'
import type { Log } from '../../log.ts'
import { type NumberedEvent, packBatch, withoutErased } from '../body.ts'
import { forgetDelivery } from '../erased-deliveries.sql.ts'
import { oldestNumber, readNumbered } from '../sequence/numbered.sql.ts'
import { lockSubscription, numberNext } from '../sequence/numbering.sql.ts'
import { ensureSigningSecret, openSecrets } from '../signing-secrets.sql.ts'
import { disableSubscription } from '../subscriptions.sql.ts'
import {
  type Delivery,
  findNextDelivery,
  passOverExpired,
  type Receiver,
  recordAttempt,
  recordFailure,
  recordSuccess,
  storeDelivery,
} from './deliveries.sql.ts'
import { decide, retryAfterMs } from './delivery.ts'
import { type DeliveryResponse, type HttpToSubscribers, post } from './post.ts'

/** How often the time of the last success is recorded while all deliveries succeed. */
const successEveryMs = 60_000

export interface Sender extends HttpToSubscribers {
  /** Decrypt the secrets that sign deliveries. */
  masterKeys: MasterKeys
  log: Log
  /** Epoch milliseconds. */
  now: () => number
  /** 0 to 1, excluding 1. */
  random: () => number
}

/** One subscription, for as long as this process delivers to it. */
interface ServedSubscription {
  subscriptionId: string
  /** Runs one transaction of the dispatcher (`whileDelivering`). */
  transact: <Result>(run: (client: PoolClient) => Promise<Result>) => Promise<Result>
  /**
   * Whether the next delivery may begin. False if this process no longer holds the subscription; after the first
   * delivery, also if others wait for its slot.
   */
  mayContinue: () => boolean
  /**
   * Called after each attempt with the time that the subscription was occupied: a response may end long after its
   * status arrived.
   */
  onAttempt: (tookMs: number) => void
  /** Aborted when the process ends: requests in flight are cut off, with unknown results. */
  stopped: AbortSignal
}

interface NextDelivery {
  receiver: Receiver
  delivery: Delivery
}

export async function deliver(sender: Sender, served: ServedSubscription): Promise<void> {
  const { subscriptionId } = served
  let sending = await served.transact(async (client) => {
    await lockSubscription(client, subscriptionId)
    return served.mayContinue() ? pickNext(sender, client, subscriptionId) : undefined
  })
  while (sending) {
    const { receiver, delivery } = sending
    const { id, body, firstSequence, lastSequence, epoch } = delivery
    const request = {
      postUrl: receiver.postUrl,
      id,
      body,
      date: sender.now(),
      sequence: firstSequence === null ? undefined : `${firstSequence}-${lastSequence}`,
      epoch: epoch ?? undefined,
      ...openSecrets(receiver, sender.masterKeys),
    }
    const began = performance.now()
    const response = await post(sender, request, served.stopped)
    served.onAttempt(performance.now() - began)
    sending = await recordAndPickNext(sender, served, sending, response)
  }
}

/**
 * Picks the next delivery, and stores it if it is new. Returns undefined if there is nothing to send or the
 * subscription must not receive. After a replay, new events come first, so that a long replay delays them by one
 * request at a time.
 * @param last the delivery sent before
 */
async function pickNext(
  sender: Sender,
  client: PoolClient,
  subscriptionId: string,
  last?: Delivery,
): Promise<NextDelivery | undefined> {
  const next = await findNextDelivery(client, subscriptionId, sender.now())
  if (!next) return undefined
  const { receiver, due, batchWaits } = next
  if (due) {
    const { firstSequence: first, lastSequence } = due
    // Retention has deleted all events of a delivery from before events had numbers.
    const events =
      first === null ? [] : await readNumbered(client, subscriptionId, first - 1, lastSequence! - first + 1)
    if (withoutErased(events).length < events.length) {
      await forgetDelivery(client, { ...due, subscriptionId, state: 'pending' })
      return pickNext(sender, client, subscriptionId, last)
    }
    if (receiver.level === 'firm') due.body = bodyForFirm(subscriptionId, due, events)
  }
  await ensureSigningSecret(client, subscriptionId, receiver, sender.masterKeys)
  const sending = due && { receiver, delivery: due }
  if (batchWaits || (due && !last?.isReplay)) return sending
  const events = await nextEvents(client, subscriptionId, receiver)
  if (events.length === 0) return sending
  const batch = packBatch(subscriptionId, events)
  const stored = { isReplay: false, now: sender.now() }
  return { receiver, delivery: await storeDelivery(client, subscriptionId, batch, stored) }
}

/**
 * Packs the body of a stored delivery again from its events. A body that was stored before firms were told apart, or by
 * a process of the previous version, may show events of another firm. For every other body the bytes stay the same. If
 * some of its events are no longer kept, the stored body is sent.
 */
function bodyForFirm(
  id: string,
  { firstSequence, lastSequence, body }: Delivery,
  events: NumberedEvent[],
): Buffer {
  const isWhole = events[0]?.sequence === firstSequence && events.at(-1)?.sequence === lastSequence
  const batch = isWhole ? packBatch(id, events) : undefined
  return batch?.lastSequence === lastSequence ? batch.body : body
}

/** Returns the next events to deliver: first those that have numbers already, then those that get their numbers now. */
async function nextEvents(
  client: PoolClient,
  subscriptionId: string,
  { collected, numbered }: Receiver,
): Promise<NumberedEvent[]> {
  for (let after = collected; after < numbered; ) {
    const next = await readNumbered(client, subscriptionId, after, limits.deliveryEventsMax)
    const sent = withoutErased(next)
    if (sent.length > 0) return sent
    // Only a gap longer than one delivery has no events: retention deleted them after 30 days, or another epoch began.
    after = next.at(-1)?.sequence ?? (await oldestNumber(client, subscriptionId, after)) - 1
  }
  if (collected < numbered) await passOverExpired(client, subscriptionId)
  for (;;) {
    const next = await numberNext(client, subscriptionId, limits.deliveryEventsMax)
    const sent = withoutErased(next)
    if (sent.length > 0 || next.length === 0) return sent
    // All these events were erased.
    await passOverExpired(client, subscriptionId)
  }
}

/** Records the attempt and picks the next delivery, in one transaction. */
async function recordAndPickNext(
  sender: Sender,
  served: ServedSubscription,
  { receiver, delivery }: NextDelivery,
  response: DeliveryResponse,
): Promise<NextDelivery | undefined> {
  const { subscriptionId } = served
  const at = sender.now()
  const { failingSince, lastSuccessAt } = receiver
  const attempts = delivery.attempts - delivery.attemptsBeforeReplay + 1
  const plannedAt = delivery.isReplay ? null : receiver.plannedAt
  const decision = decide({ ...response, attempts, failingSince, plannedAt }, at, sender.random())
  const disable = decision.state === 'pending' ? decision.disable : null
  const recordAnd = (mayContinue: () => boolean) =>
    retryWhileAway(served, sender.timing.retryMs, async (client) => {
      const isRecorded = await recordAttempt(client, subscriptionId, delivery, { ...response, at }, decision)
      if (!isRecorded) return 'lost'
      if (decision.state === 'delivered') {
        if (failingSince !== null || at - (lastSuccessAt ?? 0) >= successEveryMs)
          await recordSuccess(client, subscriptionId, at)
      } else {
        const isRequested = decision.state === 'pending' && retryAfterMs(response.retryAfter, at) > 0
        await recordFailure(client, subscriptionId, at, isRequested ? decision.nextAttemptAt : null)
      }
      if (disable !== null) await disableSubscription(client, subscriptionId, disable, at)
      return mayContinue() ? pickNext(sender, client, subscriptionId, delivery) : undefined
    })
  const next = await recordAnd(served.mayContinue).catch(async (error) => {
    // A bug in picking the next delivery must not lose the record of this one: without the record, a delivery that
    // arrived would be sent again and again.
    if (!isAway(error)) await recordAnd(() => false)
    throw error
  })
  if (next === 'lost') return undefined
  const { schemaId, id: deliveryId } = delivery
  const { status, error, latencyMs } = response
  const fields = { schemaId, subscriptionId, deliveryId, attempt: delivery.attempts + 1, status, latencyMs }
  if (decision.state === 'delivered') sender.log('delivery.sent', fields)
  else if (decision.state === 'pending') sender.log('delivery.refused', { ...fields, error })
  else sender.log('delivery.failed', { ...fields, error })
  if (disable !== null) sender.log('subscription.disabled', { subscriptionId, reason: disable })
  return next
}

/**
 * Retries while the database is unreachable, for as long as the process runs: a known response must be recorded, or the
 * delivery is sent twice.
 */
async function retryWhileAway<Result>(
  { transact, stopped }: ServedSubscription,
  retryMs: number,
  run: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  for (;;) {
    try {
      return await transact(run)
    } catch (error) {
      if (!isAway(error) || stopped.aborted) throw error
      await delay(retryMs, undefined, { signal: stopped })
    }
  }
}
