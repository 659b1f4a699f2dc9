/**
 * Delivers to one subscription, one request after the other, until nothing is left: first pending deliveries that are
 * due, then new batches.
 *
 * Each step is one transaction that records the attempt, moves the position and stores the next body. The body is sent
 * after its commit. A process that dies in between sends the stored body again: no event is lost, and one is repeated
 * only if its outcome was not recorded.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { PoolClient } from 'pg'
import type { MasterKeys } from '../../auth/secrets.ts'
import { limits } from '../../config.ts'
import { isAway } from '../../db/outage.ts'
import type { Log } from '../../log.ts'
import { type NumberedEvent, packBatch, toldOf } from '../body.ts'
import { forgetDelivery, tellsOfErased } from '../erased-deliveries.sql.ts'
import { oldestNumber, readNumbered } from '../sequence/numbered.sql.ts'
import { lockSubscription, numberNext } from '../sequence/numbering.sql.ts'
import { ensureSigningSecret, openSecrets } from '../signing/signing-secrets.ts'
import { disableSubscription } from '../subscriptions.sql.ts'
import {
  type Attempt,
  type Delivery,
  findWaiting,
  passOverExpired,
  type Receiver,
  recordAttempt,
  recordFailure,
  recordSuccess,
  storeBatch,
} from './deliveries.sql.ts'
import { type Decision, decide, retryAfterMs } from './delivery.ts'
import { type DeliveryResponse, type PostParts, post } from './post.ts'

/** How often a success is recorded while all goes well. */
const successEveryMs = 60_000

export interface DeliverParts extends PostParts {
  /** Decrypts the secrets that sign. */
  masterKeys: MasterKeys
  log: Log
  /** Epoch milliseconds. */
  now: () => number
  /** 0 to 1, excluding 1. */
  random: () => number
}

