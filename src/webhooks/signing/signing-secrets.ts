/**
 * The secret of a subscription, by which its receiver checks deliveries as Standard Webhooks describes it. Its owner
 * sees it when the subscription is created and when it is rotated, and never again. A subscription from before there
 * were such secrets gets its first one with its next delivery: its owner learns one by a rotation.
 */
import type { ClientBase } from 'pg'
import { sealingKey } from '../../auth/master-key.ts'
import { decrypt, encrypt, type MasterKeys, makeSigningSecret } from '../../auth/secrets.ts'
import { limits } from '../../config.ts'
import { AppError } from '../../errors.ts'
import {
  countSigningSecrets,
  insertSigningSecret,
  retireSigningSecret,
  type SealedSecrets,
} from './signing-secrets.sql.ts'

/** Gives a subscription that has no secret its first one. @returns the secret, `whsec_...` */
export async function addSigningSecret(
  client: ClientBase,
  subscriptionId: string,
  masterKeys: MasterKeys,
): Promise<string> {
  const secret = makeSigningSecret()
  const sealed = encrypt(secret, await sealingKey(client, masterKeys))
  await insertSigningSecret(client, subscriptionId, sealed)
  return secret
}

/**
 * Replaces the secret. Those before it sign beside it until their time is over, each 24 hours after it was replaced:
 * also one that was replaced twice in a row, as when the first answer was lost. The row must be locked.
 * @returns the new secret
 * @throws {AppError} ERR-TOO-MANY-REQUEST if as many sign as may
 */
export async function rotateSigningSecret(
  client: ClientBase,
  subscriptionId: string,
  masterKeys: MasterKeys,
): Promise<string> {
  const { count, seconds } = await countSigningSecrets(client, subscriptionId)
  if (count >= limits.signingSecretsMax)
    throw new AppError('ERR-TOO-MANY-REQUEST', {
      message: `${count} secrets sign the deliveries of this subscription. Wait until the oldest of them no longer does`,
      headers: { 'Retry-After': String(seconds) },
    })
  await retireSigningSecret(client, subscriptionId, limits.signingSecretKeptMs)
  return addSigningSecret(client, subscriptionId, masterKeys)
}

/** Gives a subscription its first secret if it has none. Its row must be locked. */
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
