/** Erases a firm with its folders, or a third party. Each is hidden first, and its rows go in bounded steps, as those of a folder. */
import type { PoolClient } from 'pg'
import { findThirdParty, listSecrets, setConnection } from '../auth/third-parties.sql.ts'
import { revokeTokens } from '../auth/tokens.sql.ts'
import { inTransaction } from '../db/pool.ts'
import {
  checkFiles,
  counting,
  type ErasureParts,
  eraseFolder,
  eraseSubscriptions,
  hideFolder,
  rowsAtOnce,
} from './erase.ts'
import {
  beginErasure,
  deleteTokens,
  type ErasedKind,
  type Erasure,
  endErasure,
  findErasure,
  findErasureOfPartner,
} from './erasure.sql.ts'
import {
  deleteEvents,
  deleteFirm,
  deleteSchema,
  deleteThirdParty,
  foldersOfFirm,
  isLastFirm,
  lockFirm,
  revokeTokensOfFirm,
  subscriptionsWhere,
} from './firms-and-partners.sql.ts'

/**
 * From its first step on staff find no such firm, so that no folder or token comes to it (`findFirm`).
 * @returns undefined if there is no such firm, and none was erased under this id
 */
export async function eraseFirm(
  parts: ErasureParts,
  firmId: string,
  { withoutFiles }: { withoutFiles?: boolean | undefined } = {},
): Promise<Erasure | undefined> {
  const { owner } = parts
  const read = <T>(run: (client: PoolClient) => Promise<T>) => inTransaction(owner, run)
  if (!withoutFiles)
    for (const folderId of await read((client) => foldersOfFirm(client, firmId)))
      await checkFiles(parts, folderId)
  const firm = await read(async (client) => {
    const found = await lockFirm(client, firmId)
    if (!found || (await isUnderWay(client, 'firm', firmId))) return found
    await beginErasure(client, 'firm', firmId, found)
    await revokeTokensOfFirm(client, firmId)
    await parts.record(client, 'firm delete', { schemaId: found.schemaId, details: { firmId } })
    return found
  })
  if (firm) await eraseOfFirm(parts, firm.schemaId, firmId)
  return read((client) => findErasure(client, 'firm', firmId))
}

/** One that was ended began before a restore that brought its subject back. */
async function isUnderWay(client: PoolClient, kind: ErasedKind, id: string): Promise<boolean> {
  const erasure = await findErasure(client, kind, id)
  return erasure !== undefined && !erasure.hasEnded
}

async function eraseOfFirm(parts: ErasureParts, schemaId: string, firmId: string): Promise<void> {
  const { owner } = parts
  const read = <T>(run: (client: PoolClient) => Promise<T>) => inTransaction(owner, run)
  const counted = counting(parts, 'firm', firmId)
  const folderIds = await read((client) => foldersOfFirm(client, firmId))
  // All of them first: the rows of one may take minutes.
  for (const folderId of folderIds) await hideFolder(parts, folderId, firmId)
  for (const folderId of folderIds) {
    parts.onStep(`folder ${folderId}`)
    // Skips a folder that has moved to another firm.
    const erasure = await eraseFolder(parts, folderId, { firmId, withoutFiles: true })
    if (erasure)
      await counted.once('folders', async (client) => {
        await endErasure(client, erasure)
        return 1
      })
  }
  await eraseSubscriptions(counted, await read((client) => subscriptionsWhere(client, 'firm_id', firmId)))
  await counted.once('tokens', (client) => deleteTokens(client, 'firm_id', firmId))
  const isLast = await read((client) => isLastFirm(client, schemaId, firmId))
  if (isLast) {
    await eraseSubscriptions(
      counted,
      await read((client) => subscriptionsWhere(client, 'schema_id', schemaId)),
    )
    await counted.all('events', (client) => deleteEvents(client, schemaId, rowsAtOnce))
  }
  await read(async (client) => {
    await deleteFirm(client, schemaId, firmId)
    if (isLast) await deleteSchema(client, schemaId)
    await parts.record(client, 'firm erased', { schemaId, details: { firmId, tenant: isLast } })
  })
}

/** @returns undefined if there is no such third party, and none was erased under this code */
export async function erasePartner(parts: ErasureParts, code: string): Promise<Erasure | undefined> {
  const { owner } = parts
  const read = <T>(run: (client: PoolClient) => Promise<T>) => inTransaction(owner, run)
  const partner = await read(async (client) => {
    const found = await findThirdParty(client, code)
    if (!found || (await isUnderWay(client, 'partner', found.id))) return found
    // Its row stays where ledgers name it, and has no secrets any more.
    const wasErased = (await listSecrets(client, found.id)).length === 0
    if (wasErased && (await findErasure(client, 'partner', found.id))) return undefined
    await beginErasure(client, 'partner', found.id, { code })
    await revokeTokens(client, 'p.code', code)
    await setConnection(client, code, 'It was erased')
    await parts.record(client, 'partner delete', { details: { thirdPartyId: found.id } })
    return found
  })
  if (!partner) return read((client) => findErasureOfPartner(client, code))
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
