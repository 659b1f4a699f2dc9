/**
 * Statements on subscriptions: who receives which events, and where.
 *
 * A change to a subscription locks its row; the statements below that write do so themselves. The dispatcher also locks
 * it before it records or begins a delivery. So a change comes before or after a delivery, never in between.
 */
import { strict as assert } from 'node:assert'
import { isDeepStrictEqual } from 'node:util'
import type { ClientBase } from 'pg'
import type { Principal } from '../auth/principal.ts'
import { queryCount, queryRow, queryRows, queryValue } from '../db/statement.ts'
import { AppError } from '../errors.ts'
import { numberAll } from './sequence/numbering.sql.ts'

/** The fields that the creator of a subscription writes: a caller with a token, or staff. */
interface NewSubscription {
  /** Null for all schemas. */
  schemaId: string | null
  /** Who created it: a caller with a company token or with a firm token, or staff. */
  level: 'api' | 'firm' | 'staff'
  /** Firm of the token that created it; null if staff did. */
  firmId: string | null
  thirdPartyId: string
  /** Null if nothing is posted, and its events are only read by number. */
  postUrl: string | null
  onEvents: string[]
  /**
   * If empty, it receives all events that its owner may hear of: the whole schema for staff, the firm for a firm token.
   */
  folderIds: string[]
}

export interface Subscription extends NewSubscription {
  id: string
  enabled: boolean
  /** The last number that is in a delivery. */
  collected: number
}

/** Columns of the subscription `s`. */
export const subscriptionColumns = `s.id, s.schema_id as "schemaId", s.level, s.firm_id as "firmId",
  s.third_party_id as "thirdPartyId", s.post_url as "postUrl", s.on_events as "onEvents", s.folder_ids as "folderIds",
  s.enabled, s.collected::float8 as collected`

/**
 * Whether the subscription `s` is open: a token sees it, or staff created it. Otherwise it is suspended
 * (docs/spec/webhooks.md#suspended-subscriptions). The SQL function defines which token sees it.
 */
export const isOpen = `(s.level = 'staff' or exists (
  select from tokens k
  where k.schema_id = s.schema_id and k.third_party_id = s.third_party_id and k.level = s.level
    and (k.level = 'api' and k.folder_id = s.folder_ids[1]
      or k.level = 'firm' and k.folder_id is null and k.firm_id = s.firm_id) and opens_webhooks(k)))`

/** Inserts a subscription. It receives the events that are committed from now on. */
export async function insertSubscription(client: ClientBase, given: NewSubscription): Promise<Subscription> {
  const { schemaId, level, firmId, thirdPartyId, postUrl, onEvents, folderIds } = given
  const text = `insert into grandlivre.subscriptions as s
       (id, schema_id, level, firm_id, third_party_id, post_url, on_events, folder_ids, start_position)
     values (grandlivre.draw('grandlivre.ids'), $1::bigint, $2, $3, $4, $5, $6, $7, grandlivre.latest_event($1))
     returning ${subscriptionColumns}`
  const values = [schemaId, level, firmId, thirdPartyId, postUrl, onEvents, folderIds]
  return (await queryRow<Subscription>(client, text, values))!
}

/**
 * Counts the subscriptions that tokens of a third party, of any level, have created in a schema, including disabled
 * ones. Until the transaction ends, no other transaction can create one.
 */
export async function countCreatedByTokens(client: ClientBase, { schemaId, thirdPartyId }: Owner) {
  await client.query(
    `select pg_advisory_xact_lock(hashtextextended('grandlivre subscriptions of ' || $2 || ' in ' || $1, 0))`,
    [schemaId, thirdPartyId],
  )
  const text = `select count(*)::int from grandlivre.subscriptions
     where schema_id = $1 and third_party_id = $2 and level <> 'staff'`
  return queryValue<number>(client, text, [schemaId, thirdPartyId])
}

/** A caller, as the owner of subscriptions. */
export type Owner = Pick<Principal, 'schemaId' | 'thirdPartyId' | 'level' | 'firmId' | 'folderId'>

