/**
 * The secret of a subscription, by which its receiver checks deliveries as Standard Webhooks describes it. Its owner
 * sees it when the subscription is created and when it is rotated, and never again. A subscription from before there
 * were such secrets gets its first one with its next delivery: its owner learns one by a rotation. Whatever writes needs
 * the row of the subscription locked.
 */
import type { ClientBase } from 'pg'
import { sealingKey } from '../auth/master-key.sql.ts'
import { decrypt, encrypt, type MasterKeys, makeSigningSecret } from '../auth/secrets.ts'
import { limits } from '../config.ts'
import { queryRow } from '../db/statement.ts'
import { AppError } from '../errors.ts'

/** What signs the deliveries of a subscription: AES-256-GCM with the master key. */
export interface SealedSecrets {
  /** The newest secret of the third party. */
  sealedSecret: Buffer
  /** Newest first; empty if the subscription has none yet. */
  sealedSigningSecrets: Buffer[]
}

/** The secrets of a subscription `s` that sign: a column. */
export const sealedSigningSecrets = `array(
  select g.secret_encrypted from grandlivre.signing_secrets g
  where g.subscription_id = s.id and (g.retired_at is null or g.retired_at > now())
  order by g.created_at desc)`

/** Locks the subscription and reads its secrets. Inside `whileDelivering`. Undefined if it does not exist. */
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
 * Replaces the secret. Those before it sign beside it until their time is over, each 24 hours after it was replaced:
 * also one that was replaced twice in a row, as when the first answer was lost.
 * @returns the new secret
 * @throws {AppError} ERR-TOO-MANY-REQUEST if as many sign as may
 */
export async function rotateSigningSecret(
  client: ClientBase,
  subscriptionId: string,
  masterKeys: MasterKeys,
) {
  // In how many seconds the first of them no longer signs; null if there is only the newest.
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

/** @throws {Error} if one was encrypted with none of these keys */
export function openSecrets(
  { sealedSecret, sealedSigningSecrets }: SealedSecrets,
  masterKeys: MasterKeys,
): { secret: string; signingSecrets: string[] } {
  return {
    secret: decrypt(sealedSecret, masterKeys),
    signingSecrets: sealedSigningSecrets.map((sealed) => decrypt(sealed, masterKeys)),
  }
}
