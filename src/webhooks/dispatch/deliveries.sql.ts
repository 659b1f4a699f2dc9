/**
 * Statements that deliver to one subscription. Each runs inside `whileDelivering`.
 *
 * Work on a subscription first locks its row (`lockSubscription`, `recordAttempt`). So a change by its owner, its
 * deletion, and the work of another process come before or after, never in between. What a process read before it had
 * the lock may be outdated, so an attempt is recorded only if it is the next one.
 */
import type { ClientBase } from 'pg'
import { queryCount, queryRows, queryValue } from '../../db/statement.ts'
import type { Batch } from '../body.ts'
import { type SealedSecrets, sealedSigningSecrets } from '../signing-secrets.sql.ts'
import { isOpen, type Subscription } from '../subscriptions.sql.ts'
import type { Decision } from './delivery.ts'
import type { DeliveryResponse } from './post.ts'

/** A subscription, read just before sending. */
export interface Receiver extends SealedSecrets {
  level: Subscription['level']
  postUrl: string
  /** Epoch milliseconds; null if the last delivery succeeded. */
  failingSince: number | null
  /** Epoch milliseconds; the recorded time may be older than the true one. */
  lastSuccessAt: number | null
  /** Epoch milliseconds. Until then, reading does not wake a waiting delivery (`wakeSubscription`). */
  plannedAt: number | null
  /** The last number that was given, and the last number that is in a delivery. */
  numbered: number
  collected: number
}

/** A delivery about to be sent. */
export interface Delivery {
  schemaId: string
  id: string
  /** Number of attempts so far. */
  attempts: number
  attemptsBeforeReplay: number
  isReplay: boolean
  /** First and last number of its events; null if it is from before events had numbers. */
  firstSequence: number | null
  lastSequence: number | null
  /** Epoch of its numbers; null if it has no numbers or retention has deleted their record. */
  epoch: number | null
  body: Buffer
}

/**
 * Records an attempt and its result, for the delivery and its subscription. If staff ended the delivery meanwhile, it
 * is updated only if it arrived.
 * @param response.at epoch milliseconds
 * @returns false if this is no longer the next attempt of the delivery; then nothing was written
 */
export async function recordAttempt(
  client: ClientBase,
  subscriptionId: string,
  { schemaId, id, attempts }: Delivery,
  { at, status, latencyMs, answer, error }: DeliveryResponse & { at: number },
  decision: Decision,
): Promise<boolean> {
  const nextAttemptAt = decision.state === 'pending' ? decision.nextAttemptAt : null
  const next = [subscriptionId, schemaId, id, attempts, decision.state, nextAttemptAt]
  const recorded = await queryCount(client, {
    name: 'record-attempt',
    text: `with receiver as materialized (
        select id from subscriptions where id = $1 for no key update
      ), ended as (
        update deliveries d set attempts = d.attempts + 1, state = $5,
          next_attempt_at = to_timestamp($6::float8 / 1000.0),
          finished_at = case when $5 = 'pending' then null else to_timestamp($7::float8 / 1000.0) end,
          body = case when $5 = 'delivered' then null else body end
        from receiver r
        where d.schema_id = $2 and d.id = $3 and d.subscription_id = r.id and d.attempts = $4
          and (d.state = 'pending' or d.state = 'failed' and $5 = 'delivered')
        returning d.attempts
      )
      insert into delivery_attempts (schema_id, delivery_id, number, at, status, latency_ms, answer, error)
      select $2, $3, attempts, to_timestamp($7::float8 / 1000.0), $8, $9, $10, $11 from ended`,
    values: [...next, at, status, latencyMs, answer, error],
  })
  return recorded === 1
}

/** Records on the subscription that a delivery succeeded. */
export async function recordSuccess(client: ClientBase, subscriptionId: string, now: number): Promise<void> {
  await client.query({
    name: 'record-success',
    text: `update subscriptions set failing_since = null, woken_at = null, last_success_at = to_timestamp($2 / 1000.0) where id = $1`,
    values: [subscriptionId, now],
  })
}

/** @param requestedAt when the receiver asked for the next attempt; until then, reading does not wake the delivery */
export async function recordFailure(
  client: ClientBase,
  subscriptionId: string,
  now: number,
  requestedAt: number | null,
): Promise<void> {
  await client.query({
    name: 'record-failure',
    text: `update subscriptions set failing_since = coalesce(failing_since, to_timestamp($2 / 1000.0)),
        woken_at = coalesce(to_timestamp($3::float8 / 1000.0), woken_at)
      where id = $1 and (failing_since is null or $3::float8 is not null)`,
    values: [subscriptionId, now, requestedAt],
  })
}

