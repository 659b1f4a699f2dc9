/**
 * What staff commands show of subscriptions and deliveries, and the statements of replays. As the owner of the tables.
 */
import type { ClientBase } from 'pg'
import type { Batch, StoredEvent } from './body.ts'
import type { DeliveryState } from './dispatch/delivery.ts'

const utc = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`

export interface SubscriptionRecord {
  id: string
  thirdPartyCode: string
  level: 'api' | 'firm' | 'staff'
  /** Null: all schemas. */
  schemaId: string | null
  firmId: string | null
  /** Empty: the whole schema. */
  folderIds: string[]
  postUrl: string
  onEvents: string[]
  /** Whether its third party is disconnected. */
  paused: boolean
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
            t.disconnected_at is not null as paused,
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

/** Events that are not in a delivery of the subscription yet, and the time of the oldest: ISO 8601, UTC. */
export interface Backlog {
  events: number
  since: string | null
}

export async function readBacklog(client: ClientBase, subscriptionId: string): Promise<Backlog> {
  const { rows } = await client.query<Backlog>(
    `select count(*)::int as events, ${utc('min(e.created_at)')} as since
     from grandlivre.subscriptions s
     join grandlivre.schemas c on s.schema_id is null or c.schema_id = s.schema_id
     left join grandlivre.subscription_positions p on p.schema_id = c.schema_id and p.subscription_id = s.id
     join grandlivre.events e on e.schema_id = c.schema_id and e.id > coalesce(p.position, s.start_position)
       and grandlivre.receives(s, e.schema_id, e.name, e.folder_id)
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

/** Newest first. */
export async function listDeliveries(
  client: ClientBase,
  filter: { subscriptionId: string; state: DeliveryState | undefined; most: number },
): Promise<DeliveryRecord[]> {
  const { rows } = await client.query<DeliveryRecord>(
    `select d.schema_id as "schemaId", d.id, d.first_event as "firstEvent", d.last_event as "lastEvent", d.events,
            d.state, d.is_replay as "isReplay", d.attempts, ${utc('d.created_at')} as "createdAt",
            ${utc('d.next_attempt_at')} as "nextAttemptAt", ${utc('d.finished_at')} as "finishedAt", a.status, a.error
     from grandlivre.deliveries d
     left join grandlivre.delivery_attempts a
       on (a.schema_id, a.delivery_id, a.number) = (d.schema_id, d.id, d.attempts)
     where d.subscription_id = $1 and ($2::text is null or d.state = $2)
     order by d.id desc limit $3`,
    [filter.subscriptionId, filter.state, filter.most],
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

/** The attempts of one delivery, in order. */
export async function listAttempts(
  client: ClientBase,
  subscriptionId: string,
  deliveryId: string,
): Promise<AttemptRecord[]> {
  const { rows } = await client.query<AttemptRecord>(
    `select a.number, ${utc('a.at')} as at, a.status, a.latency_ms as "latencyMs", a.answer, a.error
     from grandlivre.deliveries d
     join grandlivre.delivery_attempts a on a.schema_id = d.schema_id and a.delivery_id = d.id
     where d.subscription_id = $1 and d.id = $2 order by a.number`,
    [subscriptionId, deliveryId],
  )
  return rows
}

/**
 * Locks the subscription until the transaction ends, so that no delivery begins or ends meanwhile. Undefined if it does
 * not exist.
 */
export async function lockSubscription(
  client: ClientBase,
  id: string,
): Promise<{ schemaId: string | null; enabled: boolean } | undefined> {
  const { rows } = await client.query<{ schemaId: string | null; enabled: boolean }>(
    `select schema_id as "schemaId", enabled from grandlivre.subscriptions where id = $1 for no key update`,
    [id],
  )
  return rows[0]
}

/**
 * Makes its failed deliveries pending again, with their stored bodies; the retry table starts over.
 * @param now epoch milliseconds
 * @returns the schema of each
 */
export async function replayFailed(
  client: ClientBase,
  subscriptionId: string,
  now: number,
): Promise<string[]> {
  const { rows } = await client.query<{ schemaId: string }>(
    `update grandlivre.deliveries
     set state = 'pending', is_replay = true, attempts_before_replay = attempts, finished_at = null,
         next_attempt_at = to_timestamp($2 / 1000.0)
     where subscription_id = $1 and state = 'failed'
     returning schema_id as "schemaId"`,
    [subscriptionId, now],
  )
  return rows.map((row) => row.schemaId)
}

/** From `from` (inclusive) to `to` (exclusive), epoch milliseconds. */
export interface Span {
  from: number
  to: number
}

/**
 * Events of a schema and time span that match the subscription and that its position has passed, after the event
 * `after`, in order. (Later events will be delivered anyway.)
 */
export async function eventsToReplay(
  client: ClientBase,
  subscriptionId: string,
  schemaId: string,
  { from, to }: Span,
  after: string,
  most: number,
): Promise<StoredEvent[]> {
  const { rows } = await client.query<StoredEvent>(
    `select e.id, e.name, e.operation, e.scope, e.data, (extract(epoch from e.created_at) * 1000)::float8 as "createdAt"
     from grandlivre.subscriptions s
     join grandlivre.events e on e.schema_id = $2 and grandlivre.receives(s, e.schema_id, e.name, e.folder_id)
     left join grandlivre.subscription_positions p on p.schema_id = $2 and p.subscription_id = s.id
     where s.id = $1 and e.id > $5 and e.id <= coalesce(p.position, s.start_position)
       and e.created_at >= to_timestamp($3 / 1000.0) and e.created_at < to_timestamp($4 / 1000.0)
     order by e.id limit $6`,
    [subscriptionId, schemaId, from, to, after, most],
  )
  return rows
}

/**
 * Inserts a replay beside the dispatcher's batches, without moving the subscription's position. @param now epoch
 * milliseconds
 */
export async function insertReplay(
  client: ClientBase,
  subscriptionId: string,
  schemaId: string,
  batch: Batch,
  now: number,
): Promise<void> {
  await client.query(
    `insert into grandlivre.deliveries (schema_id, subscription_id, first_event, last_event, events, body, is_replay,
       next_attempt_at)
     values ($1, $2, $3, $4, $5, $6, true, to_timestamp($7 / 1000.0))`,
    [schemaId, subscriptionId, batch.firstEvent, batch.lastEvent, batch.events, batch.body, now],
  )
}
