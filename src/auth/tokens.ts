/** Issuing and revoking tokens by staff, with their events. (The SQL function `admit` publishes their first use.) */
import type { ClientBase } from 'pg'
import type { NewEvent } from '../events/events.sql.ts'
import { publish } from '../events/publish.ts'
import { makeToken, sha256 } from './secrets.ts'
import { lockThirdParty } from './third-parties.sql.ts'
import { hasToken, insertToken, type NewToken, type RevokedToken, revokeTokens } from './tokens.sql.ts'

/**
 * @param issued opened.folderId is null for a firm token
 * @returns the token, which is stored nowhere; undefined if no third party has this code
 */
export async function issueToken(
  client: ClientBase,
  issued: NewToken,
): Promise<{ id: string; token: string } | undefined> {
  const { thirdPartyCode, level, opened } = issued
  const thirdParty = await lockThirdParty(client, thirdPartyCode)
  if (!thirdParty) return undefined
  const isKnown = await hasToken(client, thirdParty.id, opened.schemaId)
  const token = makeToken(level)
  const hint = token.slice(-4)
  const id = await insertToken(client, { ...issued, hash: sha256(token), hint })
  if (id === undefined) return undefined
  const registered: NewEvent = { name: 'thirdParty', operation: 'CREATE', data: { code: thirdPartyCode } }
  const created = connector('CREATE', { ...opened, id, code: thirdPartyCode })
  await publish(client, opened.schemaId, isKnown ? [created] : [registered, created])
  return { id, token }
}

/** @returns undefined if there is no such token, or it is revoked already */
export async function revokeToken(client: ClientBase, tokenId: string): Promise<RevokedToken | undefined> {
  const revoked = await revokeTokens(client, { tokenId })
  await publishRevoked(client, revoked)
  return revoked[0]
}

/** Revokes every token of a third party. */
export async function revokeTokensOf(client: ClientBase, thirdPartyCode: string): Promise<void> {
  await publishRevoked(client, await revokeTokens(client, { thirdPartyCode }))
}

async function publishRevoked(client: ClientBase, revoked: RevokedToken[]): Promise<void> {
  const bySchema = Map.groupBy(revoked, ({ schemaId }) => schemaId)
  const schemaIds = [...bySchema.keys()].sort((a, b) => Number(a) - Number(b))
  for (const schemaId of schemaIds) {
    const events = bySchema.get(schemaId)!.map((token) => connector('DELETE', token))
    await publish(client, schemaId, events)
  }
}

function connector(
  operation: 'CREATE' | 'DELETE',
  { id, code, firmId, folderId }: Omit<RevokedToken, 'schemaId'>,
): NewEvent {
  return { name: 'connector', operation, data: { id: Number(id), code }, firmId, folderId }
}
