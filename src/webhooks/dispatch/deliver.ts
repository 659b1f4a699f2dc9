/**
 * Sends what there is for one subscription, one request after the other, until nothing is left: what waits for its
 * next attempt, then new batches.
 *
 * Each step is one transaction: the attempt is recorded, the position moved and the next body stored, or nothing of it.
 * Then the body is sent. A process that dies in between sends the stored body again, so an event is lost by nothing
 * and repeated only where nobody knows whether it arrived.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { PoolClient } from 'pg'
import type { Dispatcher as Agent } from 'undici'
import { decrypt } from '../../auth/secrets.ts'
import { limits } from '../../config.ts'
import { AppError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import { packBatch } from '../body.ts'
import { disableSubscription } from '../subscriptions.sql.ts'
import type { TargetRules } from '../target.ts'
import {
  type Attempt,
  collectEvents,
  type Delivery,
  findWaiting,
  lockReceiver,
  type Receiver,
  recordAttempt,
  recordFailure,
  recordSuccess,
  storeBatch,
} from './deliveries.sql.ts'
import { type Decision, decide } from './delivery.ts'
import { type DeliveryResponse, post } from './post.ts'

/** While all is well, that it is is written down so often. */
const successEveryMs = 60_000

export interface DeliverParts {
  /** Under which the secrets of third parties are stored. */
  masterKey: Buffer
  /** Connects to vetted addresses alone. */
  agent: Agent
  rules: TargetRules
  log: Log
  /** Epoch milliseconds. */
  now: () => number
  /** From 0 up to 1. */
  random: () => number
}

/** One transaction of the dispatcher (`whileDelivering`). */
export type Transact = <Result>(run: (client: PoolClient) => Promise<Result>) => Promise<Result>

export interface Turn {
  subscriptionId: string
  transact: Transact
  /**
   * Whether the next delivery may be begun, the first one, too: this process still has the subscription, and others do not
   * wait for a second one.
   */
  mayContinue: () => boolean
  /** Told after each attempt for how long it kept the subscription: the end of an answer may come long after its status. */
  onAttempt: (tookMs: number) => void
  /** Aborted when the process ends: requests on their way are cut off, and nothing is known of them. */
  stopped: AbortSignal
}

interface Sending {
  receiver: Receiver
  delivery: Delivery
}

export async function deliver(parts: DeliverParts, turn: Turn): Promise<void> {
  const { subscriptionId } = turn
  let sending = await turn.transact(async (client) => {
    await lockReceiver(client, subscriptionId)
    return turn.mayContinue() ? next(parts, client, subscriptionId) : undefined
  })
  while (sending) {
    const { receiver, delivery } = sending
    const secret = decrypt(receiver.sealedSecret, parts.masterKey)
    const request = { postUrl: receiver.postUrl, body: delivery.body, secret, date: parts.now() }
    const began = performance.now()
    const response = await post(parts.agent, parts.rules, request, turn.stopped)
    turn.onAttempt(performance.now() - began)
    sending = await settle(parts, turn, sending, response)
  }
}

/**
 * What is to be sent now, stored. Undefined where there is nothing, or the subscription is to get nothing. Behind a replay
 * new events come first, so that a long replay holds them up by a request at a time.
 * @param last what was sent before
 */
async function next(
  { now }: DeliverParts,
  client: PoolClient,
  subscriptionId: string,
  last?: Delivery,
): Promise<Sending | undefined> {
  const waiting = await findWaiting(client, subscriptionId, now())
  if (!waiting) return undefined
  const { receiver, due, batchWaits } = waiting
  const sending = due && { receiver, delivery: due }
  if (batchWaits || (due && !last?.isReplay)) return sending
  const found = await collectEvents(client, subscriptionId, limits.deliveryEventsMax)
  if (!found) return sending
  const batch = packBatch(subscriptionId, found.events)
  return { receiver, delivery: await storeBatch(client, subscriptionId, found.schemaId, batch, now()) }
}

/** Records the attempt and takes what is to be sent next, in one transaction. */
async function settle(
  parts: DeliverParts,
  turn: Turn,
  { receiver, delivery }: Sending,
  response: DeliveryResponse,
): Promise<Sending | undefined> {
  const { log, now, random } = parts
  const at = now()
  const attempts = delivery.attempts - delivery.attemptsBeforeReplay + 1
  const decision = decide({ ...response, attempts, failingSince: receiver.failingSince }, at, random())
  const recordAnd = (mayContinue: () => boolean) =>
    retryWhileAway(turn, (client) =>
      record(parts, { ...turn, mayContinue }, client, { receiver, delivery }, { ...response, at }, decision),
    )
  const taken = await recordAnd(turn.mayContinue).catch(async (error) => {
    // A mistake in what comes next would make what has arrived be sent again and again.
    if (!isAway(error)) await recordAnd(() => false)
    throw error
  })
  if (taken === 'lost') return undefined
  const { subscriptionId } = turn
  const { schemaId, id: deliveryId } = delivery
  const { status, error, latencyMs } = response
  const fields = { schemaId, subscriptionId, deliveryId, attempt: delivery.attempts + 1, status, latencyMs }
  if (decision.state === 'delivered') log('delivery.sent', fields)
  else if (decision.state === 'pending') log('delivery.refused', { ...fields, error })
  else log('delivery.failed', { ...fields, error })
  if (decision.state === 'failed' && decision.disable !== null)
    log('subscription.disabled', { subscriptionId, reason: decision.disable })
  return taken
}

async function record(
  parts: DeliverParts,
  turn: Turn,
  client: PoolClient,
  { receiver, delivery }: Sending,
  attempt: Attempt,
  decision: Decision,
): Promise<Sending | undefined | 'lost'> {
  const { subscriptionId } = turn
  const { at } = attempt
  if (!(await recordAttempt(client, subscriptionId, delivery, attempt, decision))) return 'lost'
  const isSuccessDue = receiver.failingSince !== null || at - (receiver.lastSuccessAt ?? 0) >= successEveryMs
  if (decision.state === 'delivered' && isSuccessDue) await recordSuccess(client, subscriptionId, at)
  if (decision.state !== 'delivered') await recordFailure(client, subscriptionId, at)
  if (decision.state === 'failed' && decision.disable !== null)
    await disableSubscription(client, subscriptionId, decision.disable, at)
  return turn.mayContinue() ? next(parts, client, subscriptionId, delivery) : undefined
}

/**
 * An answer that is known must be written down, or the delivery is sent a second time. So a database that is away for a
 * moment is waited for, for as long as the process runs.
 */
async function retryWhileAway<Result>(
  { transact, stopped }: Turn,
  run: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  for (;;) {
    try {
      return await transact(run)
    } catch (error) {
      if (!isAway(error) || stopped.aborted) throw error
      await delay(limits.deliveryRetryMs, undefined, { signal: stopped })
    }
  }
}

function isAway(error: unknown): boolean {
  return error instanceof AppError && error.code === 'ERR-UNAVAILABLE'
}
