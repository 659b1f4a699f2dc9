/**
 * What staff commands show of subscriptions and deliveries, and the statements of replays. As the owner of the tables.
 */
import type { ClientBase, Pool } from 'pg'
import { utc } from '../db/literal.ts'
import type { Batch } from './body.ts'
import type { DeliveryState } from './dispatch/delivery.ts'
import { isForSubscription } from './sequence/numbering.sql.ts'
import { isOpen } from './subscriptions.sql.ts'

export interface SubscriptionRecord {
  id: string
  thirdPartyCode: string
  level: 'api' | 'firm' | 'staff'
  /** Null: all schemas. */
  schemaId: string | null
  firmId: string | null
  /** Empty: the whole schema, or the firm. */
  folderIds: string[]
  /** Null: nothing is posted. */
  postUrl: string | null
  onEvents: string[]
  /** The last number given to an event, and the last one in a delivery. */
  numbered: string
  collected: string
  /** Whether its third party is disconnected, and whether no token sees it. */
  paused: boolean
  suspended: boolean
  /** Null while it is enabled. */
  disabledReason: string | null
  /** ISO 8601, UTC. */
  disabledAt: string | null
  failingSince: string | null
  lastSuccessAt: string | null
  createdAt: string
  /** Deliveries. */
  pending: number
  failed: number
}

/** Oldest first. @param id null for all subscriptions */
export async function readSubscriptions(
  client: ClientBase,
  id: string | null,
): Promise<SubscriptionRecord[]> {
  const { rows } = await client.query<SubscriptionRecord>(
    `select s.id, t.code as "thirdPartyCode", s.level, s.schema_id as "schemaId", s.firm_id as "firmId",
            s.folder_ids as "folderIds", s.post_url as "postUrl", s.on_events as "onEvents",
            s.numbered, s.collected,
            t.disconnected_at is not null as paused, not ${isOpen} as suspended,
            s.disabled_reason as "disabledReason", ${utc('s.disabled_at')} as "disabledAt",
            ${utc('s.failing_since')} as "failingSince", ${utc('s.last_success_at')} as "lastSuccessAt",
            ${utc('s.created_at')} as "createdAt", d.pending, d.failed
     from grandlivre.subscriptions s
     join grandlivre.third_parties t on t.id = s.third_party_id
     cross join lateral (
       select count(*) filter (where state = 'pending')::int as pending,
              count(*) filter (where state = 'failed')::int as failed
       from grandlivre.deliveries where subscription_id = s.id
     ) as d
     where $1::bigint is null or s.id = $1
     order by s.id`,
    [id],
  )
  return rows
}

/** Events that have no number yet, and the time of the oldest: ISO 8601, UTC. */
export interface Unnumbered {
  events: number
  since: string | null
}

export async function readUnnumbered(client: ClientBase, subscriptionId: string): Promise<Unnumbered> {
  const { rows } = await client.query<Unnumbered>(
    `select count(*)::int as events, ${utc('min(e.created_at)')} as since
     from grandlivre.subscriptions s
     join grandlivre.schemas c on s.schema_id is null or c.schema_id = s.schema_id
     left join grandlivre.subscription_positions p on p.schema_id = c.schema_id and p.subscription_id = s.id
     join grandlivre.events e on e.schema_id = c.schema_id and e.id > coalesce(p.position, s.start_position)
       and ${isForSubscription}
     where s.id = $1`,
    [subscriptionId],
  )
  return rows[0]!
}

export async function schemaExists(client: ClientBase, schemaId: string): Promise<boolean> {
  const { rowCount } = await client.query('select from grandlivre.schemas where schema_id = $1', [schemaId])
  return rowCount === 1
}

export interface DeliveryRecord {
  schemaId: string
  id: string
  firstEvent: string
  lastEvent: string
  events: number
  /** Null in deliveries from before events had numbers. */
  firstSequence: string | null
  lastSequence: string | null
  state: DeliveryState
  isReplay: boolean
  attempts: number
  /** ISO 8601, UTC. */
  createdAt: string
  nextAttemptAt: string | null
  finishedAt: string | null
  /** Of the last attempt; null if there was no attempt or no response. */
  status: number | null
  error: string | null
}

