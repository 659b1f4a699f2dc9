/** Filled folders in a database, their full exports as files, and what SQL expects of these files. */
import { createPool } from '../../../src/db/pool.ts'
import type { FolderKey } from '../../../src/formats/rows.ts'
import { renderedFile } from '../fixtures/rendered-file.ts'
import { addToFolder } from '../ledgers/full-ledger.ts'
import { fillFolders } from '../ledgers/ledger.ts'
import { createTenants, folders, type Staff } from '../ledgers/tenants.ts'
import { madCollectionNames, readPlainCollection, readPlainEntries } from '../plain/plain-mad.ts'
import { createTestDatabase } from '../servers/database.ts'

/** The first day of the last year of the ledger. */
export const today = '2025-07-01'
/** Just after midnight of that day in Paris; in UTC, the year before has not ended. */
export const now = Date.UTC(2025, 5, 30, 22, 0, 0, 123)
export const metadata = {
  version: '1.0.0',
  createdAt: now,
  producer: 'Grandlivre',
  additionalFreeProperties: { exportId: 'export_0123' },
}

export type MadStage = Awaited<ReturnType<typeof setMadStage>>

/** All folders but `sameFirm` are filled. */
export async function setMadStage() {
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  const { first, otherFirm, otherTenant } = folders
  const filled = { first, otherFirm, otherTenant }
  await fillFolders(staff, filled)
  for (const folder of Object.values(filled)) await addToFolder(staff.client, folder)
  /** A pool of the service; its connections are named `test`. */
  const pool = createPool(database.serviceUrl, { max: 4, applicationName: 'test' })
  return {
    staff,
    pool,
    file: async (folder: FolderKey, chunkBytes?: number) => {
      const file = await renderedFile(pool, folder, 'JSON', { now, ...(chunkBytes && { chunkBytes }) })
      return { ...file, text: file.bytes.toString('utf8') }
    },
    /** The text of the file, as SQL computes it. */
    expected: (folder: FolderKey) => expected(staff, folder),
    close: async () => {
      await pool.end()
      await staff.end()
      await database.drop()
    },
  }
}

async function expected(staff: Staff, folder: FolderKey): Promise<string> {
  const data: Record<string, unknown> = {}
  for (const name of madCollectionNames) {
    const items = await readPlainCollection(staff.client, folder, name, today)
    data[name] = name === 'accountingFolder' ? items[0] : items
  }
  data['entries'] = await readPlainEntries(staff.client, folder)
  return JSON.stringify({ metadata, data })
}
