/** What owners see of their deliveries. Inside a transaction of their tenant, for a subscription that is theirs. */
import type { ClientBase } from 'pg'
import type { DeliveryState } from '../dispatch/delivery.ts'

/** Times are epoch milliseconds. */
export interface OwnDelivery {
  schemaId: string
  /** Decimal digits: the header `webhook-id`. */
  id: string
  /** `1042-1061`; null if its events have no numbers. */
  sequence: string | null
  events: number
  state: DeliveryState
  isReplay: boolean
  createdAt: number
  /** Null if it has ended. */
  nextAttemptAt: number | null
  /** Null while it is pending. */
  finishedAt: number | null
}

const ms = (column: string) => `round(extract(epoch from ${column}) * 1000)::float8`

/**
 * The deliveries after that id, oldest first.
 * @param asked.after decimal digits, within bigint
 * @param asked.newest the last ones where there are more than `most`, otherwise the first
 */
export async function listOwnDeliveries(
  client: ClientBase,
  subscriptionId: string,
  asked: { state: DeliveryState | undefined; after: string; most: number; newest: boolean },
) {
  const { state, after, most, newest } = asked
  const { rows } = await client.query<OwnDelivery>(
    // The state is part of the text, so that the partial index of those that are pending or failed is used.
    `select d.schema_id as "schemaId", d.id, d.first_sequence || '-' || d.last_sequence as sequence, d.events, d.state,
       d.is_replay as "isReplay", ${ms('d.created_at')} as "createdAt", ${ms('d.next_attempt_at')} as "nextAttemptAt",
       ${ms('d.finished_at')} as "finishedAt"
     from deliveries d
     where d.subscription_id = $1 and d.id > $2 ${state === undefined ? '' : `and d.state = '${state}'`}
     order by d.id ${newest ? 'desc' : ''} limit $3`,
    [subscriptionId, after, most],
  )
  return newest ? rows.toReversed() : rows
}

export interface OwnAttempt {
  deliveryId: string
  /** From 1. */
  number: number
  /** Epoch milliseconds. */
  at: number
  status: number | null
  latencyMs: number
  /** The first bytes of the response; null if there was none. */
  answer: Buffer | null
  error: string | null
}

/** The newest attempts of each of these deliveries, in order. @param most of one delivery */
export async function listOwnAttempts(
  client: ClientBase,
  deliveries: readonly OwnDelivery[],
  most: number,
  answerBytes: number,
): Promise<OwnAttempt[]> {
  const { rows } = await client.query<OwnAttempt>(
    `select d.id as "deliveryId", a.number, ${ms('a.at')} as at, a.status, a.latency_ms as "latencyMs",
       substring(a.answer for $4) as answer, a.error
     from unnest($1::bigint[], $2::bigint[]) as d (schema_id, id)
     cross join lateral (
       select * from delivery_attempts
       where schema_id = d.schema_id and delivery_id = d.id order by number desc limit $3) as a
     order by d.id, a.number`,
    [deliveries.map(({ schemaId }) => schemaId), deliveries.map(({ id }) => id), most, answerBytes],
  )
  return rows
}

export interface Receiving {
  enabled: boolean
  hasAddress: boolean
  /** The last number in a delivery. */
  collected: number
  /** Replays that wait to be sent. */
  pending: number
}

/** Of a subscription that the transaction has locked. */
export async function readReceiving(client: ClientBase, subscriptionId: string): Promise<Receiving> {
  const { rows } = await client.query<Receiving>(
    `select enabled, post_url is not null as "hasAddress", collected::float8 as collected,
       (select count(*)::int from deliveries
        where subscription_id = s.id and state = 'pending' and is_replay) as pending
     from subscriptions s where id = $1`,
    [subscriptionId],
  )
  return rows[0]!
}