/** Newest first. @param filter.before only deliveries before that id */
export async function listDeliveries(
  client: ClientBase,
  filter: { subscriptionId: string; state: DeliveryState | undefined; before?: string; most: number },
): Promise<DeliveryRecord[]> {
  const { subscriptionId, state, before = null, most } = filter
  // The state is part of the text, so that the partial index of those that are pending or failed is used.
  const { rows } = await client.query<DeliveryRecord>(
    `select d.schema_id as "schemaId", d.id, d.first_event as "firstEvent", d.last_event as "lastEvent", d.events,
            d.first_sequence as "firstSequence", d.last_sequence as "lastSequence", d.state, d.is_replay as "isReplay", d.attempts, ${utc('d.created_at')} as "createdAt",
            ${utc('d.next_attempt_at')} as "nextAttemptAt", ${utc('d.finished_at')} as "finishedAt", a.status, a.error
     from grandlivre.deliveries d
     left join grandlivre.delivery_attempts a
       on (a.schema_id, a.delivery_id, a.number) = (d.schema_id, d.id, d.attempts)
     where d.subscription_id = $1 and ($2::bigint is null or d.id < $2)
       ${state === undefined ? '' : `and d.state = '${state}'`}
     order by d.id desc limit $3`,
    [subscriptionId, before, most],
  )
  return rows
}

export interface AttemptRecord {
  number: number
  /** ISO 8601, UTC. */
  at: string
  status: number | null
  latencyMs: number
  /** The first bytes of the response. */
  answer: Buffer | null
  error: string | null
}

/** The attempts of one delivery, in order: the newest `most` of them. */
export async function listAttempts(
  client: ClientBase | Pool,
  subscriptionId: string,
  deliveryId: string,
  most: number,
): Promise<AttemptRecord[]> {
  const { rows } = await client.query<AttemptRecord>(
    `select a.number, ${utc('a.at')} as at, a.status, a.latency_ms as "latencyMs", a.answer, a.error
     from grandlivre.deliveries d
     join grandlivre.delivery_attempts a on a.schema_id = d.schema_id and a.delivery_id = d.id
     where d.subscription_id = $1 and d.id = $2 order by a.number desc limit $3`,
    [subscriptionId, deliveryId, most],
  )
  return rows.toReversed()
}

/**
 * Locks the subscription until the transaction ends, so that no delivery begins or ends meanwhile. Undefined if it does
 * not exist.
 */
export async function lockReplayed(
  client: ClientBase,
  id: string,
): Promise<{ enabled: boolean; hasAddress: boolean; collected: number } | undefined> {
  const { rows } = await client.query<{ enabled: boolean; hasAddress: boolean; collected: number }>(
    `select enabled, post_url is not null as "hasAddress", collected::float8 as collected
     from grandlivre.subscriptions where id = $1 for no key update`,
    [id],
  )
  return rows[0]
}

/** Failed deliveries of one statement: there may be a million, and a statement of the console has ten seconds. */
const replayedMax = 10_000

export interface Replayed {
  deliveries: number
  schemaIds: string[]
  /** The next are after this one. */
  last: string | null
}

/**
 * Makes the first of its failed deliveries pending again, with their stored bodies; the retry table starts over.
 * @param after the id of a delivery
 * @param now epoch milliseconds
 */
export async function replayFailed(
  client: ClientBase,
  subscriptionId: string,
  after: string,
  now: number,
): Promise<Replayed> {
  const { rows } = await client.query<Replayed>(
    `with first as (
       select schema_id, id from grandlivre.deliveries
       where subscription_id = $1 and state = 'failed' and id > $2 order by id limit ${replayedMax}
     ), replayed as (
       update grandlivre.deliveries as d
       set state = 'pending', is_replay = true, attempts_before_replay = attempts, finished_at = null,
           next_attempt_at = to_timestamp($3 / 1000.0)
       from first where d.schema_id = first.schema_id and d.id = first.id
       returning d.schema_id, d.id
     )
     select count(*)::int as deliveries, coalesce(array_agg(distinct schema_id::text), '{}') as "schemaIds", max(id) as last
     from replayed`,
    [subscriptionId, after, now],
  )
  return rows[0]!
}

/**
 * Inserts a replay beside the dispatcher's batches, without moving the subscription's position. @param now epoch
 * milliseconds
 */
export async function insertReplay(
  client: ClientBase,
  subscriptionId: string,
  batch: Batch,
  now: number,
): Promise<void> {
  await client.query(
    `insert into grandlivre.deliveries (schema_id, subscription_id, first_event, last_event, events, first_sequence,
       last_sequence, body, is_replay, next_attempt_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, true, to_timestamp($9 / 1000.0))`,
    [
      batch.schemaId,
      subscriptionId,
      batch.firstEvent,
      batch.lastEvent,
      batch.events,
      batch.firstSequence,
      batch.lastSequence,
      batch.body,
      now,
    ],
  )
}
