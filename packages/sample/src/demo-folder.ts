/**
 * Makes a folder to try the service with, on the embedded database: a made-up ledger, a third party, and a token of
 * each level. Its firm also gets small folders, so that a copy of the firm has several ledgers.
 */
import { strict as assert } from 'node:assert'
import type { ClientBase } from 'pg'
import { findCaller } from '../../../src/auth/callers.sql.ts'
import { sealingKey } from '../../../src/auth/master-key.sql.ts'
import { type Level, type MasterKeys, sha256 } from '../../../src/auth/secrets.ts'
import { insertThirdParty, makeSecret, rotateSecret } from '../../../src/auth/third-parties.sql.ts'
import { issueToken, type Opened, revokeTokensOf } from '../../../src/auth/tokens.sql.ts'
import type { DatabaseUrls } from '../../../src/db/database.ts'
import { inTransaction } from '../../../src/db/pool.ts'
import { type Credentials, readCredentials } from '../../../src/http/reference/demo-credentials.ts'
import { findFoldersByReference } from '../../../src/ledger/tenants.sql.ts'
import { correctComments, countMovements, forgetExports, listExercices } from './demo-folder.sql.ts'
import { asOwner, seed, seedFirm } from './seed.ts'

/** Reference of the folder, and code of the third party. */
const demo = 'DEMO'

/**
 * The other folders of the firm. They are small, so that the start stays short. Their references begin with that of the
 * demo folder.
 */
const smallFolders = { movements: 250, seed: 2, reference: demo }

/** Movements enough to look at, but few enough to load in less than a second, so that the start stays short. */
const movementsDefault = 5_000

export interface DemoOptions {
  dataDir: string
  /**
   * The folder is filled again unless it has this number of movements. If absent, an existing folder is kept, and a new
   * one gets 5,000.
   */
  movements?: number | undefined
  /** Least number of small folders in its firm. Default: 4. */
  besides?: number | undefined
  onProgress?: ((movementsDone: number, movements: number) => void) | undefined
}

/**
 * Creates the folder, or what it lacks, and its credentials. Credentials in the file are kept if they still open the
 * folder.
 */
export async function ensureDemoFolder(
  database: Pick<DatabaseUrls, 'ownerUrl'>,
  masterKeys: MasterKeys,
  options: DemoOptions,
): Promise<Omit<Credentials, 'baseUrl'>> {
  const { dataDir, movements, onProgress } = options
  return asOwner(database.ownerUrl, 'demo', async (pool) => {
    const found = await inTransaction(pool, (client) => findFolder(client, movements))
    const filling = { movements: movements ?? movementsDefault, reference: demo, replace: true, onProgress }
    const { schemaId, firmId, folderId } = found ?? (await seed(database.ownerUrl, filling))
    const folder = { schemaId, folderId }
    return inTransaction(pool, async (client) => {
      await fillFirm(client, { schemaId, firmId }, options)
      // Otherwise triggers within an hour would return an export of the folder's old content.
      if (!found) await forgetExports(client, folder)
      const kept = await keptSecrets(client, dataDir, folderId)
      const secrets = kept ?? (await makeSecrets(client, masterKeys, { ...folder, firmId }))
      return { ...secrets, societyId: folderId, exercices: await listExercices(client, folder) }
    })
  })
}

/** Makes the small folders that the firm lacks. */
async function fillFirm(
  client: ClientBase,
  firm: { schemaId: string; firmId: string },
  { besides = 4, onProgress }: DemoOptions,
): Promise<void> {
  let first = 1
  while (first <= besides && (await findFoldersByReference(client, `${demo}-${first}`)).length > 0) first++
  const folders = besides - first + 1
  if (folders === 0) return
  const seed = smallFolders.seed + first - 1
  await seedFirm(client, { ...smallFolders, seed, folders, first, firm, onProgress })
}

/**
 * Changes a few entries of an exercice, for the demo.
 * @returns how many were changed
 */
export function correctEntries(ownerUrl: string, folderId: string, exerciceId: string): Promise<number> {
  return asOwner(ownerUrl, 'demo', (pool) =>
    inTransaction(pool, (client) => correctComments(client, { folderId, exerciceId }, 100)),
  )
}

/** @returns undefined if the folder has to be created or filled again */
async function findFolder(client: ClientBase, movements: number | undefined) {
  const [found] = await findFoldersByReference(client, demo)
  if (!found) return undefined
  const folder = { schemaId: found.schemaId, firmId: found.firmId, folderId: found.id }
  const isAsWanted = movements === undefined || (await countMovements(client, folder)) === movements
  return isAsWanted ? folder : undefined
}

type Secrets = Pick<Credentials, 'thirdPartySecret' | 'companyToken' | 'firmToken'>

async function keptSecrets(client: ClientBase, dataDir: string, folderId: string) {
  const kept = readCredentials(dataDir)
  if (kept?.societyId !== folderId) return undefined
  const { thirdPartySecret, companyToken, firmToken } = kept
  for (const token of [companyToken, firmToken]) {
    const caller = await findCaller(client, sha256(String(thirdPartySecret)), sha256(String(token)))
    if (!caller?.tokenId) return undefined
  }
  return { thirdPartySecret, companyToken, firmToken } as Secrets
}

async function makeSecrets(client: ClientBase, masterKeys: MasterKeys, opened: Opened): Promise<Secrets> {
  const issue = async (level: Level, folderId: string | null) => {
    const issued = await issueToken(client, { thirdPartyCode: demo, level, opened: { ...opened, folderId } })
    assert(issued, 'the third party is there')
    return issued.token
  }
  const { plain: thirdPartySecret, secret } = makeSecret(await sealingKey(client, masterKeys))
  const isKnown = await rotateSecret(client, demo, secret, 0)
  if (isKnown) await revokeTokensOf(client, demo)
  else await insertThirdParty(client, { code: demo, name: 'Demo', kind: 'partner', secret })
  return {
    thirdPartySecret,
    companyToken: await issue('api', opened.folderId),
    firmToken: await issue('firm', null),
  }
}
