/**
 * Third parties as staff change them, with the events that tell of it. A third party belongs to no schema: each one in
 * which it holds a token is told. (That it was registered is told there with its first token, see tokens.ts.)
 */
import type { ClientBase } from 'pg'
import type { Operation } from '../events/kinds.ts'
import { publish } from '../events/publish.ts'
import {
  disconnectThirdParty,
  insertSecret,
  lockThirdParty,
  reconnectThirdParty,
  retireSecrets,
  type StoredSecret,
} from './third-parties.sql.ts'
import { schemasWithTokens } from './tokens.sql.ts'

/**
 * The secret that signs from now on. Both are accepted in calls until those before are retired.
 * @param keepSeconds how long; 0: they are unknown at once
 * @returns false where no third party has this code
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

/** @returns false where no third party has this code, or it was disconnected before */
export async function disconnect(client: ClientBase, code: string, reason: string): Promise<boolean> {
  const thirdParty = await lockThirdParty(client, code)
  if (!thirdParty || !(await disconnectThirdParty(client, code, reason))) return false
  await publishChange(client, thirdParty, 'DELETE')
  return true
}

/** @returns false where no third party has this code, or it is connected */
export async function reconnect(client: ClientBase, code: string): Promise<boolean> {
  const thirdParty = await lockThirdParty(client, code)
  if (!thirdParty || !(await reconnectThirdParty(client, code))) return false
  await publishChange(client, thirdParty, 'UPDATE')
  return true
}

async function publishChange(
  client: ClientBase,
  { id, code }: { id: string; code: string },
  operation: Extract<Operation, 'UPDATE' | 'DELETE'>,
): Promise<void> {
  for (const schemaId of await schemasWithTokens(client, id))
    await publish(client, schemaId, [{ name: 'thirdParty', operation, data: { code } }])
}