/** Whether all of these folders belong to that firm. @param folderIds distinct, decimal digits within bigint */
export function areFoldersOfFirm(client: ClientBase, { schemaId, firmId }: Owner, folderIds: string[]) {
  const text = `select count(*) = cardinality($3::bigint[]) from grandlivre.folders
     where schema_id = $1 and firm_id = $2 and id = any ($3)`
  return queryValue<boolean>(client, text, [schemaId, firmId, folderIds])
}

/**
 * Selects the caller's subscriptions. A company token sees those that its third party created with company tokens of
 * its folder. A firm token sees those created with firm tokens of its firm. No token sees those created by staff.
 * @param condition SQL, with parameters from $6 on, followed by the order
 */
function selectOwn(client: ClientBase, owner: Owner, condition: string, values: unknown[] = []) {
  const { schemaId, thirdPartyId, level, firmId, folderId } = owner
  const text = `select ${subscriptionColumns} from grandlivre.subscriptions s
     where s.schema_id = $1 and s.third_party_id = $2 and s.level = $3
       and case s.level when 'api' then s.folder_ids = array[$5::bigint] else s.firm_id = $4 end ${condition}`
  return queryRows<Subscription>(client, text, [schemaId, thirdPartyId, level, firmId, folderId, ...values])
}

/** Lists the caller's subscriptions, oldest first. */
export function listOwnSubscriptions(client: ClientBase, owner: Owner) {
  return selectOwn(client, owner, 'order by s.id')
}

/**
 * Lists the caller's subscriptions that receive events of this kind: in this folder, or in any folder if none is given.
 */
export function listOwnReceivers(client: ClientBase, owner: Owner, kind: string, folderId?: string) {
  const receives = 'and grandlivre.receives(s, s.schema_id, $6, coalesce($7::bigint, s.folder_ids[1]))'
  return selectOwn(client, owner, `${receives} order by s.id`, [kind, folderId])
}

/**
 * Returns a subscription of the caller.
 * @param id decimal digits, within bigint
 * @param lock `for no key update` locks it until the transaction ends
 * @throws {AppError} ERR-WEBHOOK-NOT-FOUND
 */
export async function findOwnSubscription(client: ClientBase, owner: Owner, id: string, lock = '') {
  const [own] = await selectOwn(client, owner, `and s.id = $6 ${lock}`, [id])
  if (!own) throw new AppError('ERR-WEBHOOK-NOT-FOUND')
  return own
}

/** As `findOwnSubscription`. Also locks the subscription until the transaction ends. */
export function lockOwnSubscription(client: ClientBase, owner: Owner, id: string) {
  return findOwnSubscription(client, owner, id, 'for no key update')
}

export interface AllowedPing {
  deliveryId: string
  scope: unknown
  /** `since`: epoch milliseconds. Null if the subscription is enabled. */
  disabled: { since: number; reason: string } | null
}

/**
 * Allows a ping if the last one was sent at least `everyMs` ago. Call it after `lockOwnSubscription`.
 * @returns what the ping needs, and whether the subscription is disabled; undefined if it is too early
 */
export function allowPing(client: ClientBase, id: string, everyMs: number) {
  const text = `update grandlivre.subscriptions s set pinged_at = clock_timestamp()
     where s.id = $1 and (s.pinged_at is null or s.pinged_at <= clock_timestamp() - $2 * interval '1 ms')
     returning grandlivre.draw('grandlivre.delivery_ids') as "deliveryId",
       grandlivre.event_scope(s.schema_id, case s.level when 'firm' then s.firm_id end, (
         select f.id from grandlivre.folders f
         where f.schema_id = s.schema_id and f.id = s.folder_ids[1] and cardinality(s.folder_ids) = 1
           and (s.level <> 'firm' or f.firm_id = s.firm_id))) as scope,
       case when not s.enabled then
         json_build_object('since', round(extract(epoch from s.disabled_at) * 1000), 'reason', s.disabled_reason)
       end as disabled`
  return queryRow<AllowedPing>(client, text, [id, everyMs])
}

/** The changed subscription, and whether it skips the events that were not delivered yet. */
interface SubscriptionChange {
  to: Pick<Subscription, 'postUrl' | 'onEvents' | 'folderIds'>
  skips: boolean
}

