/**
 * Statements on subscriptions: who receives which events, and where.
 *
 * Changing a subscription locks its row (the statements below that write do so themselves). The dispatcher locks it too
 * before it records or begins a delivery, so a change comes before or after, never in between.
 */
import type { ClientBase } from 'pg'

export interface Subscription {
  id: string
  /** Null: all schemas. */
  schemaId: string | null
  /** Its creator: a company token, a firm token, or staff. */
  level: 'api' | 'firm' | 'staff'
  /** Firm of the token that created it; null if staff did. */
  firmId: string | null
  thirdPartyId: string
  /** Null: nothing is posted; its events are read by number. */
  postUrl: string | null
  onEvents: string[]
  /** Empty: all that its owner may hear: the whole schema for staff, the firm for a firm token. */
  folderIds: string[]
}

const columns = `s.id, s.schema_id as "schemaId", s.level, s.firm_id as "firmId", s.third_party_id as "thirdPartyId",
  s.post_url as "postUrl", s.on_events as "onEvents", s.folder_ids as "folderIds"`

/**
 * Whether the subscription `s` has a token that sees it, or is that of staff; otherwise it is suspended
 * (docs/spec/webhooks.md#suspended-subscriptions). What such a token needs is in the SQL function.
 */
export const isOpen = `(s.level = 'staff' or exists (
  select from tokens k
  where k.schema_id = s.schema_id and k.third_party_id = s.third_party_id and k.level = s.level
    and (k.level = 'api' and k.folder_id = s.folder_ids[1]
      or k.level = 'firm' and k.folder_id is null and k.firm_id = s.firm_id) and opens_webhooks(k)))`

/** Inserts a subscription, which receives events committed from now on. */
export async function insertSubscription(client: ClientBase, subscription: Omit<Subscription, 'id'>) {
  const { rows } = await client.query<Subscription>(
    `insert into grandlivre.subscriptions as s
       (id, schema_id, level, firm_id, third_party_id, post_url, on_events, folder_ids, start_position)
     values (grandlivre.draw('grandlivre.ids'), $1::bigint, $2, $3, $4, $5, $6, $7, grandlivre.latest_event($1))
     returning ${columns}`,
    [
      subscription.schemaId,
      subscription.level,
      subscription.firmId,
      subscription.thirdPartyId,
      subscription.postUrl,
      subscription.onEvents,
      subscription.folderIds,
    ],
  )
  return rows[0]!
}

/**
 * Until the transaction ends, no other transaction creates a subscription with a token of that third party in that
 * schema.
 */
export async function lockCreation(
  client: ClientBase,
  { schemaId, thirdPartyId }: Pick<Owner, 'schemaId' | 'thirdPartyId'>,
): Promise<void> {
  await client.query(
    `select pg_advisory_xact_lock(hashtextextended('grandlivre subscriptions of ' || $2 || ' in ' || $1, 0))`,
    [schemaId, thirdPartyId],
  )
}

/**
 * Counts the subscriptions that tokens of a third party, of any level, have created in a schema, disabled ones
 * included. To be called after `lockCreation`.
 */
