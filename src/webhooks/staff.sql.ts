/** What staff see of subscriptions and deliveries. Runs as the owner of the tables. */
import type { ClientBase } from 'pg'
import { utc } from '../db/literal.ts'
import { type Connection, queryCount, queryRow, queryRows } from '../db/statement.ts'
import { seesFolder } from '../ledger/folders.sql.ts'
import type { DeliveryState } from './dispatch/delivery.ts'
import { readLateness } from './lateness.sql.ts'
import type { OwnAttempt } from './owner/deliveries.sql.ts'
import { countNumbers, oldestNumber, readNumbered } from './sequence/numbered.sql.ts'
import { firstMatch, isForSubscription, positions } from './sequence/numbering.sql.ts'
import { isOpen, type Subscription, subscriptionColumns } from './subscriptions.sql.ts'

export const subscriptionStates = [
  'enabled',
  'failing',
  'paused',
  'suspended',
  'disabled',
  'no address',
] as const
type SubscriptionState = (typeof subscriptionStates)[number]

/** The console counts at most this many deliveries, and events without a number: a subscription may have a million. */
export const countedMax = 1_000

/** Times are ISO 8601, UTC. */
export interface SubscriptionRecord extends Subscription {
  partnerCode: string
  /** `failing`: enabled, but without a success since `failingSince`. */
  state: SubscriptionState
  /** Whether its partner is disconnected. */
  isPaused: boolean
  /** Whether no token sees it. */
  isSuspended: boolean
  disabledReason: string | null
  disabledAt: string | null
  failingSince: string | null
  lastSuccessAt: string | null
  createdAt: string
  /** The last number given to an event. */
  numbered: number
  /** Numbers of deliveries that failed and of those that wait. */
  failed: number
  pending: number
  /** When the oldest waiting delivery was created; null if none waits. */
  pendingSince: string | null
}

const subscriptionState = `case when s.disabled_at is not null then 'disabled' when t.disconnected_at is not null then 'paused'
  when not ${isOpen} then 'suspended' when s.post_url is null then 'no address'
  when s.failing_since is not null then 'failing' else 'enabled' end`

export interface SubscriptionFilter {
  id?: string | undefined
  state?: SubscriptionState | undefined
  /** Code of the third party. */
  partner?: string | undefined
  /** Only subscriptions that get the events of this folder. */
  folder?: string | undefined
  /** Only subscriptions after this id. */
  after?: string | undefined
  most?: number | undefined
  /** Deliveries are counted up to one more than this; if absent, all are counted. */
  counted?: number | undefined
}

/** Lists subscriptions by id. Deliveries are counted with the partial indexes of failed and of waiting ones. */
export function listSubscriptions(client: Connection, filter: SubscriptionFilter) {
  const { id, state, partner, folder, after, most, counted } = filter
  const text = `select ${subscriptionColumns}, t.code as "partnerCode", ${subscriptionState} as state,
       t.disconnected_at is not null as "isPaused", not ${isOpen} as "isSuspended",
       s.disabled_reason as "disabledReason", ${utc('s.disabled_at')} as "disabledAt",
       ${utc('s.failing_since')} as "failingSince", ${utc('s.last_success_at')} as "lastSuccessAt",
       ${utc('s.created_at')} as "createdAt", s.numbered::float8, d.failed, w.pending,
       ${utc('w.since')} as "pendingSince"
     from (
       select s.* from subscriptions s join third_parties t on t.id = s.third_party_id
       where ($1::bigint is null or s.id = $1) and ($2::text is null or ${subscriptionState} = $2) and ($3::text is null or t.code = $3)
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
     order by s.id`
  return queryRows<SubscriptionRecord>(client, text, [id, state, partner, after, most, counted, folder])
}

/** Returns undefined if the subscription does not exist. */
export async function readSubscription(client: Connection, id: string, counted?: number) {
  const [found] = await listSubscriptions(client, { id, counted })
  return found
}

/** The events of a subscription that are in no delivery yet, and its deliveries that have not arrived. */
export type Backlog = Awaited<ReturnType<typeof readBacklog>>