interface Turn {
  subscriptionId: string
  /** Runs one transaction of the dispatcher (`whileDelivering`). */
  transact: <Result>(run: (client: PoolClient) => Promise<Result>) => Promise<Result>
  /**
   * Whether the next delivery, including the first, may begin: this process still holds the subscription, and others do
   * not wait for a second delivery.
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

interface Sending {
  receiver: Receiver
  delivery: Delivery
}

export async function deliver(parts: DeliverParts, turn: Turn): Promise<void> {
  const { subscriptionId } = turn
  let sending = await turn.transact(async (client) => {
    await lockSubscription(client, subscriptionId)
    return turn.mayContinue() ? next(parts, client, subscriptionId) : undefined
  })
  while (sending) {
    const { receiver, delivery } = sending
    const secrets = openSecrets(receiver, parts.masterKeys)
    const { id, body, firstSequence, lastSequence, epoch } = delivery
    const sequence = firstSequence === null ? undefined : `${firstSequence}-${lastSequence}`
    const request = {
      postUrl: receiver.postUrl,
      id,
      body,
      date: parts.now(),
      sequence,
      epoch: epoch ?? undefined,
      ...secrets,
    }
    const began = performance.now()
    const response = await post(parts, request, turn.stopped)
    turn.onAttempt(performance.now() - began)
    sending = await settle(parts, turn, sending, response)
  }
}

/**
 * Returns the next delivery, stored; undefined if there is nothing to send or the subscription must not receive. After
 * a replay, new events come first, so that a long replay delays them by one request at a time.
 * @param last the delivery sent before
 */
async function next(
  parts: DeliverParts,
  client: PoolClient,
  subscriptionId: string,
  last?: Delivery,
): Promise<Sending | undefined> {
  const waiting = await findWaiting(client, subscriptionId, parts.now())
  if (!waiting) return undefined
  const { receiver, due, batchWaits } = waiting
  if (due && (await tellsOfErased(client, subscriptionId, due))) {
    await forgetDelivery(client, { ...due, subscriptionId, state: 'pending' }, parts.now())
    return next(parts, client, subscriptionId, last)
  }
  await ensureSigningSecret(client, subscriptionId, receiver, parts.masterKeys)
  if (due && receiver.level === 'firm') due.body = await bodyForFirm(client, subscriptionId, due)
  const sending = due && { receiver, delivery: due }
  if (batchWaits || (due && !last?.isReplay)) return sending
  const events = await nextEvents(client, subscriptionId, receiver)
  if (events.length === 0) return sending
  const batch = packBatch(subscriptionId, events)
  return { receiver, delivery: await storeBatch(client, subscriptionId, batch, parts.now()) }
}

/**
 * The body of a stored delivery, made again: one from before firms were told apart, or of a process of the version before,
 * may tell of another firm. All others are the same bytes. Without all of its events, which are kept as long, it is as stored.
 */
async function bodyForFirm(client: PoolClient, id: string, { body, ...delivery }: Delivery): Promise<Buffer> {
  const { firstSequence, lastSequence } = delivery
  if (firstSequence === null || lastSequence === null) return body
  const events = await readNumbered(client, id, firstSequence - 1, lastSequence - firstSequence + 1)
  const isWhole = events[0]?.sequence === firstSequence && events.at(-1)?.sequence === lastSequence
  const batch = isWhole && toldOf(events).length === events.length ? packBatch(id, events) : undefined
  return batch?.lastSequence === lastSequence ? batch.body : body
}

/** Those that have numbers come before those that get theirs now. */
async function nextEvents(
  client: PoolClient,
  subscriptionId: string,
  { collected, numbered }: Receiver,
): Promise<NumberedEvent[]> {
  for (let after = collected; after < numbered; ) {
    const next = await readNumbered(client, subscriptionId, after, limits.deliveryEventsMax)
    const told = toldOf(next)
    if (told.length > 0) return told
    // Only a gap longer than one delivery has none: what was not delivered in 30 days is gone, or another epoch began.
    after = next.at(-1)?.sequence ?? (await oldestNumber(client, subscriptionId, after)) - 1
  }
  if (collected < numbered) await passOverExpired(client, subscriptionId)
  for (;;) {
    const next = await numberNext(client, subscriptionId, limits.deliveryEventsMax)
    const told = toldOf(next)
    if (told.length > 0 || next.length === 0) return told
    // All were erased.
    await passOverExpired(client, subscriptionId)
  }
}

/** Records the attempt and picks the next delivery, in one transaction. */
async function settle(
  parts: DeliverParts,
  turn: Turn,
  { receiver, delivery }: Sending,
  response: DeliveryResponse,
): Promise<Sending | undefined> {
  const { log, now, random } = parts
  const at = now()
  const attempts = delivery.attempts - delivery.attemptsBeforeReplay + 1
  const plannedAt = delivery.isReplay ? null : receiver.plannedAt
  const attempted = { ...response, attempts, failingSince: receiver.failingSince, plannedAt }
  const decision = decide(attempted, at, random())
  const recordAnd = (mayContinue: () => boolean) =>
    retryWhileAway(turn, parts.timing.retryMs, (client) =>
      record(parts, { ...turn, mayContinue }, client, { receiver, delivery }, { ...response, at }, decision),
    )
  const nextSending = await recordAnd(turn.mayContinue).catch(async (error) => {
    // A bug in picking the next delivery must not cause this one, which arrived, to be sent again and again.
    if (!isAway(error)) await recordAnd(() => false)
    throw error
  })
  if (nextSending === 'lost') return undefined
  const { subscriptionId } = turn
  const { schemaId, id: deliveryId } = delivery
  const { status, error, latencyMs } = response
  const fields = { schemaId, subscriptionId, deliveryId, attempt: delivery.attempts + 1, status, latencyMs }
  if (decision.state === 'delivered') log('delivery.sent', fields)
  else if (decision.state === 'pending') log('delivery.refused', { ...fields, error })
  else log('delivery.failed', { ...fields, error })
  if (decision.state === 'pending' && decision.disable !== null)
    log('subscription.disabled', { subscriptionId, reason: decision.disable })
  return nextSending
}

async function record(
  parts: DeliverParts,
  turn: Turn,
  client: PoolClient,
  { receiver, delivery }: Sending,
  attempt: Attempt & Pick<DeliveryResponse, 'retryAfter'>,
  decision: Decision,
): Promise<Sending | undefined | 'lost'> {
  const { subscriptionId } = turn
  const { at } = attempt
  if (!(await recordAttempt(client, subscriptionId, delivery, attempt, decision))) return 'lost'
  const isSuccessDue = receiver.failingSince !== null || at - (receiver.lastSuccessAt ?? 0) >= successEveryMs
  if (decision.state === 'delivered' && isSuccessDue) await recordSuccess(client, subscriptionId, at)
  if (decision.state !== 'delivered') {
    const requestedAt =
      decision.state === 'pending' && retryAfterMs(attempt.retryAfter, at) > 0 ? decision.nextAttemptAt : null
    await recordFailure(client, subscriptionId, at, requestedAt)
  }
  if (decision.state === 'pending' && decision.disable !== null)
    await disableSubscription(client, subscriptionId, decision.disable, at)
  return turn.mayContinue() ? next(parts, client, subscriptionId, delivery) : undefined
}

/**
 * A known response must be recorded, or the delivery is sent twice. So an unreachable database is retried for as long
 * as the process runs.
 */
async function retryWhileAway<Result>(
  { transact, stopped }: Turn,
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
