/**
 * What staff commands show of subscriptions and deliveries, and the statements of replays. As the owner of the tables.
 */
import type { ClientBase, Pool } from 'pg'
import { utc } from '../db/literal.ts'
import { seesFolder } from '../ledger/folders.sql.ts'
import type { Batch } from './body.ts'
import type { DeliveryState } from './dispatch/delivery.ts'
import { firstMatch, isForSubscription, positions } from './sequence/numbering.sql.ts'
import { isOpen } from './subscriptions.sql.ts'

export const subscriptionStates = [
  'enabled',
  'failing',
  'paused',
  'suspended',
  'disabled',
  'no address',
] as const
export type SubscriptionState = (typeof subscriptionStates)[number]

/** Up to here the console counts deliveries, and events without a number: a subscription may have a million. */
export const countedMax = 1_000

/** Times are ISO 8601, UTC. */
export interface SubscriptionRecord {
  id: string
  partnerCode: string
  level: 'api' | 'firm' | 'staff'
  /** Null: all schemas. */
  schemaId: string | null
  firmId: string | null
  /** Empty: the whole schema, or the firm. */
  folderIds: string[]
  /** Null: nothing is posted. */
  postUrl: string | null
  onEvents: string[]
  /** Failing: enabled, without a success since `failingSince`. */
  state: SubscriptionState
  /** Whether its partner is disconnected, and whether no token sees it. */
  isPaused: boolean
  isSuspended: boolean
  disabledReason: string | null
  disabledAt: string | null
  failingSince: string | null
  lastSuccessAt: string | null
  createdAt: string
  /** The last number given to an event, and the last one in a delivery. */
  numbered: string
  collected: string
  /** Deliveries that failed, and that wait. */
  failed: number
  pending: number
  /** When the oldest delivery that waits was made; null if none waits. */
  pendingSince: string | null
}

const state = `case when s.disabled_at is not null then 'disabled' when t.disconnected_at is not null then 'paused'
  when not ${isOpen} then 'suspended' when s.post_url is null then 'no address'
  when s.failing_since is not null then 'failing' else 'enabled' end`

export interface SubscriptionFilter {
  id?: string | undefined
  state?: SubscriptionState | undefined
  /** Code of the third party. */
  partner?: string | undefined
  /** Only those that get the events of this folder. */
  folder?: string | undefined
  /** Only subscriptions after this id. */
  after?: string | undefined
  most?: number | undefined
  /** Deliveries are counted up to one more than this. Absent: all are. */
  counted?: number | undefined
}

/** In the order of their ids. Deliveries are counted by the partial indexes of those that failed and that wait. */
export async function listSubscriptions(
  client: ClientBase | Pool,
  { id, state: wanted, partner, folder, after, most, counted }: SubscriptionFilter,
): Promise<SubscriptionRecord[]> {
  const { rows } = await client.query<SubscriptionRecord>(
    `select s.id, t.code as "partnerCode", s.level, s.schema_id as "schemaId", s.firm_id as "firmId",
       s.folder_ids as "folderIds", s.post_url as "postUrl", s.on_events as "onEvents", ${state} as state,
       t.disconnected_at is not null as "isPaused", not ${isOpen} as "isSuspended",
       s.disabled_reason as "disabledReason", ${utc('s.disabled_at')} as "disabledAt",
       ${utc('s.failing_since')} as "failingSince", ${utc('s.last_success_at')} as "lastSuccessAt",
       ${utc('s.created_at')} as "createdAt", s.numbered, s.collected, d.failed, w.pending,
       ${utc('w.since')} as "pendingSince"
     from (
       select s.* from subscriptions s join third_parties t on t.id = s.third_party_id
       where ($1::bigint is null or s.id = $1) and ($2::text is null or ${state} = $2) and ($3::text is null or t.code = $3)
         and ($4::bigint is null or s.id > $4)
         and ($7::bigint is null or exists (select from folders f where f.id = $7 and ${seesFolder}))
       order by s.id limit $5) as s
     join third_parties t on t.id = s.third_party_id
     cross join lateral (
       select count(*)::int as failed from (
         select from deliveries where subscription_id = s.id and state = 'failed' limit $6::bigint + 1) as counted) as d
     cross join lateral (
       select count(*)::int as pending, min(created_at) as since from (
         select created_at from deliveries where subscription_id = s.id and state = 'pending'
         order by id limit $6::bigint + 1) as waiting) as w
     order by s.id`,
    [id, wanted, partner, after, most, counted, folder],
  )
  return rows
}

