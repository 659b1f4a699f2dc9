/**
 * Statements on the secrets that sign the deliveries of one subscription. Each needs its row locked
 * (`lockOwnSubscription`, `lockReceiver`).
 */
import type { ClientBase } from 'pg'

/** Adds the secret that is the newest from now on. The previous one must have been retired. */
export async function insertSigningSecret(client: ClientBase, subscriptionId: string, sealed: Buffer) {
  await client.query(
    'insert into grandlivre.signing_secrets (subscription_id, secret_encrypted) values ($1, $2)',
    [subscriptionId, sealed],
  )
}

/** Deletes secrets that sign no longer, and lets the newest sign for this long. */
export async function retireSigningSecret(client: ClientBase, subscriptionId: string, keepMs: number) {
  await client.query(
    'delete from grandlivre.signing_secrets where subscription_id = $1 and retired_at <= now()',
    [subscriptionId],
  )
  await client.query(
    `update grandlivre.signing_secrets set retired_at = now() + $2 * interval '1 ms'
     where subscription_id = $1 and retired_at is null`,
    [subscriptionId, keepMs],
  )
}

/** How many sign, and in how many seconds the first of them no longer does; null if there is only the newest. */
export async function countSigningSecrets(client: ClientBase, subscriptionId: string) {
  const { rows } = await client.query<{ count: number; seconds: number | null }>(
    `select count(*)::int as count, ceil(extract(epoch from min(retired_at) - now()))::int as seconds
     from grandlivre.signing_secrets where subscription_id = $1 and (retired_at is null or retired_at > now())`,
    [subscriptionId],
  )
  return rows[0]!
}

/** What signs the deliveries of a subscription: AES-256-GCM with the master key. */
export interface SealedSecrets {
  /** The newest secret of the third party. */
  sealedSecret: Buffer
  /** Newest first; empty if the subscription has none yet. */
  sealedSigningSecrets: Buffer[]
}

/** Locks the subscription and reads its secrets. Inside `whileDelivering`. Undefined if it does not exist. */
export async function lockSealedSecrets(client: ClientBase, subscriptionId: string) {
  const { rows } = await client.query<SealedSecrets>(
    `select k.secret_encrypted as "sealedSecret", ${sealedSigningSecrets} as "sealedSigningSecrets"
     from subscriptions s
     join third_party_secrets k on k.third_party_id = s.third_party_id and k.retired_at is null
     where s.id = $1 for no key update of s`,
    [subscriptionId],
  )
  return rows[0]
}

/** The secrets of a subscription `s` that sign: a column. */
export const sealedSigningSecrets = `array(
  select g.secret_encrypted from grandlivre.signing_secrets g
  where g.subscription_id = s.id and (g.retired_at is null or g.retired_at > now())
  order by g.created_at desc)`
