/**
 * What owners see of their deliveries, and the deliveries that replays count and renew. Each statement runs inside a
 * transaction of the tenant, for a subscription of the caller.
 */
import type { ClientBase } from 'pg'
import { queryRow, queryRows, queryValue } from '../../db/statement.ts'
import type { DeliveryState } from '../dispatch/delivery.ts'

/** Times are epoch milliseconds. */
export interface OwnDelivery {
  schemaId: string
  /** Decimal digits; sent as the header `webhook-id`. */
  id: string
  /** First and last number, as `1042-1061`; null if its events have no numbers. */
  sequence: string | null
  events: number
  state: DeliveryState
  replay: boolean
  createdAt: number
  /** Null if the delivery has ended. */
  nextAttemptAt: number | null
  /** Null while the delivery is pending. */
  finishedAt: number | null
}

const ms = (column: string) => `round(extract(epoch from ${column}) * 1000)::float8`

/**
 * Lists deliveries with an id above `asked.after`, oldest first.
 * @param asked.after decimal digits, within bigint
 * @param asked.newest if there are more than `most`: true returns the last of them, false the first
 */
export async function listOwnDeliveries(
  client: ClientBase,
  subscriptionId: string,
  asked: { state: DeliveryState | undefined; after: string; most: number; newest: boolean },
) {
  const { state, after, most, newest } = asked
  // The state is part of the text, so that the partial index of pending or failed deliveries is used.
  const text = `select d.schema_id as "schemaId", d.id, d.first_sequence || '-' || d.last_sequence as sequence, d.events, d.state,
       d.is_replay as replay, ${ms('d.created_at')} as "createdAt", ${ms('d.next_attempt_at')} as "nextAttemptAt",
       ${ms('d.finished_at')} as "finishedAt"
     from deliveries d
     where d.subscription_id = $1 and d.id > $2 ${state === undefined ? '' : `and d.state = '${state}'`}
     order by d.id ${newest ? 'desc' : ''} limit $3`
  const rows = await queryRows<OwnDelivery>(client, text, [subscriptionId, after, most])
  return newest ? rows.toReversed() : rows
}

export interface OwnAttempt {
  deliveryId: string
  /** Counted from 1. */
  number: number
  /** Epoch milliseconds. */
  at: number
  status: number | null
  latencyMs: number
  /** The first bytes of the response; null if there was no response. */
  answer: Buffer | null
  error: string | null
}

/** The newest attempts of each of these deliveries, in order. @param most attempts per delivery */
export function listOwnAttempts(
  client: ClientBase,
  deliveries: readonly OwnDelivery[],
  most: number,
  answerBytes: number,
) {
  const text = `select d.id as "deliveryId", a.number, ${ms('a.at')} as at, a.status, a.latency_ms as "latencyMs",
       substring(a.answer for $4) as answer, a.error
     from unnest($1::bigint[], $2::bigint[]) as d (schema_id, id)
     cross join lateral (
       select * from delivery_attempts
       where schema_id = d.schema_id and delivery_id = d.id order by number desc limit $3) as a
     order by d.id, a.number`
  return queryRows<OwnAttempt>(client, text, [
    deliveries.map(({ schemaId }) => schemaId),
    deliveries.map(({ id }) => id),
    most,
    answerBytes,
  ])
}

/** Counts the replays that wait to be sent. */
export function countPendingReplays(client: ClientBase, subscriptionId: string) {
  const text = `select count(*)::int from deliveries where subscription_id = $1 and state = 'pending' and is_replay`
  return queryValue<number>(client, text, [subscriptionId])
}

/** Failed deliveries per statement: there may be a million, and a statement of the console may take ten seconds. */
const renewedMax = 10_000

/**
 * Makes the first of a subscription's failed deliveries pending again, with their stored bodies, and notifies
 * dispatchers. Their retry table starts over.
 * @param after the id of a delivery
 * @returns how many it renewed; `last`: the id of the last one, after which the next call begins; null if none was left
 */
export async function renewFailed(client: ClientBase, subscriptionId: string, after: string) {
  const text = `with first as (
       select schema_id, id from grandlivre.deliveries
       where subscription_id = $1 and state = 'failed' and id > $2 order by id limit ${renewedMax}
     ), renewed as (
       update grandlivre.deliveries as d
       set state = 'pending', is_replay = true, attempts_before_replay = attempts, finished_at = null,
           next_attempt_at = to_timestamp($3 / 1000.0)
       from first where d.schema_id = first.schema_id and d.id = first.id
       returning d.schema_id, d.id
     )
     select count(pg_notify('grandlivre_events', schema_id::text))::int as deliveries, max(id) as last from renewed`
  const values = [subscriptionId, after, Date.now()]
  const renewed = await queryRow<{ deliveries: number; last: string | null }>(client, text, values)
  return renewed!
}