type ReceiverRow = Receiver & Omit<Delivery, 'id'> & { id: string | null; isDue: boolean }

/**
 * Returns what to send to a subscription. `due` is the delivery to send now: a batch comes before replays. `batchWaits`
 * states whether a batch is pending; until it ends, no further batch is created. Returns undefined if the subscription is
 * disabled, suspended or has no address, or if its third party is disconnected. Call it after `lockSubscription`.
 */
export async function findNextDelivery(client: ClientBase, subscriptionId: string, now: number) {
  const rows = await queryRows<ReceiverRow>(client, {
    name: 'find-next-delivery',
    text: `select s.level, s.post_url as "postUrl", k.secret_encrypted as "sealedSecret",
        ${sealedSigningSecrets} as "sealedSigningSecrets",
        extract(epoch from s.failing_since)::float8 * 1000 as "failingSince",
        extract(epoch from s.last_success_at)::float8 * 1000 as "lastSuccessAt",
        extract(epoch from s.woken_at)::float8 * 1000 as "plannedAt",
        s.numbered::float8, s.collected::float8,
        d.first_sequence::float8 as "firstSequence", d.last_sequence::float8 as "lastSequence",
        (select r.epoch from sequence_runs r where r.subscription_id = s.id and r.first_sequence <= d.first_sequence
         order by r.first_sequence desc limit 1) as epoch,
        d.schema_id as "schemaId", d.id, d.attempts, d.attempts_before_replay as "attemptsBeforeReplay", d.body,
        d.is_replay as "isReplay", d.next_attempt_at <= to_timestamp($2 / 1000.0) as "isDue"
      from subscriptions s
      join third_parties t on t.id = s.third_party_id and t.disconnected_at is null
      join third_party_secrets k on k.third_party_id = t.id and k.retired_at is null
      left join lateral (
        (select * from deliveries where subscription_id = s.id and state = 'pending' and not is_replay)
        union all
        (select * from deliveries
         where subscription_id = s.id and state = 'pending' and is_replay
           and next_attempt_at <= to_timestamp($2 / 1000.0)
         order by id limit 1)) as d on true
      where s.id = $1 and s.enabled and s.post_url is not null and ${isOpen}
      order by d.is_replay`,
    values: [subscriptionId, now],
  })
  const [receiver] = rows
  if (!receiver) return undefined
  const due: Delivery | undefined = rows.find(
    (row): row is ReceiverRow & { id: string } => row.id !== null && row.isDue,
  )
  return { receiver, due, batchWaits: rows.some(({ id, isReplay }) => id !== null && !isReplay) }
}

/**
 * Stores a delivery with the bytes to send. The next batch begins after the last number of this one. A replay does not
 * move that position, and dispatchers are notified of it.
 * @param now epoch milliseconds
 */
export async function storeDelivery(
  client: ClientBase,
  subscriptionId: string,
  batch: Batch,
  { isReplay, now }: { isReplay: boolean; now: number },
): Promise<Delivery> {
  const { schemaId, body, firstEvent, lastEvent, events, firstSequence, lastSequence } = batch
  const covered = [firstEvent, lastEvent, events, firstSequence, lastSequence]
  const id = await queryValue<string>(client, {
    name: 'store-delivery',
    text: `with moved as (
        update subscriptions set collected = $7 where id = $1 and not $10
      )
      insert into deliveries (schema_id, subscription_id, first_event, last_event, events, first_sequence, last_sequence,
        body, next_attempt_at, created_at, is_replay)
      values ($2, $1, $3, $4, $5, $6, $7, $8, to_timestamp($9 / 1000.0), to_timestamp($9 / 1000.0), $10)
      returning id, case when is_replay then pg_notify('grandlivre_events', schema_id::text) end`,
    values: [subscriptionId, schemaId, ...covered, body, now, isReplay],
  })
  return { ...batch, id, attempts: 0, attemptsBeforeReplay: 0, isReplay }
}

/**
 * Moves the position past numbers whose events are all gone: otherwise every search would find the subscription again.
 */
export async function passOverExpired(client: ClientBase, subscriptionId: string): Promise<void> {
  await client.query('update subscriptions set collected = numbered where id = $1', [subscriptionId])
}
