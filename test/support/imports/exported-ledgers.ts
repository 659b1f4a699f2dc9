/** Exports of ledgers of every kind, to import again. */
import type pg from 'pg'
import { seed } from '../../../packages/sample/src/seed.ts'
import { createPool } from '../../../src/db/pool.ts'
import type { FolderKey } from '../../../src/formats/rows.ts'
import { addToFolder } from '../ledgers/full-ledger.ts'
import { fillHostileLedger } from '../ledgers/hostile-ledger.ts'
import { fillFolders } from '../ledgers/ledger.ts'
import { createTenants, folders } from '../ledgers/tenants.ts'
import { createTestDatabase } from '../servers/database.ts'

export const exportedLedgers = [
  'a ledger with everything',
  'a hostile ledger',
  'a seed',
  'an empty folder',
] as const

/** Exports each ledger from a database of its own, which it drops. @returns the files by the names of the ledgers */
export async function exportLedgers(
  bytesOf: (service: pg.Pool, folder: FolderKey) => Promise<Buffer>,
): Promise<Map<string, Buffer>> {
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  const { first, otherFirm, sameFirm } = folders
  await fillFolders(staff, { first })
  await addToFolder(staff.client, first)
  await fillHostileLedger(staff.client, otherFirm)
  const seeded = await seed(database.ownerUrl, { movements: 3_000, year: 2024 })
  const service = createPool(database.serviceUrl, { max: 2, applicationName: 'test' })
  const files = new Map<string, Buffer>()
  for (const [i, folder] of [first, otherFirm, seeded, sameFirm].entries())
    files.set(exportedLedgers[i]!, await bytesOf(service, folder))
  await service.end()
  await staff.end()
  await database.drop()
  return files
}

/** Registers the senders of entries of these ledgers, in an empty database. */
export async function registerSenders(ownerUrl: string): Promise<void> {
  const staff = await createTenants(ownerUrl)
  for (const code of ['PARTNER', 'SEED']) await staff.thirdParty(code)
  await staff.client.query(
    `update grandlivre.third_parties set name = 'Éditeur « Démo » & Cie' where code = 'SEED'`,
  )
  await staff.end()
}
