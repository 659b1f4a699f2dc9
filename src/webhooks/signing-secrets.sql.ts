/**
 * The secret of a subscription, with which its receiver verifies deliveries as Standard Webhooks describes. Its owner
 * sees it only when the subscription is created and when the secret is rotated. A subscription that is older than such
 * secrets gets its first secret with its next delivery, and its owner sees a secret after rotating it. Every function
 * that writes needs the row of the subscription locked.
 */
import type { ClientBase } from 'pg'
import { sealingKey } from '../auth/master-key.sql.ts'
import { decrypt, encrypt, type MasterKeys, makeSigningSecret } from '../auth/secrets.ts'
import { limits } from '../config.ts'
import { queryRow } from '../db/statement.ts'
import { AppError } from '../errors.ts'

/** What signs the deliveries of a subscription: secrets, encrypted by AES-256-GCM with the master key. */
export interface SealedSecrets {
  /** The newest secret of the third party. */
  sealedSecret: Buffer
  /** Newest first; empty if the subscription has none yet. */
  sealedSigningSecrets: Buffer[]
}

/** A column: the secrets of a subscription `s` that sign. */
export const sealedSigningSecrets = `array(
  select g.secret_encrypted from grandlivre.signing_secrets g
  where g.subscription_id = s.id and (g.retired_at is null or g.retired_at > now())
  order by g.created_at desc)`

/**
 * Locks the subscription and reads its secrets. Runs inside `whileDelivering`. Returns undefined if it does not exist.
 */
export function lockSealedSecrets(client: ClientBase, subscriptionId: string) {
  const text = `select k.secret_encrypted as "sealedSecret", ${sealedSigningSecrets} as "sealedSigningSecrets"
     from subscriptions s
     join third_party_secrets k on k.third_party_id = s.third_party_id and k.retired_at is null
     where s.id = $1 for no key update of s`
  return queryRow<SealedSecrets>(client, text, [subscriptionId])
}

/** Gives a subscription that has no secret its first one. @returns the secret, `whsec_...` */
export async function addSigningSecret(client: ClientBase, subscriptionId: string, masterKeys: MasterKeys) {
  const secret = makeSigningSecret()
  await client.query(
    'insert into grandlivre.signing_secrets (subscription_id, secret_encrypted) values ($1, $2)',
    [subscriptionId, encrypt(secret, await sealingKey(client, masterKeys))],
  )
  return secret
}

/**
 * Replaces the secret. Each replaced secret goes on signing beside the new one for 24 hours, even if several were
 * replaced in a row, as when the first response was lost.
 * @returns the new secret
 * @throws {AppError} ERR-TOO-MANY-REQUEST if `limits.signingSecretsMax` secrets sign already
 */
export async function rotateSigningSecret(
  client: ClientBase,
  subscriptionId: string,
  masterKeys: MasterKeys,
) {
  // `seconds`: until the first of the replaced secrets stops signing; null if only the newest secret signs.
  const text = `select count(*)::int as count, ceil(extract(epoch from min(retired_at) - now()))::int as seconds
     from grandlivre.signing_secrets where subscription_id = $1 and (retired_at is null or retired_at > now())`
  const signing = await queryRow<{ count: number; seconds: number | null }>(client, text, [subscriptionId])
  const { count, seconds } = signing!
  if (count >= limits.signingSecretsMax)
    throw new AppError('ERR-TOO-MANY-REQUEST', {
      message: `${count} secrets sign the deliveries of this subscription. Wait until the oldest of them no longer does`,
      headers: { 'Retry-After': String(seconds) },
    })
  await client.query(
    'delete from grandlivre.signing_secrets where subscription_id = $1 and retired_at <= now()',
    [subscriptionId],
  )
  await client.query(
    `update grandlivre.signing_secrets set retired_at = now() + $2 * interval '1 ms'
     where subscription_id = $1 and retired_at is null`,
    [subscriptionId, limits.signingSecretKeptMs],
  )
  return addSigningSecret(client, subscriptionId, masterKeys)
}

/** Gives a subscription its first secret if it has none. */
export async function ensureSigningSecret(
  client: ClientBase,
  subscriptionId: string,
  { sealedSigningSecrets }: SealedSecrets,
  masterKeys: MasterKeys,
): Promise<void> {
  if (sealedSigningSecrets.length > 0) return
  const secret = await addSigningSecret(client, subscriptionId, masterKeys)
  sealedSigningSecrets.push(encrypt(secret, masterKeys[0]))
}

/** @throws {Error} if a secret was encrypted with none of these keys */
export function openSecrets(
  { sealedSecret, sealedSigningSecrets }: SealedSecrets,
  masterKeys: MasterKeys,
): { secret: string; signingSecrets: string[] } {
  return {
    secret: decrypt(sealedSecret, masterKeys),
    signingSecrets: sealedSigningSecrets.map((sealed) => decrypt(sealed, masterKeys)),
  }
}