/** @param counted events without a number are counted up to one more than this; if absent, all are counted */
export async function readBacklog(
  client: ClientBase,
  { id, numbered, collected, pendingSince }: SubscriptionRecord,
  counted?: number,
) {
  const unnumbered = (await countUnnumbered(client, id, counted))!
  // Counts events, not numbers: after a failover, numbers have a gap.
  const numbers = await countNumbers(client, id, collected)
  const oldest = numbered === collected ? null : await readOldest(client, id, collected)
  return {
    /** Events that are in no delivery, with or without numbers. If above `eventsMax`, there may be even more. */
    events: numbers + unnumbered.events,
    eventsMax: numbers + (counted ?? unnumbered.events),
    /** Time of the oldest event or delivery that has not arrived: ISO 8601, UTC. */
    since: pendingSince ?? oldest ?? unnumbered.since,
    /** Seconds by which deliveries are late, as in metrics and their alert; undefined if nothing is to be sent. */
    lateSeconds: await readLateness(client, id),
  }
}

/** When the first event after a number happened; null if it is no longer kept. */
async function readOldest(client: ClientBase, id: string, after: number): Promise<string | null> {
  const [event] = await readNumbered(client, id, (await oldestNumber(client, id, after)) - 1, 1)
  return event ? `${new Date(event.createdAt).toISOString().slice(0, 19)}Z` : null
}

/**
 * Counts the events that a subscription selects and that have no number yet, and returns the time of the oldest (ISO
 * 8601, UTC). In each schema, it reads no more events than it may count, beginning with the first match. So it misses
 * events of a rare kind among many others.
 */
function countUnnumbered(client: ClientBase, id: string, counted: number | undefined) {
  const text = `with first as materialized (
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
     select count(*)::int as events, ${utc('min(created_at)')} as since from counted`
  return queryRow<{ events: number; since: string | null }>(client, text, [id, counted])
}

export async function schemaExists(client: ClientBase, schemaId: string): Promise<boolean> {
  return (await queryCount(client, 'select from grandlivre.schemas where schema_id = $1', [schemaId])) === 1
}

export interface DeliveryRecord {
  subscriptionId: string
  schemaId: string
  id: string
  firstEvent: string
  lastEvent: string
  events: number
  /** First number of its events; null if the delivery is from before events had numbers. */
  firstSequence: string | null
  lastSequence: string | null
  state: DeliveryState
  isReplay: boolean
  attempts: number
  /** ISO 8601, UTC. */
  createdAt: string
  nextAttemptAt: string | null
  finishedAt: string | null
  /** HTTP status of the last attempt; null if there was no attempt or no response. */
  status: number | null
  error: string | null
}

export interface DeliveryFilter {
  subscriptionId: string
  state?: DeliveryState | undefined
  /** Only deliveries older than the one with this id. */
  after?: string | undefined
  most?: number | undefined
}

/** Lists deliveries, newest first. */
export function listDeliveries(client: Connection, { subscriptionId, state, after, most }: DeliveryFilter) {
  // The state is part of the text, so that the partial index of pending or failed deliveries is used.
  const text = `select d.subscription_id as "subscriptionId", d.schema_id as "schemaId", d.id, d.first_event as "firstEvent", d.last_event as "lastEvent", d.events,
            d.first_sequence as "firstSequence", d.last_sequence as "lastSequence", d.state, d.is_replay as "isReplay", d.attempts, ${utc('d.created_at')} as "createdAt",
            ${utc('d.next_attempt_at')} as "nextAttemptAt", ${utc('d.finished_at')} as "finishedAt", a.status, a.error
     from grandlivre.deliveries d
     left join grandlivre.delivery_attempts a
       on (a.schema_id, a.delivery_id, a.number) = (d.schema_id, d.id, d.attempts)
     where d.subscription_id = $1 and ($2::bigint is null or d.id < $2)
       ${state === undefined ? '' : `and d.state = '${state}'`}
     order by d.id desc limit $3`
  return queryRows<DeliveryRecord>(client, text, [subscriptionId, after, most])
}

export interface AttemptRecord extends Omit<OwnAttempt, 'deliveryId' | 'at'> {
  /** ISO 8601, UTC. */
  at: string
}

/** The newest `most` attempts of a delivery, in order. */
export async function listAttempts(
  client: Connection,
  subscriptionId: string,
  deliveryId: string,
  most: number,
) {
  const text = `select a.number, ${utc('a.at')} as at, a.status, a.latency_ms as "latencyMs", a.answer, a.error
     from grandlivre.deliveries d
     join grandlivre.delivery_attempts a on a.schema_id = d.schema_id and a.delivery_id = d.id
     where d.subscription_id = $1 and d.id = $2 order by a.number desc limit $3`
  const newestFirst = await queryRows<AttemptRecord>(client, text, [subscriptionId, deliveryId, most])
  return newestFirst.toReversed()
}