/** Whether all committed events must get their numbers before the change, so that it applies only to later events. */
export function needsNumbers(before: Subscription, { to, skips }: SubscriptionChange): boolean {
  return skips || !isDeepStrictEqual([before.onEvents, before.folderIds], [to.onEvents, to.folderIds])
}

/**
 * Changes a subscription for its owner (docs/spec/webhooks.md#patches). Its former filter is kept for the events that
 * have numbers.
 * @param before the subscription of one schema, as locked in this transaction
 */
export async function applyChange(client: ClientBase, before: Subscription, change: SubscriptionChange) {
  const { id, schemaId } = before
  const { postUrl, onEvents, folderIds } = change.to
  assert(schemaId !== null, 'subscriptions for all schemas are not patched')
  if (needsNumbers(before, change)) await numberAll(client, id, schemaId)
  const text = `with former as (
       insert into grandlivre.former_filters (schema_id, subscription_id, last_sequence, on_events, folder_ids)
       select schema_id, id, numbered, on_events, folder_ids from grandlivre.subscriptions
       where id = $1 and numbered > 0 and (on_events <> $3 or folder_ids <> $4)
       -- No event was numbered between the two changes, so the earlier filter stays.
       on conflict do nothing
     )
     update grandlivre.subscriptions set post_url = $2, on_events = $3, folder_ids = $4 where id = $1`
  await client.query(text, [id, postUrl, onEvents, folderIds])
  if (change.skips) await skipToLatest(client, id)
  await enableSubscription(client, id)
  await wakeSubscription(client, id, 'change')
}

/**
 * Sends waiting deliveries ahead of their retry: at once, but at least five seconds after their last attempt. The early
 * attempt does not use up a place in the table of retries. `woken_at` keeps the time for which the batch was planned.
 * If the early attempt fails, the batch waits until that time again (`plannedAt`).
 * @param by a reader wakes only the batch, and only after the time in `woken_at`
 */
export async function wakeSubscription(client: ClientBase, id: string, by: 'change' | 'reader') {
  const text = `with woken as (
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
     select pg_notify('grandlivre_events', schema_id::text) from hastened`
  await client.query(text, [id, by])
}

/**
 * Enables the subscription again. It goes on where it stopped: its pending deliveries are sent at once, and the retry
 * table starts over.
 * @returns false if it does not exist or is enabled already
 */
export async function enableSubscription(client: ClientBase, id: string): Promise<boolean> {
  const text = `with enabled as (
       update grandlivre.subscriptions
       set enabled = true, disabled_at = null, disabled_reason = null, failing_since = null, woken_at = null
       where id = $1 and not enabled
       returning id
     ), hastened as (
       update grandlivre.deliveries d
       set next_attempt_at = least(d.next_attempt_at, now()), attempts_before_replay = d.attempts
       from enabled where d.subscription_id = enabled.id and d.state = 'pending'
     )
     select from enabled`
  return (await queryCount(client, text, [id])) === 1
}

/**
 * Skips the events that were not delivered yet: the next delivery begins after the last number. A waiting batch fails,
 * and can be replayed. Call it after `numberAll`.
 */
export async function skipToLatest(client: ClientBase, id: string): Promise<void> {
  const text = `with skipped as (
       update grandlivre.deliveries set state = 'failed', next_attempt_at = null, finished_at = now()
       where subscription_id = $1 and state = 'pending' and not is_replay
     )
     update grandlivre.subscriptions set collected = numbered, woken_at = null where id = $1`
  await client.query(text, [id])
}

/**
 * Disables the subscription: its deliveries wait until it is enabled. Runs inside a transaction.
 * @param now epoch milliseconds
 * @returns false if it does not exist or is disabled already
 */
export async function disableSubscription(client: ClientBase, id: string, reason: string, now: number) {
  const text = `update grandlivre.subscriptions
     set enabled = false, disabled_at = to_timestamp($3 / 1000.0), disabled_reason = $2
     where id = $1 and enabled`
  return (await queryCount(client, text, [id, reason, now])) === 1
}

/** Deletes a locked subscription and its pending deliveries. */
export async function deleteSubscription(client: ClientBase, id: string): Promise<void> {
  await client.query('delete from grandlivre.subscriptions where id = $1', [id])
}