/** Undefined if there is none. */
export async function readSubscription(
  client: ClientBase | Pool,
  id: string,
  counted?: number,
): Promise<SubscriptionRecord | undefined> {
  const [found] = await listSubscriptions(client, { id, counted })
  return found
}

export interface Unnumbered {
  events: number
  /** When the oldest happened: ISO 8601, UTC. */
  since: string | null
}

/**
 * Events that a subscription selects and that have no number yet. In each schema, as many events as are counted are read
 * from the first match on; a rare kind among many others is therefore counted too low.
 * @param counted counts up to one more than this. Absent: counts all
 */
export async function countUnnumbered(client: ClientBase | Pool, id: string, counted?: number) {
  const { rows } = await client.query<Unnumbered>(
    `with first as materialized (
       select at.schema_id, ${firstMatch} as id
       from subscriptions s cross join lateral ${positions} where s.id = $1
     ), counted as (
       select e.created_at
       from first cross join subscriptions s
       cross join lateral (
         select * from events where schema_id = first.schema_id and id >= first.id
         order by id limit $2::bigint + 1) as e
       where first.id is not null and s.id = $1 and ${isForSubscription}
       limit $2::bigint + 1)
     select count(*)::int as events, ${utc('min(created_at)')} as since from counted`,
    [id, counted],
  )
  return rows[0]!
}

export async function schemaExists(client: ClientBase, schemaId: string): Promise<boolean> {
  const { rowCount } = await client.query('select from grandlivre.schemas where schema_id = $1', [schemaId])
  return rowCount === 1
}

export interface DeliveryRecord {
  subscriptionId: string
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

export interface DeliveryFilter {
  subscriptionId: string
  state?: DeliveryState | undefined
  /** Only deliveries older than the one with that id. */
  after?: string | undefined
  most?: number | undefined
}

/** Newest first. */
export async function listDeliveries(
  client: ClientBase | Pool,
  { subscriptionId, state, after, most }: DeliveryFilter,
): Promise<DeliveryRecord[]> {
  // The state is part of the text, so that the partial index of those that are pending or failed is used.
  const { rows } = await client.query<DeliveryRecord>(
    `select d.subscription_id as "subscriptionId", d.schema_id as "schemaId", d.id, d.first_event as "firstEvent", d.last_event as "lastEvent", d.events,
            d.first_sequence as "firstSequence", d.last_sequence as "lastSequence", d.state, d.is_replay as "isReplay", d.attempts, ${utc('d.created_at')} as "createdAt",
            ${utc('d.next_attempt_at')} as "nextAttemptAt", ${utc('d.finished_at')} as "finishedAt", a.status, a.error
     from grandlivre.deliveries d
     left join grandlivre.delivery_attempts a
       on (a.schema_id, a.delivery_id, a.number) = (d.schema_id, d.id, d.attempts)
     where d.subscription_id = $1 and ($2::bigint is null or d.id < $2)
       ${state === undefined ? '' : `and d.state = '${state}'`}
     order by d.id desc limit $3`,
    [subscriptionId, after, most],
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

export interface AttemptFilter {
  subscriptionId: string
  deliveryId: string
  most: number
}

/** The attempts of one delivery, in order: the newest `most` of them. */
export async function listAttempts(
  client: ClientBase | Pool,
  { subscriptionId, deliveryId, most }: AttemptFilter,
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

export interface LockedSubscription
  extends Pick<SubscriptionRecord, 'id' | 'partnerCode' | 'schemaId' | 'postUrl' | 'isSuspended'> {
  enabled: boolean
  /** The last number in a delivery. */
  collected: number
}

/**
 * Locks the subscription until the transaction ends, so that no delivery begins or ends meanwhile. Undefined if it does
 * not exist.
 */
export async function lockForStaff(client: ClientBase, id: string): Promise<LockedSubscription | undefined> {
  const { rows } = await client.query<LockedSubscription>(
    `select id, (select code from third_parties where id = s.third_party_id) as "partnerCode", schema_id as "schemaId",
       post_url as "postUrl", enabled, collected::float8 as collected, not ${isOpen} as "isSuspended"
     from subscriptions s where id = $1 for no key update of s`,
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