export async function countCreatedByTokens(
  client: ClientBase,
  { schemaId, thirdPartyId }: Pick<Owner, 'schemaId' | 'thirdPartyId'>,
): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::int as count from grandlivre.subscriptions
     where schema_id = $1 and third_party_id = $2 and level <> 'staff'`,
    [schemaId, thirdPartyId],
  )
  return rows[0]!.count
}

/** The caller as owner of subscriptions. */
export interface Owner {
  schemaId: string
  thirdPartyId: string
  level: 'api' | 'firm'
  firmId: string
  /** Folder of a company token; null for a firm token. */
  folderId: string | null
}

/**
 * A company token sees the subscriptions that its third party created with company tokens of that folder; a firm token
 * those created with firm tokens of that firm. No token sees those created by staff.
 */
const isOwn = `s.schema_id = $1 and s.third_party_id = $2 and s.level = $3
  and case s.level when 'api' then s.folder_ids = array[$5::bigint] else s.firm_id = $4 end`

function ownerOf({ schemaId, thirdPartyId, level, firmId, folderId }: Owner): (string | null)[] {
  return [schemaId, thirdPartyId, level, firmId, folderId]
}

/** Whether all of these folders belong to that firm. @param folderIds distinct, decimal digits within bigint */
export async function areFoldersOfFirm(
  client: ClientBase,
  { schemaId, firmId }: Pick<Owner, 'schemaId' | 'firmId'>,
  folderIds: string[],
): Promise<boolean> {
  const { rows } = await client.query<{ all: boolean }>(
    `select count(*) = cardinality($3::bigint[]) as "all" from grandlivre.folders
     where schema_id = $1 and firm_id = $2 and id = any ($3)`,
    [schemaId, firmId, folderIds],
  )
  return rows[0]!.all
}

/** The caller's subscriptions, oldest first. */
export async function listOwnSubscriptions(client: ClientBase, owner: Owner): Promise<Subscription[]> {
  const { rows } = await client.query<Subscription>(
    `select ${columns} from grandlivre.subscriptions s where ${isOwn} order by s.id`,
    ownerOf(owner),
  )
  return rows
}

/** The caller's subscriptions that receive events of that kind: in this folder, or in any if none is given. */
export async function listOwnReceivers(
  client: ClientBase,
  owner: Owner,
  event: { name: string; folderId: string | undefined },
): Promise<Subscription[]> {
  const { rows } = await client.query<Subscription>(
    `select ${columns} from grandlivre.subscriptions s
     where ${isOwn} and grandlivre.receives(s, s.schema_id, $6, coalesce($7::bigint, s.folder_ids[1]))
     order by s.id`,
    [...ownerOf(owner), event.name, event.folderId],
  )
  return rows
}

/** Undefined if it does not exist or is not the caller's. @param id decimal digits, within bigint */
export async function findOwnSubscription(client: ClientBase, owner: Owner, id: string) {
  const { rows } = await client.query<Subscription>(
    `select ${columns} from grandlivre.subscriptions s where ${isOwn} and s.id = $6`,
    [...ownerOf(owner), id],
  )
  return rows[0]
}

/** As `findOwnSubscription`, and locks the subscription until the transaction ends. */
export async function lockOwnSubscription(client: ClientBase, owner: Owner, id: string) {
  const { rows } = await client.query<Subscription>(
    `select ${columns} from grandlivre.subscriptions s where ${isOwn} and s.id = $6 for no key update`,
    [...ownerOf(owner), id],
  )
  return rows[0]
}

export interface AllowedPing {
  deliveryId: string
  scope: unknown
  /** `since`: epoch milliseconds. Null while it is enabled. */
  disabled: { since: number; reason: string } | null
}

/**
 * Allows one ping, if the last one is at least `everyMs` old. To be called after `lockOwnSubscription`.
 * @returns what the ping needs, and whether the subscription is disabled; undefined if it is too early
 */
export async function allowPing(client: ClientBase, id: string, everyMs: number) {
  const { rows } = await client.query<AllowedPing>(
    `update grandlivre.subscriptions s set pinged_at = clock_timestamp()
     where s.id = $1 and (s.pinged_at is null or s.pinged_at <= clock_timestamp() - $2 * interval '1 ms')
     returning grandlivre.draw('grandlivre.delivery_ids') as "deliveryId",
       grandlivre.event_scope(s.schema_id, case s.level when 'firm' then s.firm_id end, (
         select f.id from grandlivre.folders f
         where f.schema_id = s.schema_id and f.id = s.folder_ids[1] and cardinality(s.folder_ids) = 1
           and (s.level <> 'firm' or f.firm_id = s.firm_id))) as scope,
       case when not s.enabled then
         json_build_object('since', round(extract(epoch from s.disabled_at) * 1000), 'reason', s.disabled_reason)
       end as disabled`,
    [id, everyMs],
  )
  return rows[0]
}

/** Deletes it and its pending deliveries. @returns false if it does not exist or is not the caller's */
export async function deleteOwnSubscription(client: ClientBase, owner: Owner, id: string): Promise<boolean> {
  const { rowCount } = await client.query(
    `delete from grandlivre.subscriptions s where ${isOwn} and s.id = $6`,
    [...ownerOf(owner), id],
  )
  return rowCount === 1
}

/**
 * Changes a subscription. Before a change of its kinds or folders all committed events have their numbers (`numberAll`);
 * what it selected until then is kept for these.
 */
export async function changeSubscription(
  client: ClientBase,
  id: string,
  to: Pick<Subscription, 'postUrl' | 'onEvents' | 'folderIds'>,
): Promise<void> {
  await client.query(
    `with former as (
       insert into grandlivre.former_filters (schema_id, subscription_id, last_sequence, on_events, folder_ids)
       select schema_id, id, numbered, on_events, folder_ids from grandlivre.subscriptions
       where id = $1 and numbered > 0 and (on_events <> $3 or folder_ids <> $4)
       -- No number is of the time between two changes.
       on conflict do nothing
     )
     update grandlivre.subscriptions set post_url = $2, on_events = $3, folder_ids = $4 where id = $1`,
    [id, to.postUrl, to.onEvents, to.folderIds],
  )
}

/**
 * Sends what waits for a retry ahead of its time: at once, but not within five seconds of its last attempt. That attempt
 * uses up no place in the table of retries, and `woken_at` keeps the time that the batch waited for: if the attempt fails,
 * the batch waits for that time again (`plannedAt`).
 * @param by a reader wakes the batch alone, and only once that time has passed
 */
export async function wakeSubscription(client: ClientBase, id: string, by: 'change' | 'reader') {
  await client.query(
    `with woken as (
       update grandlivre.subscriptions s set woken_at = greatest(s.woken_at, (
         select d.next_attempt_at from grandlivre.deliveries d
         where d.subscription_id = s.id and d.state = 'pending' and not d.is_replay))
       where s.id = $1 and ($2 = 'change' or coalesce(s.woken_at <= now(), true))
       returning s.id
     ), hastened as (
       update grandlivre.deliveries d
       set attempts_before_replay = least(d.attempts_before_replay + 1, d.attempts), next_attempt_at = greatest(now(), (
         select a.at + interval '5 seconds' from grandlivre.delivery_attempts a
         where (a.schema_id, a.delivery_id, a.number) = (d.schema_id, d.id, d.attempts)))
       from woken where d.subscription_id = woken.id and d.state = 'pending' and ($2 = 'change' or not d.is_replay)
         and d.next_attempt_at > now() + interval '5 seconds'
       returning d.schema_id
     )
     select pg_notify('grandlivre_events', schema_id::text) from hastened`,
    [id, by],
  )
}

/**
 * Enables it again. It goes on where it stopped: its pending deliveries are sent at once, and the retry table starts over.
 * @returns false if it does not exist or is enabled
 */
export async function enableSubscription(client: ClientBase, id: string): Promise<boolean> {
  const { rowCount } = await client.query(
    `with enabled as (
       update grandlivre.subscriptions
       set enabled = true, disabled_at = null, disabled_reason = null, failing_since = null, woken_at = null
       where id = $1 and not enabled
       returning id
     ), hastened as (
       update grandlivre.deliveries d
       set next_attempt_at = least(d.next_attempt_at, now()), attempts_before_replay = d.attempts
       from enabled where d.subscription_id = enabled.id and d.state = 'pending'
     )
     select from enabled`,
    [id],
  )
  return rowCount === 1
}

/**
 * Skips what was not delivered yet: the next delivery begins after the last number. A waiting batch fails, and can be
 * replayed. To be called after `numberAll`.
 */
export async function skipToLatest(client: ClientBase, id: string): Promise<void> {
  await client.query(
    `with skipped as (
       update grandlivre.deliveries set state = 'failed', next_attempt_at = null, finished_at = now()
       where subscription_id = $1 and state = 'pending' and not is_replay
     )
     update grandlivre.subscriptions set collected = numbered, woken_at = null where id = $1`,
    [id],
  )
}

/**
 * Disables it: nothing is sent until it is enabled, and what waits goes on waiting. Inside a transaction.
 * @param now epoch milliseconds
 * @returns false if it does not exist or is disabled
 */
export async function disableSubscription(client: ClientBase, id: string, reason: string, now: number) {
  const { rowCount } = await client.query(
    `update grandlivre.subscriptions
     set enabled = false, disabled_at = to_timestamp($3 / 1000.0), disabled_reason = $2
     where id = $1 and enabled`,
    [id, reason, now],
  )
  return rowCount === 1
}

/** Deletes it and its pending deliveries. @returns false if it does not exist */
export async function deleteSubscription(client: ClientBase, id: string): Promise<boolean> {
  const { rowCount } = await client.query(`delete from grandlivre.subscriptions where id = $1`, [id])
  return rowCount === 1
}
