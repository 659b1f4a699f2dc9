/** Erases a firm with its folders, or a third party. Each is hidden first, and its rows go in bounded steps, as those of a folder. */
import type { PoolClient } from 'pg'
import { findThirdParty } from '../auth/third-parties.sql.ts'
import { setConnection } from '../auth/third-parties.ts'
import { findFirm, revokeTokens } from '../auth/tokens.sql.ts'
import { inTransaction } from '../db/pool.ts'
import { counting, type ErasureParts, eraseFolder, eraseSubscriptions } from './erase.ts'
import {
  beginErasure,
  deleteFirm,
  deleteThirdParty,
  deleteTokens,
  type Erasure,
  findErasure,
  foldersOfFirm,
  revokeTokensOfFirm,
  subscriptionsWhere,
} from './erasure.sql.ts'

/** @returns undefined if there is no such firm, and none was erased under this id */
export async function eraseFirm(parts: ErasureParts, firmId: string): Promise<Erasure | undefined> {
  const { owner } = parts
  const read = <T>(run: (client: PoolClient) => Promise<T>) => inTransaction(owner, run)
  const firm = await read(async (client) => {
    const found = await findFirm(client, firmId)
    if (!found || (await findErasure(client, 'firm', firmId))) return found
    await beginErasure(client, 'firm', firmId, { schemaId: found.schemaId })
    await revokeTokensOfFirm(client, firmId)
    await parts.record(client, 'firm delete', { schemaId: found.schemaId, details: { firmId } })
    return found
  })
  if (firm) {
    const { schemaId } = firm
    const counted = counting(parts, 'firm', firmId)
    for (const folderId of await read((client) => foldersOfFirm(client, firmId))) {
      parts.onStep(`folder ${folderId}`)
      await eraseFolder(parts, folderId)
      await counted.once('folders', () => Promise.resolve(1))
    }
    await eraseSubscriptions(counted, await read((client) => subscriptionsWhere(client, 'firm_id', firmId)))
    await counted.once('tokens', (client) => deleteTokens(client, 'firm_id', firmId))
    await read(async (client) => {
      const tenant = await deleteFirm(client, schemaId, firmId)
      await parts.record(client, 'firm erased', { schemaId, details: { firmId, tenant } })
    })
  }
  return read((client) => findErasure(client, 'firm', firmId))
}

/** @returns undefined if there is no such third party, and none was erased under this code */
export async function erasePartner(parts: ErasureParts, code: string): Promise<Erasure | undefined> {
  const { owner } = parts
  const read = <T>(run: (client: PoolClient) => Promise<T>) => inTransaction(owner, run)
  const partner = await read(async (client) => {
    const found = await findThirdParty(client, code)
    if (!found || (await findErasure(client, 'partner', found.id))) return found
    await beginErasure(client, 'partner', found.id)
    await revokeTokens(client, { thirdPartyCode: code })
    await setConnection(client, code, 'It was erased')
    await parts.record(client, 'partner delete', { details: { thirdPartyId: found.id } })
    return found
  })
  if (!partner) return undefined
  const { id } = partner
  const counted = counting(parts, 'partner', id)
  await eraseSubscriptions(counted, await read((client) => subscriptionsWhere(client, 'third_party_id', id)))
  await counted.once('tokens', (client) => deleteTokens(client, 'third_party_id', id))
  await read(async (client) => {
    const entries = await deleteThirdParty(client, id)
    await parts.record(client, 'partner erased', {
      details: { thirdPartyId: id, entriesThatNameIt: entries },
    })
  })
  return read((client) => findErasure(client, 'partner', id))
}
