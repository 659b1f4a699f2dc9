/**
 * What the console shows of subscriptions, as the owner of the tables. Nothing is counted without a bound: a subscription
 * may have failed a million deliveries.
 */
import type { ClientBase, Pool } from 'pg'
import { utc } from '../../../db/literal.ts'
import { firstMatch, isForSubscription, positions } from '../../../webhooks/sequence/numbering.sql.ts'
import { isOpen } from '../../../webhooks/subscriptions.sql.ts'

export const subscriptionStates = [
  'enabled',
  'failing',
  'paused',
  'suspended',
  'disabled',
  'no address',
] as const
export type SubscriptionState = (typeof subscriptionStates)[number]

/** Failed deliveries are counted up to here. */
export const failedMax = 1_000

/** Deliveries that wait are counted up to here. */
export const pendingMax = 100

/** Times are ISO 8601, UTC. */
export interface ShownSubscription {
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
  /** Failing: enabled, without a success since `failingSince`. Paused: its partner is disconnected.
   * Suspended: no token sees it. */
  state: SubscriptionState
  disabledReason: string | null
  disabledAt: string | null
  failingSince: string | null
  lastSuccessAt: string | null
  createdAt: string
  /** The last number given to an event, and the last one in a delivery. */
  numbered: string
  collected: string
  /** Deliveries, one more than `failedMax` where there are more. */
  failed: number
  /** Deliveries that wait, one more than `pendingMax` where there are more. */
  pending: number
  /** When the oldest delivery that waits was made; null if none waits. */
  pendingSince: string | null
}

const state = `case when s.disabled_at is not null then 'disabled' when t.disconnected_at is not null then 'paused'
  when not ${isOpen} then 'suspended' when s.post_url is null then 'no address'
  when s.failing_since is not null then 'failing' else 'enabled' end`

const columns = `s.id, t.code as "partnerCode", s.level, s.schema_id as "schemaId", s.firm_id as "firmId",
  s.folder_ids as "folderIds", s.post_url as "postUrl", s.on_events as "onEvents", ${state} as state,
  s.disabled_reason as "disabledReason", ${utc('s.disabled_at')} as "disabledAt",
  ${utc('s.failing_since')} as "failingSince", ${utc('s.last_success_at')} as "lastSuccessAt",
  ${utc('s.created_at')} as "createdAt", s.numbered, s.collected, d.failed, w.pending, ${utc('w.since')} as "pendingSince"`

/** Those of one subscription, by the partial indexes of deliveries that failed and that wait. */
const deliveries = `cross join lateral (
    select count(*)::int as failed from (
      select from deliveries where subscription_id = s.id and state = 'failed' limit ${failedMax} + 1) as counted) as d
  cross join lateral (
    select count(*)::int as pending, min(created_at) as since from (
      select created_at from deliveries where subscription_id = s.id and state = 'pending'
      order by id limit ${pendingMax} + 1) as waiting) as w`

export interface SubscriptionFilter {
  state: SubscriptionState | undefined
  /** Code of the third party. */
  partner: string | undefined
  /** Only subscriptions after this id. */
  after: string
  most: number
}

/** In the order of their ids. */
export async function listShown(
  client: ClientBase | Pool,
  { state: wanted, partner, after, most }: SubscriptionFilter,
): Promise<ShownSubscription[]> {
  const { rows } = await client.query<ShownSubscription>(
    `select ${columns}
     from (
       select s.* from subscriptions s join third_parties t on t.id = s.third_party_id
       where s.id > $1 and ($2::text is null or t.code = $2) and ($3::text is null or ${state} = $3)
       order by s.id limit $4) as s
     join third_parties t on t.id = s.third_party_id
     ${deliveries}
     order by s.id`,
    [after, partner, wanted, most],
  )
  return rows
}

/** Undefined if there is none. */
export async function readShown(
  client: ClientBase | Pool,
  id: string,
): Promise<ShownSubscription | undefined> {
  const { rows } = await client.query<ShownSubscription>(
    `select ${columns} from subscriptions s join third_parties t on t.id = s.third_party_id ${deliveries}
     where s.id = $1`,
    [id],
  )
  return rows[0]
}

/** Events without a number are counted up to here. */
export const unnumberedMax = 1_000

export interface Unnumbered {
  /** One more than `unnumberedMax` where there are more, or may be. */
  events: number
  /** When the oldest happened: ISO 8601, UTC. */
  since: string | null
}

/**
 * Events that a subscription selects and that have no number yet. In each schema, as many events as are counted are read
 * from the first match on; a rare kind among many others is therefore counted too low.
 */
export async function countUnnumbered(client: ClientBase | Pool, id: string): Promise<Unnumbered> {
  const { rows } = await client.query<Unnumbered>(
    `with first as materialized (
       select at.schema_id, ${firstMatch} as id
       from subscriptions s cross join lateral ${positions} where s.id = $1
     ), counted as (
       select e.created_at
       from first cross join subscriptions s
       cross join lateral (
         select * from events where schema_id = first.schema_id and id >= first.id
         order by id limit ${unnumberedMax} + 1) as e
       where first.id is not null and s.id = $1 and ${isForSubscription}
       limit ${unnumberedMax} + 1)
     select count(*)::int as events, ${utc('min(created_at)')} as since from counted`,
    [id],
  )
  return rows[0]!
}

type LockedSubscription = Pick<ShownSubscription, 'id' | 'postUrl' | 'schemaId'> & {
  thirdPartyId: string
  isSuspended: boolean
}

/** Locks the subscription until the transaction ends. Undefined if there is none. */
export async function lockShown(client: ClientBase, id: string): Promise<LockedSubscription | undefined> {
  const { rows } = await client.query<LockedSubscription>(
    `select id, post_url as "postUrl", schema_id as "schemaId", third_party_id as "thirdPartyId",
       not ${isOpen} as "isSuspended"
     from subscriptions s where id = $1 for no key update`,
    [id],
  )
  return rows[0]
}
