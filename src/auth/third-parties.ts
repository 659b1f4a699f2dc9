/**
 * Changes to third parties by staff, with their events. A third party belongs to no schema, so every schema in which it
 * holds a token gets the event. (Its registration is published with its first token there, see tokens.ts.)
 */
import type { ClientBase } from 'pg'
import type { Operation } from '../events/kinds.ts'
import { publish } from '../events/publish.ts'
import { encrypt, makeToken, sha256 } from './secrets.ts'
import {
  insertSecret,
  lockThirdParty,
  retireSecrets,
  type StoredSecret,
  updateConnection,
} from './third-parties.sql.ts'
import { schemasWithTokens } from './tokens.sql.ts'

/** Codes of third parties. With the flag of patterns in forms, which need the last - escaped. */
export const codePattern = /^[A-Z0-9][A-Z0-9_\-]{0,31}$/v

/** A new secret, and what is stored of it. @param masterKey 32 bytes */
export function makeSecret(masterKey: Buffer): { plain: string; secret: StoredSecret } {
  const plain = makeToken('secret')
  return { plain, secret: { hash: sha256(plain), encrypted: encrypt(plain, masterKey) } }
}

/**
 * Replaces the secret that signs. Calls may use the old and the new one until the old one is retired.
 * @param keepSeconds how long the old one is accepted; 0: not at all
 * @returns false if no third party has this code
 */
export async function rotateSecret(
  client: ClientBase,
  code: string,
  secret: StoredSecret,
  keepSeconds: number,
): Promise<boolean> {
  const thirdParty = await lockThirdParty(client, code)
  if (!thirdParty) return false
  await retireSecrets(client, thirdParty.id, keepSeconds)
  await insertSecret(client, thirdParty.id, secret)
  await publishChange(client, thirdParty, 'UPDATE')
  return true
}

/**
 * @param reason of disconnecting it; null connects it again
 * @returns false if no third party has this code, or it is in that state already
 */
export async function setConnection(
  client: ClientBase,
  code: string,
  reason: string | null,
): Promise<boolean> {
  const changed = await updateConnection(client, code, reason)
  if (changed) await publishChange(client, changed, reason === null ? 'UPDATE' : 'DELETE')
  return changed !== undefined
}

async function publishChange(
  client: ClientBase,
  { id, code }: { id: string; code: string },
  operation: Extract<Operation, 'UPDATE' | 'DELETE'>,
): Promise<void> {
  for (const schemaId of await schemasWithTokens(client, id))
    await publish(client, schemaId, [{ name: 'thirdParty', operation, data: { code } }])
}
